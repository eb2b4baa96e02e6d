//! `ratelimits top`.

use ratelimits::FixedWindow;
use serde_json::json;

use crate::command::{HOUR, registry, run, slow_bucket};
use crate::support::server::Server;

#[tokio::test]
async fn keys_that_are_limited_the_longest_come_first() {
    let server = Server::shared();
    let registry = registry(&server.url(), "top").await;
    let bucket = registry.limiter("app::search", slow_bucket(5).borrow()).unwrap();
    for (key, cost) in [("none", 5), ("two", 7), ("nine", 14), ("four", 9)] {
        bucket.try_acquire_n(("user", key), cost).await.unwrap();
    }
    let window = registry.limiter("app::send", FixedWindow::new(1, HOUR)).unwrap();
    window.try_acquire("it's").await.unwrap();
    let top = run(&server.url(), &["top", "--namespace", "top", "-n", "2"]);
    assert!(top.err.starts_with("not considered: 1 key; the limits of windows"), "{top:?}");
    assert_eq!(
        top.success(),
        "POLICY       KEY        RETRY AFTER  USED  LIMIT\n\
         app::search  user nine           9h     5      5\n\
         app::search  user four           4h     5      5\n"
    );
    let top = run(&server.url(), &["top", "--namespace", "top", "--json", "--policy", "app::search"]).json();
    let keys: Vec<_> = top["keys"].as_array().unwrap().iter().map(|key| key["key"][1].clone()).collect();
    assert_eq!((json!(keys), &top["unknown"]), (json!(["nine", "four", "two"]), &json!(0)), "{top}");
}

#[test]
fn number_of_keys_has_bounds() {
    for count in ["0", "1000001", "18446744073709551615"] {
        let top = run("redis://127.0.0.1:1", &["top", "-n", count]);
        assert!(top.code == 2 && top.err.contains("invalid value"), "{top:?}");
    }
}
