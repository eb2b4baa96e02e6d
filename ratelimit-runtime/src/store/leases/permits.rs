//! The leased permits of one key, and when the next may be asked for.

use std::time::Duration;

use smallvec::SmallVec;
use tokio::time::Instant;

use crate::algorithm::adjustable_gcra::AdjustableGcraSpec;
use crate::algorithm::settled_gcra::SettledGcraSpec;
use crate::algorithm::{AlgorithmSpec, ChargeId, Verdict};
use crate::key::Key;
use crate::store::charge::Charge;
use crate::store::correction::Correction;

/// How long leased permits live at most.
const MAX_LIFE: Duration = Duration::from_secs(1);

/// How long no lease is tried after a refusal. Twice as long after the next, so that calls of a key that stays limited rarely
/// cost two requests.
const MIN_PAUSE: Duration = Duration::from_millis(10);
const MAX_PAUSE: Duration = Duration::from_secs(1);

/// The leased permits of one key, for one policy.
#[derive(Debug)]
pub(super) struct LeasedPermits {
    pub(super) spec: AlgorithmSpec,
    key: Key,
    /// In the order of their ends. Those that have ended stay until they are given back.
    leases: SmallVec<[Lease; 2]>,
    /// When the last lease ends. Until then calls that are dropped may return permits.
    end: Option<Instant>,
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
#[derive(Clone, Copy, Debug)]
pub(super) struct Lease {
    pub(super) permits: u64,
    pub(super) charge_id: ChargeId,
    /// When it was asked for.
    pub(super) sent: Instant,
    pub(super) until: Instant,
    /// Until when Redis counts its charge: later there is nothing to give back.
    pub(super) counts_until: Instant,
}

impl LeasedPermits {
    pub(super) fn none(charge: &Charge) -> Self {
        LeasedPermits {
            spec: charge.spec,
            key: charge.key.clone(),
            leases: SmallVec::new(),
            end: None,
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
        let left = self.left(now).checked_sub(cost)?;
        let mut missing = cost;
        for lease in self.leases.iter_mut().filter(|lease| now < lease.until) {
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

    /// Returns a lease of this many permits that was asked for at `sent`.
    pub(super) fn lease(&self, permits: u64, size: u64, verdict: &Verdict, sent: Instant) -> Lease {
        let counts = Duration::from_micros(verdict.reset_after);
        let life = match &self.spec {
            AlgorithmSpec::FixedWindow(_) | AlgorithmSpec::CalendarWindow(_) => counts.min(MAX_LIFE),
            _ => self.longest_life(permits.min(size)),
        };
        let charge_id = verdict.charge_id;
        Lease { permits, charge_id, sent, until: sent + life, counts_until: sent + counts }
    }

    /// Adds what a lease has left.
    pub(super) fn add(&mut self, lease: Lease, verdict: &Verdict, now: Instant) {
        (self.low, self.verdict) = (lease.permits / 4, *verdict);
        self.end = self.end.max(Some(lease.until));
        self.pause = Duration::ZERO;
        if lease.permits > 0 && lease.until <= now {
            // Replies take longer than permits live, so there is nothing to gain.
            self.pause(Duration::ZERO, now);
        }
        self.put(lease, now);
    }

    /// Adds permits of a lease. They are only given back if it has ended, or its key was reset since it was asked for.
    pub(super) fn put(&mut self, lease: Lease, now: Instant) {
        let is_void = self.reset.is_some_and(|reset| lease.sent <= reset);
        if lease.permits == 0 || is_void && !self.outlives_resets() {
            return;
        }
        let until = if is_void { lease.until.min(now) } else { lease.until };
        let is_same = |other: &&mut Lease| other.until == until && other.charge_id == lease.charge_id;
        match self.leases.iter_mut().find(is_same) {
            Some(same) => same.permits += lease.permits,
            None => {
                let at = self.leases.iter().take_while(|other| other.until <= until).count();
                self.leases.insert(at, Lease { until, ..lease });
            }
        }
    }

    /// Takes what is left of leases that have ended. Returns what is given back of it, and when the next one ends.
    pub(super) fn end(&mut self, now: Instant) -> (Vec<Correction>, Option<Instant>) {
        let ended = self.leases.iter().take_while(|lease| lease.until <= now).count();
        let refunds = self.take(ended, now);
        let next = self.leases.first().map(|lease| lease.until);
        (refunds, next.or(self.end.filter(|end| now < *end)))
    }

    /// Takes what is left of all leases. Returns what is given back of it.
    pub(super) fn end_all(&mut self, now: Instant) -> Vec<Correction> {
        self.take(self.leases.len(), now)
    }

    fn take(&mut self, count: usize, now: Instant) -> Vec<Correction> {
        let LeasedPermits { key, spec, leases, .. } = self;
        let counting = leases.drain(..count).filter(|lease| now < lease.counts_until);
        let refund = |Lease { permits, charge_id, .. }| {
            Correction::refund(key.clone(), *spec, permits, Some(charge_id))
        };
        counting.map(refund).collect()
    }

    /// Ends all leases, including those that are on their way.
    pub(super) fn reset(&mut self, now: Instant) {
        self.reset = Some(now);
        if self.outlives_resets() {
            self.leases.iter_mut().for_each(|lease| lease.until = lease.until.min(now));
        } else {
            self.leases.clear();
        }
    }

    /// Whether a lease may be given back that was taken about the time of a reset. The receipt of a window tells whether it was charged
    /// since; that of a bucket would credit the new one.
    fn outlives_resets(&self) -> bool {
        matches!(self.spec, AlgorithmSpec::FixedWindow(_) | AlgorithmSpec::CalendarWindow(_))
    }

    /// Lets calls ask for themselves, for at least this time.
    pub(super) fn pause(&mut self, at_least: Duration, now: Instant) {
        self.pause = at_least.max(2 * self.pause).clamp(MIN_PAUSE, MAX_PAUSE);
        self.paused_until = Some(now + self.pause);
    }

    /// Notes a call that finds no permits. Returns whether a lease of this size is worth asking for: unless it is the first call, or a
    /// whole lease would have ended since the last one, so that keys with few calls lease nothing.
    pub(super) fn is_wanted(&mut self, size: u64, now: Instant) -> bool {
        let last_call = self.last_call.replace(now);
        let is_rare = last_call.is_none_or(|last_call| now >= last_call + self.longest_life(size));
        !is_rare && !self.is_paused(now)
    }

    /// Returns how many permits to ask for, where nobody waits for more. What a process holds of a window that is killed is lost until
    /// the window ends, so it is one lease at most.
    pub(super) fn missing(&self, size: u64, now: Instant) -> u64 {
        match &self.spec {
            AlgorithmSpec::FixedWindow(_) | AlgorithmSpec::CalendarWindow(_) => {
                size.saturating_sub(self.left(now))
            }
            _ => size,
        }
    }

    /// Whether there are as many permits.
    pub(super) fn suffice(&self, cost: u64, now: Instant) -> bool {
        self.left(now) >= cost
    }

    pub(super) fn is_paused(&self, now: Instant) -> bool {
        self.paused_until.is_some_and(|until| now < until)
    }

    /// Whether nothing is lost without it: no permits, nor any that may return, and no pause.
    pub(super) fn is_unused(&self, now: Instant) -> bool {
        !self.is_paused(now) && self.leases.is_empty() && self.end.is_none_or(|end| end <= now)
    }

    /// Returns how long a lease of this many permits lives at most: one of a window may be asked for when little is left of that.
    fn longest_life(&self, permits: u64) -> Duration {
        let micros = match &self.spec {
            AlgorithmSpec::Gcra(bucket)
            | AlgorithmSpec::AdjustableGcra(AdjustableGcraSpec(bucket))
            | AlgorithmSpec::SettledGcra(SettledGcraSpec(bucket)) => bucket.charge(permits),
            AlgorithmSpec::IntervalBucket(bucket) => permits.saturating_mul(bucket.period) / bucket.refill,
            AlgorithmSpec::FixedWindow(window) => window.period,
            AlgorithmSpec::CalendarWindow(window) => window.calendar.average(),
            // Their attributes have no lease.
            AlgorithmSpec::WarmingUp(_) | AlgorithmSpec::SlidingWindow(_) | AlgorithmSpec::Holds(_) => 0,
        };
        Duration::from_micros(micros).min(MAX_LIFE)
    }

    fn left(&self, now: Instant) -> u64 {
        let live = self.leases.iter().filter(|lease| now < lease.until);
        live.map(|lease| lease.permits).sum()
    }
}
