//! Holds that a reset forgets.

use super::*;
use crate::algorithm::AlgorithmSpec;
use crate::algorithm::holds::HoldsSpec;

/// The time does not pass, so that what comes after a reset is charged at the time of what came before.
#[test]
fn holds_that_a_reset_forgets_release_no_others() {
    let store = || MemoryStore::new(4, Clock::manual(Arc::new(AtomicU64::new(1_000))));
    for (way, store) in [("in place", store()), ("under the lock", store().locked())] {
        let spec = AlgorithmSpec::Holds(HoldsSpec { max: 2 });
        let hold = Charge { spec, ..charge("a", 1) };
        let take = || {
            let outcome = store.decide(std::slice::from_ref(&hold));
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
