//! Keys that are paused, by the output of calls or from outside.

use std::time::Duration;

use ratelimits::observe::CallOutcome;
use ratelimits::{
    Decision, Error, FixedWindow, Registry, SlidingWindow, TokenBucket, count_limit, funnel_limit, rate_limit,
};
use tokio::task::JoinSet;
use tokio::time::{Instant, advance, sleep};
use tracing::instrument::WithSubscriber;

use super::log_capture::LogCapture;

const SECOND: Duration = Duration::from_secs(1);

/// What an upstream answers.
#[derive(Debug)]
enum Answer {
    Page,
    TooMany(Duration),
}

impl Answer {
    fn retry_after(&self) -> Option<Duration> {
        match self {
            Answer::Page => None,
            Answer::TooMany(after) => Some(*after),
        }
    }
}

impl From<Error> for Answer {
    fn from(error: Error) -> Self {
        panic!("refused: {error}")
    }
}

#[rate_limit("10/s", burst = 5, key = host, name = "paused.fetch", pause_when = |out| out.as_ref().ok().and_then(Answer::retry_after))]
async fn fetch(host: &str, answer: Answer) -> Result<Answer, Error> {
    Ok(answer)
}

#[tokio::test(start_paused = true)]
async fn answers_pause_their_key() {
    fetch("a", Answer::Page).await.unwrap();
    fetch("a", Answer::TooMany(2 * SECOND)).await.unwrap();
    assert_eq!(fetch("a", Answer::Page).await.unwrap_err().retry_after(), Some(2 * SECOND));
    fetch("b", Answer::Page).await.unwrap();
    advance(2 * SECOND - Duration::from_micros(1)).await;
    assert_eq!(fetch("a", Answer::Page).await.unwrap_err().retry_after(), Some(Duration::from_micros(1)));
    advance(Duration::from_micros(1)).await;
    // One permit, and not the burst, which would hit the upstream again.
    fetch("a", Answer::Page).await.unwrap();
    assert_eq!(fetch("a", Answer::Page).await.unwrap_err().retry_after(), Some(SECOND / 10));
    advance(SECOND).await;
    for _ in 0..5 {
        fetch("a", Answer::Page).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn longest_pause_counts() {
    let registry = Registry::in_memory();
    registry.scope(fetch("a", Answer::TooMany(3 * SECOND))).await.unwrap();
    let limiter = registry.policy("paused.fetch").unwrap();
    limiter.pause("a", SECOND).await.unwrap();
    limiter.pause("a", Duration::ZERO).await.unwrap();
    assert_eq!(limiter.peek("a").await.unwrap().paused(), Some(3 * SECOND));
    limiter.pause("a", 4 * SECOND).await.unwrap();
    assert_eq!(limiter.peek("a").await.unwrap().paused(), Some(4 * SECOND));
    assert!(limiter.reset("a").await.unwrap());
    assert_eq!(limiter.peek("a").await.unwrap().paused(), None);
    registry.scope(fetch("a", Answer::Page)).await.unwrap();
}

#[rate_limit("10/s", burst = 1, key = host, timeout = "10s", pause_when = |out| *out.as_ref().unwrap_or(&None))]
async fn paced(host: &str, nth: usize, pause: Option<Duration>) -> Result<Option<Duration>, Error> {
    STARTS.with_borrow_mut(|starts| starts.push((nth, Instant::now())));
    Ok(pause)
}

thread_local! {
    static STARTS: std::cell::RefCell<Vec<(usize, Instant)>> = const { std::cell::RefCell::new(Vec::new()) };
}

#[tokio::test(start_paused = true)]
async fn waiting_calls_move_by_the_pause_in_their_order() {
    let begun = Instant::now();
    let mut calls = JoinSet::new();
    for nth in 0..10 {
        // The third call is told to wait for two seconds, at 0.2 s.
        calls.spawn(paced("a", nth, (nth == 2).then_some(2 * SECOND)));
        tokio::task::yield_now().await;
    }
    while let Some(called) = calls.join_next().await {
        called.unwrap().unwrap();
    }
    let starts = STARTS.take();
    let millis: Vec<(usize, u128)> =
        starts.iter().map(|(nth, start)| (*nth, start.duration_since(begun).as_millis())).collect();
    let expected = [0, 100, 200, 2300, 2400, 2500, 2600, 2700, 2800, 2900];
    let near =
        |(nth, at): &(usize, u128), (i, expected): (usize, u128)| *nth == i && at.abs_diff(expected) <= 2;
    let pairs = millis.iter().zip(expected.into_iter().enumerate());
    assert!(
        pairs.clone().count() == 10 && pairs.clone().all(|(one, expected)| near(one, expected)),
        "{millis:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn waiting_calls_are_limited_if_the_pause_takes_too_long() {
    let begun = Instant::now();
    let mut calls = JoinSet::new();
    for nth in 0..5 {
        calls.spawn(paced("a", nth, (nth == 1).then_some(60 * SECOND)));
        tokio::task::yield_now().await;
    }
    let (mut admitted, mut refused) = (0, Vec::new());
    while let Some(called) = calls.join_next().await {
        match called.unwrap() {
            Ok(_) => admitted += 1,
            Err(error) => refused.push((begun.elapsed(), error.retry_after().unwrap())),
        }
    }
    assert_eq!((admitted, refused.len()), (2, 3));
    // They learn it at their slots, and when the pause is over.
    for (at, after) in refused {
        assert!(at < SECOND && at + after >= 60 * SECOND, "{at:?} {after:?}");
    }
    STARTS.take();
}

#[count_limit(3, "10s", name = "paused.window", pause_when = |out| *out.as_ref().unwrap_or(&None))]
async fn window(pause: Option<Duration>) -> Result<Option<Duration>, Error> {
    Ok(pause)
}

#[tokio::test(start_paused = true)]
async fn windows_keep_their_count_and_end() {
    window(Some(4 * SECOND)).await.unwrap();
    assert_eq!(window(None).await.unwrap_err().retry_after(), Some(4 * SECOND));
    advance(4 * SECOND).await;
    window(None).await.unwrap();
    window(Some(2 * SECOND)).await.unwrap();
    advance(2 * SECOND).await;
    assert_eq!(window(None).await.unwrap_err().retry_after(), Some(4 * SECOND));
    advance(4 * SECOND).await;
    window(None).await.unwrap();
}

#[rate_limit("10/h", burst = 100, name = "paused.tokens", cost = 50, bind = decision, pause_when = pause)]
#[count_limit(5, "1h", name = "paused.requests")]
async fn tokens(used: u64, after: Option<Duration>) -> Result<(Decision, Option<Duration>), Error> {
    let mut decision = decision;
    decision.settle_each([used, 1]);
    Ok((decision, after))
}

fn pause(out: &Result<(Decision, Option<Duration>), Error>) -> Option<Duration> {
    out.as_ref().ok()?.1
}

#[tokio::test(start_paused = true)]
async fn bodies_settle_the_decision_of_a_key_that_they_pause() {
    let registry = Registry::in_memory();
    registry.scope(tokens(10, Some(SECOND))).await.unwrap();
    let refused = registry.scope(tokens(10, None)).await.map(drop).unwrap_err();
    assert!(refused.retry_after() > Some(SECOND), "one permit is left, of fifty");
    // The other policy is not paused, and was not charged.
    let requests = registry.policy("paused.requests").unwrap();
    assert_eq!(requests.peek(()).await.unwrap().remaining, 4);
    assert_eq!(requests.peek(()).await.unwrap().paused(), None);
}

#[rate_limit("10/s", burst = 3, name = "paused.shadow", shadow, pause_when = |out| *out)]
async fn on_trial(pause: Option<Duration>) -> Option<Duration> {
    pause
}

#[tokio::test(start_paused = true)]
async fn shadows_pause_only_themselves() {
    let registry = Registry::in_memory();
    registry.scope(on_trial(Some(SECOND))).await;
    registry.scope(on_trial(None)).await;
    let policy = registry.policy("paused.shadow").unwrap();
    assert_eq!(policy.peek(()).await.unwrap().paused(), Some(SECOND));
}

#[funnel_limit(4, "10/s", queue, name = "paused.queue", timeout = "10s", pause_when = |out| *out.as_ref().unwrap_or(&None))]
async fn queued(pause: Option<Duration>) -> Result<Option<Duration>, Error> {
    Ok(pause)
}

#[tokio::test(start_paused = true)]
async fn queues_go_on_where_they_stood() {
    let begun = Instant::now();
    let mut calls = JoinSet::new();
    for nth in 0..5 {
        calls.spawn(async move {
            queued((nth == 0).then_some(SECOND)).await.unwrap();
            begun.elapsed().as_millis()
        });
        tokio::task::yield_now().await;
    }
    let mut starts = calls.join_all().await;
    starts.sort_unstable();
    let expected = [0, 1100, 1200, 1300, 1400];
    assert!(
        starts.iter().zip(expected).all(|(start, expected)| start.abs_diff(expected) <= 10),
        "{starts:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn limiters_wait_for_a_pause_that_they_find() {
    let registry = Registry::in_memory();
    let bucket = registry.limiter("bucket", TokenBucket::per_second(10).burst(5)).unwrap();
    let window = registry.limiter("window", FixedWindow::new(5, 60 * SECOND)).unwrap();
    let sliding = registry.limiter("sliding", SlidingWindow::new(5, 60 * SECOND)).unwrap();
    for limiter in [bucket, window, sliding] {
        let begun = Instant::now();
        limiter.pause("a", 2 * SECOND).await.unwrap();
        assert!(limiter.acquire_timeout("a", SECOND).await.unwrap_err().is_limited());
        let decision = limiter.acquire("a").await.unwrap();
        let waited = begun.elapsed();
        assert!(waited >= 2 * SECOND && waited < 2 * SECOND + SECOND / 10, "{limiter:?} {waited:?}");
        assert!(decision.waited >= 2 * SECOND - SECOND / 100, "{:?}", decision.waited);
    }
}

#[tokio::test(start_paused = true)]
async fn pauses_are_cut_logged_and_observed() {
    let logs = LogCapture::default();
    let seen = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let of = std::sync::Arc::clone(&seen);
    let registry = Registry::builder()
        .max_pause(60 * SECOND)
        .observer(move |it| {
            if it.outcome == CallOutcome::Paused {
                of.lock().unwrap().push((it.policy.to_owned(), it.key().concat(), it.cost, it.paused()));
            }
        })
        .in_memory();
    let limiter = registry.limiter("api", FixedWindow::new(5, SECOND)).unwrap();
    async {
        limiter.pause("ann", Duration::ZERO).await.unwrap();
        limiter.pause("ann", Duration::from_secs(10 * 365 * 86_400)).await.unwrap();
    }
    .with_subscriber(logs.clone())
    .await;
    assert_eq!(limiter.peek("ann").await.unwrap().paused(), Some(60 * SECOND));
    let expected = ("api".to_owned(), "ann".to_owned(), 0, Some(60 * SECOND));
    assert_eq!(*seen.lock().unwrap(), [expected]);
    let text = logs.text();
    for event in ["pauses were cut to the longest that the registry allows", "paused a key"] {
        assert_eq!(text.matches(event).count(), 1, "{event} in {text}");
    }
    assert!(!text.contains("ann"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn dropped_calls_pause_nothing() {
    #[count_limit(3, "1h", name = "paused.dropped", pause_when = |_| SECOND)]
    async fn slow() -> Result<(), Error> {
        sleep(SECOND).await;
        Ok(())
    }
    let registry = Registry::in_memory();
    drop(tokio::time::timeout(SECOND / 2, registry.scope(slow())).await);
    let policy = registry.policy("paused.dropped").unwrap();
    assert_eq!(policy.peek(()).await.unwrap().paused(), None);
    registry.scope(slow()).await.unwrap();
    assert_eq!(policy.peek(()).await.unwrap().paused(), Some(SECOND));
}
