//! `ratelimits pause`, and what the other commands show of paused keys.

use std::time::Duration;

use ratelimits::{
    Error, FixedWindow, IntoKey, LeakyBucket, Limiter, Policy, Rate, SlidingWindow, TokenBucket, count_limit,
    rate_limit, window_limit,
};
use serde_json::{Value, json};

use crate::command::{HOUR, Run, registry, run, run_with_input, slow_bucket};
use crate::support::server::Server;

#[rate_limit(rate = "1/h", burst = 5, key = user, name = "pause::bucket")]
async fn bucket(user: u64) -> Result<(), Error> {
    Ok(())
}

#[count_limit(limit = 100, period = "1h", name = "pause::all")]
#[window_limit(limit = 9, period = "1h", key = user, prefix = "p", name = "pause::stack")]
async fn stack(user: u64) -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = plan, burst = 5, key = "<user>:<plan>", name = "pause::plan")]
async fn plan(user: u64, plan: f64) -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = "9/h", key = user, settle = |_| 1, name = "pause::settled")]
async fn settled(user: u64) -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = "9/h", key = user, bind = decision, name = "pause::bound")]
#[rate_limit(rate = "9/h", key = user, name = "pause::beside")]
async fn bound(user: u64) -> Result<(), Error> {
    drop(decision);
    Ok(())
}

#[rate_limit(rate = "9/h", key = user, pause_when = |_| None::<Duration>, name = "pause::upstream")]
async fn upstream(user: u64) -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = "1/h", burst = 2, key = user, penalty = ["1h", "1d"], name = "pause::penalized")]
async fn penalized(user: u64) -> Result<(), Error> {
    Ok(())
}

/// Runs the command with the inventory of this program.
fn with_inventory(url: &str, arguments: &[&str]) -> Run {
    let inventory = serde_json::to_string(&ratelimits::policies()).unwrap();
    run_with_input(url, &[arguments, &["--inventory", "-"]].concat(), &inventory)
}

/// The time that is left of the pause of the only state that a command writes.
fn left(run: &Run) -> f64 {
    let written = run.json();
    assert_eq!((written["states"].as_array().unwrap().len(), run.code), (1, 0), "{run:?}");
    written["states"][0]["paused_seconds"].as_f64().unwrap()
}

fn is_about(seconds: f64, expected: Duration) -> bool {
    (expected.as_secs_f64() - 60.0..=expected.as_secs_f64()).contains(&seconds)
}

#[tokio::test]
async fn attributes_need_no_state_to_be_paused() {
    let server = Server::shared();
    let (url, namespace) = (server.url(), "pause-declared");
    let registry = registry(&url, namespace).await;
    let pause = |arguments: &[&str]| {
        with_inventory(&url, &[&["pause", "--json", "--namespace", namespace], arguments].concat())
    };
    for (policy, parts) in [
        ("pause::bucket", &["7"][..]),
        ("pause::stack", &["7"]),
        ("pause::plan", &["7", "2.5"]),
        ("pause::settled", &["7"]),
        ("pause::upstream", &["7"]),
        ("pause::bound", &["7"]),
        ("pause::beside", &["6"]),
    ] {
        assert!(is_about(left(&pause(&[&[policy], parts, &["1h"]].concat())), HOUR), "{policy}");
    }
    let is_refused = |result: Result<(), Error>| result.unwrap_err().retry_after() > Some(HOUR / 2);
    registry
        .scope(async {
            assert!(is_refused(bucket(7).await) && bucket(8).await.is_ok());
            assert!(is_refused(stack(7).await) && stack(8).await.is_ok());
            assert!(is_refused(plan(7, 2.5).await) && plan(7, 3.0).await.is_ok());
            assert!(is_refused(settled(7).await) && settled(8).await.is_ok());
            assert!(is_refused(upstream(7).await) && upstream(8).await.is_ok());
            assert!(is_refused(bound(7).await) && is_refused(bound(6).await) && bound(8).await.is_ok());
            assert!(is_about(left(&pause(&["pause::all", "1h"])), HOUR));
            assert!(is_refused(stack(8).await));
        })
        .await;
    let plans = registry.policy("pause::plan").unwrap();
    assert!(plans.usage((7, 2.5)).await.unwrap().paused.is_some());
    run(&url, &["reset", "--namespace", namespace, "pause::plan", "7", "2.5"]).success();
    assert_eq!(plans.usage((7, 2.5)).await.unwrap().paused, None);
    for (arguments, problem) in [
        (&["pause::bucket", "1h"][..], "its keys have parts"),
        (&["pause::all", "7", "1h"], "all its calls share one key"),
    ] {
        let wrong = pause(arguments);
        assert!(wrong.code == 2 && wrong.err.contains(problem), "{wrong:?}");
    }
}

