//! What stores decide about, and what they decide.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::algorithm::{AlgorithmSpec, Pause, Snapshot, Verdict};
use crate::key::Key;
use crate::store::hold::Hold;

/// The number of charges that a decision holds without allocating.
pub(crate) const INLINE: usize = 4;

/// The verdicts of a decision, in the order of its charges.
pub type Verdicts = SmallVec<[Verdict; INLINE]>;

pub(crate) type Snapshots = SmallVec<[Snapshot; INLINE]>;

/// A request for permits of one key.
#[derive(Clone, Debug)]
pub struct Charge {
    /// The key of the state.
    pub key: Key,
    /// The policy, in the numbers its algorithm counts in.
    pub spec: AlgorithmSpec,
    /// The permits. 0 reads the state and writes nothing. If all charges of a decision cost nothing, it is a peek: its verdicts
    /// say whether calls of cost 1 would be admitted, beside the state as it is.
    pub cost: u64,
    /// How long the call may wait for them, in microseconds. Windows ignore it.
    pub wait: u64,
    /// Whether it never refuses: it is charged if the decision is admitted and its own policy admits it, and is ignored
    /// otherwise.
    pub shadow: bool,
}

/// Charges that a batch shares with the call that makes them.
#[derive(Clone)]
pub(crate) struct SharedCharges(Arc<dyn AsRef<[Charge]> + Send + Sync>);

impl SharedCharges {
    pub(crate) fn new(charges: Arc<impl AsRef<[Charge]> + Send + Sync + 'static>) -> Self {
        SharedCharges(charges)
    }
}

impl Deref for SharedCharges {
    type Target = [Charge];

    fn deref(&self) -> &[Charge] {
        (*self.0).as_ref()
    }
}

impl fmt::Debug for SharedCharges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&**self).finish()
    }
}

impl Charge {
    /// Whether it takes permits that its call holds.
    #[cfg(feature = "redis")]
    pub(crate) fn is_take(&self) -> bool {
        self.cost > 0 && self.spec.is_semaphore()
    }

    /// Whether an admitted decision with this verdict has charged it.
    pub(crate) fn is_made(&self, verdict: &Verdict) -> bool {
        self.cost > 0 && verdict.admitted
    }
}

/// Whether a decision about these charges only looks.
pub(crate) fn is_peek(charges: &[Charge]) -> bool {
    charges.iter().all(|charge| charge.cost == 0)
}

/// The decision about a list of charges.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// The store's time of the decision, in microseconds.
    pub now: u64,
    /// Whether every required charge is admitted. These are then charged, and so are the shadows that are admitted.
    pub admitted: bool,
    /// The verdict on each charge.
    pub verdicts: Verdicts,
    /// The shadows that could not be decided, by index, and why. Their verdicts mean nothing.
    pub failed: Vec<(usize, String)>,
    /// The pauses of keys, by the index of the charge.
    pub paused: Pauses,
    /// What the call holds in Redis, until the last copy is dropped.
    pub(crate) holds: Vec<Arc<Hold>>,
    /// Whether the call is refused only because Redis has lost what this process holds.
    #[cfg(feature = "redis")]
    pub(crate) asks_again: bool,
}

/// The pauses of keys, by the index of the charge. Few decisions have any, and the others hold a null pointer.
#[derive(Clone, Debug, Default)]
pub struct Pauses(Option<Box<PauseList>>);

#[derive(Clone, Debug, Default)]
struct PauseList(Vec<(usize, Pause)>);

impl Pauses {
    /// Returns the pause of the key of this charge.
    pub(crate) fn of(&self, charge: usize) -> Option<Pause> {
        self.iter().find(|(of, _)| *of == charge).map(|(_, pause)| *pause)
    }

    pub(crate) fn push(&mut self, charge: usize, pause: Pause) {
        self.0.get_or_insert_default().0.push((charge, pause));
    }
}

impl Deref for Pauses {
    type Target = [(usize, Pause)];

    fn deref(&self) -> &Self::Target {
        self.0.as_ref().map_or(&[], |list| &list.0)
    }
}

impl Outcome {
    /// Returns the pause of a key, if there is one.
    pub(crate) fn pause(&self, charge: usize) -> Option<Pause> {
        self.paused.of(charge)
    }

    /// Returns how long the call has to wait, in microseconds: until the last of its slots.
    #[must_use]
    pub fn wait(&self) -> u64 {
        if self.admitted { self.verdicts.iter().map(|verdict| verdict.wait).max().unwrap_or(0) } else { 0 }
    }
}
