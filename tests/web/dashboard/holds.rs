//! Concurrency limits on the dashboard, which cannot be paused.

use std::time::Duration;

use axum::Router;
use ratelimits::{Error, Registry, concurrency_limit};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{JSON, data, open, serve_for_operators};
use crate::axum::serve;
use crate::browser::Browser;
use crate::client::Client;

#[concurrency_limit(1, key = tenant, name = "dashboard-exports")]
async fn export(tenant: &str) -> Result<(), Error> {
    sleep(Duration::from_millis(1)).await;
    Ok(())
}

/// Exports twice at once, of which one is refused.
async fn export_twice(registry: &Registry) {
    let [one, other] = [registry.scope(export("ann")), registry.scope(export("ann"))];
    let (one, other) = tokio::join!(one, other);
    assert!(one.is_ok() && other.is_err());
}

#[tokio::test]
async fn concurrency_limits_are_shown_and_not_paused() {
    let dashboard = open().keep_keys();
    let registry = Registry::builder().observer(dashboard.observer()).in_memory();
    let client = serve_for_operators(&dashboard, &registry).await;
    export_twice(&registry).await;
    let shown = data(client, &[]).await;
    let mut policies = shown["policies"].as_array().unwrap().iter();
    let exports = policies.find(|policy| policy["name"] == "dashboard-exports").unwrap();
    assert_eq!((&exports["algorithm"], &exports["arguments"]), (&json!("semaphore"), &json!("max = 1")));
    let mut traffic = shown["traffic"].as_array().unwrap().iter();
    let traffic = traffic.find(|traffic| traffic["policy"] == "dashboard-exports").unwrap();
    assert_eq!((&traffic["admitted"]["total"], &traffic["limited"]["total"]), (&json!(1), &json!(1)));
    let row = &shown["most_limited"]["keys"][0];
    assert_eq!((&row["key"], &row["paused_seconds"]), (&json!(["ann"]), &Value::Null));

    let body = r#"{"policy":"dashboard-exports","key":["ann"],"duration":"1h"}"#;
    let headers = ["x-operator: yes", JSON];
    let paused = client.post("/limits/pause", &headers, body).await;
    assert!(paused.status == 422 && paused.body.contains("cannot be paused"), "{paused:?}");
    assert_eq!(client.post("/limits/reset", &headers, body).await.status, 200);
    export_twice(&registry).await;
}

#[tokio::test]
async fn the_page_has_no_button_that_pauses_concurrency_limits() {
    let dashboard = open().may_reset(|_| true).keep_keys();
    let registry = Registry::builder().observer(dashboard.observer()).in_memory();
    let Client(address) = serve(Router::new().nest_service("/limits", dashboard.router(&registry))).await;
    export_twice(&registry).await;
    let browser = Browser::open(&format!("http://{address}/limits")).await;
    let labels = "[...document.querySelectorAll('#keys .action')].map(it => it.textContent).join()";
    browser.wait_until(&format!("{labels} === 'Reset'")).await;
    let selects = |policy: &str| {
        format!(
            "(select => {{ select.value = '{policy}'; select.dispatchEvent(new Event('change')); \
             return [...document.querySelectorAll('.pauses')].map(it => it.hidden).join(); }})\
             (document.querySelector('#reset select'))"
        )
    };
    for (policy, hidden) in [
        ("dashboard-exports", "true,true"),
        ("dashboard-once", "false,false"),
        ("dashboard-exports", "true,true"),
    ] {
        assert_eq!(browser.value(&selects(policy)).await, hidden, "{policy}");
    }
}
