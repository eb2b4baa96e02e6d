//! Redis in particular: connections, scripts, runtimes and foreign keys.

use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use ratelimits::{
    DecidedBy, Error, FixedWindow, LeakyBucket, OnStoreError, Policy, Rate, Registry, SlidingWindow,
    TokenBucket, count_limit,
};
use redis::FromRedisValue;
use tokio::runtime::{Builder, Runtime};

use crate::support::log_capture::LogCapture;
use crate::support::registries::{LONG_DEADLINE, on};
use crate::support::server::Server;

const MINUTE: Duration = Duration::from_secs(60);

/// One policy for each layout of the state.
fn policies() -> [Policy; 7] {
    let rate = Rate::new(1, MINUTE);
    [
        TokenBucket::new(rate).burst(3).into(),
        TokenBucket::new(rate).interval_refill().burst(3).into(),
        LeakyBucket::new(3, rate).into(),
        FixedWindow::new(3, MINUTE).into(),
        FixedWindow::new(3, 60 * MINUTE).aligned().into(),
        SlidingWindow::new(3, MINUTE).into(),
        SlidingWindow::new(3, MINUTE).precision(Duration::from_secs(1)).into(),
    ]
}

async fn query<T: FromRedisValue>(server: &Server, command: &[&str]) -> T {
    redis::cmd(command[0]).arg(&command[1..]).query_async(&mut server.connect().await).await.unwrap()
}

/// A runtime that can reach Redis.
fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

/// Polls a decision that must be ready, outside a runtime.
fn poll_once<T>(decision: impl Future<Output = T>) -> T {
    match pin!(decision).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("the decision is pending"),
    }
}

#[count_limit(1, "1m", name = "redis.with_fallback", fallback = fallback)]
async fn with_fallback() -> &'static str {
    "body"
}

fn fallback() -> &'static str {
    "fallback"
}

#[tokio::test]
async fn invalid_urls_are_rejected() {
    for url in
        ["", "localhost", "http://localhost", "redis://", "redis://:port", "redis://localhost/nonsense"]
    {
        let lazy = Registry::connect_lazy(url).unwrap_err();
        assert!(matches!(lazy, Error::Store(_)), "{url:?}: {lazy}");
        assert!(matches!(Registry::connect(url).await, Err(Error::Store(_))), "{url:?}");
    }
    let tls = Registry::connect_lazy("rediss://localhost");
    #[cfg(not(feature = "tls"))]
    assert!(tls.unwrap_err().to_string().contains("the feature `tls`"));
    #[cfg(feature = "tls")]
    tls.unwrap();
}

#[tokio::test]
async fn only_connect_requires_a_server() {
    let url = Server::start().url();
    let error = Registry::connect(&url).await.unwrap_err();
    assert!(matches!(error, Error::Store(_)), "{error}");
    assert!(std::error::Error::source(&error).is_some());

    let registry = Registry::builder().on_store_error(OnStoreError::Deny).connect_lazy(&url).unwrap();
    let limiter = registry.limiter("absent", FixedWindow::new(1, MINUTE)).unwrap();
    for _ in 0..3 {
        let error = limiter.try_acquire("a").await.unwrap_err();
        assert!(matches!(error, Error::Store(_)) && !error.is_limited(), "{error}");
    }
    assert_eq!(registry.scope(with_fallback()).await, "fallback");
}

#[tokio::test]
async fn wrong_password_fails_connect_and_stays_secret() {
    let server = Server::start();
    let () = query(&server, &["CONFIG", "SET", "requirepass", "right"]).await;
    let url = server.url().replace("redis://", "redis://:wrong-secret@");
    let error = Registry::connect(&url).await.unwrap_err();
    assert!(matches!(error, Error::Store(_)), "{error}");
    let registry = Registry::connect_lazy(&url).unwrap();
    for text in [format!("{error} {error:?}"), format!("{registry:?}")] {
        assert!(!text.contains("wrong-secret"), "{text}");
    }
    let url = server.url().replace("redis://", "redis://:right@");
    Registry::connect(&url).await.unwrap();
}

