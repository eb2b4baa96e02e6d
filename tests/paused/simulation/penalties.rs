//! The penalties of keys that are refused, and what they must follow: a model of a key where nothing fails.

use super::bounds::{Admission, Numbers};
use super::functions::PENALTIES;
use super::log::{Log, Penalty, Refusal};
use super::schedule::Run;
use super::target::{Kind, Target};

/// For how long a process remembers a refusal, in microseconds.
const REMEMBERED: u64 = 1_000_000;

/// What happened to a key at a time: calls that were admitted come first, as a key that is paused has no others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    Admitted(u64, Numbers),
    Penalized(u64),
    Refused(u64, Numbers),
}

/// A key, as the policy and its penalties say.
#[derive(Debug, Default)]
struct Key {
    /// Until when this is what it has used: in microseconds of refill, or in permits of a window that was opened then.
    now: u64,
    used: u64,
    opened: u64,
    paused_until: u64,
    /// The penalties that are not forgiven, and whether the key has admitted no call since the last one.
    step: usize,
    is_spent: bool,
    /// The same before any call of this time, because a call may have been refused before another was admitted.
    was_spent: bool,
}

impl Run {
    /// Checks the penalties of a key, given the calls that the server has admitted.
    pub(super) fn check_penalties(
        &self,
        log: &Log,
        (number, target): (usize, &Target),
        key: u64,
        calls: &[Admission],
        breaks: &[[u64; 2]],
    ) -> Result<(), String> {
        let all = log.penalties.iter().filter(|it| (it.target, it.key) == (number, key));
        let all: Vec<&Penalty> = all.collect();
        let steps = PENALTIES.map(|step| step.as_micros() as u64);
        for (at, penalty) in all.iter().enumerate() {
            let follows_early = |earlier: &&&Penalty| {
                let ends = earlier.start + earlier.micros;
                let is_broken = breaks.iter().any(|it| it[0] <= penalty.end && it[1] >= earlier.start);
                penalty.end < ends && !is_broken
            };
            let early = all[..at].iter().find(follows_early);
            if !steps.contains(&penalty.micros) || early.is_some() {
                return Err(format!("{penalty:?} after {early:?}"));
            }
        }
        if !self.plan.is_clean() || self.plan.chances.overrides {
            return Ok(());
        }
        let refusals = log.refusals.iter().filter(|it| (it.target, it.key) == (number, key));
        let refused =
            refusals.map(|Refusal { at, cost, numbers, .. }| (*at, Event::Refused(*cost, *numbers)));
        let admitted = calls.iter().map(|call| (call.start, Event::Admitted(call.permits, call.numbers)));
        let penalized = all.iter().map(|it| (it.end, Event::Penalized(it.micros)));
        let mut events: Vec<_> = admitted.chain(penalized).chain(refused).collect();
        events.sort_by_key(|(at, event)| (*at, event.rank()));
        let mut state = Key::default();
        for (index, (at, event)) in events.iter().enumerate() {
            // One of the refusals at this time is what pauses the key.
            let same_time = events[index..].iter().take_while(|(other, _)| other == at);
            let refused = same_time.filter_map(|(_, event)| match event {
                Event::Refused(cost, numbers) => Some((*cost, *numbers)),
                _ => None,
            });
            let refused = refused.max_by_key(|(cost, _)| *cost);
            // A process repeats a refusal that it remembers, even of a key that has admitted calls of less since.
            let repeats = |(before, earlier): &(u64, Event)| {
                earlier == event && *before < *at && *at < before.saturating_add(REMEMBERED)
            };
            if matches!(event, Event::Refused(..)) && events[..index].iter().any(repeats) {
                continue;
            }
            let followed = state.follow(target, *at, *event, refused);
            followed.map_err(|problem| format!("{problem} at {at}, {state:?}: {events:?}"))?;
        }
        Ok(())
    }
}

impl Event {
    fn rank(&self) -> u8 {
        match self {
            Event::Admitted(..) => 0,
            Event::Penalized(_) => 1,
            Event::Refused(..) => 2,
        }
    }
}

impl Key {
    fn follow(
        &mut self,
        target: &Target,
        at: u64,
        event: Event,
        refused: Option<(u64, Numbers)>,
    ) -> Result<(), &'static str> {
        let steps = PENALTIES.map(|step| step.as_micros() as u64);
        let is_paused = at < self.paused_until;
        self.pass(target, at);
        match event {
            Event::Admitted(cost, numbers) => {
                if is_paused || !self.fits(target, cost, numbers) {
                    return Err("admitted");
                }
                self.charge(target, cost);
                self.is_spent = false;
            }
            Event::Penalized(micros) => {
                let longest = steps[steps.len() - 1];
                let forgiven = at.saturating_sub(self.paused_until) / longest;
                let step = self.step.saturating_sub(forgiven as usize);
                let is_due = refused.is_some_and(|(cost, numbers)| !self.fits(target, cost, numbers));
                if is_paused || self.is_spent || !is_due || steps[step.min(steps.len() - 1)] != micros {
                    return Err("penalized");
                }
                (self.step, self.is_spent) = ((step + 1).min(steps.len()), true);
                self.paused_until = at + micros;
                if target.kind == Kind::PenalizedBucket {
                    self.used = self.used.max((target.limit - 1) * target.period);
                }
            }
            Event::Refused(..) if is_paused => {}
            Event::Refused(cost, numbers)
                if !(self.is_spent || self.was_spent) || self.fits(target, cost, numbers) =>
            {
                return Err("refused");
            }
            Event::Refused(..) => {}
        }
        Ok(())
    }

    /// Passes the time until then. That of a bucket stands still while it is paused.
    fn pass(&mut self, target: &Target, at: u64) {
        match target.kind {
            Kind::PenalizedBucket => {
                let since = self.now.max(self.paused_until);
                self.used = self.used.saturating_sub(at.saturating_sub(since));
            }
            _ if at >= self.opened + target.period => self.used = 0,
            _ => {}
        }
        if at > self.now {
            self.was_spent = self.is_spent;
        }
        self.now = at;
    }

    fn fits(&self, target: &Target, cost: u64, numbers: Numbers) -> bool {
        match target.kind {
            Kind::PenalizedBucket => self.used + cost * target.period <= numbers.limit * target.period,
            _ => self.used + cost <= numbers.limit,
        }
    }

    fn charge(&mut self, target: &Target, cost: u64) {
        match target.kind {
            Kind::PenalizedBucket => self.used += cost * target.period,
            _ => {
                if self.used == 0 {
                    self.opened = self.now;
                }
                self.used += cost;
            }
        }
    }
}
