//! `ratelimits peek`.

use std::time::Duration;

use ratelimits::{FixedWindow, LeakyBucket, Policy, Rate, SlidingWindow, TokenBucket};
use serde_json::{Value, json};

use crate::command::{HOUR, registry, run, run_with_input, slow_bucket};
use crate::support::server::Server;

#[tokio::test]
async fn state_of_a_key_is_shown() {
    let server = Server::shared();
    let search = registry(&server.url(), "peek").await.limiter("app::search", slow_bucket(10)).unwrap();
    search.try_acquire_n(("tenant 7", 42), 4).await.unwrap();
    let peeked = run(&server.url(), &["peek", "--namespace", "peek", "app::search", "tenant 7", "42"]);
    let lines: Vec<&str> = peeked.out.lines().collect();
    assert_eq!(
        lines[..8],
        [
            "policy       app::search",
            "algorithm    token bucket",
            "key          'tenant 7' 42",
            "used         4",
            "remaining    6",
            "limit        10",
            "retry after  now",
            "reset after  4h",
        ],
        "{peeked:?}"
    );
    assert!(lines[8].starts_with("redis key    peek::app/search:tb1-3600000000-36000000000:{"), "{peeked:?}");
    assert_eq!((lines.len(), peeked.code), (9, 0));
}

/// Every algorithm: as an inventory says it, the policy, and the permits that are charged.
fn policies() -> Vec<(&'static str, &'static str, Policy, u64)> {
    let slow = Rate::new(1, HOUR);
    let warm = Duration::from_secs(7200);
    vec![
        ("rate_limit", "rate = \"1/h\", burst = 5", slow_bucket(5).into(), 5),
        ("rate_limit", "rate = \"1/h\", burst = 5, borrow", slow_bucket(5).borrow().into(), 7),
        (
            "rate_limit",
            "rate = \"3/h\", burst = 5, refill = interval",
            { TokenBucket::new(Rate::new(3, HOUR)).interval_refill().burst(5).into() },
            4,
        ),
        ("rate_limit", "rate = \"1/h\", warmup = \"2h\"", TokenBucket::new(slow).warmup(warm).into(), 1),
        ("count_limit", "limit = 5, period = \"1h\"", FixedWindow::new(5, HOUR).into(), 5),
        ("count_limit", "limit = 5, period = \"1h\", aligned", FixedWindow::new(5, HOUR).aligned().into(), 5),
        ("funnel_limit", "capacity = 5, leak_rate = \"1/h\"", LeakyBucket::new(5, slow).into(), 5),
        (
            "funnel_limit",
            "capacity = 5, leak_rate = \"1/h\", queue",
            LeakyBucket::new(5, slow).queue().into(),
            1,
        ),
        ("window_limit", "limit = 5, period = \"1h\"", SlidingWindow::new(5, HOUR).into(), 5),
        (
            "window_limit",
            "limit = 5, period = \"1h\", precision = \"1m\"",
            { SlidingWindow::new(5, HOUR).precision(HOUR / 60).into() },
            5,
        ),
    ]
}

#[tokio::test]
async fn every_algorithm_is_peeked_as_the_library_does() {
    let server = Server::shared();
    let registry = registry(&server.url(), "peek-all").await;
    for (i, (attribute, arguments, policy, cost)) in policies().into_iter().enumerate() {
        let name = format!("peek::policy{i}");
        let limiter = registry.limiter(&name, policy).unwrap();
        limiter.try_acquire_n("k", cost).await.unwrap();
        let decision = limiter.peek("k").await.unwrap();
        let inventory =
            json!([{"name": name, "attribute": attribute, "algorithm": "any", "arguments": arguments}]);
        let peek = ["peek", "--json", "--namespace", "peek-all", &name, "k", "--inventory", "-"];
        let state = &run_with_input(&server.url(), &peek, &inventory.to_string()).json()["states"][0];
        let context = format!("{arguments}: {state} {decision:?}");
        assert_eq!(state["limit"], decision.limit, "{context}");
        assert_eq!(state["remaining"], decision.remaining, "{context}");
        assert_eq!(state["used"], decision.limit - decision.remaining, "{context}");
        // Calls wait in a queue until it is full.
        let limited = decision.retry_after.is_some() && !arguments.contains("queue");
        assert_eq!(state["limited"], limited, "{context}");
        let about = |seconds: &Value, time: Option<Duration>| match (seconds.as_f64(), time) {
            (Some(seconds), Some(time)) => (seconds - time.as_secs_f64()).abs() < 60.0,
            (seconds, time) => seconds.is_none() && time.is_none(),
        };
        let retry_after = decision.retry_after.filter(|_| limited);
        assert!(about(&state["retry_after_seconds"], retry_after), "{context}");
        assert!(about(&state["reset_after_seconds"], Some(decision.reset_after)), "{context}");
    }
}

