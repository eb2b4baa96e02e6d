use std::thread;

use super::*;
use crate::policy::{FixedWindow, Policy, TokenBucket};

const SECOND: Duration = Duration::from_secs(1);

fn charge(key: &str, policy: impl Into<Policy>, cost: u64) -> Charge {
    let spec = policy.into().spec().unwrap();
    Charge { key: Key::raw(key), spec, cost, wait: 0, shadow: false }
}

fn find(denials: &Denials, charge: &Charge) -> Option<Verdict> {
    denials.find(charge.key.fingerprint(), &charge.spec, charge.cost)
}

fn window(key: &str) -> Charge {
    charge(key, FixedWindow::new(5, SECOND), 1)
}

fn refused(retry_after: Duration) -> Verdict {
    let retry_after = retry_after.as_micros() as u64;
    Verdict {
        limit: 5,
        remaining: 3,
        retry_after: Some(retry_after),
        reset_after: 7_000_000,
        ..Verdict::default()
    }
}

/// A time so late that no denial of a request sent then ends during a test.
fn later() -> Instant {
    Instant::now() + 3600 * SECOND
}

fn denial(key: u64, sent: Instant, retry_after: Duration) -> Denial {
    let Charge { spec, cost, .. } = window("");
    let until = sent + retry_after.min(MAX_HOLD);
    Denial { key: Fingerprint(key, key), spec, cost, until, verdict: refused(retry_after), since: sent }
}

#[test]
fn denials_are_of_a_key_a_cost_and_numbers() {
    let denials = Denials::new();
    let denied = charge("a", TokenBucket::per_second(5), 3);
    denials.remember(&denied, &refused(SECOND), later());
    assert!(find(&denials, &denied).is_some());
    for other in [
        charge("b", TokenBucket::per_second(5), 3),
        charge("a", TokenBucket::per_second(5), 2),
        charge("a", TokenBucket::per_second(5), 4),
        charge("a", TokenBucket::per_second(5).burst(6), 3),
        charge("a", FixedWindow::new(5, SECOND), 3),
    ] {
        assert!(find(&denials, &other).is_none(), "{other:?}");
    }
}

#[test]
fn times_count_down_until_the_retry() {
    let sent = later();
    let denial = denial(1, sent, Duration::from_micros(500));
    let after = |nanos| denial.verdict_at(sent + Duration::from_nanos(nanos));
    let times = |nanos| after(nanos).map(|verdict| (verdict.retry_after.unwrap(), verdict.reset_after));
    assert_eq!(times(0), Some((500, 7_000_000)));
    assert_eq!(times(1), Some((500, 7_000_000)));
    assert_eq!(times(1_000), Some((499, 6_999_999)));
    assert_eq!(times(499_999), Some((1, 6_999_501)));
    assert_eq!(times(500_000), None);
    let Verdict { admitted, limit, remaining, .. } = after(0).unwrap();
    assert_eq!((admitted, limit, remaining), (false, 5, 3));
}

#[test]
fn denials_hold_for_at_most_a_second() {
    let sent = later();
    let denial = denial(1, sent, 60 * SECOND);
    let last = denial.verdict_at(sent + SECOND - Duration::from_micros(1)).unwrap();
    assert_eq!(last.retry_after, Some(59_000_001));
    assert!(denial.verdict_at(sent + SECOND).is_none());
}

/// The hold is counted from the request, and the times from the reply.
#[test]
fn late_replies_shorten_the_hold_and_not_the_retry() {
    let (denials, charge, asked) = (Denials::new(), window("a"), later());
    denials.remember(&charge, &refused(SECOND), asked);
    let group = place(charge.key.fingerprint());
    let set = denials.groups[group.0].get().unwrap()[group.1].read().unwrap();
    assert_eq!(set.denials[0].until, asked + SECOND);
    assert!(set.denials[0].since < asked);
    drop(set);

    let Some(long_ago) = Instant::now().checked_sub(SECOND) else { return };
    let other = window("b");
    denials.remember(&other, &refused(SECOND), long_ago);
    assert!(find(&denials, &other).is_none());
}

