//! Runs every example and checks its output.

use std::path::PathBuf;
use std::process::{Command, Output};

use crate::support::server::Server;

#[test]
fn quickstart_prints_decisions_and_retry_after() {
    let text = succeeds(example("quickstart").output());
    let calls: Vec<_> = text.lines().filter(|line| line.starts_with("  at ")).collect();
    let (admitted, limited) = ("  admitted", "  limited, next permit in ");
    assert_eq!(calls.len(), 19, "{text}");
    assert!(calls.iter().all(|line| line.contains(admitted) || line.contains(limited)), "{text}");
    assert!(text.contains("limited, next permit in 24.0 h"), "{text}");
}

#[test]
fn per_user_key_counts_users_separately() {
    let text = succeeds(example("per-user-key").output());
    assert_eq!((text.matches(": admitted").count(), text.matches(": limited").count()), (8, 3), "{text}");
    assert!(text.contains("refused: no client address to use as the key"), "{text}");
}

#[test]
fn fallback_replaces_the_body() {
    let text = succeeds(example("fallback").output());
    for line in ["price: 1250", "mail: queued", "in the queue: [\"bob@example.org\"]", "index: too often"] {
        assert!(text.contains(line), "{text}");
    }
}

#[test]
fn login_limits_by_account_and_by_address() {
    let text = succeeds(example("login").output());
    assert_eq!(text.matches("ann: welcome").count(), 5, "{text}");
    assert_eq!(
        (text.matches("the account is locked").count(), text.matches(": no\n").count()),
        (1, 11),
        "{text}"
    );
    assert!(
        text.ends_with("s\n") && text.contains("ida: limited by policy `login::log_in#2` (sliding window)"),
        "{text}"
    );
}

#[test]
fn language_model_settles_by_what_calls_used() {
    let text = succeeds(example("language-model").output());
    for tenant in ["ann: ", "bob: ", "ida: "] {
        let tokens = text.lines().find_map(|line| line.strip_prefix(tenant)?.strip_suffix(" tokens"));
        assert!(tokens.is_some_and(|tokens| tokens.parse::<u64>().unwrap() > 10_000), "{text}");
    }
    assert!(text.contains("tokens a second of 20000"), "{text}");
}

#[test]
fn threads_wait_for_their_turn() {
    let text = succeeds(example("threads").output());
    let lines = ["800 to 400", "1000 to 500", "1200 to 600", "1400 to 700", "1600 to 800"];
    assert!(lines.iter().all(|line| text.contains(line)), "{text}");
    let uploaded = ["uploaded now", "uploaded later"].map(|line| text.matches(line).count());
    assert_eq!(uploaded, [2, 3], "{text}");
}

#[test]
fn redis_shares_a_policy_between_processes() {
    let server = Server::start();
    let text = succeeds(example("redis").env("RATELIMITS_URL", server.url()).output());
    assert!(text.contains("two processes called 40 times; together they made 10 reports"), "{text}");
}

#[test]
fn pace_spaces_calls_of_two_processes() {
    let server = Server::start();
    let text = succeeds(example("pace").env("RATELIMITS_URL", server.url()).output());
    for client in ["client 1", "client 2"] {
        assert_eq!(text.matches(client).count(), 10, "{text}");
    }
    let arrived: Vec<f64> = text
        .lines()
        .filter(|line| line.contains("  client "))
        .map(|line| line.split_once(" ms").and_then(|(at, _)| at.trim().parse().ok()).expect(&text))
        .collect();
    // Slots are 50 ms apart and calls arrive at their slot or later. Measured from the least late of the first ten, the last
    // call comes too early if a slot was granted twice.
    let late = |i: usize| arrived[i] - arrived[0] - 50.0 * i as f64;
    let first = (0..10).min_by(|i, j| late(*i).total_cmp(&late(*j))).expect("ten calls");
    let (took, due) = (arrived[19] - arrived[first], 50.0 * (19 - first) as f64);
    // Even the least late of the ten may have been a little late.
    assert!(took >= due - 25.0, "{took} ms from call {first} on: {text}");
    assert!(text.contains("made 20 calls, paced at 20 a second, in "), "{text}");
    assert!(text.contains("\nsmallest spacing: "), "{text}");
}

#[test]
fn metrics_serves_what_was_decided() {
    let text = succeeds(example("metrics").output());
    for line in [
        "GET /search/ann: 429 Too Many Requests",
        r#"ratelimits_decisions_total{policy="search",outcome="admitted",source="memory"} 4"#,
        r#"ratelimits_decisions_total{policy="search",outcome="limited",source="memory"} 3"#,
        r#"ratelimits_limit{policy="search"} 3"#,
        r#"ratelimits_decisions_total{policy="mail",outcome="admitted",source="memory"} 3"#,
        "ratelimits_store_up 1",
        ": 3 refusals",
    ] {
        assert!(text.contains(line), "{line} is not in {text}");
    }
}

#[test]
fn plans_have_quotas_by_the_month() {
    let text = succeeds(example("plans").output());
    for line in [
        "\"exports\";q=10000;w=",
        "\"exports\";q=80;w=",
        "mail to bakery: you have used 4 of 5 exports this month",
        "bakery: 429 Too Many Requests",
        "quota-exceeded",
        "  used: 5\n  used: 0",
    ] {
        assert!(text.contains(line), "{line} is not in {text}");
    }
    assert_eq!((text.matches("bakery: 200 OK").count(), text.matches("mail to").count()), (5, 1), "{text}");
}

#[test]
fn mcp_clients_read_when_to_call_again() {
    let text = succeeds(example("mcp").output());
    assert_eq!(text.matches(r#""text":"There is one about rust.""#).count(), 7, "{text}");
    let refused: Vec<_> = text.lines().filter(|line| line.contains("Call again in 3 seconds.")).collect();
    assert!(refused.len() == 2 && refused[1].starts_with("  ann: "), "{text}");
    for line in refused {
        assert!(line.contains(r#""isError":true"#) && line.contains(r#"{"retry_after":3}"#), "{text}");
    }
}

#[test]
fn jobs_wait_until_the_api_may_be_called_again() {
    let text = succeeds(example("calling-an-api").output());
    let at = |line: &str| line.split_once(' ').and_then(|(at, _)| at.parse::<f64>().ok()).expect("a time");
    let is_refused = |line: &&str| line.contains("is refused");
    assert_eq!(text.matches(": done").count(), 20, "{text}");
    let refused = text.lines().find(is_refused).expect("one is refused");
    // Another one may have been on its way.
    assert!(text.lines().filter(is_refused).count() <= 2, "{text}");
    assert!(text.lines().all(|line| !(at(refused) + 0.1..at(refused) + 0.9).contains(&at(line))), "{text}");
}

/// Cargo builds examples next to the tests.
fn example(name: &str) -> Command {
    let test = std::env::current_exe().expect("the test has a path");
    let profile = test.ancestors().nth(2).expect("tests are in target/<profile>/deps");
    let mut path = PathBuf::from(profile);
    path.extend(["examples", name]);
    Command::new(path)
}

fn succeeds(output: std::io::Result<Output>) -> String {
    let output = output.expect("the example is built");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    text
}
