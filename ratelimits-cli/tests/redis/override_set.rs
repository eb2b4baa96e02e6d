//! What `ratelimits override set` says of a change, and what it notes with it.

use ratelimits::FixedWindow;
use serde_json::json;

use crate::command::{HOUR, command, registry, run, run_with_input, slow_bucket};
use crate::support::server::Server;
use crate::support::until::until;

/// What follows a change on standard error.
const IN_FORCE: &str = "in force within 3 seconds, in programs with `overrides_in_redis()`\n";

#[test]
fn changes_are_reported_as_json() {
    let server = Server::shared();
    let namespace = "set-json";
    let inventory = r#"[{"name": "a", "attribute": "count_limit", "algorithm": "fixed window", "arguments": "limit = 5, period = 60"}]"#;
    let set = |settings: &[&str]| {
        let arguments =
            [&["override", "set", "a"], settings, &["--json", "--namespace", namespace, "--inventory", "-"]];
        run_with_input(&server.url(), &arguments.concat(), inventory).json()
    };
    assert_eq!(set(&["limit=2"]), json!({"policy": "a", "before": null, "after": {"limit": 2}}));
    let after = json!({"limit": 3, "author": "ann", "reason": "too many"});
    let set = set(&["limit=3", "--author", "ann", "--reason", "too many"]);
    assert_eq!(set, json!({"policy": "a", "before": {"limit": 2}, "after": after}));
    let override_ = |arguments: &[&str]| {
        run(&server.url(), &[&["override"], arguments, &["--json", "--namespace", namespace]].concat()).json()
    };
    assert_eq!(override_(&["list"])["overrides"], json!({"a": after}));
    assert_eq!(override_(&["clear", "--all"]), json!({"cleared": ["a"]}));
}

#[tokio::test]
async fn changes_end_by_the_clock_of_redis() {
    let server = Server::shared();
    let namespace = "set-for";
    let limiter = registry(&server.url(), namespace).await.limiter("a", FixedWindow::new(5, HOUR)).unwrap();
    limiter.try_acquire(()).await.unwrap();
    let override_ = |arguments: &[&str]| {
        run(&server.url(), &[&["override"], arguments, &["--namespace", namespace]].concat())
    };
    override_(&["set", "a", "limit=1", "--for", "1h"]).success();
    let listed = override_(&["list"]).success();
    assert!(listed.contains("until = ") && listed.contains("Z\n"), "{listed}");
    override_(&["set", "a", "limit=1", "--for", "90d"]).success();
    let listed = override_(&["list", "--json"]).json();
    let ends = listed["overrides"]["a"]["until"].as_u64().unwrap_or_else(|| panic!("{listed}"));
    let now: Vec<u64> =
        server.command::<Vec<String>>(&["TIME"]).await.iter().map(|it| it.parse().unwrap()).collect();
    assert!((90 * 86_400 - 600..=90 * 86_400).contains(&(ends - now[0])), "{listed}");
    override_(&["set", "a", "limit=1", "--for", "1s"]).success();
    until("the override has ended", HOUR, async || match override_(&["list"]).success() {
        listed if listed.is_empty() => Ok(()),
        listed => Err(listed),
    })
    .await;
    for lifetime in ["0s", "900ms", "-1h", "soon", "90"] {
        let set = override_(&["set", "a", "limit=1", &format!("--for={lifetime}")]);
        assert_eq!(set.code, 2, "{set:?}");
    }
}

#[tokio::test]
async fn changes_end_at_dates() {
    let server = Server::shared();
    let namespace = "set-until";
    let limiter = registry(&server.url(), namespace).await.limiter("a", FixedWindow::new(5, HOUR)).unwrap();
    limiter.try_acquire(()).await.unwrap();
    let set = |until: &str, more: &[&str]| {
        let arguments = ["override", "set", "a", "limit=1", "--namespace", namespace, "--until", until];
        run(&server.url(), &[&arguments, more].concat())
    };
    for (date, until) in [
        ("2127-03-01[America/New_York]", 4_959_550_800_u64),
        ("2127-03-01T00:00-05:00", 4_959_550_800),
        ("2127-03-01T05:00Z", 4_959_550_800),
        // Clocks there skip this hour, and repeat that one.
        ("2127-03-09T02:30[America/New_York]", 4_960_251_000),
        ("2127-11-02T01:30[America/New_York]", 4_980_807_000),
    ] {
        let report = set(date, &["--json"]).json();
        assert_eq!(report["after"]["until"], until, "{date}");
        assert_eq!(set(date, &["--json", "--dry-run"]).json()["after"]["until"], until, "{date}");
    }
    for (unreadable, problem) in [
        ("2127-03-01", "write a date in a zone"),
        ("2127-03-01T00:00", "write a date in a zone"),
        ("4959550800", "write a date in a zone"),
        ("soon", "write a date in a zone"),
        ("2127-02-30[America/New_York]", "day"),
        ("2127-03-01[Europe/Berln]", "Europe/Berln"),
        ("2127-03-01T00:00+01:00[Europe/Berln]", "Europe/Berln"),
        ("2127-07-01T00:00-05:00[America/New_York]", "offset"),
        ("1969-01-01T00:00Z", "before 1970"),
        ("1971-01-01T00:00Z", "is in the past"),
    ] {
        let run = set(unreadable, &[]);
        assert!(run.code == 2 && run.err.contains(problem), "{unreadable}: {run:?}");
    }
    let both = set("2127-03-01T05:00Z", &["--for", "1h"]);
    assert!(both.code == 2 && both.err.contains("cannot be used with"), "{both:?}");
}

