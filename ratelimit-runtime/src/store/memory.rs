//! State in this process.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, BuildHasherDefault, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};

use siphasher::sip128::{Hasher128, SipHasher13};

use super::{Charge, Outcome, Readings, judge};
use crate::algorithm::{Mark, Rule, State};
use crate::clock::Clock;
use crate::key::{Key, KeyForm, Repr};

/// Below this many keys nothing is swept.
const FEWEST_SWEPT: usize = 1024;

/// A sweep of a full store makes room for this part of its keys at least, so that the many that come next pay for it.
const PART_FORGOTTEN: usize = 16;

/// State in this process, for so many keys at the most.
///
/// When it is full it forgets first what says nothing more, and then what is nearest to it.
#[derive(Debug)]
pub struct MemoryStore {
    clock: Clock,
    seed: (u64, u64),
    max_keys: usize,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    entries: HashMap<u128, Entry, BuildHasherDefault<KeyIsHash>>,
    /// The number of keys at which to look for what has ended.
    sweep_at: usize,
    forgotten: u64,
    /// Whether a key that counts was forgotten for the first time, and nobody has been told.
    first_loss: bool,
    #[cfg(test)]
    sweeps: u64,
}

#[derive(Debug)]
struct Entry {
    ends: u64,
    /// Some but while it is being changed.
    state: Option<State>,
}

impl MemoryStore {
    /// An empty store for `max_keys` keys, at least one.
    #[must_use]
    pub fn new(max_keys: usize, clock: Clock) -> Self {
        let random = || RandomState::new().hash_one(0u8);
        let max_keys = max_keys.max(1);
        let table = Table { sweep_at: max_keys.min(FEWEST_SWEPT), ..Table::default() };
        MemoryStore { clock, seed: (random(), random()), max_keys, table: Mutex::new(table) }
    }

    /// Decides one list of charges, all or nothing but for shadows. Its keys are distinct.
    pub fn decide(&self, charges: &[Charge]) -> Outcome {
        let mut table = self.lock();
        // Under the lock, so that time does not go back from one decision to the next.
        let now = self.clock.now();
        let readings = charges.iter().map(|charge| {
            let state = table.entries.get(&self.index(&charge.key)).and_then(|entry| entry.state.as_ref());
            charge.rule.check(state, now, charge.cost)
        });
        let readings: Readings = readings.collect();
        let (admitted, verdicts) = judge(charges, &readings, now);
        for ((Charge { key, rule, cost, .. }, reading), verdict) in
            charges.iter().zip(readings).zip(&verdicts)
        {
            if *cost > 0 && admitted && verdict.admitted {
                self.change(&mut table, key, rule, now, |state| rule.commit(state, reading, now, *cost));
            } else if *cost > 0 {
                self.change(&mut table, key, rule, now, |state| rule.undo(state, now));
            }
        }
        self.unlock(table);
        Outcome { now, admitted, verdicts, failed: Vec::new() }
    }

    /// Gives back `cost` permits: of the charge so marked, or of whatever the key holds.
    pub fn refund(&self, key: &Key, rule: &Rule, cost: u64, mark: Option<Mark>) {
        let mut table = self.lock();
        let now = self.clock.now();
        self.change(&mut table, key, rule, now, |state| rule.refund(state, now, cost, mark));
        self.unlock(table);
    }

    /// Forgets what the key holds.
    pub fn reset(&self, key: &Key) {
        self.lock().entries.remove(&self.index(key));
    }

    /// How many keys it holds, ended ones among them.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lock().entries.len()
    }

    /// Whether it holds no key.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many keys were forgotten for want of room while they still counted something.
    #[must_use]
    pub fn forgotten(&self) -> u64 {
        self.lock().forgotten
    }

    pub(crate) fn key_form(&self) -> KeyForm {
        KeyForm::Hash { seed: self.seed }
    }

    fn index(&self, key: &Key) -> u128 {
        match &key.0 {
            Repr::Hash(hash) => *hash,
            Repr::Text(text) => {
                let mut hasher = SipHasher13::new_with_keys(self.seed.0, self.seed.1);
                hasher.write(text.as_bytes());
                hasher.finish128().as_u128()
            }
        }
    }

    fn change(
        &self,
        table: &mut Table,
        key: &Key,
        rule: &Rule,
        now: u64,
        change: impl FnOnce(&mut Option<State>),
    ) {
        let index = self.index(key);
        if let Some(entry) = table.entries.get_mut(&index) {
            change(&mut entry.state);
            match &entry.state {
                Some(state) => entry.ends = rule.ends(state),
                None => drop(table.entries.remove(&index)),
            }
            return;
        }
        let mut state = None;
        change(&mut state);
        if let Some(present) = &state {
            let ends = rule.ends(present);
            if table.entries.len() >= table.sweep_at {
                table.sweep(now, self.max_keys);
            }
            table.entries.insert(index, Entry { ends, state });
        }
    }

    /// Ends a change of the table. What there is to say is said without the lock, as whoever hears it may be limited too.
    fn unlock(&self, mut table: MutexGuard<'_, Table>) {
        let first_loss = std::mem::take(&mut table.first_loss);
        drop(table);
        if first_loss {
            tracing::warn!(
                max_keys = self.max_keys,
                "the memory store is full and forgets keys that still count"
            );
        }
    }

    /// A panic under the lock is a defect elsewhere, and limits go on.
    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    /// Makes room: forgets what has ended, and if that is not enough what ends next.
    fn sweep(&mut self, now: u64, max_keys: usize) {
        #[cfg(test)]
        {
            self.sweeps += 1;
        }
        self.entries.retain(|_, entry| entry.ends > now);
        let room = max_keys.div_ceil(PART_FORGOTTEN);
        let forget = (self.entries.len() + room).saturating_sub(max_keys);
        if forget > 0 {
            let mut ends: Vec<u64> = self.entries.values().map(|entry| entry.ends).collect();
            let (_, last, _) = ends.select_nth_unstable(forget - 1);
            let last = *last;
            // Of those that end together some may stay.
            let mut ties = forget - ends.iter().filter(|ends| **ends < last).count();
            self.entries.retain(|_, entry| {
                let forgotten = entry.ends < last || (entry.ends == last && ties > 0);
                ties -= usize::from(forgotten && entry.ends == last);
                !forgotten
            });
            self.first_loss |= self.forgotten == 0;
            self.forgotten += forget as u64;
        }
        self.sweep_at = (2 * self.entries.len()).max(FEWEST_SWEPT).min(max_keys);
    }
}

