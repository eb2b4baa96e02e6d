//! What a scrape says about the calls that were made.

mod holds;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle, PrometheusRecorder};
use ratelimits::metrics::{observer, record_state};
use ratelimits::observe::CallOutcome;
use ratelimits::{
    ConcurrencyLimit, DecidedBy, Error, FixedWindow, OnStoreError, Registry, RegistryBuilder, count_limit,
    rate_limit, window_limit,
};
use serde_json::Value;

use crate::support::registries::{LONG_DEADLINE, namespace};
use crate::support::server::Server;
use crate::support::until::until;

const DAY: Duration = Duration::from_secs(86_400);
const WITHIN: Duration = Duration::from_secs(30);

/// A recorder to set for the thread of a test, which runs all of its calls.
fn recorder() -> PrometheusRecorder {
    let waits = Matcher::Full("ratelimits_wait_seconds".to_owned());
    PrometheusBuilder::new().set_buckets_for_metric(waits, &[1.0]).unwrap().build_recorder()
}

/// A builder of a registry that is observed.
fn builder() -> RegistryBuilder {
    Registry::builder().namespace(namespace()).deadline(LONG_DEADLINE).observer(observer())
}

/// Returns each series with its value.
fn scrape(prometheus: &PrometheusHandle) -> BTreeMap<String, f64> {
    let text = prometheus.render();
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let parse = |line: &str| {
        let (series, value) = line.rsplit_once(' ').unwrap();
        (series.to_owned(), value.parse().unwrap())
    };
    lines.map(parse).collect()
}

