//! `ratelimits override`.

use std::time::Duration;

use ratelimits::{Error, FixedWindow, Registry, count_limit};
use serde_json::json;

use crate::command::{HOUR, Run, command, registry, run, run_with_input, slow_bucket};
use crate::support::server::Server;
use crate::support::until::until;

const WITHIN: Duration = Duration::from_secs(30);

#[count_limit(limit = 2, period = "1h", key = user, name = "overrides::daily")]
async fn daily(user: u64) -> Result<(), Error> {
    Ok(())
}

/// Runs `ratelimits override` on a namespace, with an inventory of a literal policy and a computed one.
fn overrides(server: &Server, namespace: &str, arguments: &[&str]) -> Run {
    let all = [&["override"], arguments, &["--namespace", namespace]].concat();
    if arguments[0] != "set" {
        return run(&server.url(), &all);
    }
    let inventory = json!([
        {"name": "app::search", "attribute": "rate_limit", "algorithm": "token bucket", "arguments": "rate = 5.0, burst = 20"},
        {"name": "app::plan", "prefix": "sms", "attribute": "count_limit", "algorithm": "fixed window", "computed": true,
         "arguments": "limit = plan, period = \"1d\"", "flags": ["shadow"]},
    ]);
    run_with_input(&server.url(), &[&all[..], &["--inventory", "-"]].concat(), &inventory.to_string())
}

#[test]
fn overrides_are_set_shown_and_cleared() {
    let server = Server::shared();
    let overrides = |arguments: &[&str]| overrides(&server, "overrides", arguments);
    let none = overrides(&["list"]);
    assert_eq!((&*none.err, &*none.out), ("no overrides\n", ""));
    let set = overrides(&["set", "app::search", "rate=100/min", "burst=10", "shadow=true"]);
    let search = "[\"app::search\"]\nrate = \"100/min\"\nburst = 10\nshadow = true\n";
    assert_eq!(set.success(), search);
    overrides(&["set", "sms:app::plan", "limit=7"]).success();
    assert_eq!(overrides(&["list"]).success(), format!("{search}\n[\"sms:app::plan\"]\nlimit = 7\n"));
    // All that was set of the policy is replaced.
    overrides(&["set", "app::search", "off=true"]).success();
    let shown = overrides(&["list", "--json"]).json();
    assert_eq!(shown["overrides"], json!({"app::search": {"off": true}, "sms:app::plan": {"limit": 7}}));

    assert_eq!(overrides(&["clear", "app::search"]).success(), "cleared the override of `app::search`\n");
    assert_eq!(overrides(&["clear", "app::search"]).code, 1);
    assert_eq!(overrides(&["list"]).success(), "[\"sms:app::plan\"]\nlimit = 7\n");
    assert_eq!(overrides(&["clear", "--all"]).success(), "cleared the override of `sms:app::plan`\n");
    assert_eq!(overrides(&["list"]).success(), "");
    assert_eq!(overrides(&["clear", "--all"]).code, 1);
    let version = |shown: serde_json::Value| shown["version"].as_str().unwrap().parse::<u64>().unwrap();
    // A program that saw the first version notices that they are gone.
    assert!(version(overrides(&["list", "--json"]).json()) > version(shown));
}

