//! Holds that a reset forgets, and those of keys that would be evicted.

use std::slice;

use super::*;
use crate::algorithm::AlgorithmSpec;
use crate::algorithm::holds::HoldsSpec;
use crate::store::memory::eviction::AFTER_CHOOSING;

/// The time does not pass, so that what comes after a reset is charged at the time of what came before.
#[test]
fn holds_that_a_reset_forgets_release_no_others() {
    let store = || MemoryStore::new(4, Clock::manual(Arc::new(AtomicU64::new(1_000))));
    for (way, store) in [("in place", store()), ("under the lock", store().locked())] {
        let spec = AlgorithmSpec::Holds(HoldsSpec { max: 2 });
        let hold = Charge { spec, ..charge("a", 1) };
        let take = || {
            let outcome = store.decide(slice::from_ref(&hold));
            outcome.admitted.then(|| outcome.verdicts[0].charge_id)
        };
        let release = |id| store.refund(&hold.key, &hold.spec, 1, Some(id));
        let mut forgotten = vec![take().unwrap(), take().unwrap()];
        for _ in 0..3 {
            assert!(take().is_none(), "{way}");
            assert!(store.reset(&hold.key), "{way}");
            assert!(!store.reset(&hold.key), "{way}: nothing is held any more");
            let held = [take().unwrap(), take().unwrap()];
            forgotten.drain(..).for_each(release);
            assert!(take().is_none(), "{way}: what was forgotten has released permits of others");
            release(held[0]);
            forgotten = vec![held[1], take().unwrap()];
        }
        // Nor once all that have begun since have ended.
        assert!(store.reset(&hold.key), "{way}");
        [take().unwrap(), take().unwrap()].into_iter().for_each(release);
        let held = [take().unwrap(), take().unwrap()];
        forgotten.into_iter().for_each(release);
        assert!(take().is_none(), "{way}");
        held.into_iter().for_each(release);
        assert!(!store.reset(&hold.key), "{way}: all have been released");
        assert!(take().is_some() && take().is_some() && take().is_none(), "{way}");
    }
}

#[test]
fn more_keys_may_be_held_than_there_is_room_for() {
    let store = MemoryStore::new(1_000, Clock::manual(Arc::new(AtomicU64::new(1_000))));
    let hold = |key: u32| Charge { spec: AlgorithmSpec::Holds(HoldsSpec { max: 1 }), ..charge(key, 1) };
    let take = |key| store.decide(&[hold(key)]).verdicts[0];
    let ids: Vec<_> = (0..20_000).map(|key| take(key).charge_id).collect();
    assert_eq!(store.len(), 20_000);
    for key in 0..20_000 {
        assert!(!take(key).admitted, "{key}");
    }
    for (key, id) in (0..).zip(ids) {
        let Charge { key, spec, .. } = hold(key);
        store.refund(&key, &spec, 1, Some(id));
    }
    assert!((20_000..60_000).all(|key| store.decide(&[charge(key, 3600)]).admitted));
    assert!(store.len() <= 20_000);
}

/// Calls take holds without the table's lock.
#[test]
fn key_that_comes_to_be_held_is_not_evicted() {
    let time = Arc::new(AtomicU64::new(1_000));
    let store = Arc::new(MemoryStore::new(2, Clock::manual(Arc::clone(&time))));
    let hold = Charge { spec: AlgorithmSpec::Holds(HoldsSpec { max: 1 }), ..charge("idle", 1) };
    let id = store.decide(slice::from_ref(&hold)).verdicts[0].charge_id;
    store.refund(&hold.key, &hold.spec, 1, Some(id));
    assert!(store.decide(&[charge("live", 3600)]).admitted);
    // As of then, the idle key has not expired, and is the one that ends first.
    time.store(500, Ordering::SeqCst);
    let (calls, taken) = (Arc::clone(&store), hold.clone());
    AFTER_CHOOSING.set(Some(Box::new(move || {
        time.store(1_000, Ordering::SeqCst);
        let mut outcome = Outcome::default();
        calls.decide_plain_list(slice::from_ref(&taken), &mut outcome).expect("the key is there");
        assert!(outcome.admitted);
    })));
    assert!(store.decide(&[charge("new", 3600)]).admitted);
    assert!(AFTER_CHOOSING.take().is_none(), "no key was chosen");
    assert!(!store.decide(slice::from_ref(&hold)).admitted, "the hold was forgotten");
    assert_eq!(store.len(), 2);
}
