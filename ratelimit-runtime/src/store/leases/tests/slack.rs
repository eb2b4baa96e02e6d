//! Leases whose size the process chooses.

use super::super::chooser::Chooser;
use super::*;
use crate::base::rate::Rate;
use crate::policy::Slack;

/// A hundredth of it refills in a second.
fn large(cost: u64) -> Charge {
    charge("a", TokenBucket::per_second(1000).burst(100_000), cost)
}

/// A hundredth of it refills in 10 ms, which is ten permits.
fn small(cost: u64) -> Charge {
    charge("a", TokenBucket::per_second(1000).burst(1000), cost)
}

fn slack(text: &str) -> LeaseSize {
    LeaseSize::Slack(Slack::parse(text).unwrap())
}

fn join(leases: &Arc<Leases>, charge: &Charge) -> Option<(oneshot::Receiver<Reply>, Option<Fetch>)> {
    leases.join(charge, slack("1%"))
}

/// Calls as one that finds permits, or asks for a lease, or for itself. Returns how many permits it asks for. Redis has this latency,
/// and lacks so much.
async fn call(leases: &Arc<Leases>, charge: &Charge, latency: Duration, reset_after: Duration) -> u64 {
    let (reply, fetch) = match leases.spend(charge) {
        Some((_, fetch)) => (None, fetch),
        None => match join(leases, charge) {
            Some((reply, fetch)) => (Some(reply), fetch),
            None => return charge.cost,
        },
    };
    let Some(mut fetch) = fetch else { return 0 };
    let Some(permits) = fetch.next() else { return 0 };
    advance(latency).await;
    fetch.granted(permits, &Verdict { limit: 1000, ..granted(reset_after) });
    assert_eq!(fetch.next(), None);
    if let Some(reply) = reply {
        reply.await.unwrap().unwrap().spend();
    }
    permits
}