#[tokio::test]
async fn dry_runs_name_the_keys_that_would_be_refused() {
    let server = Server::shared();
    let namespace = "set-dry-run";
    let registry = registry(&server.url(), namespace).await;
    let window = registry.limiter("app::window", FixedWindow::new(5, HOUR)).unwrap();
    for (key, used) in [("tenant-1", 1), ("tenant-3", 3), ("tenant-4", 4)] {
        window.try_acquire_n(key, used).await.unwrap();
    }
    registry.limiter("app::bucket", slow_bucket(5)).unwrap().try_acquire_n("k", 5).await.unwrap();
    let inventory = r#"[{"name": "app::window", "attribute": "count_limit", "algorithm": "fixed window", "arguments": "limit = 5, period = \"1h\""}]"#;
    let dry_run = |policy: &str, setting: &str, more: &[&str]| {
        let arguments = ["override", "set", policy, setting, "--dry-run", "--namespace", namespace];
        run_with_input(&server.url(), &[&arguments[..], &["--inventory", "-"], more].concat(), inventory)
    };
    let lowered = dry_run("app::window", "limit=3", &["--json"]).json();
    assert_eq!((&lowered["refused"], &lowered["unknown"]), (&json!(2), &json!(0)), "{lowered}");
    let shown = dry_run("app::window", "limit=3", &[]);
    assert!(shown.err.contains("it would refuse 2 keys now"), "{shown:?}");
    assert!(shown.out.contains("# no override\n# after\n[\"app::window\"]\nlimit = 3\n"), "{shown:?}");
    assert!(shown.out.contains("tenant-3") && !shown.out.contains("tenant-1"), "{shown:?}");
    // A shadow refuses nothing, and a bucket starts full.
    assert_eq!(dry_run("app::window", "shadow=true", &["--json"]).json()["refused"], 0);
    assert_eq!(dry_run("app::bucket", "burst=1", &["--json"]).json()["refused"], 0);
    let listed = run(&server.url(), &["override", "list", "--json", "--namespace", namespace]).json();
    assert_eq!(listed["version"], "");
}

#[test]
fn computed_numbers_are_said_to_be_the_same_for_all() {
    let server = Server::shared();
    let inventory = r#"[{"name": "a", "attribute": "count_limit", "algorithm": "fixed window", "computed": true,
        "arguments": "limit = user.plan.daily, period = 60"}]"#;
    let set = |setting| {
        let arguments = ["override", "set", "a", setting, "--namespace", "set-computed", "--inventory", "-"];
        run_with_input(&server.url(), &arguments, inventory)
    };
    let limit = set("limit=50");
    assert!(limit.code == 0 && limit.err.contains("`limit` is computed for each call"), "{limit:?}");
    assert_eq!(set("shadow=true").err, IN_FORCE);
}

#[tokio::test]
async fn policies_that_no_program_has_published_are_named() {
    let server = Server::shared();
    let namespace = "set-unpublished";
    let registry = registry(&server.url(), namespace).await;
    registry.limiter("computed", slow_bucket(5).adjustable()).unwrap().try_acquire("k").await.unwrap();
    registry.limiter("literal", slow_bucket(5)).unwrap().try_acquire("k").await.unwrap();
    let set = |arguments: &[&str]| {
        let set =
            run(&server.url(), &[&["override", "set"], arguments, &["--namespace", namespace]].concat());
        assert_eq!(set.code, 0, "{set:?}");
        set
    };
    let unknown = "it is unknown whether `burst` is computed for each call; if it is, every customer gets this number\n";
    for (arguments, is_unknown) in [
        (&["computed", "burst=9", "--dry-run"][..], true),
        (&["computed", "burst=9", "--json"], true),
        (&["computed", "burst=9"], true),
        (&["computed", "shadow=true"], false),
        // All numbers are in the keys.
        (&["literal", "burst=9"], false),
    ] {
        let set = set(arguments);
        let problem = format!("no program has published `{}`: is `overrides_in_redis()` set", arguments[0]);
        assert!(set.err.starts_with(&problem), "{arguments:?}: {set:?}");
        assert_eq!(set.err.contains(unknown), is_unknown, "{arguments:?}: {set:?}");
        assert_eq!(set.err.ends_with(IN_FORCE), arguments.len() == 2, "{arguments:?}: {set:?}");
    }
    // Of another program.
    let entry = r#"{"name": "else", "attribute": "rate_limit", "algorithm": "token bucket", "arguments": "rate = 5.0"}"#;
    let key = format!("{namespace}:inventory");
    let [now, _]: [u64; 2] = server.command(&["TIME"]).await;
    server.command::<()>(&["HSET", &key, ":else", &format!("{now} {entry}")]).await;
    let another = set(&["computed", "burst=8"]).err;
    assert!(
        another.starts_with("no program has published `computed`") && another.contains(unknown),
        "{another}"
    );
}

#[test]
fn connection_options_stand_before_or_after_the_command() {
    let server = Server::shared();
    let url = server.url();
    for arguments in [
        &["--url", &url, "--namespace", "before", "list"][..],
        &["--namespace", "before", "list", "--url", &url],
        &["--url", "redis://127.0.0.1:1", "override", "list", "--url", &url],
    ] {
        let output = command("redis://127.0.0.1:1", arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
    }
    let mut without = command("", &["list"]);
    let output = without.env_remove("RATELIMITS_URL").output().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(2) && err.contains("--url"), "{err}");
}