fn decisions(policy: &str, outcome: CallOutcome, source: &str) -> String {
    let outcome = outcome.name();
    format!(r#"ratelimits_decisions_total{{policy="{policy}",outcome="{outcome}",source="{source}"}}"#)
}

#[count_limit(2, "1d", key = user, name = "metered.daily", registry = registry)]
#[window_limit(1, "1d", name = "metered.trial", shadow, registry = registry)]
#[rate_limit("3/day", 3, name = "metered.bucket", registry = registry)]
async fn send(registry: &Registry, user: Option<&str>) -> Result<(), Error> {
    Ok(())
}

#[count_limit(limit = limit, period = "1d", name = "metered.invalid", registry = registry)]
async fn invalid(registry: &Registry, limit: u64) -> Result<(), Error> {
    Ok(())
}

#[tokio::test]
async fn a_scrape_shows_the_calls_that_were_made() {
    let server = Server::shared();
    for (source, url) in [("memory", "memory://"), ("redis", &server.url())] {
        let recorder = recorder();
        let _recorder = metrics::set_default_local_recorder(&recorder);
        let registry = builder().connect_lazy(url).unwrap();
        for user in [Some("ann"), Some("ann"), Some("ann"), Some("bob"), Some("bob"), None] {
            _ = send(&registry, user).await;
        }
        assert!(matches!(invalid(&registry, 0).await, Err(Error::Invalid(_))));

        let limit = |policy| format!(r#"ratelimits_limit{{policy="metered.{policy}"}}"#);
        let expected = [
            (decisions("metered.daily", CallOutcome::Admitted, source), 3.0),
            (decisions("metered.daily", CallOutcome::Limited, source), 1.0),
            (decisions("metered.daily", CallOutcome::NotCharged, source), 1.0),
            (decisions("metered.daily", CallOutcome::MissingKey, "none"), 1.0),
            (decisions("metered.trial", CallOutcome::Admitted, source), 1.0),
            (decisions("metered.trial", CallOutcome::ShadowLimited, source), 4.0),
            (decisions("metered.bucket", CallOutcome::Admitted, source), 3.0),
            (decisions("metered.bucket", CallOutcome::Limited, source), 1.0),
            (decisions("metered.bucket", CallOutcome::NotCharged, source), 1.0),
            (decisions("metered.invalid", CallOutcome::Invalid, "none"), 1.0),
            (limit("daily"), 2.0),
            (limit("trial"), 1.0),
            (limit("bucket"), 3.0),
        ];
        let mut scrape = scrape(&recorder.handle());
        // Of six calls, that without a key did not get to the store.
        let calls = (source == "redis").then_some(5.0);
        assert_eq!(scrape.get("ratelimits_store_seconds_count").copied(), calls);
        scrape.retain(|series, _| !series.starts_with("ratelimits_store_seconds"));
        assert_eq!(scrape, BTreeMap::from(expected));
    }
}

#[tokio::test]
async fn an_outage_shows_in_sources_and_in_the_state_of_the_store() {
    let recorder = recorder();
    let _recorder = metrics::set_default_local_recorder(&recorder);
    let server = Server::start();
    let registry = builder().instances(2).connect_lazy(&server.url()).unwrap();
    let limiter =
        |name, mode| registry.limiter(name, FixedWindow::new(1_000_000, DAY)).unwrap().on_store_error(mode);
    let local = limiter("metered.local", OnStoreError::Local);
    let limiters = [
        &local,
        &limiter("metered.allow", OnStoreError::Allow),
        &limiter("metered.deny", OnStoreError::Deny),
    ];
    for limiter in limiters {
        limiter.try_acquire("a").await.unwrap();
    }
    let state = || {
        record_state(&registry);
        let scrape = scrape(&recorder.handle());
        let state = ["up", "outages_total", "failed_decisions_total"];
        state.map(|name| scrape[&format!("ratelimits_store_{name}")])
    };
    assert_eq!(state(), [1.0, 0.0, 0.0]);
    let calls = || scrape(&recorder.handle())["ratelimits_store_seconds_count"];
    assert_eq!(calls(), 3.0);

    server.kill();
    for limiter in limiters {
        _ = limiter.try_acquire("a").await;
    }
    assert_eq!(state(), [0.0, 1.0, 3.0]);
    // Not the share of this process, which has just decided.
    let limits = scrape(&recorder.handle());
    assert_eq!(limits[r#"ratelimits_limit{policy="metered.local"}"#], 1_000_000.0);

    server.restart().await;
    let (mut by_redis, mut by_process) = (1.0, 1.0);
    until("the outage ends", WITHIN, async || {
        match local.try_acquire("a").await.unwrap().source {
            DecidedBy::Redis => by_redis += 1.0,
            _ => by_process += 1.0,
        }
        if registry.store_health().healthy { Ok(()) } else { Err("outage".to_owned()) }
    })
    .await;
    let [up, outages, failed] = state();
    assert_eq!((up, outages), (1.0, 1.0));
    assert_eq!(failed, registry.store_health().failed_decisions as f64);

    let scrape = scrape(&recorder.handle());
    let counted = |policy, outcome, source| scrape[&decisions(policy, outcome, source)];
    assert_eq!(counted("metered.local", CallOutcome::Admitted, "redis"), by_redis);
    assert_eq!(counted("metered.local", CallOutcome::Admitted, "local"), by_process);
    assert_eq!(counted("metered.allow", CallOutcome::Admitted, "redis"), 1.0);
    assert_eq!(counted("metered.allow", CallOutcome::Admitted, "allowed"), 1.0);
    assert_eq!(counted("metered.deny", CallOutcome::Admitted, "redis"), 1.0);
    assert_eq!(counted("metered.deny", CallOutcome::StoreError, "none"), 1.0);
}

/// Lets one call wait, and another one pass.
async fn let_one_wait(registry: &Registry, prometheus: &PrometheusHandle) {
    let waiting = || {
        record_state(registry);
        scrape(prometheus)["ratelimits_waiting"]
    };
    let window = registry.limiter("metered.window", FixedWindow::new(1, DAY)).unwrap();
    let first = window.acquire("a").await.unwrap();
    assert_eq!(waiting(), 0.0);
    let waiter = tokio::spawn({
        let window = window.clone();
        async move { window.acquire("a").await }
    });
    until(
        "the call waits",
        WITHIN,
        async || {
            if waiting() == 1.0 { Ok(()) } else { Err("it does not".to_owned()) }
        },
    )
    .await;
    first.refund().await.unwrap();
    waiter.await.unwrap().unwrap();
    assert_eq!(waiting(), 0.0);
}

#[tokio::test]
async fn only_calls_that_waited_are_in_the_histogram() {
    let recorder = recorder();
    let _recorder = metrics::set_default_local_recorder(&recorder);
    let_one_wait(&builder().in_memory(), &recorder.handle()).await;
    let scrape = scrape(&recorder.handle());
    assert_eq!(scrape[r#"ratelimits_wait_seconds_count{policy="metered.window"}"#], 1.0);
    assert!(scrape[r#"ratelimits_wait_seconds_sum{policy="metered.window"}"#] > 0.0);
    assert_eq!(scrape[&decisions("metered.window", CallOutcome::Admitted, "memory")], 2.0);
}

#[count_limit(1, "1d", key = user, name = "metered.near", notify_at = 0.8, registry = registry)]
async fn near_limit(registry: &Registry, user: &str) -> Result<(), Error> {
    Ok(())
}

/// They are no decisions.
#[tokio::test]
async fn keys_near_their_limits_are_counted_once() {
    let server = Server::shared();
    for (source, url) in [("memory", "memory://"), ("redis", &server.url())] {
        let recorder = recorder();
        let _recorder = metrics::set_default_local_recorder(&recorder);
        let registry = builder().connect_lazy(url).unwrap();
        for user in ["ann", "bob", "ann", "eve", "ann"] {
            _ = near_limit(&registry, user).await;
        }
        until("all are counted", WITHIN, async || {
            let counted = scrape(&recorder.handle())
                .remove(r#"ratelimits_near_limit_total{policy="metered.near"}"#)
                .unwrap_or(0.0);
            if counted == 3.0 { Ok(()) } else { Err(format!("{counted} are counted")) }
        })
        .await;
        let calls = scrape(&recorder.handle());
        assert_eq!(calls[&decisions("metered.near", CallOutcome::Admitted, source)], 3.0);
        assert!(!calls.keys().any(|series| series.contains("outcome=\"near_limit\"")), "{calls:?}");
    }
}

#[tokio::test]
async fn many_policies_share_a_label() {
    let recorder = recorder();
    let _recorder = metrics::set_default_local_recorder(&recorder);
    let registry = builder().in_memory();
    for name in (0..1100).chain(0..1100) {
        let limiter = registry.limiter(&format!("metered.{name}"), FixedWindow::new(5, DAY)).unwrap();
        limiter.try_acquire(()).await.unwrap();
    }
    let scrape = scrape(&recorder.handle());
    assert_eq!(scrape.len(), 2 * 1001);
    assert_eq!(scrape[&decisions("metered.999", CallOutcome::Admitted, "memory")], 2.0);
    assert_eq!(scrape[&decisions("(other)", CallOutcome::Admitted, "memory")], 200.0);
}

/// Returns the names and keywords of a query.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

/// Returns the queries in a panel, a row or a whole dashboard.
fn queries(value: &Value) -> Vec<&str> {
    match value {
        Value::Object(members) => {
            let is_query = |name: &str| name == "expr" || name == "query";
            let own =
                members.iter().filter(|(name, _)| is_query(name)).filter_map(|(_, value)| value.as_str());
            own.chain(members.values().flat_map(queries)).collect()
        }
        Value::Array(values) => values.iter().flat_map(queries).collect(),
        _ => Vec::new(),
    }
}

#[tokio::test]
async fn recorded_series_are_in_dashboard_alerts_and_guide() {
    let recorder = recorder();
    let _recorder = metrics::set_default_local_recorder(&recorder);
    let_one_wait(&builder().in_memory(), &recorder.handle()).await;
    let server = Server::shared();
    let on_redis = builder().connect_lazy(&server.url()).unwrap();
    let limiter = on_redis.limiter("metered.series", FixedWindow::new(1, DAY)).unwrap();
    limiter.try_acquire("a").await.unwrap();
    limiter.pause("a", DAY).await.unwrap();
    let held = on_redis.limiter("metered.held", ConcurrencyLimit::new(1)).unwrap();
    drop(held.try_acquire("a").await.unwrap());
    near_limit(&builder().in_memory(), "a").await.unwrap();
    let text = recorder.handle().render();
    let described =
        text.lines().filter_map(|line| line.strip_prefix("# HELP ratelimits_")?.split(' ').next());
    let families: BTreeSet<&str> = described.collect();
    let typed = text.lines().filter_map(|line| line.strip_prefix("# TYPE ratelimits_")?.split(' ').next());
    assert_eq!(families, typed.collect(), "each series has a description");
    assert_eq!(families.len(), 13);

    let dashboard: Value = serde_json::from_str(include_str!("../../dashboards/grafana.json")).unwrap();
    let queries = queries(&dashboard);
    let in_queries = queries.iter().flat_map(|query| words(query));
    let in_queries = in_queries.filter_map(|word| word.strip_prefix("ratelimits_"));
    let in_queries = in_queries.map(|name| name.strip_suffix("_bucket").unwrap_or(name));
    assert_eq!(in_queries.collect::<BTreeSet<_>>(), families);
    for series in alerts().flat_map(words).filter_map(|word| word.strip_prefix("ratelimits_")) {
        assert!(families.contains(series.strip_suffix("_bucket").unwrap_or(series)), "{series}");
    }
    for alert in include_str!("../../dashboards/alerts.yml").split("- alert: ").skip(1) {
        let name = alert.lines().next().unwrap();
        assert!(alert.contains(" expr: ") && alert.contains(" summary: "), "{name}");
        assert!(include_str!("../../guide/metrics.md").contains(&format!("`{name}`")), "{name}");
    }

    for guide in
        [include_str!("../../guide/metrics.md"), include_str!("../../ratelimit-runtime/src/usage/metrics.rs")]
    {
        let rows = guide.lines().filter_map(|line| line.split_once("| `ratelimits_")?.1.split('`').next());
        assert_eq!(rows.collect::<BTreeSet<_>>(), families);
    }
}

/// The queries of the alerts.
fn alerts() -> impl Iterator<Item = &'static str> {
    include_str!("../../dashboards/alerts.yml").lines().filter_map(|line| line.trim().strip_prefix("expr: "))
}

#[test]
fn the_dashboard_and_the_alerts_have_the_values_of_labels() {
    use {CallOutcome::*, DecidedBy::*};
    let outcomes = [Admitted, Limited, ShadowLimited, NotCharged, MissingKey, StoreError, Invalid];
    let sources = [Memory, Redis, Local, Allowed, Skipped];
    let known = |label: &str, value: &str| match label {
        "outcome" => outcomes.iter().any(|outcome| outcome.name() == value),
        "source" => value == "none" || sources.iter().any(|source| source.name() == value),
        "policy" => value == "$policy",
        _ => false,
    };
    let dashboard: Value = serde_json::from_str(include_str!("../../dashboards/grafana.json")).unwrap();
    let mut queries = queries(&dashboard);
    alerts().for_each(|query| queries.push(query));
    for query in queries {
        let selectors = query.split('{').skip(1).filter_map(|rest| rest.split_once('}'));
        for matcher in selectors.flat_map(|(selector, _)| selector.split(", ")) {
            let (label, values) = matcher.split_once(['=', '!']).unwrap();
            let values = values.trim_matches(['=', '~', '"']);
            assert!(values.split('|').all(|value| known(label, value)), "{matcher} in {query}");
        }
        let groups = query.split("by (").skip(1).filter_map(|rest| rest.split_once(')'));
        for label in groups.flat_map(|(labels, _)| labels.split(", ")) {
            assert!(
                ["policy", "outcome", "source", "le", "instance", "job"].contains(&label),
                "{label} in {query}"
            );
        }
    }
}
