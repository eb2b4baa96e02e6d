//! The check of all policies on all keys of a log.

use super::checks::{Call, Check};
use super::events::Event;
use crate::log::{Keys, MOST_PERMITS};

/// What is found in a log.
#[derive(Debug)]
pub(super) struct Audit {
    pub(super) policies: Vec<Audited>,
    keys: Keys,
    calls: Vec<Option<Calls>>,
    pub(super) admitted: u64,
    pub(super) refused: u64,
    /// How many refused calls no policy had to refuse, and how many of them calls from before the log may be why.
    pub(super) needless: u64,
    pub(super) needless_early: u64,
    /// The times of the first and the last call.
    pub(super) first: u64,
    pub(super) last: u64,
    /// Whether all times are whole seconds.
    pub(super) is_in_seconds: bool,
}

/// A policy and what is found of it.
#[derive(Debug)]
pub(super) struct Audited {
    pub(super) check: Box<dyn Check>,
    cost: u64,
    /// The permits of all admitted calls.
    pub(super) permits: u64,
    /// How many calls it had to refuse, and of how many a log cannot tell.
    pub(super) needed: u64,
    pub(super) unknown: u64,
}

/// The first and the last call of a key.
#[derive(Clone, Copy, Debug)]
struct Calls {
    first: u64,
    last: u64,
    last_line: u64,
}

impl Audited {
    pub(super) fn new(check: Box<dyn Check>, cost: u64) -> Self {
        Audited { check, cost, permits: 0, needed: 0, unknown: 0 }
    }

    /// Returns the call of a line as this policy charges it.
    fn call(&self, event: Event) -> Call {
        Call { time: event.time, cost: event.cost.unwrap_or(self.cost), end: event.end }
    }
}

impl Audit {
    pub(super) fn new(policies: Vec<Audited>) -> Self {
        Audit {
            policies,
            keys: Keys::new(),
            calls: Vec::new(),
            admitted: 0,
            refused: 0,
            needless: 0,
            needless_early: 0,
            first: u64::MAX,
            last: 0,
            is_in_seconds: true,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.admitted == 0 && self.refused == 0
    }

    pub(super) fn keys(&self) -> &Keys {
        &self.keys
    }

    pub(super) fn keys_mut(&mut self) -> &mut Keys {
        &mut self.keys
    }

    /// Returns the time of a key's first call.
    pub(super) fn first_of(&self, key: usize) -> u64 {
        self.calls.get(key).copied().flatten().map_or(self.first, |calls| calls.first)
    }

    /// Checks the call of a line. Returns why it cannot be checked.
    pub(super) fn add(&mut self, event: Event) -> Result<(), String> {
        let Event { time, line, key, is_refused, .. } = event;
        if key >= self.calls.len() {
            self.calls.resize(key + 1, None);
        }
        let Calls { last, last_line, .. } =
            *self.calls[key].get_or_insert(Calls { first: time, last: time, last_line: line });
        if time < last {
            return Err(format!(
                "line {line}: its time is before that of line {last_line}, which has the same key; sort the log by time, or say how \
                 late lines are with `--late`"
            ));
        }
        self.calls[key] = self.calls[key].map(|calls| Calls { last: time, last_line: line, ..calls });
        (self.first, self.last) = (self.first.min(time), self.last.max(time));
        self.is_in_seconds &= time.is_multiple_of(1_000_000_000);
        if is_refused {
            self.refuse(event);
            return Ok(());
        }
        self.admitted += 1;
        for policy in &mut self.policies {
            let call = policy.call(event);
            policy.permits += call.cost;
            if policy.permits > MOST_PERMITS {
                return Err(format!("line {line}: the costs so far add up to more than {MOST_PERMITS}"));
            }
            if call.cost > 0 {
                policy.check.admit(key, call);
            }
        }
        Ok(())
    }

    fn refuse(&mut self, event: Event) {
        self.refused += 1;
        let (mut is_needless, mut settled) = (true, 0);
        for policy in &mut self.policies {
            let call = policy.call(event);
            let would_admit =
                if call.cost == 0 { Some(true) } else { policy.check.would_admit(event.key, call) };
            policy.needed += u64::from(would_admit == Some(false));
            policy.unknown += u64::from(would_admit.is_none());
            is_needless &= would_admit == Some(true);
            settled = settled.max(policy.check.settled(self.first));
        }
        self.needless += u64::from(is_needless);
        self.needless_early += u64::from(is_needless && event.time < settled);
    }
}
