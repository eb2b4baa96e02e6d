//! What is particular to Redis: connections, scripts, and keys of other people.

use std::time::Duration;

use ratelimits::{
    Error, FixedWindow, LeakyBucket, OnStoreError, Policy, Rate, Registry, SlidingWindow, Source,
    TokenBucket, count_limit,
};

use crate::support::registries::{PATIENT, on};
use crate::support::server::Server;

const MINUTE: Duration = Duration::from_secs(60);

/// One policy of each algorithm and way to keep its state.
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

#[count_limit(1, "1m", name = "redis.with_fallback", fallback = otherwise)]
async fn with_fallback() -> &'static str {
    "body"
}

fn otherwise() -> &'static str {
    "fallback"
}

#[tokio::test]
async fn a_url_that_is_wrong_is_told_at_once() {
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
async fn a_redis_that_is_absent_fails_connect_and_not_connect_lazy() {
    let url = {
        let server = Server::start();
        server.url()
    };
    let error = Registry::connect(&url).await.unwrap_err();
    assert!(matches!(error, Error::Store(_)), "{error}");
    assert!(std::error::Error::source(&error).is_some());

    let registry = Registry::builder().on_store_error(OnStoreError::Deny).connect_lazy(&url).unwrap();
    let limiter = registry.limiter("absent", FixedWindow::new(1, MINUTE)).unwrap();
    for _ in 0..3 {
        let error = limiter.try_acquire("a", 1).await.unwrap_err();
        assert!(matches!(error, Error::Store(_)) && !error.is_limited(), "{error}");
    }
    assert_eq!(registry.scope(with_fallback()).await, "fallback");
}

#[tokio::test]
async fn credentials_that_are_wrong_fail_connect_and_stay_secret() {
    let server = Server::start();
    let mut connection = server.connect().await;
    let set: Result<(), _> =
        redis::cmd("CONFIG").arg(&["SET", "requirepass", "right"]).query_async(&mut connection).await;
    set.unwrap();
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

/// Redis repeats the arguments of a command that it does not know, and `HELLO` may hold the password.
#[tokio::test]
async fn a_server_without_hello_is_spoken_to_as_it_can_and_tells_no_password() {
    let server = Server::start_with(&["--rename-command", "HELLO", "", "--requirepass", "right"]);
    let registry = async |password: &str| {
        let builder = Registry::builder().on_store_error(OnStoreError::Deny).deadline(PATIENT);
        builder.connect(&server.url().replace("redis://", &format!("redis://:{password}@"))).await
    };
    let limiter = registry("right").await.unwrap().limiter("a", FixedWindow::new(1, MINUTE)).unwrap();
    assert_eq!(limiter.try_acquire("a", 1).await.unwrap().source, Source::Redis);

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
fn a_runtime_that_cannot_reach_redis_is_no_trouble_of_the_others() {
    let server = Server::start();
    server.kill();
    let registry = on(&server);
    let limiter = registry.limiter("a", FixedWindow::new(1000, MINUTE)).unwrap();
    let able = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let unable = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    for _ in 0..30 {
        let _ = unable.block_on(limiter.try_acquire("a", 1));
        let decision = able.block_on(limiter.try_acquire("a", 1)).unwrap();
        assert_eq!(decision.source, Source::Local);
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[tokio::test]
async fn a_refund_that_fails_for_one_policy_is_tried_for_the_others() {
    let server = Server::start();
    let registry = on(&server);
    let limiter = |name: &str| registry.limiter(name, FixedWindow::new(5, MINUTE)).unwrap();
    let [taken, other] = [limiter("taken"), limiter("other")];
    let decision = registry.try_acquire_all([taken.charge("a", 2), other.charge("a", 2)]).await.unwrap();
    let mut connection = server.connect().await;
    let keys: Vec<String> = redis::cmd("KEYS").arg("*taken*").query_async(&mut connection).await.unwrap();
    let _: () =
        redis::cmd("SET").arg(&keys[0]).arg("not a state").query_async(&mut connection).await.unwrap();
    assert!(decision.refund().await.is_err());
    assert_eq!(other.peek("a").await.unwrap().remaining, 5);
}

#[tokio::test]
async fn a_key_of_another_type_is_an_error_of_the_store_and_stays_as_it_is() {
    let server = Server::start();
    let mut connection = server.connect().await;
    let registry = on(&server);
    for (i, policy) in policies().into_iter().enumerate() {
        let limiter = registry.limiter(&format!("taken {i}"), policy).unwrap();
        let other = registry.limiter("other", FixedWindow::new(5, MINUTE)).unwrap();
        limiter.try_acquire("a", 1).await.unwrap();
        let keys: Vec<String> =
            redis::cmd("KEYS").arg(format!("*taken%20{i}*")).query_async(&mut connection).await.unwrap();
        let [key] = &keys[..] else { panic!("{keys:?}") };
        for taken in
            [vec!["SADD", key, "x"], vec!["SET", key, "not a state"], vec!["RPUSH", key, "no", "state", "x"]]
        {
            let _: i64 = redis::cmd("DEL").arg(key).query_async(&mut connection).await.unwrap();
            let _: redis::Value =
                redis::cmd(taken[0]).arg(&taken[1..]).query_async(&mut connection).await.unwrap();
            let before: Vec<u8> = redis::cmd("DUMP").arg(key).query_async(&mut connection).await.unwrap();
            for _ in 0..2 {
                let all = [other.charge("b", 1), limiter.charge("a", 1)];
                let error = registry.try_acquire_all(all).await.unwrap_err();
                assert!(matches!(error, Error::Store(_)), "{policy:?} over {taken:?}: {error}");
                assert!(matches!(limiter.try_acquire("a", 1).await, Err(Error::Store(_))));
                assert!(matches!(limiter.peek("a").await, Err(Error::Store(_))));
            }
            let after: Vec<u8> = redis::cmd("DUMP").arg(key).query_async(&mut connection).await.unwrap();
            assert_eq!(before, after, "{policy:?} over {taken:?}");
            assert_eq!(other.peek("b").await.unwrap().remaining, 5);
        }
    }
}

#[test]
fn one_registry_serves_runtimes_one_after_another_and_at_once() {
    let server = Server::start();
    let registry = on(&server);
    let limiter = registry.limiter("runtimes", FixedWindow::new(1000, MINUTE)).unwrap();
    let call = || async {
        for _ in 0..10 {
            limiter.try_acquire("a", 1).await.unwrap();
        }
    };
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for _ in 0..5 {
        runtime().block_on(call());
    }
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let workers = tokio::runtime::Builder::new_multi_thread()
                    .enable_all()
                    .worker_threads(2)
                    .build()
                    .unwrap();
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

    let clients: String = second.block_on(async {
        redis::cmd("CLIENT").arg("LIST").query_async(&mut server.connect().await).await.unwrap()
    });
    assert!(
        clients.lines().count() <= 2,
        "connections of runtimes that have ended are still there:\n{clients}"
    );
}

#[test]
fn outside_a_tokio_runtime_redis_is_an_error_and_no_panic() {
    let registry = Registry::connect_lazy("redis://127.0.0.1:1").unwrap();
    let limiter = registry.limiter("outside", FixedWindow::new(1, MINUTE)).unwrap();
    let call = std::pin::pin!(limiter.try_acquire("a", 1));
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    let std::task::Poll::Ready(Err(error)) = call.poll(&mut context) else { panic!("it waits for nothing") };
    assert!(error.to_string().contains("runtime"), "{error}");
}

#[tokio::test]
async fn a_decision_is_one_call_to_redis() {
    let server = Server::start();
    let mut connection = server.connect().await;
    let registry = on(&server);
    let limiters: Vec<_> = policies()
        .into_iter()
        .enumerate()
        .map(|(i, policy)| registry.limiter(&i.to_string(), policy).unwrap())
        .collect();
    let decide = || registry.try_acquire_all(limiters.iter().map(|limiter| limiter.charge("a", 1)));
    decide().await.unwrap();
    let calls = async |connection: &mut redis::aio::MultiplexedConnection| -> u64 {
        let stats: String = redis::cmd("INFO").arg("commandstats").query_async(connection).await.unwrap();
        let line =
            stats.lines().find(|line| line.starts_with("cmdstat_evalsha:")).expect("scripts were called");
        line.split(['=', ',']).nth(1).unwrap().parse().unwrap()
    };
    let before = calls(&mut connection).await;
    decide().await.unwrap();
    decide().await.unwrap();
    assert!(decide().await.unwrap_err().is_limited());
    assert_eq!(calls(&mut connection).await - before, 3);
}

#[test]
fn a_runtime_that_has_ended_is_an_error_and_no_hang() {
    let server = Server::start();
    let registry = on(&server);
    let limiter = registry.limiter("ended", FixedWindow::new(1, MINUTE)).unwrap();
    let limiter = limiter.on_store_error(OnStoreError::Deny);
    let ended = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let handle = ended.handle().clone();
    drop(ended);
    let _entered = handle.enter();
    let mut call = std::pin::pin!(limiter.try_acquire("a", 1));
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    let polled = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| call.as_mut().poll(&mut context)));
    assert!(matches!(polled, Ok(std::task::Poll::Ready(Err(_)))), "{polled:?}");
}
