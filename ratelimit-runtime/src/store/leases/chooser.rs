//! How a process chooses its leases, so that a bucket is exceeded by no more than its slack.
//!
//! # The bound
//!
//! A bucket holds `burst` permits, which refill at `rate`. Let `life` be `slack · burst ÷ rate`, rounded down: that share of the time
//! from empty to full. In every interval of length `t`, all processes together spend at most `burst + rate · t + slack · burst`
//! permits, however many they are, and whatever each of them leases:
//!
//! 1. Each permit that is spent was charged by Redis, and is spent once: calls take permits out of a lease under its lock, and so
//!    does what is given back.
//! 2. A permit is spent before `sent + life` on the monotonic clock of its process, where `sent` is read before the request leaves.
//!    Redis charges it later than that. So it is spent less than `life` after its charge.
//! 3. The permits that are spent in `[a, a + t)` were therefore charged in `(a - life, a + t)`. In an interval of that length, Redis
//!    admits at most `burst + rate · (t + life)` permits, to leases as to calls, and `rate · life ≤ slack · burst`.
//!
//! What is given back was not spent, and is worth no more than its charge still lacks, as any refund. What a lost reply has charged
//! is spent by nobody. A call that waits already when a lease is asked for counts, as any call, when Redis charges it.
//!
//! The calls of a key may have different bursts, of which the largest counts, but only one rate: what was charged at a slow rate may
//! be spent while the key refills at a fast one. So the rate is a literal, and where an override replaces another of a lower rate,
//! the bound holds from one life later on. A clock that is slower than that of Redis exceeds the slack in proportion. One that stands
//! still while its machine is suspended does so by what its process had leased.
//!
//! # The size
//!
//! As the bound needs no size, a lease is what calls are expected to take in its life: as much as in the last one, by an average that
//! forgets by a factor of e in each. A first call expects none, and asks for itself. In a rush, leases double. So a process holds
//! about as much as it has just used, and at most half of what the key has left.
//!
//! A request is worth most if the calls of a whole life find permits. So a lease is up to two standard deviations larger, as what is
//! left then hardly matters: while a bucket lacks no more than its slack, it is lost. Where it lacks more, it is given back, which
//! takes a request, and is missing until then. There the lease is up to one deviation smaller.

use std::time::Duration;

use tokio::time::Instant;

use crate::algorithm::AlgorithmSpec;
use crate::policy::Slack;

/// How long leased permits live at most. For as long, resets and pauses by others do not concern them.
const MAX_LIFE: Duration = Duration::from_secs(10);

/// What a process knows of a key, and chooses its leases by.
#[derive(Debug)]
pub(super) struct Chooser {
    pub(super) life: Duration,
    /// How long an empty bucket takes to fill up, and to get one permit.
    capacity: Duration,
    interval: Duration,
    /// When it will be full, as far as Redis has said.
    full: Option<Instant>,
    /// How long Redis takes to reply.
    latency: Duration,
    /// What calls took in the last life until `since`, and since then.
    recent: f64,
    new: u64,
    since: Option<Instant>,
}

impl Chooser {
    pub(super) fn new(slack: Slack, spec: &AlgorithmSpec) -> Self {
        let (capacity, permits) = (spec.window(), spec.max_cost().unwrap_or(1).max(1));
        let [life, capacity, interval] =
            [slack.of(capacity), capacity, capacity / permits].map(Duration::from_micros);
        Chooser {
            life: life.min(MAX_LIFE),
            capacity,
            interval,
            full: None,
            latency: Duration::ZERO,
            recent: 0.0,
            new: 0,
            since: None,
        }
    }

    /// Notes what a call takes of a lease.
    pub(super) fn spent(&mut self, cost: u64) {
        self.new = self.new.saturating_add(cost);
    }

    /// Notes a call that finds no permits. Returns whether others are expected to take as many.
    pub(super) fn is_wanted(&mut self, cost: u64, now: Instant) -> bool {
        let is_wanted = self.size(now) >= cost;
        self.recent += cost as f64;
        is_wanted
    }

    /// Returns how many permits a lease would have.
    pub(super) fn size(&mut self, now: Instant) -> u64 {
        self.forget(now);
        let missing = self.full.map_or(Duration::ZERO, |full| full.saturating_duration_since(now));
        let lacking = self.lives(missing) + self.lives(self.interval) * self.recent;
        let deviations = 2.0 - 1.5 * lacking.min(2.0);
        let size = self.recent + deviations * self.recent.sqrt();
        let spare = self.capacity.saturating_sub(missing).as_micros() / self.interval.as_micros().max(1);
        (size as u64).min(spare as u64 / 2)
    }

    /// Notes what Redis has said about a request, and how long it has taken.
    pub(super) fn learn(&mut self, reset_after: u64, sent: Instant, now: Instant) {
        self.full = Some(sent + Duration::from_micros(reset_after));
        self.latency = now.saturating_duration_since(sent);
    }

    /// Returns how long before permits run out or end the next are asked for, and how many calls take in that time: if it is none, a
    /// request would mostly be made for nobody.
    pub(super) fn ahead(&self) -> (Duration, u64) {
        let ahead = (2 * self.latency).min(self.life / 4);
        (ahead, (self.recent * self.lives(ahead)) as u64)
    }

    /// Forgets what calls took longer ago, and takes those since to have come evenly.
    fn forget(&mut self, now: Instant) {
        let since = self.since.replace(now).unwrap_or(now);
        let lives = self.lives(now.saturating_duration_since(since));
        let evenly = if lives > 0.0 { -(-lives).exp_m1() / lives } else { 1.0 };
        self.recent = self.recent * (-lives).exp() + self.new as f64 * evenly;
        self.new = 0;
    }

    fn lives(&self, time: Duration) -> f64 {
        time.as_secs_f64() / self.life.as_secs_f64().max(1e-6)
    }
}
