//! Buckets that refill at intervals.

use std::collections::BTreeMap;

use super::promised::{Call, Interval, Promised};

/// In every interval of length `t` at most `burst + refill · (⌊t / period⌋ + 1)`.
///
/// With `q` periods and the *phase* `r` at a time, an interval has `q₂ - q₁` whole periods, or one less if it ends at an earlier phase
/// than it began at. So the worst start is the best of all, or the best of those with a later phase, which have a refill less: of two
/// starts, one with an earlier phase and no more worth can never be the worst.
#[derive(Debug)]
pub(super) struct Refills {
    pub(super) burst: u64,
    pub(super) refill: u64,
    pub(super) period: u64,
    pub(super) blur: u64,
}

#[derive(Debug, Default)]
pub(super) struct State {
    /// All permits so far.
    permits: u64,
    /// Starts by their phase. The later, the less they are worth, but by less than a refill in all: there are no more than the permits of one.
    starts: BTreeMap<u64, Start>,
}

#[derive(Clone, Copy, Debug)]
struct Start {
    /// What had refilled by then, less what had been admitted.
    worth: i128,
    time: u64,
    /// The permits before it.
    before: u64,
}

impl Refills {
    /// Returns the whole periods before a time, and its phase.
    fn split(&self, time: i128) -> (i128, u64) {
        let period = i128::from(self.period);
        (time.div_euclid(period), time.rem_euclid(period) as u64)
    }

    fn refilled(&self, periods: i128) -> i128 {
        i128::from(self.refill) * periods
    }

    fn begin(&self, state: &mut State, time: u64) {
        let (periods, phase) = self.split(time.into());
        let worth = self.refilled(periods) - i128::from(state.permits);
        let start = Start { worth, time, before: state.permits };
        let starts = &mut state.starts;
        if starts.range(phase..).next().is_some_and(|(_, later)| later.worth >= worth) {
            return;
        }
        while let Some((&earlier, _)) = starts.range(..=phase).next_back().filter(|(_, it)| it.worth <= worth)
        {
            starts.remove(&earlier);
        }
        starts.insert(phase, start);
        // A refill less does not make these worse than the best.
        let best = starts.first_key_value().map_or(worth, |(_, best)| best.worth);
        while starts.last_key_value().is_some_and(|(_, last)| last.worth + self.refilled(1) <= best) {
            starts.pop_last();
        }
    }

    /// Returns the start of the worst interval that ends at this time, and how much was admitted in it beyond whole periods' refills.
    fn worst(&self, state: &State, time: i128) -> Option<(Start, i128)> {
        let (periods, phase) = self.split(time);
        let ahead = |worth: i128| worth + i128::from(state.permits) - self.refilled(periods);
        let (_, best) = state.starts.first_key_value()?;
        let mut worst = (*best, ahead(best.worth));
        if let Some((_, later)) = state.starts.range(phase + 1..).next() {
            let of_later = ahead(later.worth + self.refilled(1));
            if of_later > worst.1 {
                worst = (*later, of_later);
            }
        }
        Some(worst)
    }
}

impl Promised for Refills {
    type State = State;

    fn admit(&self, state: &mut State, call: Call) -> Option<Interval> {
        self.begin(state, call.time);
        state.permits += call.cost;
        let (Start { time, before, .. }, ahead) =
            self.worst(state, i128::from(call.time) + i128::from(self.blur))?;
        if ahead <= i128::from(self.burst) + self.refilled(1) {
            return None;
        }
        let admitted = state.permits - before;
        let allowed = i128::from(admitted) - ahead + i128::from(self.burst) + self.refilled(1);
        let (from, to, allowed) = (time, call.time, allowed as u64);
        Some(Interval { from, to, admitted, allowed, is_from_first: false })
    }

    fn would_admit(&self, state: &mut State, call: Call) -> Option<bool> {
        let worst = self.worst(state, i128::from(call.time) - i128::from(self.blur));
        let missing = worst.map_or(0, |(_, ahead)| ahead.max(0));
        Some(missing + i128::from(call.cost) <= i128::from(self.burst))
    }

    fn settled(&self, first: u64) -> u64 {
        let periods = self.burst.div_ceil(self.refill) + 1;
        first.saturating_add(self.period.saturating_mul(periods))
    }
}
