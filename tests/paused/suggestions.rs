//! Suggested numbers, against limiters with these numbers.

use std::time::Duration;

use ratelimits::observe::{NoSuggestion, Suggestion, Suggestions};
use ratelimits::{
    ConcurrencyLimit, Error, FixedWindow, LeakyBucket, Policy, Rate, Registry, SlidingWindow, TokenBucket,
    count_limit, rate_limit,
};
use tokio::time::{advance, sleep};

use crate::random::Random;

const SECOND: Duration = Duration::from_secs(1);

/// Keys and the times from the call before.
type Calls = Vec<(u64, Duration)>;

/// Calls of 20 keys, of which some have more calls than others, now and then several at once.
fn calls(seed: u64) -> Calls {
    let mut random = Random::new(seed);
    let mut call = |_| {
        let pause = if random.below(3) == 0 { 0 } else { random.below(20_000) };
        (random.below(20) * random.below(20) / 20, Duration::from_micros(pause))
    };
    (0..25_000).map(&mut call).collect()
}

fn observed(suggestions: &Suggestions) -> Registry {
    Registry::builder().observer(suggestions.observer()).in_memory()
}

/// Returns how many calls a policy refuses.
async fn refused(registry: &Registry, policy: Policy, calls: &Calls) -> usize {
    let limiter = registry.limiter("calls", policy).unwrap();
    let mut refused = 0;
    for (key, pause) in calls {
        advance(*pause).await;
        refused += usize::from(limiter.try_acquire(*key).await.is_err());
    }
    refused
}

/// Returns the only suggestion.
fn only(suggestions: &Suggestions) -> Suggestion {
    let [suggestion] = <[_; 1]>::try_from(suggestions.list()).unwrap();
    suggestion
}

#[tokio::test(start_paused = true)]
async fn suggested_numbers_refuse_as_many_calls_as_is_said() {
    let (seven, min) = (Rate::per_second(7), Duration::from_secs(60));
    let policies: [(Policy, u64); 4] = [
        (TokenBucket::new(seven).burst(9).into(), 1),
        (LeakyBucket::new(20, seven).into(), 2),
        (FixedWindow::new(7, SECOND).into(), 3),
        (TokenBucket::new(Rate::new(400, min)).burst(4).into(), 4),
    ];
    for (policy, seed) in policies {
        let (suggestions, calls) = (Suggestions::new(), calls(seed));
        refused(&observed(&suggestions), policy, &calls).await;
        let suggestion = only(&suggestions);
        assert_eq!((suggestion.calls, suggestion.keys, suggestion.one_in), (25_000, 19, 1));
        let smallest = suggestion.smallest.unwrap();
        let exact = refused(&Registry::in_memory(), smallest.policy, &calls).await as f64 / 25_000.0;
        assert_eq!((smallest.refused, smallest.error), (exact, 0.0), "{smallest}");
        assert!(exact <= 0.001, "{smallest}");
        // Calls by the suggested numbers lead to the same.
        suggestions.clear();
        refused(&observed(&suggestions), smallest.policy, &calls).await;
        let again = only(&suggestions).smallest.unwrap();
        assert_eq!((again.policy, again.refused), (smallest.policy, smallest.refused));
    }
}

