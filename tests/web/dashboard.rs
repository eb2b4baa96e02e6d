//! The dashboard: what it serves, and what a browser shows of it.

mod holds;
mod page;

use axum::Router;
use ratelimits::dashboard::Dashboard;
use ratelimits::{Error, FixedWindow, Registry, count_limit, rate_limit};
use serde_json::{Value, json};
use std::time::Duration;

use crate::axum::serve;
use crate::client::{Client, Reply};
use crate::log_capture::LogCapture;

const HOUR: Duration = Duration::from_secs(3600);
const JSON: &str = "content-type: application/json";

#[count_limit(2, "1h", key = "<user>:<room>", name = "dashboard-rooms", prefix = "web")]
async fn enter(user: &str, room: u32) -> Result<(), Error> {
    Ok(())
}

#[count_limit(1, "1h", name = "dashboard-once")]
async fn once() -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = "100/h", burst = burst, key = user, name = "dashboard-plan")]
async fn plan(user: &str, burst: u64) -> Result<(), Error> {
    Ok(())
}

/// Serves a dashboard below `/limits`, on which operators may reset and pause keys.
async fn serve_for_operators(dashboard: &Dashboard, registry: &Registry) -> Client {
    let dashboard = dashboard.clone().may_reset(|request| request.headers.contains_key("x-operator"));
    serve(Router::new().nest_service("/limits", dashboard.router(registry))).await
}

/// A dashboard that everybody may see.
fn open() -> Dashboard {
    Dashboard::new(|_| true)
}

async fn data(client: Client, headers: &[&str]) -> Value {
    let reply = client.get("/limits/data", headers).await;
    assert_eq!((reply.status, reply.header("content-type")), (200, Some("application/json")));
    serde_json::from_str(&reply.body).unwrap()
}

fn assert_safe(reply: &Reply) {
    let policy = reply.header("content-security-policy").unwrap();
    for directive in
        ["default-src 'none'", "script-src 'sha256-", "connect-src 'self'", "frame-ancestors 'none'"]
    {
        assert!(policy.contains(directive), "{policy}");
    }
    assert!(!policy.contains("unsafe"), "{policy}");
    for (name, value) in [
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-resource-policy", "same-origin"),
        ("cache-control", "no-store"),
    ] {
        assert_eq!(reply.header(name), Some(value), "{reply:?}");
    }
}

#[tokio::test]
async fn every_response_has_security_headers() {
    let dashboard = open();
    let client = serve_for_operators(&dashboard, &Registry::in_memory()).await;
    for path in ["/limits", "/limits/", "/limits/data", "/limits/reset", "/limits/other"] {
        assert_safe(&client.get(path, &[]).await);
    }
    assert_safe(&client.post("/limits/reset", &[], "").await);
    for path in ["/limits", "/limits/"] {
        let page = client.get(path, &[]).await;
        assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
    }
    assert_eq!(client.get("/limits/other", &[]).await.status, 404);
    assert_eq!(client.post("/limits", &[], "").await.status, 405);
}

