//! Expired and evicted keys.

mod ended_queues;
mod fingerprints;
mod holds;
mod interrupted;
mod pauses;
mod shares;
mod threads;
mod waiters;
mod ways;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::eviction::{SAMPLED, SOUGHT, SWEPT};
use super::*;
use crate::algorithm::fixed_window::FixedWindowSpec;
use crate::key::Fingerprint;
use crate::key::policy_id::PolicyId;
use crate::policy::{FixedWindow, Policy, TokenBucket};

fn charge(key: impl ToString, seconds: u64) -> Charge {
    let policy = Policy::from(FixedWindow::new(1, Duration::from_secs(seconds)));
    Charge { key: Key::raw(key.to_string()), spec: policy.spec().unwrap(), cost: 1, wait: 0, shadow: false }
}

#[test]
fn expired_keys_go_first_then_closest_to_expiry() {
    let time = Arc::new(AtomicU64::new(0));
    let store = MemoryStore::new(4, Clock::manual(Arc::clone(&time)));
    let admits = |charge: Charge| store.decide(&[charge]).admitted;
    for (key, seconds) in [("a", 40), ("b", 10), ("c", 30), ("d", 20)] {
        assert!(admits(charge(key, seconds)));
    }
    assert!(admits(charge("e", 50)));
    assert_eq!((store.len(), store.evicted()), (4, 1));
    assert!(!admits(charge("a", 40)) && !admits(charge("c", 30)) && !admits(charge("d", 20)));

    time.store(35_000_000, Ordering::SeqCst);
    assert!(admits(charge("f", 50)));
    assert_eq!((store.len(), store.evicted()), (4, 1));
    assert!(!admits(charge("a", 40)) && !admits(charge("e", 50)));
}

#[test]
fn new_plain_keys_make_room_like_others() {
    let store = MemoryStore::new(1, Clock::manual(Arc::new(AtomicU64::new(1000))));
    let decide = |charge: Charge| {
        let (key, plain) = ((charge.key.fingerprint(), charge.key.1), PlainSpec::of(&charge.spec).unwrap());
        store.decide_new_plain(key, &plain, 1)
    };
    assert!(decide(charge("a", 40)).is_some_and(|decided| decided.admitted));
    assert!(decide(charge("a", 40)).is_none());
    assert!(decide(charge("b", 40)).is_some_and(|decided| decided.admitted));
    assert_eq!((store.len(), store.evicted()), (1, 1));
    let look = charge("c", 40);
    assert!(
        store.peek_plain(look.key.fingerprint(), look.key.1, PlainSpec::of(&look.spec).unwrap()).is_some()
    );
    assert_eq!((store.len(), store.evicted()), (1, 1));
    // It was logged, once the table was unlocked.
    assert!(!store.lock().first_eviction);
}

#[test]
fn peeks_at_keys_that_are_not_there_make_none() {
    let store = MemoryStore::new(4, Clock::manual(Arc::new(AtomicU64::new(1000))));
    let verdict = store.decide(&[Charge { cost: 0, ..charge("a", 40) }]).verdicts[0];
    assert_eq!((verdict.admitted, verdict.remaining, verdict.reset_after), (true, 1, 0));
    assert!(store.is_empty());
}

/// The charge of a policy's key.
fn charge_of(policy: &str, key: impl ToString, seconds: u64) -> Charge {
    let charge = charge(format!("{policy} {}", key.to_string()), seconds);
    Charge { key: charge.key.of(PolicyId::new("", policy)), ..charge }
}

fn admits(store: &MemoryStore, charge: Charge) -> bool {
    store.decide(&[charge]).admitted
}

#[test]
fn keys_that_expire_late_are_kept() {
    let store = MemoryStore::new(2000, Clock::manual(Arc::new(AtomicU64::new(0))));
    // Half of the keys expire late, and many more come that expire early.
    assert!((0..1000).all(|key| admits(&store, charge(key, 3600))));
    assert!((1000..20_000).all(|key| admits(&store, charge(key, 60))));
    assert_eq!((store.len(), store.evicted()), (2000, 18_000));
    let kept = (0..1000).filter(|key| !admits(&store, charge(key, 3600))).count();
    // Each eviction takes one of them with a probability of at most 2^-16.
    assert!(kept >= 990, "{kept}");
}

#[test]
fn policy_within_its_share_keeps_its_keys() {
    let store = MemoryStore::new(3000, Clock::manual(Arc::new(AtomicU64::new(0))));
    assert!((0..1000).all(|key| admits(&store, charge_of("small", key, 60))));
    // They end later, so only the share protects the others.
    assert!((0..20_000).all(|key| admits(&store, charge_of("large", key, 3600))));
    assert!((0..20_000).all(|key| admits(&store, charge_of("larger", key, 7200))));
    assert!((0..1000).all(|key| !admits(&store, charge_of("small", key, 60))));
    let table = store.lock();
    let victim = |policy: &str| table.shares.victim(PolicyId::new("", policy), 3000);
    assert_eq!(table.shares.size(victim("larger").unwrap()), 1000);
    assert_eq!(table.len, 3000);
}

