//! Buckets that refill continuously, or leak.

use ratelimit_runtime::BucketPromise;

use super::promised::{Call, Interval, Promised};

/// In every interval at most the capacity and what refills in it. The worst interval that ends with a call begins where the calls
/// from there on have never been made up for since; its level is how much they are ahead of what refills.
#[derive(Debug)]
pub(super) struct Bucket {
    pub(super) bucket: BucketPromise,
    pub(super) blur: u64,
}

#[derive(Debug, Default)]
pub(super) struct State {
    /// In fractions of a permit.
    level: i128,
    /// The permits since the interval began.
    permits: u64,
    from: u64,
    last: u64,
}

impl Bucket {
    fn refill(&self, time: u64) -> i128 {
        self.bucket.refill as i128 * i128::from(time)
    }

    fn fractions(&self, permits: u64) -> i128 {
        self.bucket.permit as i128 * i128::from(permits)
    }

    fn capacity(&self) -> i128 {
        self.bucket.capacity as i128
    }
}

impl Promised for Bucket {
    type State = State;

    fn admit(&self, state: &mut State, call: Call) -> Option<Interval> {
        let Call { time, cost, .. } = call;
        state.level -= self.refill(time - state.last);
        state.last = time;
        if state.level <= 0 {
            *state = State { level: 0, permits: 0, from: time, last: time };
        }
        let before = state.level;
        state.level += self.fractions(cost);
        state.permits += cost;
        // A bucket that lends ignores what the last call takes.
        let (level, lent) = if self.bucket.lends { (before, cost) } else { (state.level, 0) };
        if level <= self.capacity() + self.refill(self.blur) {
            return None;
        }
        let most = self.capacity() + self.refill(time - state.from) + self.refill(self.blur);
        let allowed = (most / self.fractions(1)) as u64 + lent;
        Some(Interval { from: state.from, to: time, admitted: state.permits, allowed, is_from_first: false })
    }

    fn would_admit(&self, state: &mut State, call: Call) -> Option<bool> {
        let level = (state.level - self.refill(call.time - state.last)).max(0) + self.refill(self.blur);
        let with_call = if self.bucket.lends { level } else { level + self.fractions(call.cost) };
        self.bucket.tells_refusals.then_some(with_call <= self.capacity())
    }

    fn settled(&self, first: u64) -> u64 {
        first.saturating_add((self.capacity() / self.refill(1)) as u64)
    }
}