#[tokio::test]
async fn overridden_policies_are_paused_as_they_are_in_force() {
    let server = Server::shared();
    let url = server.url();
    let run =
        |arguments: &[&str]| with_inventory(&url, &[arguments, &["--namespace", "pause-changed"]].concat());
    run(&["override", "set", "pause::bucket", "burst=8"]).success();
    run(&["pause", "pause::bucket", "7", "1h"]).success();
    let states = run(&["peek", "--json", "pause::bucket", "7"]).json();
    let state = &states["states"][0];
    assert_eq!((&state["limit"], &state["in_use"]), (&json!(8), &json!(true)), "{states}");
    run(&["override", "set", "pause::bucket", "shadow=true"]).success();
    let paused = run(&["pause", "pause::bucket", "8", "1h"]);
    assert!(paused.err.contains("calls go on, as the policy is overridden to be `shadow`"), "{paused:?}");
}

async fn is_paused<M>(limiter: &Limiter, key: impl IntoKey<M>) -> bool {
    limiter.peek(key).await.unwrap().paused().is_some()
}

#[tokio::test]
async fn limiters_are_paused_like_the_keys_that_they_have() {
    let server = Server::shared();
    let registry = registry(&server.url(), "pause-limiters").await;
    let run =
        |arguments: &[&str]| run(&server.url(), &[arguments, &["--namespace", "pause-limiters"]].concat());
    let bucket = slow_bucket(5);
    let limiters = [
        registry.limiter("a", bucket).unwrap(),
        registry.limiter("b", bucket.adjustable()).unwrap().prefix("p"),
        registry.limiter("c", FixedWindow::new(5, HOUR)).unwrap().function("app::send"),
    ];
    for limiter in &limiters {
        let pause = |key| run(&["pause", limiter.name(), key, "1h"]);
        let unknown = pause("new");
        assert!(unknown.code == 1 && unknown.err.contains("add the program's inventory"), "{unknown:?}");
        limiter.try_acquire("used").await.unwrap();
        assert_eq!(pause("new").success(), format!("paused `{}` for new: 1h left\n", limiter.name()));
        assert!(is_paused(limiter, "new").await && !is_paused(limiter, "used").await);
        pause("used").success();
        assert!(is_paused(limiter, "used").await);
    }
    registry.limiter("b", bucket).unwrap().try_acquire("used").await.unwrap();
    let ambiguous = run(&["pause", "b", "used", "1h"]);
    assert!(
        ambiguous.code == 2 && ambiguous.err.contains("add --prefix '' or --prefix 'p'"),
        "{ambiguous:?}"
    );
    let misspelled = run(&["pause", "bb", "used", "1h"]);
    assert!(misspelled.code == 1 && misspelled.err.contains("`bb`"), "{misspelled:?}");
}

/// Every algorithm: what an inventory says, the policy, and the permits that are used while it is paused.
fn policies() -> Vec<(&'static str, &'static str, Policy, Option<u64>)> {
    let rate = Rate::new(1, HOUR);
    let log = SlidingWindow::new(5, 48 * HOUR);
    vec![
        ("rate_limit", "rate = \"1/h\", burst = 5", slow_bucket(5).into(), Some(5)),
        ("rate_limit", "rate = \"1/h\", burst = 5, settle = used", slow_bucket(5).settled().into(), Some(4)),
        (
            "rate_limit",
            "rate = \"1/h\", warmup = \"2h\"",
            TokenBucket::new(rate).warmup(2 * HOUR).into(),
            None,
        ),
        (
            "funnel_limit",
            "capacity = 5, leak_rate = \"1/h\", queue",
            LeakyBucket::new(5, rate).queue().into(),
            None,
        ),
        ("count_limit", "limit = 5, period = \"2d\"", FixedWindow::new(5, 48 * HOUR).into(), Some(2)),
        ("window_limit", "limit = 5, period = \"2d\"", log.into(), Some(2)),
        (
            "window_limit",
            "limit = 5, period = \"2d\", precision = \"1h\"",
            log.precision(HOUR).into(),
            Some(2),
        ),
    ]
}

