//! `ratelimits list`.

use ratelimits::observe::CallOutcome;
use ratelimits::{Error, FixedWindow, Registry, SlidingWindow, count_limit};
use serde_json::json;

use crate::command::{HOUR, registry, run, run_with_input, slow_bucket};
use crate::support::server::Server;

/// Makes a bucket with two keys, of which one is limited, and a window with one that is.
async fn some_states(registry: &Registry) {
    let search = registry.limiter("app::search", slow_bucket(2)).unwrap();
    search.try_acquire_n("u1", 2).await.unwrap();
    search.try_acquire("u2").await.unwrap();
    let send = registry.limiter("app::send#2", FixedWindow::new(3, HOUR)).unwrap().prefix("sms");
    send.try_acquire_n(("u1", 7), 3).await.unwrap();
}

const INVENTORY: &str = r#"[
    {"name": "app::send#2", "prefix": "sms", "attribute": "count_limit", "algorithm": "fixed window", "computed": false,
     "arguments": "limit = 3, period = \"1h\"", "key": "<user.id>:<room>", "flags": ["shadow"], "new field": 1},
    {"name": "app::idle", "prefix": "", "attribute": "funnel_limit", "algorithm": "leaky bucket", "computed": false,
     "arguments": "capacity = 10, drain = \"30m\"", "key": null, "flags": ["queue"]}
]"#;

#[tokio::test]
async fn policies_have_counts_of_their_keys() {
    let server = Server::shared();
    some_states(&registry(&server.url(), "list-counts").await).await;
    let listed = run(&server.url(), &["list", "--namespace", "list-counts"]);
    assert!(listed.err.starts_with("?: the limits of windows"), "{listed:?}");
    assert_eq!(
        listed.success(),
        "POLICY       PREFIX  ALGORITHM     KEYS  LIMITED   SHARE\n\
         app::search          token bucket     2        1  50.0 %\n\
         app::send#2  sms     fixed window     1        ?\n"
    );
}

#[tokio::test]
async fn inventory_tells_limits_and_policies_without_keys() {
    let server = Server::shared();
    some_states(&registry(&server.url(), "list-inventory").await).await;
    let arguments = ["list", "--namespace", "list-inventory", "--inventory", "-"];
    let listed = run_with_input(&server.url(), &arguments, INVENTORY);
    assert_eq!(listed.err, "");
    assert_eq!(
        listed.success(),
        "POLICY       PREFIX  ALGORITHM     KEYS  LIMITED    SHARE\n\
         app::idle            leaky bucket     0        0\n\
         app::search          token bucket     2        1   50.0 %\n\
         app::send#2  sms     fixed window     1        1  100.0 %\n"
    );
    let listed = run_with_input(&server.url(), &[&arguments[..], &["--json"]].concat(), INVENTORY);
    let row = |policy, prefix, algorithm, keys, limited| {
        json!({"policy": policy, "prefix": prefix, "algorithm": algorithm, "keys": keys, "limited": limited,
            "unknown": 0, "paused": 0, "penalized": 0, "unused": 0, "unreadable": 0, "override": null})
    };
    let rows = [
        row("app::idle", "", "leaky bucket", 0, 0),
        row("app::search", "", "token bucket", 2, 1),
        row("app::send#2", "sms", "fixed window", 1, 1),
    ];
    assert_eq!(listed.json(), json!({"policies": rows, "foreign_keys": 0}));
}

#[count_limit(2, "1h", key = user, name = "list::near", notify_at = 0.5, registry = registry)]
async fn near(registry: &Registry, user: &str) -> Result<(), Error> {
    Ok(())
}

