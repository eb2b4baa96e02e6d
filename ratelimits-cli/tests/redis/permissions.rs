//! Users that lack permissions.

use ratelimits::{ConcurrencyLimit, SlidingWindow};

use crate::command::{HOUR, registry, run, slow_bucket};
use crate::support::server::Server;

/// Whoever follows the errors, one after another, ends with the permissions that a command needs.
#[tokio::test]
async fn errors_say_which_permission_to_add() {
    let server = Server::start();
    let limiter = registry(&server.url(), "permissions").await.limiter("app::send", slow_bucket(3)).unwrap();
    for key in ["u1", "u2"] {
        limiter.try_acquire(key).await.unwrap();
    }
    let mut rules = vec!["-@all".to_owned()];
    for (arguments, needed) in [
        (
            &["list"][..],
            "+scan +evalsha ~permissions:* +eval +get +hgetall +hmget +lindex +llen +lrange +time",
        ),
        (&["reset", "app::send", "u1"], "+del"),
        (&["pause", "app::send", "u2", "1s"], "+expireat +hdel +hset +lset +ltrim +rpush +set"),
        (&["override", "set", "app::send", "burst=9"], "+hget +time +lpush +ltrim +hset"),
    ] {
        let granted = rules.len();
        for _ in 0..10 {
            let all: Vec<&str> = rules.iter().map(String::as_str).collect();
            server.set_user("ann", "s3cret", &all).await;
            let url = server.url_as("ann", "s3cret");
            let tried = run(&url, &[arguments, &["--namespace", "permissions"]].concat());
            if tried.code == 0 {
                break;
            }
            assert_eq!(tried.code, 3, "{tried:?}");
            assert!(tried.err.contains(&server.address()) && !tried.err.contains("s3cret"), "{tried:?}");
            let (_, added) = tried
                .err
                .rsplit_once("\nAdd the permission: ACL SETUSER ann ")
                .unwrap_or_else(|| panic!("{tried:?}"));
            rules.extend(added.split_whitespace().map(str::to_owned));
        }
        assert_eq!(rules[granted..].join(" "), needed);
    }
}

/// The README has the rules of a user that can only look.
#[tokio::test]
async fn documented_permissions_suffice_to_look() {
    let server = Server::start();
    let registry = registry(&server.url(), "rl").await;
    registry.limiter("app::send", slow_bucket(1)).unwrap().try_acquire("k").await.unwrap();
    registry.limiter("app::log", SlidingWindow::new(1, HOUR)).unwrap().try_acquire("k").await.unwrap();
    let jobs = registry.limiter("app::jobs", ConcurrencyLimit::new(1)).unwrap();
    let _held = jobs.try_acquire("k").await.unwrap();
    let (_, rules) = include_str!("../../README.md").split_once("ACL SETUSER reader on ").unwrap();
    let rules: Vec<&str> =
        rules.lines().next().unwrap().split(' ').filter(|rule| !rule.starts_with('>')).collect();
    server.set_user("reader", "s3cret", &rules).await;
    let url = server.url_as("reader", "s3cret");
    for arguments in [
        &["list", "--policy", "app::send"][..],
        &["top", "--policy", "app::send"],
        &["peek", "app::send", "k"],
        &["peek", "app::jobs", "k"],
    ] {
        let looked = run(&url, arguments);
        assert_eq!(looked.err, "", "{looked:?}");
        looked.success();
    }
    run(&url, &["peek", "app::log", "k"]).success();
    assert_eq!(run(&url, &["reset", "app::send", "k"]).code, 3);
}
