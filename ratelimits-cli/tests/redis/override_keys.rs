//! `ratelimits override` for one key, and the log of changes.

use std::time::Duration;

use ratelimits::{Error, FixedWindow, Registry, rate_limit};
use serde_json::json;

use crate::command::{HOUR, Run, registry, run, run_with_input};
use crate::support::server::Server;
use crate::support::until::until;

const WITHIN: Duration = Duration::from_secs(30);

const INVENTORY: &str = r#"[
    {"name": "app::search", "attribute": "rate_limit", "algorithm": "token bucket", "arguments": "rate = \"1/h\", burst = 5", "key": "<tenant>"},
    {"name": "app::plan", "attribute": "count_limit", "algorithm": "fixed window", "arguments": "limit = plan.limit, period = \"1h\"", "key": "<tenant>:<room>", "computed": true},
    {"name": "app::method", "attribute": "count_limit", "algorithm": "fixed window", "arguments": "limit = 5, period = \"1h\"", "key": null}
]"#;

#[rate_limit(rate = "1/h", burst = 5, key = user, name = "by_key::send")]
async fn send(user: &str) -> Result<(), Error> {
    Ok(())
}

fn overrides(server: &Server, namespace: &str, arguments: &[&str]) -> Run {
    let all = [&["override"], arguments, &["--namespace", namespace]].concat();
    match arguments[0] {
        "set" => run_with_input(&server.url(), &[&all[..], &["--inventory", "-"]].concat(), INVENTORY),
        _ => run(&server.url(), &all),
    }
}

#[test]
fn overrides_of_keys_are_set_listed_and_cleared() {
    let server = Server::shared();
    let overrides = |arguments: &[&str]| overrides(&server, "by-key", arguments);
    let set = overrides(&[
        "set",
        "app::search",
        "--key",
        "tenant-7",
        "burst=50",
        "--by",
        "ann",
        "--why",
        "contract",
    ]);
    assert_eq!(set.err, "in force within 3 seconds, in programs with `overrides_in_redis()`\n");
    let tenant = "[\"app::search\".keys.\"tenant-7\"]\nburst = 50\nauthor = \"ann\"\nreason = \"contract\"\n";
    assert_eq!(set.success(), tenant);
    // For one key, it matters to nobody else that the number is computed.
    let set = overrides(&["set", "app::plan", "--key", "-5", "--key", "room 1", "limit=50000"]);
    assert_eq!(set.err.lines().count(), 1, "{set:?}");
    overrides(&["set", "app::search", "burst=9"]).success();
    let plan = "[\"app::plan\".keys.\"-5\".\"room 1\"]\nlimit = 50000\n";
    assert_eq!(overrides(&["list"]).success(), format!("{plan}\n[\"app::search\"]\nburst = 9\n\n{tenant}"));
    let listed = overrides(&["list", "--json"]).json();
    assert_eq!(listed["overrides"], json!({"app::search": {"burst": 9}}));
    let keys = json!([
        {"policy": "app::plan", "key": ["-5", "room 1"], "limit": 50000},
        {"policy": "app::search", "key": ["tenant-7"], "burst": 50, "author": "ann", "reason": "contract"},
    ]);
    assert_eq!(listed["keys"], keys);

    let cleared = overrides(&["remove", "app::plan", "--key", "-5", "--key", "room 1"]).success();
    assert_eq!(cleared, "cleared the override of `app::plan`, key -- -5 'room 1'\n");
    overrides(&["clear", "app::search"]).success();
    let again = overrides(&["clear", "app::search"]);
    assert_eq!(
        (again.code, &*again.err),
        (1, "error: `app::search` has no override; keys of it have; add --key\n")
    );
    assert_eq!(overrides(&["clear", "app::search", "--key", "x"]).code, 1);
    assert_eq!(overrides(&["list"]).success(), tenant);
    let cleared = overrides(&["clear", "--all", "--json"]).json();
    assert_eq!(cleared, json!({"cleared": [], "keys": [{"policy": "app::search", "key": ["tenant-7"]}]}));
}

