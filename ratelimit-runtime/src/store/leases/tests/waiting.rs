//! Calls that wait for a lease.

use tokio::runtime::{Builder, Runtime};

use super::*;

#[tokio::test(start_paused = true)]
async fn calls_that_wait_share_a_request() {
    let leases = Arc::<Leases>::default();
    let (a, mut fetch) = first(&leases, &bucket(60));
    let join = |cost| {
        let (reply, fetch) = leases.join(&bucket(cost), LEASE).unwrap();
        assert!(fetch.is_none());
        reply
    };
    let (b, gone) = (join(60), join(60));
    drop(gone);
    assert_eq!(fetch.next(), Some(120), "what they need");
    let (c, d) = (join(20), join(99));
    drop(b);
    fetch.granted(120, &granted(ms(400)));
    assert!(a.await.unwrap().is_ok() && c.await.unwrap().is_ok());
    assert_eq!(fetch.next(), Some(SIZE));
    fetch.granted(SIZE, &granted(ms(400)));
    assert!(d.await.unwrap().is_ok());
    assert_eq!(fetch.next(), None);
}

#[tokio::test(start_paused = true)]
async fn late_replies_serve_only_calls_that_waited_before() {
    let leases = Arc::<Leases>::default();
    let (before, mut fetch) = first(&leases, &bucket(1));
    assert_eq!(fetch.next(), Some(SIZE));
    let (mut after, _) = leases.join(&bucket(1), LEASE).unwrap();
    advance(ms(100)).await;
    fetch.granted(SIZE, &granted(ms(400)));
    assert!(before.await.unwrap().is_ok());
    assert!(after.try_recv().is_err());
    assert_eq!(fetch.next(), None);
    assert!(after.await.is_err(), "it asks for itself, as leases are of no use");
    assert!(leases.join(&bucket(1), LEASE).is_none());
}

#[tokio::test(start_paused = true)]
async fn what_is_left_is_leased_to_all_who_wait_or_to_none() {
    for (remaining, next) in [(60, Some(60)), (59, None)] {
        let leases = Arc::<Leases>::default();
        let (reply, mut fetch) = first(&leases, &bucket(60));
        assert_eq!(fetch.next(), Some(SIZE));
        fetch.refused(&refused(remaining, ms(1)));
        assert_eq!(fetch.next(), next);
        if next.is_some() {
            fetch.refused(&refused(59, ms(1)));
            assert_eq!(fetch.next(), None, "only once");
        }
        assert!(reply.await.is_err());
    }
}

#[tokio::test(start_paused = true)]
async fn calls_wait_for_what_is_left_as_well() {
    let leases = Arc::<Leases>::default();
    let (before, mut fetch) = first(&leases, &bucket(1));
    assert_eq!(fetch.next(), Some(SIZE));
    fetch.refused(&refused(2, ms(1)));
    assert_eq!(fetch.next(), Some(2));
    let (after, _) = leases.join(&bucket(1), LEASE).expect("Redis has no more permits for it");
    fetch.granted(2, &granted(ms(400)));
    assert_eq!(fetch.next(), None);
    assert!(before.await.unwrap().is_ok() && after.await.unwrap().is_ok());
}

/// Only the runtime that has made a request continues it, and need not do so soon.
#[test]
fn calls_do_not_wait_for_other_runtimes() {
    let [asking, other] = [(); 2].map(|()| Builder::new_current_thread().enable_time().build().unwrap());
    let leases = Arc::<Leases>::default();
    let join = |runtime: &Runtime| runtime.block_on(async { leases.join(&bucket(1), LEASE) });
    assert!(join(&asking).is_none(), "the first call");
    let (_reply, mut fetch) = join(&asking).unwrap();
    assert!(join(&other).is_none());
    assert!(join(&asking).is_some_and(|(_, fetch)| fetch.is_none()));
    let fetch = fetch.as_mut().unwrap();
    assert_eq!(fetch.next(), Some(SIZE));
    fetch.granted(SIZE, &granted(ms(400)));
    assert!(other.block_on(async { spend(&leases, &bucket(1)) }), "permits are of all runtimes");
}