#[tokio::test]
async fn log_events_contain_no_key_user_or_password() {
    let log = LogCapture::default();
    let _guard = tracing::subscriber::set_default(log.clone());
    for url in [
        "redis://secret-user:secret%40pass@127.0.0.1:1/7",
        "redis://:secret@127.0.0.1:1",
        "redis+unix:///absent.sock?user=secret-user&pass=secret",
        "redis+sentinel://secret-user:secret@127.0.0.1:1,127.0.0.1:2/orders",
        "redis+cluster://secret-user:secret@127.0.0.1:1,127.0.0.1:2",
    ] {
        let registry = Registry::connect_lazy(url).unwrap();
        let limiter = registry.limiter("a", FixedWindow::new(1, MINUTE)).unwrap();
        limiter.try_acquire("secret-key").await.unwrap();
        limiter.try_acquire("secret-key").await.unwrap_err();
        limiter.on_store_error(OnStoreError::Deny).try_acquire("secret-key").await.unwrap_err();
        Registry::connect(url).await.unwrap_err();
    }
    let server = Server::start();
    server.set_user("secret-user", "secret", &["~*", "+@all"]).await;
    let registry = Registry::connect(&server.url_as("secret-user", "secret")).await.unwrap();
    let limiter = registry.limiter("a", FixedWindow::new(1, MINUTE)).unwrap();
    limiter.try_acquire("secret-key").await.unwrap();
    let keys: Vec<String> = query(&server, &["KEYS", "*secret-key*"]).await;
    let () = query(&server, &["SET", &keys[0], "not a state"]).await;
    limiter.try_acquire("secret-key").await.unwrap_err();
    let messages = log.messages();
    let count = |message: &str| messages.iter().filter(|logged| *logged == message).count();
    let outages = count("store unavailable; applying `on_store_error`");
    assert_eq!((count("limits are decided in Redis"), outages), (6, 5), "{messages:?}");
    assert_eq!((count("call was limited"), count("call was refused")), (5, 6), "{messages:?}");
    assert!(!log.text().contains("secret"), "{}", log.text());
}

/// Redis repeats the arguments of an unknown command in its error, and those of `HELLO` contain the password.
#[tokio::test]
async fn server_without_hello_leaks_no_password() {
    let server = Server::start_with(&["--rename-command", "HELLO", "", "--requirepass", "right"]);
    let registry = async |password: &str| {
        let builder = Registry::builder().on_store_error(OnStoreError::Deny).deadline(LONG_DEADLINE);
        builder.connect(&server.url().replace("redis://", &format!("redis://:{password}@"))).await
    };
    let limiter = registry("right").await.unwrap().limiter("a", FixedWindow::new(1, MINUTE)).unwrap();
    assert_eq!(limiter.try_acquire("a").await.unwrap().source, DecidedBy::Redis);

    let error = registry("wrong-secret").await.unwrap_err();
    let mut texts = vec![format!("{error} {error:?}")];
    let mut source = std::error::Error::source(&error);
    while let Some(cause) = source {
        texts.push(format!("{cause} {cause:?}"));
        source = cause.source();
    }
    assert!(!texts.iter().any(|text| text.contains("secret")), "{texts:?}");
}