#[test]
fn new_policy_gets_its_share_of_a_full_store() {
    let store = MemoryStore::new(1000, Clock::manual(Arc::new(AtomicU64::new(0))));
    assert!((0..5000).all(|key| admits(&store, charge_of("first", key, 3600))));
    assert!((0..500).all(|key| admits(&store, charge_of("second", key, 60))));
    assert!((0..5000).all(|key| admits(&store, charge_of("first", 5000 + key, 3600))));
    assert!((0..500).all(|key| !admits(&store, charge_of("second", key, 60))));
    assert_eq!(store.len(), 1000);
}

#[test]
fn more_policies_than_keys_are_within_the_cap() {
    let store = MemoryStore::new(3, Clock::manual(Arc::new(AtomicU64::new(0))));
    for key in 0..100 {
        assert!(admits(&store, charge_of(&format!("policy {key}"), key, 60)));
        assert!(store.len() <= 3);
    }
    assert!(!admits(&store, charge_of("policy 99", 99, 60)));
}

#[test]
fn new_keys_take_few_steps() {
    let time = Arc::new(AtomicU64::new(0));
    let store = MemoryStore::new(5000, Clock::manual(Arc::clone(&time)));
    let mut most = 0;
    for key in 0..50_000u64 {
        // Keys of one policy in a row, of hundreds in turn, of one again, and then all expire.
        let policy = if (10_000..20_000).contains(&key) { key % 700 } else { 0 };
        time.store(if key < 40_000 { key } else { 7_300_000_000 + key * 1000 }, Ordering::SeqCst);
        let before = store.lock().looks;
        let seconds = if key < 40_000 { 3600 + key % 3600 } else { 1 };
        assert!(admits(&store, charge_of(&policy.to_string(), key, seconds)));
        assert!(store.len() <= 5000);
        most = most.max(store.lock().looks - before);
    }
    assert!(most <= (SWEPT + SOUGHT + SAMPLED).into(), "{most}");
    assert_eq!(store.evicted(), 35_000);
}

#[test]
fn expired_keys_are_found_before_live_ones_are_evicted() {
    let time = Arc::new(AtomicU64::new(0));
    let store = MemoryStore::new(1600, Clock::manual(Arc::clone(&time)));
    // For every new key one expires.
    for key in 0..10_000u64 {
        time.store(key * 1000, Ordering::SeqCst);
        let window = Policy::from(FixedWindow::new(1, Duration::from_millis(1200)));
        assert!(admits(&store, Charge { spec: window.spec().unwrap(), ..charge(key, 1) }));
    }
    // One look in a hundred thousand finds none.
    assert!(store.evicted() <= 3, "{}", store.evicted());
}

#[test]
fn keys_that_calls_wait_for_are_evicted_last() {
    let store = MemoryStore::new(10, Clock::manual(Arc::new(AtomicU64::new(0))));
    let spec = Policy::from(TokenBucket::per_second(1).burst(1)).spec().unwrap();
    let awaited = Charge { spec, wait: 1 << 40, ..charge("awaited", 1) };
    let waiters: Vec<_> = (0..3).filter_map(|_| store.reserve(std::slice::from_ref(&awaited)).1).collect();
    assert_eq!(waiters.len(), 2);
    assert!((0..100).all(|key| admits(&store, charge(key, 60))));
    assert!(store.has_queues());
    assert_eq!(store.decide(std::slice::from_ref(&awaited)).verdicts[0].wait, 3_000_000);
    // If there is no other key it has to go. Its waiters keep their slots, and get nothing back.
    let store = MemoryStore::new(1, Clock::manual(Arc::new(AtomicU64::new(0))));
    let waiters: Vec<_> = (0..3).filter_map(|_| store.reserve(std::slice::from_ref(&awaited)).1).collect();
    assert!(admits(&store, charge("other", 60)));
    assert!(!store.has_queues());
    assert_eq!(waiters[1].start(), 2_000_000);
    assert!(admits(&store, awaited.clone()));
    for waiter in &waiters {
        store.leave(&[(awaited.clone(), waiter.slot(0).charge_id)], waiter);
    }
    assert!(!admits(&store, Charge { wait: 0, ..awaited }));
}

