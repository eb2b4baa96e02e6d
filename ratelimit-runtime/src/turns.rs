//! The lines of those who wait for a window, by key.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::key::Key;
use crate::question::Question;

/// So long after its time a turn goes to the next in line: whoever has it may be a future that nobody polls.
const GRACE: Duration = Duration::from_millis(100);

/// The keys that somebody waits for.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    pub(crate) lines: Mutex<HashMap<Key, Line>>,
    pub(crate) tickets: AtomicU64,
}

/// Those who wait for one key.
#[derive(Debug)]
pub(crate) struct Line {
    /// By the order in which they came, which need not be that in which they were refused.
    pub(crate) waiting: BTreeMap<u64, Place>,
    /// When there may be room, as far as is known.
    pub(crate) room_at: Instant,
    /// Whether all ask at once, as the store does not answer.
    pub(crate) all: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Place {
    /// Told when its turn may have come.
    pub(crate) told: Arc<Notify>,
    pub(crate) cost: u64,
    /// Whether it has let its turn pass.
    pub(crate) passed: bool,
}

impl Line {
    /// When it is this one's turn; none if that is now.
    pub(crate) fn turn(&mut self, ticket: u64, now: Instant) -> Option<Instant> {
        if let Some(place) = self.waiting.get_mut(&ticket) {
            place.passed = false;
        }
        let before = self.before(ticket);
        let at = self.room_at + GRACE * before;
        if self.all || at <= now {
            self.waiting.range_mut(..ticket).for_each(|(_, place)| place.passed = true);
            return None;
        }
        Some(at)
    }

    /// How many have their turn before this one.
    pub(crate) fn before(&self, ticket: u64) -> u32 {
        self.waiting.range(..ticket).filter(|(_, place)| !place.passed).count() as u32
    }

    pub(crate) fn first(&self) -> Option<Arc<Notify>> {
        let mut places = self.waiting.values();
        let first = places.find(|place| !place.passed).or_else(|| self.waiting.values().next());
        first.map(|place| Arc::clone(&place.told))
    }
}

impl Turns {
    /// A charge for whose key somebody waits, by its place, and when there may be room for that.
    pub(crate) fn waited_for(&self, question: &Question) -> Option<(usize, Instant)> {
        let lines = self.lines();
        let charges = question.charges().iter().enumerate().filter(|(_, charge)| !charge.shadow);
        charges.filter_map(|(place, charge)| Some((place, lines.get(&charge.key)?.room_at))).next()
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.lines().is_empty()
    }

    pub(crate) fn lines(&self) -> MutexGuard<'_, HashMap<Key, Line>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