/// The keys are hashes already.
#[derive(Debug, Default)]
struct KeyIsHash(u64);

impl Hasher for KeyIsHash {
    fn write_u128(&mut self, key: u128) {
        self.0 = key as u64;
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("every key is a u128");
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    use super::*;
    use crate::policy::{FixedWindow, Policy};

    fn charge(key: impl ToString, seconds: u64) -> Charge {
        let policy = Policy::from(FixedWindow::new(1, Duration::from_secs(seconds)));
        Charge {
            key: Key::raw(key.to_string()),
            rule: policy.rule().unwrap(),
            cost: 1,
            wait: 0,
            shadow: false,
        }
    }

    #[test]
    fn what_has_ended_is_forgotten_first_and_then_what_ends_next() {
        let time = Arc::new(AtomicU64::new(0));
        let store = MemoryStore::new(4, Clock::manual(Arc::clone(&time)));
        let admits = |charge: Charge| store.decide(&[charge]).admitted;
        for (key, seconds) in [("a", 40), ("b", 10), ("c", 30), ("d", 20)] {
            assert!(admits(charge(key, seconds)));
        }
        assert!(admits(charge("e", 50)));
        assert_eq!((store.len(), store.forgotten()), (4, 1));
        assert!(!admits(charge("a", 40)) && !admits(charge("c", 30)) && !admits(charge("d", 20)));

        time.store(35_000_000, Ordering::SeqCst);
        assert!(admits(charge("f", 50)));
        assert_eq!((store.len(), store.forgotten()), (3, 1));
        assert!(!admits(charge("a", 40)) && !admits(charge("e", 50)));
    }

    #[test]
    fn what_ends_next_goes_before_any_of_many_that_end_together() {
        let store = MemoryStore::new(1600, Clock::manual(Arc::new(AtomicU64::new(0))));
        for key in 0..1600 {
            assert!(store.decide(&[charge(key, if key < 1550 { 60 } else { 10 })]).admitted);
        }
        assert!(store.decide(&[charge("one more", 60)]).admitted);
        assert_eq!(store.forgotten(), 100);
        let ends_soon = store.lock().entries.values().filter(|entry| entry.ends < 60_000_000).count();
        assert_eq!(ends_soon, 0);
    }

    #[test]
    fn a_full_store_is_not_swept_for_every_key() {
        let time = Arc::new(AtomicU64::new(0));
        let store = MemoryStore::new(1600, Clock::manual(Arc::clone(&time)));
        // One key ends whenever one comes, which alone would leave the store full for ever.
        for key in 0..10_000u64 {
            time.store(key * 1000, Ordering::SeqCst);
            let window = Policy::from(FixedWindow::new(1, Duration::from_millis(1599)));
            let rule = window.rule().unwrap();
            assert!(store.decide(&[Charge { rule, ..charge(key, 1) }]).admitted);
            let table = store.lock();
            assert!(
                table.entries.len() <= 1600 && table.sweeps <= 2 + key / 100,
                "{} at {key}",
                table.sweeps
            );
        }
    }

    #[test]
    fn who_hears_of_a_full_store_may_be_limited_by_it() {
        struct Listener(Arc<MemoryStore>);
        impl tracing::Subscriber for Listener {
            fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
                true
            }
            fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::Id {
                tracing::Id::from_u64(1)
            }
            fn event(&self, _: &tracing::Event<'_>) {
                assert!(self.0.decide(&[charge("listener", 60)]).admitted);
            }
            fn record(&self, _: &tracing::Id, _: &tracing::span::Record<'_>) {}
            fn record_follows_from(&self, _: &tracing::Id, _: &tracing::Id) {}
            fn enter(&self, _: &tracing::Id) {}
            fn exit(&self, _: &tracing::Id) {}
        }
        let store = Arc::new(MemoryStore::new(1, Clock::process()));
        tracing::subscriber::with_default(Listener(Arc::clone(&store)), || {
            assert!(store.decide(&[charge("a", 60)]).admitted);
            assert!(store.decide(&[charge("b", 60)]).admitted);
        });
        assert!(!store.decide(&[charge("listener", 60)]).admitted);
    }

    #[test]
    fn keys_that_have_ended_do_not_pile_up() {
        let time = Arc::new(AtomicU64::new(0));
        let store = MemoryStore::new(1_000_000, Clock::manual(Arc::clone(&time)));
        for key in 0..100_000u64 {
            time.store(key * 10_000, Ordering::SeqCst);
            assert!(store.decide(&[charge(key, 1)]).admitted);
        }
        assert!(store.len() <= FEWEST_SWEPT, "{}", store.len());
        assert_eq!(store.forgotten(), 0);
    }
}
