//! Denials: refusals by Redis that are repeated in process, until the key may have permits again.
//!
//! A fixed number of sets of a few denials each, behind locks of their own: memory is bounded, and threads that repeat denials only
//! read. The key's hash, which nobody can predict, selects the set. A full set replaces the denial that ends first.

use std::array;
use std::fmt;
use std::sync::{OnceLock, PoisonError, RwLock};
use std::time::Duration;

use tokio::time::Instant;

use super::charge::Charge;
use crate::algorithm::{AlgorithmSpec, Verdict};
use crate::key::{Fingerprint, Key};

/// How long a denial holds at most: what other processes change is noticed after this time.
pub(crate) const MAX_HOLD: Duration = Duration::from_secs(1);

/// Sets are made in groups, so that a registry with few keys has few.
const GROUPS: usize = 32;
/// The sets of a group.
const SETS: usize = 32;
/// The denials of a set.
const DENIALS: usize = 8;

/// What a store has refused lately.
pub(crate) struct Denials {
    groups: [OnceLock<Group>; GROUPS],
}

type Group = Box<[RwLock<Set>; SETS]>;

#[derive(Default)]
struct Set {
    denials: Vec<Denial>,
    /// When one of its keys was last changed. A refusal of a request that was sent before may be out of date.
    changed: Option<Instant>,
}

/// A refusal of a key, a policy's numbers and a cost.
struct Denial {
    key: Fingerprint,
    spec: AlgorithmSpec,
    cost: u64,
    until: Instant,
    verdict: Verdict,
    /// When the verdict came. Its times are reported as what is left of them, counted from then: a caller that waits so long
    /// does not come too early, whatever the latency was.
    since: Instant,
}

/// Forgets the denials of a key when it is dropped: after the change, and even if nobody waits for the reply.
#[must_use]
pub(crate) struct ForgetDenialsGuard<'a> {
    denials: &'a Denials,
    key: Fingerprint,
}

impl Denials {
    pub(crate) fn new() -> Self {
        Denials { groups: array::from_fn(|_| OnceLock::new()) }
    }

    /// Returns the verdict on a charge as of now, if it is known to be refused.
    pub(crate) fn find(&self, key: Fingerprint, spec: &AlgorithmSpec, cost: u64) -> Option<Verdict> {
        let (group, set) = place(key);
        let set = self.groups[group].get()?[set].read().unwrap_or_else(PoisonError::into_inner);
        let denial = set.denials.iter().find(|denial| denial.is_of(key, spec, cost))?;
        denial.verdict_at(Instant::now())
    }

    /// Remembers that a charge is refused, by a request that was sent at this time.
    pub(crate) fn remember(&self, charge: &Charge, verdict: &Verdict, sent: Instant) {
        let Some(retry_after) = verdict.retry_after else { return };
        let (key, since) = (charge.key.fingerprint(), Instant::now());
        let until = sent + Duration::from_micros(retry_after).min(MAX_HOLD);
        let denial = Denial { key, spec: charge.spec, cost: charge.cost, until, verdict: *verdict, since };
        self.change(key, |set| {
            if until > since && set.changed.is_none_or(|changed| changed < sent) {
                set.insert(denial);
            }
        });
    }

    /// Forgets the denials of a key once the change that begins now has ended.
    pub(crate) fn forget_after(&self, key: &Key) -> ForgetDenialsGuard<'_> {
        ForgetDenialsGuard { denials: self, key: key.fingerprint() }
    }

    /// Forgets what was refused by other numbers than those of this charge, which is made and may change how the bucket refills.
    pub(crate) fn forget_other_numbers(&self, charge: &Charge) {
        if !charge.spec.is_adjustable() {
            return;
        }
        let key = charge.key.fingerprint();
        self.forget(key, |denial| denial.key != key || denial.spec == charge.spec);
    }

    fn forget(&self, key: Fingerprint, kept: impl Fn(&Denial) -> bool) {
        self.change(key, |set| {
            set.denials.retain(kept);
            set.changed = Some(Instant::now());
        });
    }

    fn change(&self, key: Fingerprint, change: impl FnOnce(&mut Set)) {
        let (group, set) = place(key);
        let group = self.groups[group].get_or_init(|| Box::new(array::from_fn(|_| RwLock::default())));
        change(&mut group[set].write().unwrap_or_else(PoisonError::into_inner));
    }
}

/// Returns the indices of the key's group and set.
fn place(key: Fingerprint) -> (usize, usize) {
    let hash = key.0 as usize;
    (hash % GROUPS, hash / GROUPS % SETS)
}

impl Set {
    fn insert(&mut self, new: Denial) {
        let same = self.denials.iter_mut().find(|denial| denial.is_of(new.key, &new.spec, new.cost));
        if let Some(same) = same {
            *same = new;
        } else if self.denials.len() < DENIALS {
            self.denials.push(new);
        } else if let Some(first) = self.denials.iter_mut().min_by_key(|denial| denial.until) {
            *first = new;
        }
    }
}

impl Denial {
    fn is_of(&self, key: Fingerprint, spec: &AlgorithmSpec, cost: u64) -> bool {
        self.key == key && self.cost == cost && self.spec == *spec
    }

    fn verdict_at(&self, now: Instant) -> Option<Verdict> {
        if now >= self.until {
            return None;
        }
        let passed = now.saturating_duration_since(self.since).as_micros() as u64;
        let left = |time: u64| time.saturating_sub(passed);
        let Verdict { retry_after, reset_after, .. } = self.verdict;
        Some(Verdict { retry_after: retry_after.map(left), reset_after: left(reset_after), ..self.verdict })
    }
}

impl Drop for ForgetDenialsGuard<'_> {
    fn drop(&mut self) {
        self.denials.forget(self.key, |denial| denial.key != self.key);
    }
}

/// Without keys.
impl fmt::Debug for Denials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Denials").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
