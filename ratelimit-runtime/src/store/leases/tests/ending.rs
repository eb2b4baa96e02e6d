//! What is left of leases when they end.

use super::*;
use crate::store::correction::Correction;

const DAY: Duration = ms(86_400_000);

impl Leases {
    /// Ends the leases of a key whose time has come. Returns the permits that are given back.
    pub(super) fn end(self: &Arc<Self>, charge: &Charge) -> Vec<u64> {
        let mut kept = self.keep(charge.key.fingerprint(), Handle::current().id()).expect("only one keeps");
        costs(&kept.end().0)
    }
}

fn costs(refunds: &[Correction]) -> Vec<u64> {
    refunds.iter().map(|refund| refund.cost).collect()
}

/// Takes a lease of a charge that counts this long. Returns what the first call gets of it.
async fn lease(leases: &Arc<Leases>, charge: &Charge, counts: Duration) -> Grant {
    let (reply, mut fetch) = first(leases, charge);
    let permits = fetch.next().unwrap();
    fetch.granted(permits, &granted(counts));
    assert_eq!(fetch.next(), None);
    reply.await.unwrap().unwrap()
}

#[tokio::test(start_paused = true)]
async fn what_is_left_is_given_back_once() {
    let (leases, charge) = (Arc::<Leases>::default(), window(DAY));
    lease(&leases, &charge, DAY).await.spend();
    assert!(spend(&leases, &Charge { cost: 9, ..charge.clone() }));
    advance(ms(999)).await;
    assert!(leases.end(&charge).is_empty());
    advance(ms(1)).await;
    assert!(!spend(&leases, &charge));
    assert_eq!(leases.end(&charge), [90]);
    assert_eq!((leases.end(&charge), leases.end_all().len()), (vec![], 0));
}

#[tokio::test(start_paused = true)]
async fn charges_that_no_longer_count_are_not_given_back() {
    for (charge, counts, given_back) in [
        (bucket(1), ms(100), vec![]),
        (bucket(1), ms(101), vec![99]),
        (window(ms(500)), ms(400), vec![]),
        (window(DAY), ms(1000), vec![]),
        (window(DAY), ms(1001), vec![99]),
    ] {
        let leases = Arc::<Leases>::default();
        lease(&leases, &charge, counts).await.spend();
        let mut kept = leases.keep(charge.key.fingerprint(), Handle::current().id()).unwrap();
        let end = kept.end().1.unwrap();
        advance(end - Instant::now()).await;
        assert_eq!(costs(&kept.end().0), given_back, "{charge:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_end_of_the_registry_gives_back_live_leases() {
    let leases = Arc::<Leases>::default();
    let other = Charge { key: Key::raw("b"), ..window(DAY) };
    for charge in [&window(DAY), &other] {
        lease(&leases, charge, DAY).await.spend();
    }
    assert_eq!(costs(&leases.end_all()), [99, 99]);
    assert!(!spend(&leases, &other));
    assert!(leases.end_all().is_empty());
}

#[tokio::test(start_paused = true)]
async fn permits_of_dropped_calls_are_given_back() {
    let (leases, charge) = (Arc::<Leases>::default(), window(DAY));
    let grant = lease(&leases, &charge, DAY).await;
    drop(grant);
    advance(ms(1000)).await;
    assert_eq!(leases.end(&charge), [100], "with what is left");
    let grant = lease(&leases, &charge, DAY).await;
    advance(ms(1000)).await;
    drop(grant);
    assert_eq!(leases.end(&charge), [100], "also late");
}

#[tokio::test(start_paused = true)]
async fn a_keeper_goes_on_while_permits_may_return() {
    let (leases, charge) = (Arc::<Leases>::default(), Charge { cost: 60, ..window(DAY) });
    let grant = lease(&leases, &charge, DAY).await;
    assert!(spend(&leases, &Charge { cost: 40, ..charge.clone() }));
    let keep = || leases.keep(charge.key.fingerprint(), Handle::current().id());
    let mut kept = keep().unwrap();
    assert!(kept.end().1.is_some() && keep().is_none());
    drop(grant);
    advance(ms(1000)).await;
    let (refunds, next) = kept.end();
    assert_eq!((costs(&refunds), next), (vec![60], None));
    assert!(keep().is_some() && kept.end().1.is_none(), "the next lease has another");
}

#[tokio::test(start_paused = true)]
async fn resets_give_back_what_was_charged_since() {
    let (leases, charge) = (Arc::<Leases>::default(), window(DAY));
    lease(&leases, &charge, DAY).await.spend();
    let (_reply, mut fetch) = first(&leases, &Charge { cost: 99, ..charge.clone() });
    assert!(fetch.next().is_some());
    drop(leases.end_after(&charge.key));
    fetch.granted(SIZE, &granted(DAY));
    assert!(!spend(&leases, &charge));
    // By their receipts, which Redis compares.
    assert_eq!(leases.end(&charge).iter().sum::<u64>(), 99 + 1);
    let slow = Charge { key: Key::raw("b"), ..bucket(1) };
    lease(&leases, &slow, DAY).await.spend();
    drop(leases.end_after(&slow.key));
    assert!(leases.end_all().is_empty(), "a bucket's receipts outlive the reset");
}

#[tokio::test(start_paused = true)]
async fn a_process_holds_one_lease_of_a_window() {
    let (leases, charge) = (Arc::<Leases>::default(), window(DAY));
    lease(&leases, &charge, DAY).await.spend();
    let (_, fetch) = leases.spend(&Charge { cost: 80, ..charge.clone() }).unwrap();
    let mut fetch = fetch.unwrap();
    assert_eq!(fetch.next(), Some(81));
    fetch.granted(81, &granted(DAY));
    assert_eq!(leases.end_all().iter().map(|refund| refund.cost).sum::<u64>(), SIZE);
}