#[tokio::test]
async fn full_queue_limits_until_it_has_room() {
    let server = Server::shared();
    let registry = registry(&server.url(), "peek-queue").await;
    let queue = LeakyBucket::new(2, Rate::new(1, HOUR)).queue();
    let limiter = registry.limiter("peek::queue", queue).unwrap();
    limiter.try_acquire_n("k", 3).await.unwrap();
    let state = &run(&server.url(), &["peek", "--json", "--namespace", "peek-queue", "peek::queue", "k"])
        .json()["states"][0];
    assert_eq!(
        (&state["used"], &state["remaining"], &state["limited"]),
        (&json!(3), &json!(0), &json!(true)),
        "{state}"
    );
    let retry_after = state["retry_after_seconds"].as_f64().unwrap();
    assert!((3500.0..=3600.0).contains(&retry_after), "{state}");
}

#[tokio::test]
async fn permits_used_are_known_without_numbers() {
    let server = Server::shared();
    let registry = registry(&server.url(), "peek-computed").await;
    let slow = Rate::new(1, HOUR);
    for (name, policy) in [
        ("tb3", Policy::from(slow_bucket(5).adjustable())),
        ("bb3", slow_bucket(5).borrow().adjustable().into()),
        ("lb3", LeakyBucket::new(5, slow).adjustable().into()),
        ("lq3", LeakyBucket::new(5, slow).queue().adjustable().into()),
        ("ib2", TokenBucket::new(slow).interval_refill().burst(5).adjustable().into()),
        ("fw2", FixedWindow::new(5, HOUR).into()),
        ("sc1", SlidingWindow::new(5, HOUR).precision(HOUR / 60).into()),
    ] {
        let limiter = registry.limiter(name, policy).unwrap();
        limiter.try_acquire_n("k", 3).await.unwrap();
        let reset_after = limiter.peek("k").await.unwrap().reset_after.as_secs_f64();
        let state = &run(&server.url(), &["peek", "--json", "--namespace", "peek-computed", name, "k"])
            .json()["states"][0];
        let unknown = ["limit", "remaining", "limited", "retry_after_seconds"].map(|field| &state[field]);
        assert_eq!((&state["used"], unknown), (&json!(3), [&Value::Null; 4]), "{state}");
        assert!((state["reset_after_seconds"].as_f64().unwrap() - reset_after).abs() < 60.0, "{state}");
    }
    let warm = registry.limiter("wu2", TokenBucket::new(slow).warmup(HOUR).adjustable()).unwrap();
    warm.try_acquire("k").await.unwrap();
    let state = &run(&server.url(), &["peek", "--json", "--namespace", "peek-computed", "wu2", "k"]).json()["states"]
        [0];
    assert_eq!((&state["used"], &state["limited"]), (&Value::Null, &json!(true)), "{state}");
}

#[tokio::test]
async fn keys_are_found_whatever_their_parts() {
    let server = Server::shared();
    let registry = registry(&server.url(), "peek-parts").await;
    let limiter = registry.limiter("app::<T as X<[u8]>>::send", slow_bucket(10)).unwrap();
    let tied = limiter.function("app::send");
    limiter.try_acquire(()).await.unwrap();
    limiter.try_acquire_n("a:b/c*{}", 2).await.unwrap();
    limiter.try_acquire_n(("", "~ü"), 3).await.unwrap();
    let long = "x".repeat(300);
    limiter.try_acquire_n(("u1", &long), 4).await.unwrap();
    tied.try_acquire_n("tied", 5).await.unwrap();
    for (parts, used) in
        [(&[][..], 1), (&["a:b/c*{}"], 2), (&["", "~ü"], 3), (&["u1", &long], 4), (&["tied"], 5)]
    {
        let peek =
            [&["peek", "--json", "--namespace", "peek-parts", "app::<T as X<[u8]>>::send"], parts].concat();
        let peeked = run(&server.url(), &peek).json();
        assert_eq!(peeked["states"].as_array().unwrap().len(), 1, "{parts:?}: {peeked}");
        let state = &peeked["states"][0];
        assert_eq!(state["used"], used, "{parts:?}: {state}");
        assert!(used == 4 || state["key"] == json!(parts), "{parts:?}: {state}");
    }
}

