//! What the other commands show of policies with overrides.

use std::time::Duration;

use ratelimits::{Error, Registry, rate_limit};
use serde_json::json;

use crate::command::{registry, run, run_with_input, slow_bucket};
use crate::support::server::Server;
use crate::support::until::until;

const WITHIN: Duration = Duration::from_secs(30);

#[rate_limit(rate = "1/h", burst = 5, key = user, name = "overrides::send")]
async fn send(user: u64) -> Result<(), Error> {
    Ok(())
}

#[tokio::test]
async fn the_state_from_before_an_override_is_shown_as_not_in_use() {
    let server = Server::shared();
    let namespace = "overrides-buckets";
    let program = Registry::builder().namespace(namespace).overrides_in_redis().deadline(WITHIN);
    let program = program.connect(&server.url()).await.unwrap();
    for _ in 0..5 {
        program.scope(send(7)).await.unwrap();
    }
    let inventory = serde_json::to_string(&ratelimits::policies()).unwrap();
    let run = |arguments: &[&str]| {
        let all = [arguments, &["--namespace", namespace]].concat();
        match arguments[0] {
            "reset" => run(&server.url(), &all),
            _ => run_with_input(&server.url(), &[&all[..], &["--inventory", "-"]].concat(), &inventory),
        }
    };
    let states = || {
        let peeked = run(&["peek", "overrides::send", "7", "--json"]).json();
        let states = peeked["states"].as_array().unwrap().iter();
        let mut states: Vec<_> =
            states.map(|state| (state["limit"].as_u64(), state["used"].as_u64())).collect();
        states.sort_unstable();
        states
    };
    assert_eq!(states(), [(Some(5), Some(5))]);
    run(&["override", "set", "overrides::send", "burst=8"]).success();
    until("the override is in force", WITHIN, async || {
        program.scope(send(7)).await.map_err(|error| error.to_string())
    })
    .await;
    assert_eq!(states(), [(Some(5), Some(5)), (Some(8), Some(1))]);
    let peeked = run(&["peek", "overrides::send", "7"]).success();
    for state in peeked.split("\n\n") {
        let is_unused = state.contains("not in use while the override is in force");
        assert_eq!(is_unused, state.contains("limit        5\n"), "{peeked}");
    }
    // The key that would be limited is the one from before.
    let listed = run(&["list", "--policy", "overrides::send", "--json"]).json();
    let counts = ["keys", "limited", "unused"].map(|count| listed["policies"][0][count].as_u64());
    assert_eq!(counts, [Some(1), Some(0), Some(1)], "{listed}");
    let listed = run(&["list", "--policy", "overrides::send"]);
    assert!(listed.err.contains("and not counted: 1 key\n"), "{listed:?}");
    assert_eq!(run(&["top", "--json"]).json()["keys"], json!([]));
    run(&["reset", "overrides::send", "7"]).success();
    assert_eq!(states(), []);
}

#[tokio::test]
async fn policies_that_are_off_or_in_shadow_limit_no_key() {
    let server = Server::shared();
    let namespace = "overrides-switched";
    let limiter = registry(&server.url(), namespace).await.limiter("app::send", slow_bucket(1)).unwrap();
    limiter.try_acquire("k").await.unwrap();
    let run = |arguments: &[&str]| run(&server.url(), &[arguments, &["--namespace", namespace]].concat());
    let states = || {
        let listed = run(&["list", "--json"]).json()["policies"][0].clone();
        let peeked = run(&["peek", "app::send", "k", "--json"]).json()["states"][0].clone();
        assert_eq!(listed["override"], peeked["override"]);
        let top = run(&["top", "--json"]).json()["keys"].as_array().unwrap().len();
        (listed["override"].clone(), listed["limited"].clone(), peeked["limited"].clone(), top)
    };
    assert_eq!(states(), (json!(null), json!(1), json!(true), 1));
    for switch in ["off", "shadow"] {
        run(&["override", "set", "app::send", &format!("{switch}=true")]).success();
        assert_eq!(states(), (json!(switch), json!(0), json!(false), 0));
        let listed = run(&["list"]).success();
        assert!(listed.contains("OVERRIDE") && listed.contains(switch), "{listed}");
        assert!(run(&["peek", "app::send", "k"]).success().contains(&format!("override     {switch}\n")));
    }
}