#[test]
fn invalid_overrides_are_not_written() {
    let server = Server::shared();
    let overrides = |arguments: &[&str]| overrides(&server, "overrides-invalid", arguments);
    for (arguments, problem) in [
        (&["app::search", "brust=1"][..], "did you mean `burst`?"),
        (&["app::search", "limit=1"], "`limit` is no argument of `rate_limit`"),
        (&["app::search", "burst=0"], "`burst` is 0"),
        (&["app::search", "rate=fast"], "`rate` is not a rate"),
        (&["app::plan", "limit=0"], "`limit` is 0"),
        (&["app::plan", "shadow=false"], "`shadow` is in its attribute"),
        (&["app::search", "off=false"], "this changes nothing"),
        (&["app::search", "burst"], "burst=20"),
        (&["app::search"], "SETTING"),
    ] {
        let set = overrides(&[&["set"], arguments].concat());
        assert_eq!(set.code, 2, "{arguments:?}: {set:?}");
        assert!(set.err.contains(problem), "{arguments:?}: {set:?}");
    }
    for (name, problem) in [
        ("app::serch", "a policy named `app::serch`; did you mean `app::search`?"),
        ("elsewhere", "neither the inventory nor a key in Redis has a policy named `elsewhere`"),
    ] {
        let set = overrides(&["set", name, "burst=1"]);
        assert!(set.code == 1 && set.err.contains(problem), "{set:?}");
    }
    assert_eq!(overrides(&["list", "--json"]).json()["version"], "");
}

#[tokio::test]
async fn other_overrides_that_programs_ignore_are_named() {
    let server = Server::shared();
    let overrides = |arguments: &[&str]| overrides(&server, "overrides-blocked", arguments);
    let toml = "[\"ghost\"]\nburst = 1\n\n[\"app::search\"]\nburst = 0\n";
    server.command::<()>(&["HSET", "overrides-blocked:overrides", "version", "1", "toml", toml]).await;
    let set = overrides(&["set", "app::plan", "limit=7"]);
    assert_eq!(set.code, 0, "{set:?}");
    for problem in ["no policy is named `ghost`", "`app::search`: `burst` is 0"] {
        assert!(set.err.contains(&format!("an override that programs may ignore: {problem}")), "{set:?}");
    }
    overrides(&["set", "app::search", "burst=7"]).success();
    overrides(&["clear", "ghost"]).success();
    let set = overrides(&["set", "app::search", "burst=8"]);
    assert!(!set.err.contains("ignore"), "{set:?}");
}

#[tokio::test]
async fn policies_with_keys_need_no_inventory() {
    let server = Server::shared();
    let registry = registry(&server.url(), "overrides-keys").await;
    registry.limiter("app::send", slow_bucket(3)).unwrap().prefix("sms").try_acquire("k").await.unwrap();
    let set = |policy, setting| {
        run(&server.url(), &["override", "set", policy, setting, "--namespace", "overrides-keys"])
    };
    set("sms:app::send", "burst=5").success();
    for (policy, setting, code, problem) in [
        ("app::sent", "burst=5", 1, "did you mean `app::send`?"),
        ("elsewhere", "burst=5", 1, "pass --inventory, or try again when it has keys"),
        ("app::send", "period=5s", 2, "is no argument"),
    ] {
        let set = set(policy, setting);
        assert!(set.code == code && set.err.contains(problem), "{set:?}");
    }
    let arguments =
        ["override", "set", "app::send", "burst=6", "--namespace", "overrides-keys", "--inventory", "-"];
    let warned = run_with_input(&server.url(), &arguments, "[]");
    assert!(warned.code == 0 && warned.err.contains("the inventory has no `app::send`"), "{warned:?}");
}

#[tokio::test]
async fn programs_apply_overrides_and_commands_know_of_them() {
    let server = Server::shared();
    let namespace = "overrides-applied";
    let program = Registry::builder().namespace(namespace).overrides_in_redis().deadline(WITHIN);
    let program = program.connect(&server.url()).await.unwrap();
    for _ in 0..2 {
        program.scope(daily(7)).await.unwrap();
    }
    assert!(program.scope(daily(7)).await.is_err());
    let inventory = serde_json::to_string(&ratelimits::policies()).unwrap();
    let run = |arguments: &[&str]| {
        let all = [arguments, &["--namespace", namespace, "--inventory", "-"]].concat();
        run_with_input(&server.url(), &all, &inventory)
    };
    run(&["override", "set", "overrides::daily", "limit=3"]).success();
    until("the override is in force", WITHIN, async || {
        program.scope(daily(7)).await.map_err(|error| error.to_string())
    })
    .await;
    let state = &run(&["peek", "overrides::daily", "7", "--json"]).json()["states"][0];
    assert_eq!((&state["limit"], &state["used"]), (&json!(3), &json!(3)), "{state}");
    let listed = run(&["list", "--policy", "overrides::daily", "--json"]).json();
    assert_eq!(
        (&listed["policies"][0]["limited"], &listed["foreign_keys"]),
        (&json!(1), &json!(0)),
        "{listed}"
    );
}