#[test]
fn runtime_without_io_does_not_affect_others() {
    let server = Server::start();
    server.kill();
    let registry = on(&server);
    let limiter = registry.limiter("a", FixedWindow::new(1000, MINUTE)).unwrap();
    let with_io = runtime();
    let without_io = Builder::new_current_thread().enable_time().build().unwrap();
    for _ in 0..30 {
        let _ = without_io.block_on(limiter.try_acquire("a"));
        let decision = with_io.block_on(limiter.try_acquire("a")).unwrap();
        assert_eq!(decision.source, DecidedBy::Local);
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[tokio::test]
async fn failed_refund_does_not_stop_the_others() {
    let server = Server::start();
    let registry = on(&server);
    let limiter = |name: &str| registry.limiter(name, FixedWindow::new(5, MINUTE)).unwrap();
    let [taken, other] = [limiter("taken"), limiter("other")];
    let decision = registry.try_acquire_all([taken.charge_n("a", 2), other.charge_n("a", 2)]).await.unwrap();
    let keys: Vec<String> = query(&server, &["KEYS", "*taken*"]).await;
    let () = query(&server, &["SET", &keys[0], "not a state"]).await;
    assert!(decision.refund().await.is_err());
    assert_eq!(other.peek("a").await.unwrap().remaining, 5);
}

#[tokio::test]
async fn refund_of_nothing_asks_no_server() {
    let server = Server::start();
    let limiter = on(&server).limiter("a", FixedWindow::new(5, MINUTE)).unwrap();
    let uncharged = [limiter.peek("a").await.unwrap(), limiter.try_acquire_n("a", 0).await.unwrap()];
    let charged = limiter.try_acquire("a").await.unwrap();
    server.kill();
    for decision in uncharged {
        decision.refund().await.unwrap();
    }
    assert!(charged.refund().await.is_err());
}

#[tokio::test]
async fn foreign_keys_are_store_errors_and_untouched() {
    let server = Server::start();
    let registry = on(&server);
    for (i, policy) in policies().into_iter().enumerate() {
        let limiter = registry.limiter(&format!("taken {i}"), policy).unwrap();
        let other = registry.limiter("other", FixedWindow::new(5, MINUTE)).unwrap();
        limiter.try_acquire("a").await.unwrap();
        let keys: Vec<String> = query(&server, &["KEYS", &format!("*taken%20{i}*")]).await;
        let [key] = &keys[..] else { panic!("{keys:?}") };
        for taken in
            [&["SADD", key, "x"][..], &["SET", key, "not a state"], &["RPUSH", key, "no", "state", "x"]]
        {
            let _: i64 = query(&server, &["DEL", key]).await;
            let _: redis::Value = query(&server, taken).await;
            let before: Vec<u8> = query(&server, &["DUMP", key]).await;
            for _ in 0..2 {
                let all = [other.charge("b"), limiter.charge("a")];
                let error = registry.try_acquire_all(all).await.unwrap_err();
                assert!(matches!(error, Error::Store(_)), "{policy:?} over {taken:?}: {error}");
                assert!(matches!(limiter.try_acquire("a").await, Err(Error::Store(_))));
                assert!(matches!(limiter.peek("a").await, Err(Error::Store(_))));
            }
            let after: Vec<u8> = query(&server, &["DUMP", key]).await;
            assert_eq!(before, after, "{policy:?} over {taken:?}");
            assert_eq!(other.peek("b").await.unwrap().remaining, 5);
        }
    }
}

#[test]
fn one_registry_serves_many_runtimes() {
    let server = Server::start();
    let registry = on(&server);
    let limiter = registry.limiter("runtimes", FixedWindow::new(1000, MINUTE)).unwrap();
    let call = || async {
        for _ in 0..10 {
            limiter.try_acquire("a").await.unwrap();
        }
    };
    for _ in 0..5 {
        runtime().block_on(call());
    }
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let workers = Builder::new_multi_thread().enable_all().worker_threads(2).build().unwrap();
                workers.block_on(call());
                runtime().block_on(call());
            });
        }
    });
    let (first, second) = (runtime(), runtime());
    first.block_on(call());
    second.block_on(call());
    first.block_on(call());
    drop(first);
    second.block_on(call());
    let left = second.block_on(limiter.peek("a")).unwrap().remaining;
    assert_eq!(left, 1000 - 10 * (5 + 8 + 4));

    let clients: String = second.block_on(query(&server, &["CLIENT", "LIST"]));
    assert!(clients.lines().count() <= 2, "connections of ended runtimes are still open:\n{clients}");
}

#[test]
fn redis_outside_a_runtime_is_an_error() {
    // A database of its own, because registries with one URL share their outages.
    let registry = Registry::connect_lazy("redis://127.0.0.1:1/7").unwrap();
    let limiter = registry.limiter("outside", FixedWindow::new(1, MINUTE)).unwrap();
    let error = poll_once(limiter.try_acquire("a")).unwrap_err();
    assert!(error.to_string().contains("runtime"), "{error}");
}

#[tokio::test]
async fn decision_is_one_script_call() {
    let server = Server::start();
    let registry = on(&server);
    let limiters: Vec<_> = policies()
        .into_iter()
        .enumerate()
        .map(|(i, policy)| registry.limiter(&i.to_string(), policy).unwrap())
        .collect();
    let decide = || registry.try_acquire_all(limiters.iter().map(|limiter| limiter.charge("a")));
    decide().await.unwrap();
    let calls = async || -> u64 {
        let stats: String = query(&server, &["INFO", "commandstats"]).await;
        let mut lines = stats.lines();
        let line = lines.find(|line| line.starts_with("cmdstat_evalsha:")).expect("scripts were called");
        line.split(['=', ',']).nth(1).unwrap().parse().unwrap()
    };
    let before = calls().await;
    decide().await.unwrap();
    decide().await.unwrap();
    assert!(decide().await.unwrap_err().is_limited());
    assert_eq!(calls().await - before, 3);
}

#[test]
fn ended_runtime_is_an_error() {
    let server = Server::start();
    let registry = on(&server);
    let limiter = registry.limiter("ended", FixedWindow::new(1, MINUTE)).unwrap();
    let limiter = limiter.on_store_error(OnStoreError::Deny);
    let ended = Builder::new_multi_thread().enable_all().build().unwrap();
    let handle = ended.handle().clone();
    drop(ended);
    let _entered = handle.enter();
    poll_once(limiter.try_acquire("a")).unwrap_err();
}