/// What says that observers were told of a key is no state of it.
#[tokio::test]
async fn marks_of_keys_near_their_limits_are_not_listed() {
    let (server, (told, mut events)) = (Server::shared(), tokio::sync::mpsc::unbounded_channel());
    let observed = Registry::builder().namespace("list-near").observer(move |seen| {
        if seen.outcome == CallOutcome::NearLimit {
            told.send(seen.key().join("/")).unwrap();
        }
    });
    let registry = observed.deadline(HOUR).connect(&server.url()).await.unwrap();
    near(&registry, "u1").await.unwrap();
    assert_eq!(events.recv().await.unwrap(), "u1");
    let keys: Vec<String> = server.command(&["KEYS", "list-near:*:near:1:*"]).await;
    assert_eq!(keys.len(), 1, "{keys:?}");
    let listed = run(&server.url(), &["list", "--json", "--namespace", "list-near"]).json();
    assert_eq!(
        (&listed["policies"][0]["keys"], listed["policies"].as_array().unwrap().len()),
        (&json!(1), 1)
    );
    let deleted = run(&server.url(), &["reset", "--namespace", "list-near", "list::near", "u1"]);
    assert_eq!(deleted.success(), "deleted 1 key\n");
}

#[tokio::test]
async fn filter_is_a_name_and_no_pattern() {
    let server = Server::shared();
    let registry = registry(&server.url(), "list-filter").await;
    for name in ["a*c", "abc", "a[b]c", "abc:abc"] {
        registry.limiter(name, slow_bucket(2)).unwrap().try_acquire("k").await.unwrap();
    }
    for name in ["a*c", "abc", "a[b]c", "abc:abc"] {
        let arguments = ["list", "--json", "--namespace", "list-filter", "--policy", name];
        let listed = run(&server.url(), &arguments).json();
        assert_eq!(listed["policies"].as_array().unwrap().len(), 1, "{listed}");
        assert_eq!(listed["policies"][0]["policy"], name);
    }
    for (command, name, hint) in [
        ("list", "a?c", "did you mean `a*c`?"),
        ("top", "abd", "did you mean `abc`?"),
        ("top", "elsewhere", "lists the names"),
    ] {
        let unknown = run(&server.url(), &[command, "--policy", name, "--namespace", "list-filter"]);
        let problem = format!("no key belongs to a policy named `{name}`; ");
        assert_eq!((unknown.code, &*unknown.out), (1, ""), "{unknown:?}");
        assert!(unknown.err.contains(&problem) && unknown.err.contains(hint), "{unknown:?}");
    }
}

#[tokio::test]
async fn every_key_is_counted_once() {
    let server = Server::shared();
    let registry = registry(&server.url(), "list-many").await;
    let limiter = registry.limiter("app::many", SlidingWindow::new(2, HOUR)).unwrap();
    for user in 0..2500 {
        limiter.try_acquire(user).await.unwrap();
    }
    let listed = run(&server.url(), &["list", "--json", "--namespace", "list-many"]).json();
    let policy = &listed["policies"][0];
    assert_eq!((&policy["keys"], &policy["unknown"]), (&json!(2500), &json!(2500)), "{listed}");
}

#[tokio::test]
async fn values_and_keys_of_other_programs_are_noted() {
    let server = Server::shared();
    some_states(&registry(&server.url(), "list-foreign").await).await;
    for (key, value) in [
        ("list-foreign::app/search:tb1-3600000000-7200000000:{0}:x", "no number"),
        ("list-foreign::app/search:tb9:{0}:x", "1"),
        ("list-foreign:other", "1"),
    ] {
        server.command::<()>(&["SET", key, value]).await;
    }
    let listed = run(&server.url(), &["list", "--namespace", "list-foreign"]);
    assert!(listed.err.contains("no state of a policy: the values of 2 keys\n"), "{listed:?}");
    assert!(listed.err.ends_with("\nof no policy: 1 key in the namespace\n"), "{listed:?}");
    let rows: Vec<&str> = listed.out.lines().skip(1).take(2).collect();
    assert_eq!(
        rows,
        [
            "app::search          token bucket     3        1  50.0 %",
            "app::search          unknown          1        0",
        ]
    );
}