#[test]
fn invalid_overrides_of_keys_are_not_written() {
    let server = Server::shared();
    let overrides = |arguments: &[&str]| overrides(&server, "by-key-invalid", arguments);
    for (arguments, problem) in [
        (&["app::search", "blocked=true"][..], "blocked=true is for a key; add --key"),
        (
            &["app::search", "--key", "a", "blocked=true", "burst=1"],
            "blocked=true refuses every call; write no other setting beside it",
        ),
        (&["app::search", "--key", "a", "blocked=false"], "this changes nothing;"),
        (
            &["app::search", "--key", "a", "limit=1"],
            "`app::search`, key `a`: `limit` is no argument of `rate_limit`;",
        ),
        (
            &["app::method", "--key", "a", "limit=1"],
            "`app::method`, key `a`: the policy has no key, as all its calls share one counter; override it by its name alone",
        ),
    ] {
        let set = overrides(&[&["set"], arguments].concat());
        assert_eq!(set.code, 2, "{set:?}");
        assert!(set.err.contains(problem), "{set:?}");
    }
    assert_eq!(overrides(&["list", "--json"]).json()["version"], "");
}

#[tokio::test]
async fn more_keys_than_may_have_overrides_are_not_written() {
    let server = Server::shared();
    let key = "by-key-many:overrides";
    let text = |count: usize| -> String {
        (0..count).map(|i| format!("[\"app::search\".keys.t{i}]\nburst = 9\n")).collect()
    };
    server.command::<()>(&["HSET", key, "version", "1", "toml", &text(10_000)]).await;
    let set =
        |tenant: &str| overrides(&server, "by-key-many", &["set", "app::search", "--key", tenant, "burst=1"]);
    set("t5").success();
    let another = set("another");
    assert_eq!(
        (another.code, &*another.err),
        (2, "error: 10,000 keys have overrides, and no more may; clear some first\n")
    );
}

#[test]
fn changes_are_in_the_log_with_their_authors() {
    let server = Server::shared();
    let overrides = |arguments: &[&str]| overrides(&server, "by-key-log", arguments);
    let none = overrides(&["log"]);
    assert_eq!((&*none.err, &*none.out), ("no changes\n", ""));
    overrides(&["set", "app::search", "burst=9", "--author", "ann"]).success();
    overrides(&[
        "set",
        "app::search",
        "--key",
        "a b",
        "blocked=true",
        "--author",
        "bob",
        "--reason",
        "abuse",
        "--for",
        "1h",
    ])
    .success();
    overrides(&["set", "app::search", "burst=8", "--author", "cy"]).success();
    overrides(&["remove", "app::search", "--key", "a b", "--author", "dee", "--reason", "paid"]).success();
    overrides(&["set", "app::plan", "off=true"]).success();
    overrides(&["clear", "--all", "--author", "eve"]).success();
    let log =
        |arguments: &[&str]| overrides(&[&["log", "--json"], arguments].concat()).json()["changes"].clone();
    let changes = log(&[]);
    let changes: Vec<_> = changes.as_array().unwrap().iter().collect();
    let said: Vec<_> = changes
        .iter()
        .map(|it| {
            let mut blocked = it["after"].clone();
            if let Some(settings) = blocked.as_object_mut() {
                settings.remove("until");
            }
            (it["policy"].as_str().unwrap(), it["key"].clone(), it["author"].clone(), blocked)
        })
        .collect();
    assert_eq!(
        said,
        [
            ("app::search", json!([]), json!("eve"), json!(null)),
            ("app::plan", json!([]), json!("eve"), json!(null)),
            ("app::plan", json!([]), json!(null), json!({"off": true})),
            ("app::search", json!(["a b"]), json!("dee"), json!(null)),
            ("app::search", json!([]), json!("cy"), json!({"burst": 8})),
            ("app::search", json!(["a b"]), json!("bob"), json!({"blocked": true})),
            ("app::search", json!([]), json!("ann"), json!({"burst": 9})),
        ]
    );
    assert_eq!((&changes[4]["before"], &changes[6]["before"]), (&json!({"burst": 9}), &json!(null)));
    assert!(changes[3]["before"]["until"].is_u64() && changes[0]["time"].is_u64(), "{changes:?}");
    assert_eq!((&changes[3]["reason"], &changes[5]["reason"]), (&json!("paid"), &json!("abuse")));
    assert_eq!(log(&["app::plan"]).as_array().unwrap().len(), 2);
    assert_eq!(log(&["app::search", "--key", "a b"]).as_array().unwrap().len(), 2);
    let text = overrides(&["log", "app::search"]).success();
    assert!(
        text.starts_with("TIME") && text.contains("'a b'") && text.contains("blocked=true until 20"),
        "{text}"
    );
    // What is refused is no change.
    assert_eq!(overrides(&["set", "app::search", "burst=0"]).code, 2);
    assert_eq!(log(&[]).as_array().unwrap().len(), 7);
}

