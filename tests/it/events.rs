//! Log events.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use ratelimits::{ConcurrencyLimit, Error, FixedWindow, OnStoreError, Registry, SlidingWindow, count_limit};

use crate::support::log_capture::LogCapture;
use crate::support::registries::{namespace, on};
use crate::support::server::Server;

const DAY: Duration = Duration::from_secs(86_400);

#[count_limit(1, "1d", shadow)]
async fn on_trial() -> Result<(), Error> {
    Ok(())
}

#[count_limit(1, "1d", key = key, name = "once", registry = registry)]
async fn once(registry: &Registry, key: u64) -> Result<(), Error> {
    Ok(())
}

/// What a registry logs when it is built: the fields and the message.
fn starts(build: impl FnOnce() -> Registry) -> (String, Registry) {
    let log = LogCapture::default();
    let registry = tracing::subscriber::with_default(log.clone(), build);
    assert_eq!(log.messages().len(), 1, "{}", log.text());
    (log.text(), registry)
}

#[tokio::test]
async fn registries_log_where_they_decide() {
    let in_process = "level=INFO\nmessage=limits are decided in this process\n";
    assert_eq!(starts(Registry::in_memory).0, in_process);
    assert_eq!(starts(|| Registry::connect_lazy("memory://").unwrap()).0, in_process);
    let server = Server::shared();
    for (url, server, deployment) in [
        (server.url(), server.address(), "single"),
        (server.socket_url(), server.socket_url().replace("redis+unix://", ""), "single"),
        ("redis://[::1]:7000/3".to_owned(), "[::1]:7000".to_owned(), "single"),
        (
            "redis+sentinel://one,two:7000/orders".to_owned(),
            "orders at one:26379, two:7000".to_owned(),
            "sentinel",
        ),
        ("redis+cluster://one:7000,two".to_owned(), "one:7000, two:6379".to_owned(), "cluster"),
    ] {
        let expected = format!(
            "level=INFO\nmessage=limits are decided in Redis\nserver={server}\ndeployment={deployment}\nnamespace=rl\n"
        );
        assert_eq!(starts(|| Registry::connect_lazy(&url).unwrap()).0, expected, "{url}");
    }
}

#[tokio::test]
async fn connected_registries_log_the_version() {
    let server = Server::shared();
    let info: String = server.command(&["INFO", "server"]).await;
    let version = |name: &str| {
        let version = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix("_version:"));
        version.map(|version| format!("version={name} {version}\n"))
    };
    let version = version("valkey").or(version("redis")).expect("the server has one");
    for query in ["", "?protocol=resp2"] {
        let log = LogCapture::default();
        let _guard = tracing::subscriber::set_default(log.clone());
        Registry::connect(&format!("{}{query}", server.url())).await.unwrap();
        assert_eq!(log.messages(), ["limits are decided in Redis"]);
        assert!(log.text().contains(&version), "{version} in {}", log.text());
    }
    let log = LogCapture::default();
    let _guard = tracing::subscriber::set_default(log.clone());
    Registry::connect("redis://127.0.0.1:1").await.unwrap_err();
    assert_eq!(log.messages(), [""; 0], "nothing is decided there");
}

#[tokio::test]
async fn outage_names_server_and_deadline_and_each_cause_once() {
    let builder = Registry::builder().deadline(Duration::from_millis(1500));
    let registry = builder.connect_lazy("redis://127.0.0.1:1/5").unwrap();
    let limiter = registry.limiter("a", FixedWindow::new(9, DAY)).unwrap();
    let log = LogCapture::default();
    let _guard = tracing::subscriber::set_default(log.clone());
    limiter.try_acquire("a").await.unwrap();
    limiter.on_store_error(OnStoreError::Deny).try_acquire("a").await.unwrap_err();
    let text = log.text();
    let events: Vec<&str> = text.split("level=").skip(1).collect();
    let [outage, refused] = events[..] else { panic!("{text}") };
    for field in
        ["server=127.0.0.1:1\n", "deadline=1.5s\n", "message=store unavailable; applying `on_store_error`\n"]
    {
        assert!(outage.starts_with("WARN") && outage.contains(field), "{field} in {outage}");
    }
    for event in [outage, refused] {
        assert_eq!(event.matches("Connection refused").count(), 1, "{event}");
    }
}

/// Of one policy or several, in process, in Redis and by a denial.
#[tokio::test]
async fn each_refusal_is_logged() {
    let server = Server::shared();
    for (registry, source) in [(Registry::in_memory(), "Memory"), (on(&server), "Redis")] {
        let log = LogCapture::default();
        let _guard = tracing::subscriber::set_default(log.clone());
        let limiter = registry.limiter("window", SlidingWindow::new(1, DAY)).unwrap();
        for _ in 0..3 {
            _ = once(&registry, 1).await;
            _ = limiter.try_acquire(1).await;
        }
        limiter.peek(1).await.unwrap();
        assert_eq!(log.messages(), ["call was limited"; 4]);
        let events = log.events();
        let policies: Vec<&str> = events.iter().map(|(policy, _)| policy.as_str()).collect();
        assert_eq!(policies, ["once", "window", "once", "window"]);
        let text = log.text();
        assert_eq!(text.matches(&format!("source={source}\n")).count(), 4, "{text}");
        assert_eq!(text.matches("retry_after=86").count(), 4, "{text}");
    }
}

