//! Waiting calls while Redis refuses connections.

use std::time::Duration;

use ratelimits::OnStoreError::{Allow, Deny};
use ratelimits::{
    DecidedBy, Error, FixedWindow, LeakyBucket, Policy, Rate, Registry, SlidingWindow, TokenBucket,
    funnel_limit,
};
use tokio::time::{Instant, sleep};

use crate::faulty_server::{Fault, FaultyServer};
use crate::log_capture::LogCapture;

const TICK: Duration = Duration::from_millis(100);

fn policies() -> [Policy; 7] {
    let rate = Rate::new(1, TICK);
    [
        TokenBucket::new(rate).burst(1).into(),
        TokenBucket::new(rate).interval_refill().burst(1).into(),
        LeakyBucket::new(1, rate).into(),
        LeakyBucket::new(5, rate).queue().into(),
        FixedWindow::new(1, TICK).into(),
        SlidingWindow::new(1, TICK).into(),
        SlidingWindow::new(1, TICK).precision(TICK / 4).into(),
    ]
}

#[tokio::test(start_paused = true)]
async fn waiting_calls_are_allowed_or_denied_at_once() {
    for policy in policies() {
        let registry = Registry::builder().over(FaultyServer::new(Fault::Refused));
        let limiter = registry.limiter("a", policy).unwrap();
        let [allowing, denying] = [Allow, Deny].map(|mode| limiter.on_store_error(mode));
        for _ in 0..5 {
            assert!(allowing.acquire("a").await.unwrap().waited.is_zero());
            let denied = denying.acquire("a").await;
            assert!(matches!(denied, Err(Error::Store(_))), "{denied:?}");
        }
        assert!(limiter.acquire("a").await.unwrap().waited.is_zero(), "nothing was charged");
    }
}

#[tokio::test(start_paused = true)]
async fn calls_wait_for_their_share() {
    for policy in policies() {
        let registry = Registry::builder().over(FaultyServer::new(Fault::Refused));
        let limiter = registry.limiter("a", policy).unwrap();
        let begin = Instant::now();
        let mut waited = Duration::ZERO;
        for _ in 0..4 {
            let decision = limiter.acquire("a").await.unwrap();
            assert_eq!(decision.source, DecidedBy::Local);
            waited += decision.waited;
        }
        assert!(begin.elapsed() >= 3 * TICK, "{policy:?}: {:?}", begin.elapsed());
        assert_eq!(waited, begin.elapsed(), "{policy:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn too_long_waits_are_limited_at_once() {
    for policy in policies() {
        let registry = Registry::builder().instances(100).over(FaultyServer::new(Fault::Refused));
        let limiter = registry.limiter("a", policy).unwrap();
        limiter.acquire_timeout("a", TICK).await.unwrap();
        let begin = Instant::now();
        let error = limiter.acquire_timeout("a", TICK).await.unwrap_err();
        assert!(error.is_limited() && error.retry_after().is_some(), "{policy:?}: {error}");
        assert_eq!(begin.elapsed(), Duration::ZERO, "{policy:?}");
    }
}

#[funnel_limit(2, "20/s", queue, name = "paced")]
async fn paced() -> Result<(), Error> {
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn queue_paces_its_calls() {
    let registry = Registry::builder().over(FaultyServer::new(Fault::Refused));
    let begin = Instant::now();
    let results: [_; 4] =
        registry.scope(async { tokio::join!(paced(), paced(), paced(), paced()) }).await.into();
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 3, "{results:?}");
    assert_eq!(begin.elapsed(), TICK);
    let queue = LeakyBucket::new(2, "20/s".parse().unwrap()).queue();
    assert_eq!(registry.limiter("paced", queue).unwrap().peek(()).await.unwrap().source, DecidedBy::Local);
}

/// The store is healthy again once it has answered for a second.
#[tokio::test(start_paused = true)]
async fn outages_within_a_second_are_logged_as_one() {
    let log = LogCapture::default();
    let _guard = tracing::subscriber::set_default(log.clone());
    let server = FaultyServer::new(Fault::Refused);
    let registry = Registry::builder().over(server.clone());
    let limiter = registry.limiter("a", FixedWindow::new(1000, Duration::from_secs(60))).unwrap();
    for _ in 0..8 {
        server.set(Fault::Refused);
        server.hang_up();
        while limiter.try_acquire("a").await.unwrap().source == DecidedBy::Redis {
            sleep(Duration::from_millis(1)).await;
        }
        server.set(Fault::None);
        while limiter.try_acquire("a").await.unwrap().source == DecidedBy::Local {
            sleep(Duration::from_millis(1)).await;
        }
        sleep(Duration::from_millis(900)).await;
        let health = registry.store_health();
        assert_eq!((health.healthy, health.outages), (false, 1));
    }
    let messages = || log.events().into_iter().map(|(_, message)| message).collect::<Vec<_>>();
    assert_eq!(messages().len(), 1, "{:?}", messages());
    sleep(Duration::from_secs(1)).await;
    limiter.try_acquire("a").await.unwrap();
    let health = registry.store_health();
    assert_eq!((health.healthy, health.outages), (true, 1));
    assert_eq!(messages().last().map(String::as_str), Some("store recovered"));
}