#[tokio::test]
async fn log_is_bounded() {
    let server = Server::shared();
    let (key, log) = ("by-key-bound:overrides", "by-key-bound:{by-key-bound:overrides}:log");
    let text: String = (0..1200).map(|i| format!("[\"app::search\".keys.t{i:04}]\nburst = 9\n")).collect();
    server.command::<()>(&["HSET", key, "version", "1", "toml", &text]).await;
    overrides(&server, "by-key-bound", &["clear", "--all"]).success();
    assert_eq!(server.command::<u64>(&["LLEN", log]).await, 1000);
    // Neither is a key of a policy, nor a foreign one.
    let listed = run(&server.url(), &["list", "--namespace", "by-key-bound", "--json"]).json();
    assert_eq!(listed["foreign_keys"], 0, "{listed}");
}

#[tokio::test]
async fn programs_apply_overrides_of_keys_and_commands_show_them() {
    let server = Server::shared();
    let namespace = "by-key-applied";
    let program = Registry::builder().namespace(namespace).overrides_in_redis().deadline(WITHIN);
    let program = program.connect(&server.url()).await.unwrap();
    for user in ["ann", "bob"] {
        program.scope(send(user)).await.unwrap();
    }
    let inventory = serde_json::to_string(&ratelimits::policies()).unwrap();
    let run = |arguments: &[&str]| {
        let all = [arguments, &["--namespace", namespace, "--inventory", "-"]].concat();
        run_with_input(&server.url(), &all, &inventory)
    };
    let peek = |user: &str| run(&["peek", "by_key::send", user, "--json"]).json()["states"].clone();
    run(&["override", "set", "by_key::send", "--key", "ann", "burst=8"]).success();
    until("the override is in force", WITHIN, async || {
        program.scope(send("ann")).await.map_err(|error| error.to_string())?;
        let states = peek("ann");
        if states.as_array().unwrap().len() == 2 { Ok(()) } else { Err(states.to_string()) }
    })
    .await;
    for state in peek("ann").as_array().unwrap() {
        let is_in_use = state["limit"] == 8;
        assert_eq!(
            (&state["in_use"], &state["overridden_by_key"]),
            (&json!(is_in_use), &json!(true)),
            "{state}"
        );
    }
    assert_eq!(peek("bob")[0]["overridden_by_key"], false);
    assert!(run(&["peek", "by_key::send", "ann"]).success().contains("override     numbers, for this key\n"));

    let set =
        run(&["override", "set", "by_key::send", "--key", "bob", "blocked=true", "--dry-run", "--json"])
            .json();
    assert_eq!((&set["refused"], &set["key"]), (&json!(1), &json!(["bob"])), "{set}");
    run(&["override", "set", "by_key::send", "--key", "bob", "blocked=true"]).success();
    until("the key is blocked", WITHIN, async || match program.scope(send("bob")).await {
        Err(error) if error.to_string().contains("blocked") => Ok(()),
        other => Err(format!("{other:?}")),
    })
    .await;
    let bob = peek("bob");
    assert_eq!(
        (&bob[0]["override"], &bob[0]["limited"], &bob[0]["limit"]),
        (&json!("blocked"), &json!(true), &json!(0)),
        "{bob}"
    );
    let top = run(&["top"]).success();
    assert!(top.contains("bob"), "{top}");
}

#[tokio::test]
async fn limiters_have_overrides_of_any_key() {
    let server = Server::shared();
    let namespace = "by-key-limiter";
    let limiter = registry(&server.url(), namespace).await.limiter("a", FixedWindow::new(5, HOUR)).unwrap();
    limiter.try_acquire(("x", 7)).await.unwrap();
    let arguments = ["override", "set", "a", "--key", "x", "--key", "7", "limit=1", "--namespace", namespace];
    run(&server.url(), &arguments).success();
    let peeked = run(&server.url(), &["peek", "a", "x", "7", "--namespace", namespace, "--json"]).json();
    assert_eq!(peeked["states"][0]["overridden_by_key"], true, "{peeked}");
}
