//! The inventory that programs publish.

use std::time::Duration;

use ratelimits::{Error, FixedWindow, Registry, SlidingWindow, TokenBucket, count_limit};
use serde_json::{Value, json};

use crate::command::{HOUR, run};
use crate::support::server::Server;
use crate::support::until::until;

const WITHIN: Duration = Duration::from_secs(30);

// Known without a call.
#[allow(dead_code)]
#[count_limit(limit = plan, period = "1h", key = plan, name = "published::plan", prefix = "p")]
async fn plan(plan: u64) -> Result<(), Error> {
    Ok(())
}

#[tokio::test]
async fn programs_publish_their_policies() {
    let server = Server::shared();
    let namespace = "published";
    let builder = Registry::builder().namespace(namespace).overrides_in_redis().deadline(WITHIN);
    let program = builder.connect(&server.url()).await.unwrap();
    let window = program.limiter("published::window", FixedWindow::new(2, HOUR)).unwrap();
    let idle = program.limiter("published::idle", TokenBucket::per_second(3).burst_for(HOUR)).unwrap();
    program.limiter("published::log", SlidingWindow::new(5, HOUR).precision(HOUR / 60)).unwrap();
    window.try_acquire_n("a", 2).await.unwrap();
    let run = |arguments: &[&str]| run(&server.url(), &[arguments, &["--namespace", namespace]].concat());
    // Policies without keys, limiters among them.
    let succeeds = async |arguments: &[&str]| {
        until("the policy is known", WITHIN, async || match run(arguments) {
            done if done.code == 0 => Ok(done),
            failed => Err(format!("{failed:?}")),
        })
        .await
    };
    succeeds(&["pause", "published::idle", "b", "1h"]).await;
    assert!(idle.peek("b").await.unwrap().paused().is_some());
    let set = async |policy: &str, setting: &str| succeeds(&["override", "set", policy, setting]).await;
    let computed = set("p:published::plan", "limit=7").await;
    assert!(computed.err.contains("`limit` is computed for each call"), "{computed:?}");
    set("published::idle", "burst=7").await;
    set("published::log", "precision=5m").await;
    let wrong = run(&["override", "set", "published::idle", "limit=7"]);
    assert!(wrong.code == 2 && wrong.err.contains("is no argument of `rate_limit`"), "{wrong:?}");

    // The limit of the window.
    let top = run(&["top", "--json"]).json();
    assert_eq!((top["keys"].as_array().map(Vec::len), &top["unknown"]), (Some(1), &json!(0)), "{top}");
    let listed = run(&["list", "--json"]).json();
    assert_eq!(listed["foreign_keys"], 0, "{listed}");
    let rows: Vec<&Value> = listed["policies"].as_array().unwrap().iter().collect();
    let row = |name: &str| rows.iter().find(|row| row["policy"] == name);
    assert_eq!(row("published::window").map(|row| &row["limited"]), Some(&json!(1)), "{listed}");
    assert_eq!(row("published::plan").map(|row| &row["prefix"]), Some(&json!("p")), "{listed}");

    let ends: i64 = server.command(&["TTL", "published:inventory"]).await;
    assert!((1..=3600).contains(&ends), "{ends}");
}
