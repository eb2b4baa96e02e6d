//! Sweeps and evictions.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::table::MIN_SWEPT;
use super::*;
use crate::policy::{FixedWindow, Policy};

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
    assert_eq!((store.len(), store.evicted()), (3, 1));
    assert!(!admits(charge("a", 40)) && !admits(charge("e", 50)));
}

#[test]
fn closest_to_expiry_go_before_ties() {
    let store = MemoryStore::new(1600, Clock::manual(Arc::new(AtomicU64::new(0))));
    for key in 0..1600 {
        assert!(store.decide(&[charge(key, if key < 1550 { 60 } else { 10 })]).admitted);
    }
    assert!(store.decide(&[charge("one more", 60)]).admitted);
    assert_eq!(store.evicted(), 100);
    let ends_soon = store.lock().entries.values().filter(|entry| entry.ends < 60_000_000).count();
    assert_eq!(ends_soon, 0);
}

#[test]
fn full_store_is_swept_rarely() {
    let time = Arc::new(AtomicU64::new(0));
    let store = MemoryStore::new(1600, Clock::manual(Arc::clone(&time)));
    // For every new key one expires, so without evictions the store would stay full.
    for key in 0..10_000u64 {
        time.store(key * 1000, Ordering::SeqCst);
        let window = Policy::from(FixedWindow::new(1, Duration::from_millis(1599)));
        let spec = window.spec().unwrap();
        assert!(store.decide(&[Charge { spec, ..charge(key, 1) }]).admitted);
        let table = store.lock();
        assert!(table.entries.len() <= 1600 && table.sweeps <= 2 + key / 100, "{} at {key}", table.sweeps);
    }
}

#[test]
fn log_subscriber_may_use_the_store() {
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
fn expired_keys_do_not_accumulate() {
    let time = Arc::new(AtomicU64::new(0));
    let store = MemoryStore::new(1_000_000, Clock::manual(Arc::clone(&time)));
    for key in 0..100_000u64 {
        time.store(key * 10_000, Ordering::SeqCst);
        assert!(store.decide(&[charge(key, 1)]).admitted);
    }
    assert!(store.len() <= MIN_SWEPT, "{}", store.len());
    assert_eq!(store.evicted(), 0);
}