#[test]
fn log_subscriber_may_use_the_store() {
    struct Listener(Arc<MemoryStore>);
    impl tracing::Subscriber for Listener {
        fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
            true
        }
        // Without it, other tests of the process take the way of refusals that are logged.
        fn max_level_hint(&self) -> Option<tracing::level_filters::LevelFilter> {
            Some(tracing::level_filters::LevelFilter::INFO)
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
fn expired_keys_do_not_accumulate() {
    let time = Arc::new(AtomicU64::new(0));
    let store = MemoryStore::new(1_000_000, Clock::manual(Arc::clone(&time)));
    for key in 0..100_000u64 {
        time.store(key * 10_000, Ordering::SeqCst);
        assert!(store.decide(&[charge(key, 1)]).admitted);
    }
    // A hundred are live, and a thousand have expired in the last ten seconds.
    assert!(store.len() <= 1500, "{}", store.len());
    assert_eq!(store.evicted(), 0);
}

fn decide_without_lock(store: &MemoryStore, charges: &[Charge]) -> Option<Outcome> {
    let mut outcome = Outcome::default();
    store.decide_without_lock(charges, &mut outcome).map(|()| outcome)
}

#[test]
fn plain_states_take_no_lock() {
    let store = MemoryStore::new(100, Clock::manual(Arc::new(AtomicU64::new(1_000_000))));
    let spec = Policy::from(TokenBucket::per_second(1).burst(3)).spec().unwrap();
    let bucket = |key| Charge { spec, ..charge(key, 1) };
    let lists = [
        vec![charge("a", 60)],
        vec![charge("b", 60), bucket("c")],
        vec![bucket("d"), bucket("e"), charge("f", 60)],
    ];
    for list in lists {
        assert!(decide_without_lock(&store, &list).is_none());
        assert!(store.decide(&list).admitted);
        let outcome = decide_without_lock(&store, &list).expect("the states are plain");
        assert!(!outcome.admitted);
    }
    let buckets = ["c", "d", "e"].map(bucket);
    let outcome = decide_without_lock(&store, &buckets).expect("the states are plain");
    assert!(outcome.admitted);
    assert!(outcome.verdicts.iter().all(|verdict| verdict.remaining == 1));
}

#[test]
fn stack_with_a_state_that_does_not_fit_is_charged_under_the_lock() {
    /// The latest time that a slot can hold.
    const LATEST: u64 = (1 << 53) - 1;
    let window = |key: &str, period| {
        let spec = AlgorithmSpec::FixedWindow(FixedWindowSpec { limit: 3, period, aligned: false });
        Charge { spec, ..charge(key, 1) }
    };
    for order in [[0, 1, 2], [1, 0, 2], [1, 2, 0]] {
        let time = Arc::new(AtomicU64::new(LATEST - 100));
        let store = MemoryStore::new(100, Clock::manual(Arc::clone(&time)));
        let windows = [window("short", 50), window("long", 90), window("longer", 95)];
        let list = order.map(|i| windows[i].clone());
        let remaining = || {
            let peeks = windows.clone().map(|window| Charge { cost: 0, ..window });
            store.decide(&peeks).verdicts.iter().map(|verdict| verdict.remaining).collect::<Vec<_>>()
        };
        assert!(store.decide(&list).admitted);
        // The next short window ends later than a slot can say.
        time.store(LATEST - 40, Ordering::SeqCst);
        assert!(decide_without_lock(&store, &list).is_none());
        assert_eq!(remaining(), [3, 2, 2]);
        assert!(store.decide(&list).admitted);
        assert_eq!(remaining(), [2, 1, 1]);
    }
}

#[test]
fn keys_come_and_go() {
    // Without the lock, a key that is reset keeps its slot.
    let store = MemoryStore::new(100_000, Clock::manual(Arc::new(AtomicU64::new(0)))).locked();
    let (mut known, mut random) = (std::collections::HashSet::new(), 1u64);
    for i in 0..60_000u64 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        // Some keys differ only in the second word, and many hash to few lines.
        let key = Fingerprint((random >> 40) % 3000 * ((random >> 20) % 2 * 15 + 1), 1 + (random >> 60) % 2);
        let charge = Charge { key: Key::hashed(key, PolicyId::default()), ..charge("", 60) };
        if known.remove(&key) {
            assert!(!admits(&store, charge.clone()), "{i}");
            store.reset(&charge.key);
        } else {
            known.insert(key);
            assert!(admits(&store, charge), "{i}");
        }
    }
    let table = store.lock();
    assert_eq!(table.len, known.len());
    for key @ Fingerprint(first, second) in &known {
        let slot = table.slots.locate(*key).expect("the key is there");
        let found = store.slots.find(*key).expect("the key is there");
        assert!(found.is_of(*key) || known.contains(&Fingerprint(*first, 3 - second)));
        let owner = table.owners[slot];
        assert_eq!(table.shares.slot(owner.policy, owner.place), slot);
    }
    // Few keys do not fit into their lines, and none are left behind.
    assert!(table.owners.lines() < store.slots.count() * 3 / 2, "{}", table.owners.lines());
}