#[tokio::test]
async fn concurrent_changes_are_all_kept() {
    let server = Server::shared();
    let registry = registry(&server.url(), "overrides-concurrent").await;
    let names: Vec<String> = (0..4).map(|i| format!("app::f{i}")).collect();
    for name in &names {
        registry.limiter(name, FixedWindow::new(3, HOUR)).unwrap().try_acquire("k").await.unwrap();
    }
    let set = |name: &String| {
        let arguments = ["override", "set", name, "limit=5", "--namespace", "overrides-concurrent"];
        command(&server.url(), &arguments).spawn().unwrap()
    };
    for mut process in names.iter().map(set).collect::<Vec<_>>() {
        assert_eq!(process.wait().unwrap().code(), Some(0));
    }
    let shown =
        run(&server.url(), &["override", "list", "--json", "--namespace", "overrides-concurrent"]).json();
    assert_eq!(shown["overrides"].as_object().unwrap().len(), 4, "{shown}");
}

#[tokio::test]
async fn unreadable_overrides_can_be_cleared() {
    let server = Server::shared();
    let key = "overrides-unreadable:overrides";
    server.command::<()>(&["HSET", key, "version", "1", "toml", "no toml\n"]).await;
    let overrides = |arguments: &[&str]| overrides(&server, "overrides-unreadable", arguments);
    for arguments in [&["list"][..], &["set", "app::search", "burst=1"], &["clear", "app::search"]] {
        let failed = overrides(arguments);
        assert!(failed.code == 3 && failed.err.contains("override clear --all"), "{failed:?}");
    }
    assert_eq!(overrides(&["clear", "--all"]).success(), "cleared all overrides\n");
    overrides(&["set", "app::search", "burst=1"]).success();
}

#[tokio::test]
async fn lost_overrides_can_be_cleared() {
    let server = Server::shared();
    let overrides = |arguments: &[&str]| overrides(&server, "overrides-lost", arguments);
    overrides(&["set", "app::search", "burst=1"]).success();
    server.command::<()>(&["DEL", "overrides-lost:overrides"]).await;
    overrides(&["clear", "--all"]).success();
    assert_ne!(overrides(&["list", "--json"]).json()["version"], "");
    assert_eq!(overrides(&["clear", "--all"]).code, 1);
}

#[tokio::test]
async fn other_commands_do_without_overrides_that_are_none() {
    let server = Server::shared();
    let (namespace, key) = ("overrides-else", "overrides-else:overrides");
    let limiter = registry(&server.url(), namespace).await.limiter("app::send", slow_bucket(3)).unwrap();
    limiter.try_acquire("k").await.unwrap();
    server.command::<()>(&["SET", key, "x"]).await;
    let run = |arguments: &[&str]| run(&server.url(), &[arguments, &["--namespace", namespace]].concat());
    for arguments in [&["list"][..], &["top"], &["peek", "app::send", "k"]] {
        let looked = run(arguments);
        let note = format!("overrides are not considered: {key} ");
        assert!(looked.code == 0 && looked.err.contains(&note), "{looked:?}");
    }
    for arguments in [&["list"][..], &["clear", "--all"], &["set", "app::send", "burst=1"]] {
        let failed = run(&[&["override"], arguments].concat());
        assert!(failed.code == 3 && failed.err.contains(&format!("DEL {key}")), "{failed:?}");
    }
    let reset = run(&["reset", "app::send", "k"]);
    assert!(reset.code == 0 && reset.err.is_empty(), "{reset:?}");
}