#[tokio::test]
async fn states_of_several_prefixes_and_numbers_are_all_shown() {
    let server = Server::shared();
    let registry = registry(&server.url(), "peek-several").await;
    for (prefix, burst) in [("", 5), ("", 6), ("sms", 7)] {
        let limiter = registry.limiter("app::send", slow_bucket(burst)).unwrap().prefix(prefix);
        limiter.try_acquire("k").await.unwrap();
    }
    let peek = ["peek", "--json", "--namespace", "peek-several", "app::send", "k"];
    let limits = |peeked: Value| {
        let states = peeked["states"].as_array().unwrap();
        let mut limits: Vec<u64> = states.iter().map(|state| state["limit"].as_u64().unwrap()).collect();
        limits.sort_unstable();
        limits
    };
    assert_eq!(limits(run(&server.url(), &peek).json()), [5, 6, 7]);
    for (prefix, expected) in [("", &[5, 6][..]), ("sms", &[7])] {
        let peeked = run(&server.url(), &[&peek[..], &["--prefix", prefix]].concat()).json();
        assert_eq!(limits(peeked), expected);
    }
}

#[tokio::test]
async fn absent_keys_and_misspelled_policies_are_told_apart() {
    let server = Server::shared();
    let registry = registry(&server.url(), "peek-absent").await;
    registry.limiter("app::search", slow_bucket(5)).unwrap().try_acquire("u1").await.unwrap();
    let inventory =
        json!([{"name": "app::idle", "attribute": "rate_limit", "algorithm": "", "arguments": "rate = 1.0"}]);
    for (arguments, problem) in [
        (&["app::search", "u2"][..], "`app::search` has no state for u2: a call finds a full bucket"),
        (&["app::search"], "`app::search` has no state without a key"),
        (&["app::idle", "u2"], "`app::idle` has no state for u2"),
        (&["app::serch", "u1"], "did you mean `app::search`?"),
        (&["search", "u1"], "did you mean `app::search`?"),
        (&["app::idel", "u1"], "did you mean `app::idle`?"),
        (&["elsewhere", "u1"], "`ratelimits list` lists the names"),
    ] {
        let peek =
            [&["peek", "--json", "--namespace", "peek-absent", "--inventory", "-"], arguments].concat();
        let peeked = run_with_input(&server.url(), &peek, &inventory.to_string());
        assert_eq!(peeked.code, 1, "{peeked:?}");
        assert_eq!(peeked.json(), json!({"states": []}));
        assert!(peeked.err.contains(problem), "{peeked:?}");
    }
}

#[tokio::test]
async fn value_of_another_program_is_an_error() {
    let server = Server::shared();
    server.command::<()>(&["SET", "peek-foreign::app/a:tb1-1000000-1000000:{0}:k", "no number"]).await;
    let peeked = run(&server.url(), &["peek", "--namespace", "peek-foreign", "app::a", "k"]);
    assert_eq!(peeked.code, 3, "{peeked:?}");
    assert!(peeked.err.contains("peek-foreign::app/a:tb1-1000000-1000000:{0}:k is no state"), "{peeked:?}");
}

#[tokio::test]
async fn parts_may_begin_with_a_hyphen() {
    let server = Server::shared();
    let limiter = registry(&server.url(), "peek-hyphen").await.limiter("app::send", slow_bucket(3)).unwrap();
    limiter.try_acquire(("-5", "-x")).await.unwrap();
    let arguments = ["peek", "--namespace", "peek-hyphen", "--json", "app::send", "--", "-5", "-x"];
    let peeked = run(&server.url(), &arguments).json();
    assert_eq!(peeked["states"][0]["key"], json!(["-5", "-x"]), "{peeked}");
}