#[tokio::test]
async fn paused_keys_are_shown() {
    let server = Server::shared();
    let registry = registry(&server.url(), "pause-shown").await;
    let mut inventory = Vec::new();
    for (i, (attribute, arguments, policy, used)) in policies().into_iter().enumerate() {
        let name = format!("p{i}");
        let limiter = registry.limiter(&name, policy).unwrap();
        limiter.try_acquire_n("k", if used.is_some() { 2 } else { 1 }).await.unwrap();
        limiter.pause("k", 24 * HOUR).await.unwrap();
        inventory
            .push(json!({"name": name, "attribute": attribute, "algorithm": "any", "arguments": arguments}));
    }
    let inventory = json!(inventory).to_string();
    let run = |arguments: &[&str]| {
        let all = [arguments, &["--namespace", "pause-shown", "--inventory", "-"]].concat();
        run_with_input(&server.url(), &all, &inventory)
    };
    for (i, (_, arguments, _, used)) in policies().into_iter().enumerate() {
        let peeked = run(&["peek", "--json", &format!("p{i}"), "k"]);
        assert!(is_about(left(&peeked), 24 * HOUR), "{peeked:?}");
        let state = &peeked.json()["states"][0];
        assert_eq!(
            (&state["limited"], &state["remaining"]),
            (&json!(true), &json!(0)),
            "{arguments}: {state}"
        );
        assert!(used.is_none_or(|used| state["used"] == used), "{arguments}: {state}");
    }
    assert!(run(&["peek", "p4", "k"]).success().contains("\npaused       1d\n"));
    let listed = run(&["list", "--json"]).json();
    for row in listed["policies"].as_array().unwrap().iter().filter(|row| row["keys"] != 0) {
        let counts = ["keys", "limited", "paused", "unknown"].map(|count| row[count].as_u64());
        assert_eq!(counts, [Some(1), Some(1), Some(1), Some(0)], "{row}");
    }
    assert!(run(&["list"]).success().lines().next().unwrap().ends_with("SHARE  PAUSED"));
    let top = run(&["top"]).success();
    assert_eq!(top.lines().filter(|line| line.contains("  1d  ")).count(), policies().len(), "{top}");

    // It is known without a limit that a paused key is limited.
    let bare =
        crate::command::run(&server.url(), &["peek", "--json", "--namespace", "pause-shown", "p4", "k"]);
    let state = &bare.json()["states"][0];
    let shown = ["limited", "used", "limit"].map(|field| &state[field]);
    assert_eq!(shown, [&json!(true), &json!(2), &Value::Null], "{state}");
}

#[tokio::test]
async fn steps_of_penalties_are_shown() {
    let server = Server::shared();
    let registry = registry(&server.url(), "pause-steps").await;
    for _ in 0..3 {
        let _ = registry.scope(penalized(7)).await;
    }
    registry.scope(penalized(8)).await.unwrap();
    let run = |arguments: &[&str]| {
        with_inventory(&server.url(), &[arguments, &["--namespace", "pause-steps"]].concat())
    };
    let peeked = run(&["peek", "pause::penalized", "7"]).success();
    assert!(peeked.contains("\npenalty step 1\n"), "{peeked}");
    assert!(!run(&["peek", "pause::penalized", "8"]).success().contains("penalty"));
    let peeked = run(&["peek", "--json", "pause::penalized", "7"]);
    assert_eq!(peeked.json()["states"][0]["penalty_step"], 1);
    assert!(is_about(left(&peeked), HOUR), "{peeked:?}");
    let listed = run(&["list", "--json"]).json();
    let counts = listed["policies"].as_array().unwrap().iter().filter(|row| row["penalized"] == 1);
    assert_eq!(counts.map(|row| &row["policy"]).collect::<Vec<_>>(), ["pause::penalized"], "{listed}");
    assert!(run(&["list"]).success().lines().next().unwrap().ends_with("PAUSED  PENALIZED"));
    let top = run(&["top", "--json"]).json();
    assert_eq!(top["keys"][0]["penalty_step"], 1, "{top}");
    let reset = ["reset", "--namespace", "pause-steps", "pause::penalized", "7"];
    crate::command::run(&server.url(), &reset).success();
    assert!(!run(&["peek", "pause::penalized", "7"]).out.contains("penalty"));
}

#[tokio::test]
async fn pauses_are_never_shortened_and_last_a_day_at_most() {
    let server = Server::shared();
    let limiter = registry(&server.url(), "pause-longest").await.limiter("a", slow_bucket(5)).unwrap();
    limiter.try_acquire("other").await.unwrap();
    let pause = |time| run(&server.url(), &["pause", "--namespace", "pause-longest", "a", "k", time]);
    let cut = pause("2d");
    assert!(cut.err.starts_with("a pause lasts at most 1d; it is cut to 1d\n"), "{cut:?}");
    assert_eq!(cut.success(), "paused `a` for k: 1d left\n");
    let longer = pause("1h");
    assert!(longer.err.starts_with("it was paused for longer already\n"), "{longer:?}");
    assert_eq!(longer.success(), "paused `a` for k: 1d left\n");
}

#[test]
fn invalid_times_are_errors() {
    for (time, problem) in
        [("0s", "pauses nothing"), ("soon", "is not a duration"), ("5", "is not a duration")]
    {
        let wrong = run("redis://127.0.0.1:1", &["pause", "a", "k", time]);
        assert!(wrong.code == 2 && wrong.err.contains(problem), "{wrong:?}");
    }
}
