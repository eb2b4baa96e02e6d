//! The leased permits of one key, and when the next may be asked for.

use std::time::Duration;

use smallvec::SmallVec;
use tokio::time::Instant;

use super::chooser::Chooser;
use crate::algorithm::adjustable_gcra::AdjustableGcraSpec;
use crate::algorithm::settled_gcra::SettledGcraSpec;
use crate::algorithm::{AlgorithmSpec, ChargeId, Verdict};
use crate::key::Key;
use crate::policy::LeaseSize;
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
    size: Size,
    /// The next lease is asked for when there are fewer permits than this that live for so long.
    low: u64,
    ahead: Duration,
    /// What Redis said of the last lease.
    verdict: Verdict,
    last_call: Option<Instant>,
    /// When the key was last reset. What was asked for before is void.
    reset: Option<Instant>,
    pause: Duration,
    paused_until: Option<Instant>,
}

/// How many permits are leased at a time.
#[derive(Debug)]
enum Size {
    Fixed(u64),
    Chosen(Box<Chooser>),
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

/// Returns the permits that the policy of a charge can admit at once.
pub(super) fn max_grant(charge: &Charge) -> u64 {
    charge.spec.max_cost().unwrap_or(u64::MAX)
}

impl LeasedPermits {
    pub(super) fn none(charge: &Charge, size: LeaseSize) -> Self {
        LeasedPermits {
            spec: charge.spec,
            key: charge.key.clone(),
            leases: SmallVec::new(),
            end: None,
            size: match size {
                LeaseSize::Permits(permits) => Size::Fixed(permits.min(max_grant(charge))),
                LeaseSize::Slack(slack) => Size::Chosen(Box::new(Chooser::new(slack, &charge.spec))),
            },
            low: 0,
            ahead: Duration::ZERO,
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
        if let Size::Chosen(chooser) = &mut self.size {
            chooser.spent(cost);
        }
        let verdict = Verdict { remaining: self.verdict.remaining + left, ..self.verdict };
        Some((verdict, self.left(now + self.ahead) < self.low && !self.is_paused(now)))
    }

    /// Takes permits like [`spend`](Self::spend), if it is not time to ask for more then.
    pub(super) fn spend_spare(&mut self, cost: u64, now: Instant) -> Option<Verdict> {
        let is_spare = self.left(now + self.ahead) >= cost.saturating_add(self.low);
        let (verdict, _) = is_spare.then(|| self.spend(cost, now))??;
        Some(verdict)
    }

    /// Returns a lease of this many permits that was asked for at `sent`.
    pub(super) fn lease(&self, permits: u64, verdict: &Verdict, sent: Instant) -> Lease {
        let mut counts = Duration::from_micros(verdict.reset_after);
        let life = match (&self.size, &self.spec) {
            (Size::Chosen(chooser), _) => {
                counts = counts.saturating_sub(chooser.life);
                chooser.life
            }
            (_, AlgorithmSpec::FixedWindow(_) | AlgorithmSpec::CalendarWindow(_)) => counts.min(MAX_LIFE),
            (Size::Fixed(size), _) => self.longest_life(permits.min(*size)),
        };
        let charge_id = verdict.charge_id;
        Lease { permits, charge_id, sent, until: sent + life, counts_until: sent + counts }
    }

    /// Adds what a lease has left.
    pub(super) fn add(&mut self, lease: Lease, verdict: &Verdict, now: Instant) {
        self.verdict = *verdict;
        (self.ahead, self.low) = match &mut self.size {
            Size::Fixed(_) => (Duration::ZERO, lease.permits / 4 + 1),
            Size::Chosen(chooser) => {
                chooser.learn(verdict.reset_after, lease.sent, now);
                chooser.ahead()
            }
        };
        self.end = self.end.max(Some(lease.until));
        if lease.permits > 0 && lease.until <= now {
            // Replies take longer than permits live, so there is nothing to gain.
            self.pause(Duration::ZERO, now);
        } else {
            self.pause = Duration::ZERO;
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

    /// Notes a refusal of what was asked for at `sent`, and lets calls ask for themselves for a while.
    pub(super) fn refused(&mut self, verdict: &Verdict, sent: Instant, now: Instant) {
        if let Size::Chosen(chooser) = &mut self.size {
            chooser.learn(verdict.reset_after, sent, now);
        }
        self.pause(verdict.retry_after.map_or(Duration::MAX, Duration::from_micros), now);
    }

    /// Lets calls ask for themselves, for at least this time.
    pub(super) fn pause(&mut self, at_least: Duration, now: Instant) {
        self.pause = at_least.max(2 * self.pause).clamp(MIN_PAUSE, MAX_PAUSE);
        self.paused_until = Some(now + self.pause);
    }

    /// Notes a call that finds no permits. Returns whether a lease is worth asking for: unless it is the first call, or a whole lease
    /// would have ended since the last one, so that keys with few calls lease nothing.
    pub(super) fn is_wanted(&mut self, cost: u64, now: Instant) -> bool {
        let last_call = self.last_call.replace(now);
        let is_wanted = match &mut self.size {
            Size::Chosen(chooser) => chooser.is_wanted(cost, now),
            &mut Size::Fixed(size) => {
                last_call.is_some_and(|last_call| now < last_call + self.longest_life(size))
            }
        };
        is_wanted && !self.is_paused(now)
    }

    /// Returns how many permits to ask for, where nobody waits for more. What a process holds of a window that is killed is lost until
    /// the window ends, so it is one lease at most.
    pub(super) fn missing(&mut self, now: Instant) -> u64 {
        let left = self.left(now);
        match (&mut self.size, &self.spec) {
            (Size::Chosen(chooser), _) => chooser.size(now).saturating_sub(left),
            (Size::Fixed(size), AlgorithmSpec::FixedWindow(_) | AlgorithmSpec::CalendarWindow(_)) => {
                size.saturating_sub(left)
            }
            (Size::Fixed(size), _) => *size,
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