#[test]
fn calls_that_are_never_admitted_are_not_denied() {
    let (denials, charge) = (Denials::new(), window("a"));
    denials.remember(&charge, &Verdict { retry_after: None, ..refused(SECOND) }, later());
    assert!(find(&denials, &charge).is_none());
}

#[test]
fn change_of_a_key_ends_its_denials() {
    let denials = Denials::new();
    let (key, other_cost, other_key) = (window("a"), Charge { cost: 2, ..window("a") }, window("b"));
    let sent_before = Instant::now();
    for charge in [&key, &other_cost, &other_key] {
        denials.remember(charge, &refused(SECOND), later());
    }
    let forgets = denials.forget_after(&key.key);
    assert!(find(&denials, &key).is_some());
    drop(forgets);
    assert!(find(&denials, &key).is_none());
    assert!(find(&denials, &other_cost).is_none());
    assert!(find(&denials, &other_key).is_some());

    denials.remember(&key, &refused(SECOND), sent_before);
    assert!(find(&denials, &key).is_none(), "it was asked for before the change");
    denials.remember(&key, &refused(SECOND), later());
    assert!(find(&denials, &key).is_some());
}

#[test]
fn other_numbers_end_denials() {
    let denials = Denials::new();
    let [slow, fast] = [1, 100].map(|rate| charge("a", TokenBucket::per_second(rate).adjustable(), 1));
    for charge in [&slow, &fast] {
        denials.remember(charge, &refused(SECOND), later());
    }
    denials.forget_other_numbers(&fast);
    assert!(find(&denials, &slow).is_none());
    assert!(find(&denials, &fast).is_some());
}

#[test]
fn full_set_replaces_the_denial_that_ends_first() {
    let (mut set, sent) = (Set::default(), later());
    let keys = |set: &Set| {
        let mut keys: Vec<_> = set.denials.iter().map(|denial| denial.key.0).collect();
        keys.sort_unstable();
        keys
    };
    for (key, millis) in [(0, 500), (1, 400), (2, 100), (3, 900), (4, 800), (5, 200), (6, 600), (7, 700)] {
        set.insert(denial(key, sent, Duration::from_millis(millis)));
    }
    set.insert(denial(2, sent, Duration::from_millis(300)));
    assert_eq!(keys(&set), [0, 1, 2, 3, 4, 5, 6, 7]);
    set.insert(denial(8, sent, Duration::from_millis(100)));
    assert_eq!(keys(&set), [0, 1, 2, 3, 4, 6, 7, 8]);
}

#[test]
fn memory_is_bounded_however_many_keys_are_refused() {
    let (denials, sent) = (Denials::new(), later());
    let mut charge = window("a");
    for i in 0..200_000 {
        charge.key = Key::raw(i.to_string());
        denials.remember(&charge, &refused(SECOND), sent);
    }
    let sets = denials.groups.iter().filter_map(OnceLock::get).flat_map(|group| group.iter());
    let capacity: usize = sets.map(|set| set.read().unwrap().denials.capacity()).sum();
    assert_eq!(capacity, GROUPS * SETS * DENIALS);
    let bytes = GROUPS * SETS * size_of::<RwLock<Set>>() + capacity * size_of::<Denial>();
    assert!(bytes < 2_000_000, "{bytes}");
    assert!(find(&denials, &charge).is_some(), "the last one is remembered");
}

/// Each thread changes its own key, and all are refused by one.
#[test]
fn threads_see_their_own_changes() {
    let (denials, hot) = (Denials::new(), window("hot"));
    denials.remember(&hot, &refused(SECOND), later());
    thread::scope(|scope| {
        for i in 0..4 {
            let (denials, hot) = (&denials, &hot);
            scope.spawn(move || {
                let own = window(&i.to_string());
                for _ in 0..2_000 {
                    denials.remember(&own, &refused(SECOND), later());
                    assert!(find(denials, &own).is_some());
                    drop(denials.forget_after(&own.key));
                    assert!(find(denials, &own).is_none());
                    assert!(find(denials, hot).is_some());
                }
            });
        }
    });
}
