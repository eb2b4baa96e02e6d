//! The keys that have leases, as many as there is room for.

use std::collections::VecDeque;
use std::time::Duration;

use smallvec::SmallVec;
use tokio::runtime::Id;
use tokio::time::Instant;

use super::permits::LeasedPermits;
use crate::base::number_map::NumberMap;
use crate::key::Fingerprint;
use crate::policy::LeaseSize;
use crate::store::charge::Charge;

/// How many keys have leases. Calls with other keys ask for themselves.
pub(super) const MAX_KEYS: usize = 1024;
/// From how many on those without permits are removed, and how often at most.
const MIN_KEYS: usize = 256;
pub(super) const SWEEP_PAUSE: Duration = Duration::from_millis(100);

/// The keys behind one lock.
pub(super) struct Shard<W> {
    pub(super) keys: NumberMap<Fingerprint, LeasedKey<W>>,
    sweep_at: usize,
    swept: Option<Instant>,
}

/// What a key has, and the calls that wait for it.
pub(super) struct LeasedKey<W> {
    pub(super) permits: LeasedPermits,
    /// Some while a lease is asked for.
    pub(super) waiting: Option<Queue<W>>,
    /// The runtimes that give back what is left of leases when they end. Each that takes a lease does, as others may be at rest.
    pub(super) keepers: SmallVec<[Id; 1]>,
}

/// Calls that wait for a lease.
pub(super) struct Queue<W> {
    /// The runtime that asks for it. Calls of others do not wait, as it may be at rest.
    pub(super) runtime: Id,
    pub(super) calls: VecDeque<W>,
}

impl<W> Default for Shard<W> {
    fn default() -> Self {
        Shard { keys: NumberMap::default(), sweep_at: MIN_KEYS, swept: None }
    }
}

impl<W> Shard<W> {
    /// Returns what a key has, unless it is that of other numbers, or there is no room.
    pub(super) fn leased(
        &mut self,
        charge: &Charge,
        size: LeaseSize,
        now: Instant,
    ) -> Option<&mut LeasedKey<W>> {
        let key = charge.key.fingerprint();
        if !self.keys.contains_key(&key) && !self.make_room(now) {
            return None;
        }
        let leased = self.keys.entry(key).or_insert_with(|| LeasedKey {
            permits: LeasedPermits::none(charge, size),
            waiting: None,
            keepers: SmallVec::new(),
        });
        if leased.permits.spec != charge.spec && leased.is_unused(now) {
            leased.permits = LeasedPermits::none(charge, size);
        }
        (leased.permits.spec == charge.spec).then_some(leased)
    }

    fn make_room(&mut self, now: Instant) -> bool {
        let may_sweep = self.swept.is_none_or(|swept| now >= swept + SWEEP_PAUSE);
        if self.keys.len() >= self.sweep_at && may_sweep {
            self.keys.retain(|_, leased| !leased.is_unused(now));
            self.sweep_at = (2 * self.keys.len()).clamp(MIN_KEYS, MAX_KEYS);
            self.swept = Some(now);
        }
        self.keys.len() < MAX_KEYS
    }
}

impl<W> Queue<W> {
    pub(super) fn new(runtime: Id) -> Self {
        Queue { runtime, calls: VecDeque::new() }
    }
}

impl<W> LeasedKey<W> {
    fn is_unused(&self, now: Instant) -> bool {
        self.waiting.is_none() && self.permits.is_unused(now)
    }
}
