//! `ratelimits reset`.

use ratelimits::Limiter;
use serde_json::json;

use crate::command::{registry, run, slow_bucket};
use crate::support::server::Server;

async fn used(limiter: &Limiter, key: &str) -> u64 {
    let decision = limiter.peek(key).await.unwrap();
    decision.limit - decision.remaining
}

#[tokio::test]
async fn state_of_a_key_is_deleted() {
    let server = Server::shared();
    let limiter = registry(&server.url(), "reset").await.limiter("app::send", slow_bucket(5)).unwrap();
    for key in ["u1", "u2"] {
        limiter.try_acquire_n(key, 3).await.unwrap();
    }
    let reset = ["reset", "--namespace", "reset", "app::send", "u1"];
    assert_eq!(run(&server.url(), &reset).success(), "deleted 1 key\n");
    assert_eq!((used(&limiter, "u1").await, used(&limiter, "u2").await), (0, 3));

    let again = run(&server.url(), &[&reset[..], &["--json"]].concat());
    assert_eq!((again.code, again.json()), (1, json!({"deleted": 0})), "{again:?}");
    assert!(again.err.contains("`app::send` has no state for u1"), "{again:?}");
    let misspelled = run(&server.url(), &["reset", "--namespace", "reset", "app::sent", "u2"]);
    assert_eq!(misspelled.code, 1, "{misspelled:?}");
    assert!(misspelled.err.contains("did you mean `app::send`?"), "{misspelled:?}");
}

#[tokio::test]
async fn all_keys_of_a_policy_are_deleted() {
    let server = Server::shared();
    let registry = registry(&server.url(), "reset-all").await;
    let [limiter, other] =
        ["app::send", "app::send#2"].map(|name| registry.limiter(name, slow_bucket(5)).unwrap());
    for key in 0..300 {
        limiter.try_acquire_n(key, 3).await.unwrap();
    }
    other.try_acquire_n("0", 3).await.unwrap();
    let reset = ["reset", "--namespace", "reset-all", "app::send", "--all"];
    let unasked = run(&server.url(), &reset);
    assert_eq!(unasked.code, 2, "{unasked:?}");
    assert!(unasked.err.contains("add --yes"), "{unasked:?}");
    assert_eq!(used(&limiter, "0").await, 3);

    let reset = [&reset[..], &["--yes"]].concat();
    assert_eq!(run(&server.url(), &reset).success(), "deleted 300 keys\n");
    assert_eq!((used(&limiter, "0").await, used(&other, "0").await), (0, 3));
    let again = run(&server.url(), &reset);
    assert_eq!(again.code, 1, "{again:?}");
}

#[tokio::test]
async fn ambiguous_prefix_deletes_nothing() {
    let server = Server::shared();
    let registry = registry(&server.url(), "reset-prefix").await;
    let limiters =
        ["", "s m/s"].map(|prefix| registry.limiter("app::send", slow_bucket(5)).unwrap().prefix(prefix));
    for limiter in &limiters {
        limiter.try_acquire_n("k", 2).await.unwrap();
    }
    let reset = ["reset", "--namespace", "reset-prefix", "app::send", "k"];
    let ambiguous = run(&server.url(), &reset);
    assert_eq!(ambiguous.code, 2, "{ambiguous:?}");
    assert!(ambiguous.err.contains("add --prefix '' or --prefix 's m/s'"), "{ambiguous:?}");
    run(&server.url(), &[&reset[..], &["--prefix", "s m/s"]].concat()).success();
    assert_eq!((used(&limiters[0], "k").await, used(&limiters[1], "k").await), (2, 0));
}