/// By the number that Redis has for the process, once.
#[tokio::test]
async fn process_that_holds_permits_is_logged() {
    let (server, namespace) = (Server::shared(), namespace());
    let registry = Registry::builder().namespace(&*namespace).connect_lazy(&server.url()).unwrap();
    let exports = registry.limiter("exports", ConcurrencyLimit::new(2)).unwrap();
    let log = LogCapture::default();
    let _guard = tracing::subscriber::set_default(log.clone());
    let _held = [exports.try_acquire("one").await.unwrap(), exports.try_acquire("other").await.unwrap()];
    let keys: Vec<String> = server.command(&["KEYS", &format!("{namespace}:*")]).await;
    let fields: Vec<Vec<u8>> = server.command(&["HKEYS", &keys[0]]).await;
    let (process, _) = fields.iter().find_map(|field| field.split_first_chunk()).expect("a share");
    let process = f64::from_le_bytes(*process) as u64;
    assert_eq!(
        log.text(),
        format!("level=DEBUG\nmessage=calls hold permits in Redis\nprocess={process:x}\n")
    );
    // One in process is not a process of Redis.
    let exports = Registry::in_memory().limiter("exports", ConcurrencyLimit::new(2)).unwrap();
    let _held = exports.try_acquire("one").await.unwrap();
    assert_eq!(log.messages().len(), 2, "{}", log.text());
}

/// [`LogCapture`] asserts this of all events that any test captures, and `clippy.toml` of the others.
#[tokio::test]
async fn events_have_the_target_of_the_facade() {
    let log = LogCapture::default();
    let _guard = tracing::subscriber::set_default(log.clone());
    let _ = Registry::unlimited();
    let absent = Registry::connect_lazy("redis://127.0.0.1:1").unwrap();
    let window = FixedWindow::new(1, Duration::from_secs(60));
    absent.limiter("a", window).unwrap().try_acquire("a").await.unwrap();
    let registry = Registry::in_memory();
    for _ in 0..2 {
        registry.scope(on_trial()).await.unwrap();
    }
    assert_eq!(
        log.messages(),
        [
            "Registry::unlimited() is in use: all limits are off",
            "limits are decided in Redis",
            "store unavailable; applying `on_store_error`",
            "limits are decided in this process",
            "shadow policy would have limited calls",
        ]
    );
    let text = log.text();
    assert!(text.contains("policy=it::events::on_trial\nalgorithm=fixed window\n"), "{text}");
}

const GUIDE: &str = include_str!("../../guide/logs.md");

/// The level and the message of an event, without marks of code.
type Event = (String, String);

/// The events in the table of the guide.
fn events_in_guide() -> BTreeSet<Event> {
    let rows = GUIDE.lines().filter_map(|line| line.strip_prefix("| ")?.split_once(" | "));
    let rows = rows.filter(|(level, _)| level.chars().all(char::is_uppercase));
    rows.map(|(level, rest)| {
        let message = rest.split(" | ").next().unwrap_or_default();
        (level.to_owned(), message.replace('`', "").trim().to_owned())
    })
    .collect()
}

/// The events that the sources in this directory log: the message is the last text of a `log!`.
fn events_in_sources(directory: &Path, events: &mut BTreeSet<Event>) {
    for entry in std::fs::read_dir(directory).expect("the sources are there") {
        let path = entry.expect("it can be read").path();
        if path.is_dir() {
            events_in_sources(&path, events);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let source = std::fs::read_to_string(&path).expect("it is a text");
            for call in source.split("log!(").skip(1) {
                let arguments = call.split(");").next().unwrap_or_default();
                let level = arguments.split(',').next().unwrap_or_default().trim();
                let message = arguments.rsplit('"').nth(1).unwrap_or_default();
                let lines = message.split('\\').map(str::trim);
                let message = lines.collect::<Vec<_>>().join(" ").replace('`', "");
                events.insert((level.to_owned(), message));
            }
        }
    }
}

fn all_events() -> BTreeSet<Event> {
    let mut events = BTreeSet::new();
    events_in_sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("ratelimit-runtime/src"), &mut events);
    assert!(events.len() > 15, "{events:#?}");
    events
}

#[test]
fn guide_lists_all_events() {
    assert_eq!(all_events(), events_in_guide());
}

#[test]
fn runbook_has_a_paragraph_for_each_warning_and_error() {
    let runbook = include_str!("../../guide/runbook.md").split("\n### ").skip(1);
    let paragraphs = runbook.map(|section| section.split_once("\n\n").expect("a heading and a text"));
    let headings = paragraphs.map(|(heading, text)| {
        assert!(text.len() > 80, "{heading}");
        heading.replace('`', "").trim().to_owned()
    });
    let alarming = all_events().into_iter().filter(|(level, _)| level == "WARN" || level == "ERROR");
    assert_eq!(headings.collect::<BTreeSet<_>>(), alarming.map(|(_, message)| message).collect());
}