#[rate_limit("7/s", 9, key = key, shadow, name = "suggested.shadow", registry = registry)]
#[count_limit(100, "1s", key = key, name = "suggested.stack", registry = registry)]
async fn in_shadow(registry: &Registry, key: u64) -> Result<(), Error> {
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn shadows_and_stacks_are_told_what_single_policies_are() {
    let (suggestions, calls) = (Suggestions::new(), calls(5));
    refused(&observed(&suggestions), TokenBucket::per_second(7).burst(9).into(), &calls).await;
    let registry = observed(&suggestions);
    for (key, pause) in &calls {
        advance(*pause).await;
        in_shadow(&registry, *key).await.unwrap();
    }
    let list = suggestions.list();
    assert_eq!(
        list.iter().map(|it| &*it.policy).collect::<Vec<_>>(),
        ["calls", "suggested.shadow", "suggested.stack"]
    );
    assert_eq!(list[0].smallest, list[1].smallest);
    assert_eq!(list[0].smallest.unwrap().to_string(), r#"rate = "40/s", burst = 51"#);
}

#[tokio::test(start_paused = true)]
async fn each_observer_follows_all_calls() {
    let all = [Suggestions::new(), Suggestions::new()];
    let [one, other] = &all;
    let both = Registry::builder().observer(one.observer()).observer(other.observer()).in_memory();
    for registry in [both, observed(other)] {
        for key in 0..10 {
            in_shadow(&registry, key).await.unwrap();
        }
    }
    let followed = all.map(|it| it.list().iter().map(|it| (it.calls, it.keys)).collect::<Vec<_>>());
    assert_eq!(followed, [[(10, 10), (10, 10)], [(20, 10), (20, 10)]]);
}

#[tokio::test(start_paused = true)]
async fn calls_that_wait_count_as_of_when_they_came() {
    let suggestions = Suggestions::new();
    let limiter = observed(&suggestions).limiter("calls", TokenBucket::per_second(10).burst(1)).unwrap();
    for _ in 0..4_000 {
        let (a, b, c, d, e) = tokio::join!(
            limiter.acquire(1),
            limiter.acquire(1),
            limiter.acquire(1),
            limiter.acquire(1),
            limiter.acquire(1)
        );
        for waited in [a, b, c, d, e] {
            waited.unwrap();
        }
        sleep(10 * SECOND).await;
    }
    let smallest = only(&suggestions).smallest.unwrap();
    assert_eq!((smallest.policy, smallest.refused), (TokenBucket::per_second(48).burst(5).into(), 0.0));
}

#[count_limit(limit = limit, period = "1s", name = "suggested.computed", registry = registry)]
async fn computed(registry: &Registry, limit: u64) -> Result<(), Error> {
    Ok(())
}

#[count_limit(7, "1s", name = "suggested.corrected", charge_when = |_| true, registry = registry)]
async fn corrected(registry: &Registry) -> Result<(), Error> {
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn it_is_said_why_numbers_are_not_known() {
    let suggestions = Suggestions::new();
    let registry = observed(&suggestions);
    let reason = |policy: &str| {
        let list = suggestions.list();
        list.into_iter().find(|it| *it.policy == *policy).unwrap().smallest.unwrap_err()
    };
    let call = async |name: &str, policy: Policy, times: usize, pause: Duration| {
        let limiter = registry.limiter(name, policy).unwrap();
        for _ in 0..times {
            advance(pause).await;
            _ = limiter.try_acquire(()).await;
        }
    };
    let window = FixedWindow::new(80, 10 * SECOND);
    call("window", window.into(), 19_999, SECOND / 1_000).await;
    assert_eq!(reason("window"), NoSuggestion::TooFewCalls { missing: 1 });
    call("window", window.into(), 1, SECOND / 1_000).await;
    let missing = 100 * SECOND - 19_999 * SECOND / 1_000;
    assert_eq!(reason("window"), NoSuggestion::TooShort { missing });
    assert_eq!(reason("window").to_string(), "calls have to be followed for 81 s longer");
    advance(missing).await;
    call("window", window.into(), 1, Duration::ZERO).await;
    let [more, less] = [640, 10].map(|limit| FixedWindow::new(limit, 10 * SECOND).into());
    assert_eq!(reason("window"), NoSuggestion::More(more));
    assert_eq!(reason("window").to_string(), r#"more than limit = 640, period = "10s""#);
    suggestions.clear();
    assert_eq!(reason("window"), NoSuggestion::TooFewCalls { missing: 20_000 });
    call("window", window.into(), 20_000, 2 * SECOND).await;
    assert_eq!(reason("window"), NoSuggestion::Less(less));

    // There is no smaller one.
    call("smallest", FixedWindow::new(4, SECOND).into(), 20_000, 2 * SECOND).await;
    let list = suggestions.list();
    let smallest = list.iter().find(|it| *it.policy == *"smallest").unwrap().smallest.unwrap();
    assert_eq!(smallest.policy, FixedWindow::new(1, SECOND).into());

    for policy in [
        Policy::from(SlidingWindow::new(7, SECOND)),
        ConcurrencyLimit::new(7).into(),
        TokenBucket::per_second(7).interval_refill().into(),
        LeakyBucket::new(7, Rate::per_second(7)).queue().into(),
    ] {
        let name = format!("{policy:?}");
        call(&name, policy, 2, SECOND).await;
        assert_eq!(reason(&name), NoSuggestion::Unsupported);
    }
    computed(&registry, 7).await.unwrap();
    assert_eq!(reason("suggested.computed"), NoSuggestion::TooFewCalls { missing: 19_999 });
    computed(&registry, 8).await.unwrap();
    assert_eq!(reason("suggested.computed"), NoSuggestion::NumbersDiffer);
    corrected(&registry).await.unwrap();
    assert_eq!(reason("suggested.corrected"), NoSuggestion::Corrected);
    for i in 0..50 {
        call(&format!("policy {i}"), window.into(), 1, SECOND).await;
    }
    assert_eq!(reason("policy 49"), NoSuggestion::TooManyPolicies);
    assert_eq!(reason("policy 0"), NoSuggestion::TooFewCalls { missing: 19_999 });
}
