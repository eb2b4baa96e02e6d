//! An independent check of pauses: no call that is decided after a key was paused starts before the end, and a bucket has one permit
//! at most then. It uses neither the model nor any state of the library.

use crate::model::{AdjustableKind, Policy, Refund};

/// What one key has admitted since it was paused last.
#[derive(Debug)]
pub(crate) struct PauseChecker {
    /// The policy, if the key has a single one.
    policy: Option<Policy>,
    /// When the last pause ends.
    until: i128,
    calls: Vec<Call>,
    /// Whether the bound holds. It does not after a refund without a receipt, before the next pause.
    is_bound: bool,
    enabled: bool,
}

#[derive(Clone, Copy, Debug)]
struct Call {
    id: usize,
    slot: i128,
    /// Microseconds of refill, or permits.
    price: i128,
}

impl PauseChecker {
    pub(crate) fn new(policies: &[Policy]) -> Self {
        let policy = (policies.len() == 1).then(|| policies[0]);
        PauseChecker { policy, until: 0, calls: Vec::new(), is_bound: false, enabled: true }
    }

    /// After a clock that stepped back, nothing is promised of times.
    pub(crate) fn disable(&mut self) {
        self.enabled = false;
    }

    pub(crate) fn reset(&mut self) {
        (self.until, self.is_bound) = (0, false);
        self.calls.clear();
    }

    pub(crate) fn pause(&mut self, until: i128) {
        (self.until, self.is_bound) = (until.max(self.until), true);
        self.calls.clear();
    }

    /// Adds the next admitted call.
    pub(crate) fn add(&mut self, id: usize, cost: i128, now: i128, wait: i128) -> Result<(), String> {
        let slot = now + wait;
        if self.enabled && slot < self.until {
            return Err(format!("a call starts at {slot} in a pause that ends at {}", self.until));
        }
        let price = self.policy.map_or(0, |policy| policy.price(cost));
        self.calls.push(Call { id, slot, price });
        self.check()
    }

    pub(crate) fn refund(&mut self, id: usize, refund: Refund) -> Result<(), String> {
        if let Some(call) = self.calls.iter_mut().find(|call| call.id == id) {
            call.price -= match refund {
                Refund::Of(amount) => amount,
                Refund::All => call.price,
            };
            self.calls.retain(|call| call.price > 0);
        }
        self.check()
    }

    pub(crate) fn refund_without_receipt(&mut self) {
        self.is_bound = false;
    }

    /// Checks what starts from the end of the pause to each call.
    fn check(&mut self) -> Result<(), String> {
        let Some(policy) = self.policy.filter(|_| self.enabled && self.is_bound) else { return Ok(()) };
        self.calls.sort_by_key(|call| call.slot);
        let (mut before, mut largest) = (0, 0);
        for call in &self.calls {
            let (sum, time) = (before + call.price, call.slot - self.until);
            largest = largest.max(call.price);
            if !is_within(policy, [before, sum, sum - largest], time) {
                return Err(format!("{sum} in the {time} µs after {}: {:?}", self.until, self.calls));
            }
            before = sum;
        }
        Ok(())
    }
}

/// Returns whether calls may take so much in this time after a pause: all but the last, all, and all but the one that takes most.
fn is_within(policy: Policy, [before, sum, others]: [i128; 3], time: i128) -> bool {
    match policy {
        Policy::Bucket { .. } => sum <= policy.price(1) + time,
        Policy::Adjustable(bucket) if bucket.kind == AdjustableKind::Meter => sum <= policy.price(1) + time,
        Policy::Adjustable(bucket) if bucket.kind == AdjustableKind::Borrowing => others <= time,
        // Any cost, but once.
        Policy::Borrowing { .. } => others <= time,
        Policy::Queue { .. } | Policy::Adjustable(_) => before <= time,
        // Where stored permits ran out, each part of the first call's time was cut to whole microseconds.
        Policy::WarmingUp { .. } => before <= time + 2,
        Policy::Interval { refill, every, .. } => sum <= 1 + refill * (time / every + 1),
        Policy::Fixed { .. } | Policy::Calendar { .. } | Policy::Sliding { .. } | Policy::Holds { .. } => {
            true
        }
    }
}
