//! Shares of a policy whose limit changes, by an override or a computed number, while an outage lasts.

use super::*;

const PERIOD: u64 = 2_000_000;

/// A share of an aligned window, for one of three processes: of a limit below three, a longer window that is not aligned.
fn share(limit: u64) -> Charge {
    let window = FixedWindow::new(limit, Duration::from_micros(PERIOD)).aligned();
    Charge { spec: Policy::from(window).spec().unwrap().per_instance(3), ..charge("a", 1) }
}

#[test]
fn a_window_that_was_not_aligned_ends_with_the_aligned_one() {
    let time = Arc::new(AtomicU64::new(5_387_000));
    let store = MemoryStore::new(4, Clock::manual(Arc::clone(&time)));
    assert!(store.decide(&[share(2)]).admitted);
    for now in [5_387_000, 5_500_000, 5_999_999] {
        time.store(now, Ordering::SeqCst);
        let verdict = store.decide(&[share(5)]).verdicts[0];
        assert_eq!((verdict.admitted, verdict.retry_after), (false, Some(3 * PERIOD - now)), "at {now}");
    }
    time.store(7_252_002, Ordering::SeqCst);
    assert!(store.decide(&[share(5)]).admitted);
    assert!(!store.decide(&[share(5)]).admitted);
}

#[test]
fn a_window_that_was_aligned_does_not_outlast_the_longer_one() {
    let time = Arc::new(AtomicU64::new(5_387_000));
    let store = MemoryStore::new(4, Clock::manual(Arc::clone(&time)));
    assert!(store.decide(&[share(5)]).admitted);
    for now in [5_387_000, 5_500_000, 5_999_999] {
        time.store(now, Ordering::SeqCst);
        let verdict = store.decide(&[share(2)]).verdicts[0];
        let retry_after = verdict.retry_after.unwrap();
        assert!(!verdict.admitted && (1..=3 * PERIOD).contains(&retry_after), "at {now}: {verdict:?}");
    }
    time.store(5_387_000 + 3 * PERIOD, Ordering::SeqCst);
    assert!(store.decide(&[share(2)]).admitted);
}