#[test]
fn permits_live_for_the_slack() {
    let bucket = |rate, burst| Policy::from(TokenBucket::per_second(rate).burst(burst));
    let daily = Policy::from(TokenBucket::new(Rate::new(100, ms(86_400_000))).burst(100));
    for (policy, slack, life) in [
        (bucket(1000, 1000), "1%", ms(10)),
        (bucket(1000, 1000), "0.1%", ms(1)),
        (bucket(1000, 20_000), "5%", ms(1000)),
        // A permit takes 334 µs, so the bucket fills up in 33,400 µs.
        (bucket(3000, 100), "0.1%", Duration::from_micros(33)),
        (bucket(3000, 100).computed(), "10%", Duration::from_micros(3340)),
        (daily, "1%", ms(10_000)),
    ] {
        let chooser = Chooser::new(Slack::parse(slack).unwrap(), &policy.spec().unwrap());
        assert_eq!(chooser.life, life, "{slack} of {policy:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn permits_are_spent_within_their_life() {
    let leases = Arc::<Leases>::default();
    for _ in 0..100 {
        advance(ms(2)).await;
        call(&leases, &large(1), ms(0), ms(1)).await;
    }
    advance(ms(2000)).await;
    join(&leases, &large(60));
    assert!(call(&leases, &large(1), ms(100), ms(1)).await > 50);
    let suffice = || leases.suffice(large(1).key.fingerprint(), &large(1).spec, 1);
    advance(ms(900) - Duration::from_micros(1)).await;
    assert!(suffice());
    advance(Duration::from_micros(1)).await;
    assert!(!suffice());
}

#[tokio::test(start_paused = true)]
async fn rare_calls_lease_nothing() {
    let leases = Arc::<Leases>::default();
    for pause in [0, 20, 50, 1000, 20] {
        advance(ms(pause)).await;
        assert!(join(&leases, &small(1)).is_none(), "after {pause} ms");
    }
    advance(ms(1)).await;
    assert!(join(&leases, &small(1)).is_some());
    assert!(join(&Arc::default(), &small(1)).is_none(), "the first call");
}

#[tokio::test(start_paused = true)]
async fn leases_grow_with_the_calls_and_shrink_with_them() {
    let leases = Arc::<Leases>::default();
    let mut asked = Vec::new();
    for _ in 0..5000 {
        advance(ms(2)).await;
        asked.push(call(&leases, &large(1), ms(0), ms(1)).await);
    }
    let leased: Vec<_> = asked.iter().copied().filter(|permits| *permits > 0).collect();
    assert!(leased.len() < 25 && leased[..6].is_sorted() && leased[0] == 1, "{leased:?}");
    // Five hundred calls come in the life of a lease.
    assert!(leased[leased.len() - 3..].iter().all(|permits| (500..=550).contains(permits)), "{leased:?}");
    let mut asked = Vec::new();
    for _ in 0..40 {
        advance(ms(200)).await;
        asked.push(call(&leases, &large(1), ms(0), ms(1)).await);
    }
    assert!(asked[20..].iter().all(|permits| *permits <= 15), "{asked:?}");
    assert!(asked[20..].iter().filter(|permits| **permits > 0).count() <= 5, "{asked:?}");
}

/// What is left then costs others nothing, or is missing.
#[tokio::test(start_paused = true)]
async fn leases_are_smaller_where_the_bucket_lacks_permits() {
    let mut sizes = Vec::new();
    for lacks in [ms(1), ms(90_000)] {
        let (leases, mut last) = (Arc::<Leases>::default(), 0);
        for _ in 0..5000 {
            advance(ms(2)).await;
            last = last.max(call(&leases, &large(1), ms(0), lacks).await);
        }
        sizes.push(last);
    }
    assert!(sizes[0] > 500 && sizes[1] < 500, "{sizes:?}");
}

#[tokio::test(start_paused = true)]
async fn a_process_leaves_half_of_the_permits_to_others() {
    let leases = Arc::<Leases>::default();
    for _ in 0..400 {
        advance(Duration::from_micros(20)).await;
        call(&leases, &small(1), ms(0), ms(980)).await;
    }
    advance(ms(11)).await;
    let permits = call(&leases, &small(1), ms(0), ms(980)).await;
    assert!((10..=20).contains(&permits), "{permits} of about thirty");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_costs_more_than_others_take_asks_for_itself() {
    let leases = Arc::<Leases>::default();
    assert!(join(&leases, &small(1)).is_none());
    assert!(join(&leases, &small(50)).is_none());
    assert!(join(&leases, &small(50)).is_none());
    assert!(join(&leases, &small(50)).is_some(), "as calls took as much just now");
}

#[tokio::test(start_paused = true)]
async fn the_next_lease_is_asked_for_two_round_trips_ahead() {
    for (latency, is_ahead) in [(ms(0), false), (ms(1), true)] {
        let leases = Arc::<Leases>::default();
        let mut ahead = 0;
        for _ in 0..400 {
            advance(Duration::from_micros(100)).await;
            let had = leases.suffice(small(1).key.fingerprint(), &small(1).spec, 1);
            let permits = call(&leases, &small(1), latency, ms(1)).await;
            ahead += u64::from(had && permits > 0);
        }
        assert_eq!(ahead > 0, is_ahead, "{latency:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn calls_ask_for_themselves_when_replies_are_slow() {
    let (leases, mut leased) = (Arc::<Leases>::default(), 0);
    for _ in 0..100_000 {
        advance(Duration::from_micros(100)).await;
        if call(&leases, &small(1), ms(11), ms(1)).await > 1 {
            leased += 1;
        }
    }
    // One try a second.
    assert!(leased < 20, "{leased} leases in {:?}", 100_000 * Duration::from_micros(100));
}

#[tokio::test(start_paused = true)]
async fn missed_permits_are_given_back() {
    for (lacks, is_given_back) in [(ms(20), false), (ms(21), true)] {
        let leases = Arc::<Leases>::default();
        assert_eq!(call(&leases, &small(1), ms(0), lacks).await, 1);
        let permits = call(&leases, &small(1), ms(0), lacks).await;
        assert!(permits > 1);
        advance(ms(10)).await;
        let given_back = if is_given_back { vec![permits - 1] } else { Vec::new() };
        assert_eq!(leases.end(&small(1)), given_back, "lacking {lacks:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn calls_that_are_never_admitted_say_nothing_about_others() {
    let leases = Arc::<Leases>::default();
    for cost in [1_001, 5_000, u64::MAX] {
        assert!(join(&leases, &small(cost)).is_none());
    }
    assert!(join(&leases, &small(1)).is_none(), "the first call that may be admitted asks for itself");
}