#[tokio::test]
async fn a_router_without_reset_changes_nothing() {
    let client = serve(Router::new().nest_service("/limits", open().router(&Registry::in_memory()))).await;
    for path in ["/limits", "/limits/data", "/limits/reset", "/limits/pause"] {
        let reply =
            client.post(path, &["x-operator: yes", JSON], r#"{"policy":"dashboard-once","key":[]}"#).await;
        assert!([404, 405].contains(&reply.status), "{reply:?}");
    }
    assert_eq!(data(client, &["x-operator: yes"]).await["may_reset"], false);
}

#[tokio::test]
async fn nobody_else_sees_the_page() {
    let registry = Registry::in_memory();
    let dashboard = Dashboard::new(|request| request.headers.contains_key("x-viewer")).may_reset(|_| true);
    let client = serve(Router::new().nest_service("/limits", dashboard.router(&registry))).await;
    registry.scope(once()).await.unwrap();
    let reset = async |viewer: &[&str]| {
        client
            .post("/limits/reset", &[viewer, &[JSON]].concat(), r#"{"policy":"dashboard-once","key":[]}"#)
            .await
    };
    for path in ["/limits", "/limits/", "/limits/data", "/limits/other"] {
        let refused = client.get(path, &[]).await;
        assert_eq!(refused.status, 403, "{refused:?}");
        assert_safe(&refused);
        assert!(!refused.body.contains("dashboard-once"), "{refused:?}");
    }
    assert_eq!(reset(&[]).await.status, 403);
    assert_eq!(client.get("/limits/data", &["x-viewer: yes"]).await.status, 200);
    assert_eq!(reset(&["x-viewer: yes"]).await.body, r#"{"reset":true}"#);
}

#[tokio::test]
async fn rows_are_reset_by_their_hashes() {
    let dashboard = open();
    let registry = Registry::builder().observer(dashboard.observer()).in_memory();
    let client = serve_for_operators(&dashboard, &registry).await;
    let (long, short) = ("x".repeat(1000), "s3cr3t".to_owned());
    let log = LogCapture::default();
    let _guard = tracing::subscriber::set_default(log.clone());
    for (user, limited, status) in [(&short, 1, 200), (&long, 2, 404)] {
        for _ in 0..2 + limited {
            _ = registry.scope(enter(user, 7)).await;
        }
        let row = data(client, &[]).await["most_limited"]["keys"][0].clone();
        assert_eq!((&row["refusals"], &row["key"]), (&json!(limited), &Value::Null));
        assert_eq!(row["is_cut"], status == 404);
        let body = json!({ "policy": row["policy"], "key_hash": row["key_hash"] }).to_string();
        let reply = client.post("/limits/reset", &["x-operator: yes", JSON], &body).await;
        assert_eq!(reply.status, status, "{reply:?}");
    }
    let rooms = registry.policy("dashboard-rooms").unwrap();
    assert_eq!(rooms.usage((short, 7)).await.unwrap().used, 0);
    let resets =
        log.events().into_iter().filter(|(_, message)| message == "a key was reset on the dashboard");
    assert_eq!(resets.map(|(policy, _)| policy).collect::<Vec<_>>(), ["dashboard-rooms"]);
    assert!(!log.text().contains("s3cr3t"), "{}", log.text());
}

#[tokio::test]
async fn data_has_policies_and_what_was_decided() {
    let dashboard = open();
    let registry = Registry::builder().observer(dashboard.observer()).in_memory();
    let client = serve_for_operators(&dashboard, &registry).await;
    for (user, admitted) in [("s3cr3t", true), ("s3cr3t", true), ("s3cr3t", false), ("bob", true)] {
        assert_eq!(registry.scope(enter(user, 7)).await.is_ok(), admitted);
    }
    let limiter = registry.limiter("dashboard-limiter", FixedWindow::new(1, HOUR)).unwrap();
    limiter.try_acquire("s3cr3t").await.unwrap();

    let shown = data(client, &[]).await;
    let policies = shown["policies"].as_array().unwrap();
    let rooms = policies.iter().find(|policy| policy["name"] == "dashboard-rooms").unwrap();
    for (name, value) in [
        ("prefix", "web"),
        ("attribute", "count_limit"),
        ("arguments", "limit = 2, period = \"1h\""),
        ("key", "<user>:<room>"),
        ("file", "tests/web/dashboard.rs"),
    ] {
        assert_eq!(rooms[name], value, "{rooms}");
    }
    let traffic = |policy: &str| {
        let mut all = shown["traffic"].as_array().unwrap().iter();
        let found = all.find(|traffic| traffic["policy"] == policy).unwrap();
        ["admitted", "limited", "waited"].map(|outcome| found[outcome]["total"].as_u64().unwrap())
    };
    assert_eq!((traffic("dashboard-rooms"), traffic("dashboard-limiter")), ([3, 1, 0], [1, 0, 0]));
    assert_eq!(shown["traffic"].as_array().unwrap().len(), 2);
    let suggestion = |policy: &str| {
        let mut all = shown["traffic"].as_array().unwrap().iter();
        all.find(|traffic| traffic["policy"] == policy).unwrap()["suggestion"].clone()
    };
    let expected = json!({ "refuses_at_most": 0.001, "arguments": null, "reason": "19996 more calls are needed",
        "calls": 4, "keys": 2, "one_in": 1 });
    assert_eq!(suggestion("dashboard-rooms"), expected);
    let keys = &shown["most_limited"]["keys"];
    assert_eq!((&keys[0]["policy"], &keys[0]["refusals"]), (&json!("dashboard-rooms"), &json!(1)));
    assert_eq!((&keys[0]["key"], keys.as_array().unwrap().len()), (&Value::Null, 1));
    assert_eq!((&shown["store"]["kind"], &shown["store"]["healthy"]), (&json!("memory"), &json!(true)));
    assert_eq!((&shown["overrides"], &shown["waiting"]), (&json!([]), &json!(0)));
    assert!(!shown.to_string().contains("s3cr3t"), "{shown}");
}

#[tokio::test]
async fn keys_are_shown_on_request() {
    let dashboard = open().keep_keys();
    let registry = Registry::builder().observer(dashboard.observer()).in_memory();
    let client = serve_for_operators(&dashboard, &registry).await;
    for _ in 0..3 {
        _ = registry.scope(enter("ann", 7)).await;
    }
    assert_eq!(data(client, &[]).await["most_limited"]["keys"][0]["key"], json!(["ann", "7"]));
}

#[tokio::test]
async fn data_tells_about_redis_without_its_password() {
    let dashboard = open();
    let observed = Registry::builder().observer(dashboard.observer());
    let registry = observed.connect_lazy("redis://user:s3cr3t@127.0.0.1:1").unwrap();
    let client = serve_for_operators(&dashboard, &registry).await;
    let store = async || data(client, &[]).await["store"].clone();
    let expected = |healthy: bool, outages: u64| {
        json!({ "kind": "redis", "server": "127.0.0.1:1", "deployment": "single", "healthy": healthy,
            "outages": outages, "failed_decisions": outages })
    };
    assert_eq!(store().await, expected(true, 0));
    registry.scope(once()).await.unwrap();
    assert_eq!(store().await, expected(false, 1));
    let off = serve_for_operators(&dashboard, &Registry::unlimited()).await;
    assert_eq!(data(off, &[]).await["store"]["kind"], "off");
}

#[tokio::test]
async fn changes_need_permission_and_the_same_origin() {
    let dashboard = open();
    let registry = Registry::builder().observer(dashboard.observer()).in_memory();
    let client = serve_for_operators(&dashboard, &registry).await;
    let body = r#"{"policy":"web:dashboard-rooms","key":["ann","7"]}"#;
    let unknown = r#"{"policy":"dashboard-roms","key":[]}"#;
    let (operator, own) = ("x-operator: yes", format!("origin: http://{}", client.0));
    let too_long = format!("{{\"policy\":\"{}\",\"key\":[]}}", "x".repeat(70_000));
    registry.scope(enter("ann", 7)).await.unwrap();
    let refused: [(&[&str], &str, u16, &str); 10] = [
        (&[JSON], body, 403, "you may not reset or pause keys"),
        (&[operator, JSON, "sec-fetch-site: cross-site"], body, 403, "the request is from another site"),
        (&[operator, JSON, "sec-fetch-site: same-site"], body, 403, "the request is from another site"),
        (&[operator, JSON, "origin: http://outside"], body, 403, "the request is from another site"),
        (&[operator], body, 415, "the content type must be application/json"),
        (&[operator, "content-type: text/plain"], body, 415, "the content type must be application/json"),
        (&[operator, JSON], "{}", 400, "expected {"),
        (&[operator, JSON], r#"{"policy":"dashboard-rooms","key":[7]}"#, 400, "expected {"),
        (&[operator, JSON], unknown, 404, "`dashboard-rooms`"),
        (&[operator, JSON], &too_long, 413, "too long"),
    ];
    for (headers, body, status, error) in refused {
        for path in ["/limits/reset", "/limits/pause"] {
            let reply = client.post(path, headers, body).await;
            assert_eq!(reply.status, status, "{path} {headers:?} {body:.100}: {reply:?}");
            let reply: Value = serde_json::from_str(&reply.body).unwrap();
            assert!(reply["error"].as_str().unwrap().contains(error), "{reply}");
        }
    }
    let rooms = registry.policy("dashboard-rooms").unwrap();
    let usage = rooms.usage(("ann", 7)).await.unwrap();
    assert_eq!((usage.used, usage.paused), (1, None));

    let reset = async |headers: &[&str]| client.post("/limits/reset", headers, body).await.body;
    assert_eq!(reset(&[operator, JSON, &own]).await, r#"{"reset":true}"#);
    assert_eq!(rooms.usage(("ann", 7)).await.unwrap().used, 0);
    assert_eq!(reset(&[operator, JSON, "sec-fetch-site: same-origin"]).await, r#"{"reset":false}"#);

    registry.scope(once()).await.unwrap();
    let single =
        client.post("/limits/reset", &[operator, JSON], r#"{"policy":"dashboard-once","key":[]}"#).await;
    assert_eq!(single.body, r#"{"reset":true}"#);
    registry.scope(once()).await.unwrap();
}

#[tokio::test]
async fn keys_are_paused_where_they_may_be_reset() {
    let dashboard = open();
    let observed = Registry::builder().observer(dashboard.observer());
    let registry = observed.max_pause(2 * HOUR).in_memory();
    let client = serve_for_operators(&dashboard, &registry).await;
    let pause = async |named: Value, duration: &str| {
        let mut body = named;
        body["duration"] = json!(duration);
        let reply = client.post("/limits/pause", &["x-operator: yes", JSON], &body.to_string()).await;
        let written: Value = serde_json::from_str(&reply.body).unwrap();
        (reply.status, written)
    };
    let is_about = |seconds: &Value, time: Duration| {
        (time - seconds.as_f64().map(Duration::from_secs_f64).unwrap()).as_secs() < 60
    };
    // Also a key without state, of a policy with computed numbers.
    let named = json!({ "policy": "dashboard-plan", "key": ["ann"] });
    for (duration, left) in [("1h", HOUR), ("1m", HOUR), ("1d", 2 * HOUR)] {
        let (status, paused) = pause(named.clone(), duration).await;
        assert!(status == 200 && is_about(&paused["paused_seconds"], left), "{paused}");
    }
    registry.scope(plan("ann", 10)).await.unwrap_err();
    registry.scope(plan("bob", 1)).await.unwrap();
    for (duration, problem) in [("", "`duration` is not a duration"), ("0s", "`duration` is zero")] {
        let (status, refused) = pause(named.clone(), duration).await;
        assert!(status == 400 && refused["error"].as_str().unwrap().starts_with(problem), "{refused}");
    }

    let row = async |policy: &str| {
        let shown = data(client, &[]).await["most_limited"]["keys"].clone();
        shown.as_array().unwrap().iter().find(|row| row["policy"] == policy).unwrap().clone()
    };
    assert!(is_about(&row("dashboard-plan").await["paused_seconds"], 2 * HOUR));
    registry.scope(plan("bob", 1)).await.unwrap_err();
    for _ in 0..2 {
        _ = registry.scope(once()).await;
    }
    let limited = row("dashboard-once").await;
    assert_eq!(limited["paused_seconds"], Value::Null);
    let (status, paused) =
        pause(json!({ "policy": limited["policy"], "key_hash": limited["key_hash"] }), "1h").await;
    assert!(status == 200 && is_about(&row("dashboard-once").await["paused_seconds"], HOUR), "{paused}");
}

#[tokio::test]
async fn a_store_that_fails_changes_nothing() {
    let registry = Registry::connect_lazy("redis://127.0.0.1:1").unwrap();
    let client = serve_for_operators(&open(), &registry).await;
    let headers = ["x-operator: yes", JSON];
    for path in ["/limits/reset", "/limits/pause"] {
        let body = r#"{"policy":"dashboard-once","key":[],"duration":"30s"}"#;
        let reply = client.post(path, &headers, body).await;
        assert_eq!(reply.status, 503, "{reply:?}");
    }
}
