//! The leased permits of one key, and when the next may be asked for.

use std::time::Duration;

use smallvec::SmallVec;
use tokio::time::Instant;

use crate::algorithm::adjustable_gcra::AdjustableGcraSpec;
use crate::algorithm::{AlgorithmSpec, Verdict};

/// How long permits of a bucket live at most.
const MAX_LIFE: Duration = Duration::from_secs(1);

/// How long no lease is tried after a refusal. Twice as long after the next, so that calls of a key that stays limited rarely
/// cost two requests.
const MIN_PAUSE: Duration = Duration::from_millis(10);
const MAX_PAUSE: Duration = Duration::from_secs(1);

/// The leased permits of one key, for one policy.
#[derive(Debug)]
pub(super) struct LeasedPermits {
    pub(super) spec: AlgorithmSpec,
    /// In the order of their ends, which is that of their leases.
    leases: SmallVec<[Lease; 2]>,
    /// The number of permits at which the next lease is asked for.
    low: u64,
    /// What Redis said of the last lease.
    verdict: Verdict,
    last_call: Option<Instant>,
    /// When the key was last reset. What was asked for before is void.
    reset: Option<Instant>,
    pause: Duration,
    paused_until: Option<Instant>,
}

/// The unspent permits of a lease.
#[derive(Debug)]
struct Lease {
    permits: u64,
    until: Instant,
}

impl LeasedPermits {
    pub(super) fn none(spec: AlgorithmSpec) -> Self {
        LeasedPermits {
            spec,
            leases: SmallVec::new(),
            low: 0,
            verdict: Verdict::default(),
            last_call: None,
            reset: None,
            pause: Duration::ZERO,
            paused_until: None,
        }
    }

    /// Takes permits, the oldest first, if there are as many. Returns what a decision says of the key then, and whether it is
    /// time to ask for more.
    pub(super) fn spend(&mut self, cost: u64, now: Instant) -> Option<(Verdict, bool)> {
        self.leases.retain(|lease| now < lease.until);
        let left = self.total().checked_sub(cost)?;
        let mut missing = cost;
        for lease in &mut self.leases {
            let taken = missing.min(lease.permits);
            lease.permits -= taken;
            missing -= taken;
        }
        self.leases.retain(|lease| lease.permits > 0);
        self.last_call = Some(now);
        let verdict = Verdict { remaining: self.verdict.remaining + left, ..self.verdict };
        Some((verdict, left <= self.low && !self.is_paused(now)))
    }

    /// Takes permits like [`spend`](Self::spend), if it is not time to ask for more then.
    pub(super) fn spend_spare(&mut self, cost: u64, now: Instant) -> Option<Verdict> {
        let kept = self.low.saturating_add(1);
        let (verdict, _) = self.suffice(cost.saturating_add(kept), now).then(|| self.spend(cost, now))??;
        Some(verdict)
    }

    /// Adds what a lease has left that was asked for at `sent`, and ends at `until`.
    pub(super) fn add(&mut self, left: u64, verdict: &Verdict, sent: Instant, until: Instant, now: Instant) {
        (self.low, self.verdict) = (left / 4, *verdict);
        if left > 0 && until <= now {
            // Replies take longer than permits live, so there is nothing to gain.
            return self.pause(Duration::ZERO, now);
        }
        self.pause = Duration::ZERO;
        self.put(left, sent, until, now);
    }

    /// Adds permits that were asked for at `sent`, and end at `until`.
    pub(super) fn put(&mut self, permits: u64, sent: Instant, until: Instant, now: Instant) {
        let is_void = self.reset.is_some_and(|reset| sent <= reset);
        if permits > 0 && now < until && !is_void {
            let at = self.leases.iter().take_while(|lease| lease.until <= until).count();
            self.leases.insert(at, Lease { permits, until });
        }
    }

    /// Returns how long a lease of this many permits lives.
    pub(super) fn life(&self, permits: u64, verdict: &Verdict) -> Duration {
        match &self.spec {
            AlgorithmSpec::FixedWindow(_) => Duration::from_micros(verdict.reset_after),
            _ => self.longest_life(permits),
        }
    }

    /// Ends all leases, including those that are on their way.
    pub(super) fn reset(&mut self, now: Instant) {
        self.leases.clear();
        self.reset = Some(now);
    }

    /// Lets calls ask for themselves, for at least this time.
    pub(super) fn pause(&mut self, at_least: Duration, now: Instant) {
        self.pause = at_least.max(2 * self.pause).clamp(MIN_PAUSE, MAX_PAUSE);
        self.paused_until = Some(now + self.pause);
    }

    /// Notes a call that finds no permits. Returns whether a lease of this size is worth asking for: unless a whole one would have
    /// ended since the last call, so that keys with few calls lease nothing.
    pub(super) fn is_wanted(&mut self, size: u64, now: Instant) -> bool {
        let last_call = self.last_call.replace(now);
        let is_rare = last_call.is_some_and(|last_call| now >= last_call + self.longest_life(size));
        !is_rare && !self.is_paused(now)
    }

    /// Whether there are as many permits.
    pub(super) fn suffice(&self, cost: u64, now: Instant) -> bool {
        let live = self.leases.iter().filter(|lease| now < lease.until);
        live.map(|lease| lease.permits).sum::<u64>() >= cost
    }

    pub(super) fn is_paused(&self, now: Instant) -> bool {
        self.paused_until.is_some_and(|until| now < until)
    }

    /// Whether it says no more than one that is new.
    pub(super) fn is_unused(&self, now: Instant) -> bool {
        !self.is_paused(now) && self.leases.iter().all(|lease| lease.until <= now)
    }

    /// Returns how long a lease of this many permits lives at most: one of a window may be asked for when little is left of that.
    fn longest_life(&self, permits: u64) -> Duration {
        let refill = match &self.spec {
            AlgorithmSpec::Gcra(bucket) | AlgorithmSpec::AdjustableGcra(AdjustableGcraSpec(bucket)) => {
                bucket.charge(permits)
            }
            AlgorithmSpec::IntervalBucket(bucket) => permits.saturating_mul(bucket.period) / bucket.refill,
            AlgorithmSpec::FixedWindow(window) => return Duration::from_micros(window.period),
            // Their attributes have no lease.
            AlgorithmSpec::WarmingUp(_) | AlgorithmSpec::SlidingWindow(_) => 0,
        };
        Duration::from_micros(refill).min(MAX_LIFE)
    }

    fn total(&self) -> u64 {
        self.leases.iter().map(|lease| lease.permits).sum()
    }
}
