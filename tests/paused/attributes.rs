//! Attributes that wait: alone, in stacks, in shadow, with `charge_when`, dropped.

use std::time::Duration;

use ratelimits::{Error, count_limit, funnel_limit, rate_limit, window_limit};
use tokio::time::{Instant, advance, sleep, timeout};

use crate::concurrent::spawn_all;

const SECOND: Duration = Duration::from_secs(1);

/// How long an admitted call took, or a refused one with its `retry_after`.
type Outcome = Result<Duration, (Duration, Option<Duration>)>;

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn admitted(after: u64) -> Outcome {
    Ok(ms(after))
}

fn refused(after: u64, retry_after: u64) -> Outcome {
    Err((ms(after), Some(ms(retry_after))))
}

async fn timed<T>(call: impl Future<Output = T>) -> (Duration, T) {
    let begin = Instant::now();
    let output = call.await;
    (begin.elapsed(), output)
}

async fn outcomes<F: Future<Output = Result<(), Error>> + Send + 'static>(
    calls: usize,
    call: impl Fn() -> F,
) -> Vec<Outcome> {
    let mut outcomes = Vec::new();
    for call in spawn_all(calls, call) {
        let (result, elapsed) = call.await.expect("the call ends");
        outcomes.push(result.map(|()| elapsed).map_err(|error| (elapsed, error.retry_after())));
    }
    outcomes
}

/// Tests of one function each, called as often at one time as there are outcomes.
macro_rules! outcomes {
    ($($(#[$limit:meta])+ $test:ident: $expected:expr;)*) => {$(
        #[tokio::test(start_paused = true)]
        async fn $test() {
            $(#[$limit])+
            async fn call() -> Result<(), Error> {
                Ok(())
            }
            let expected = $expected;
            assert_eq!(outcomes(expected.len(), call).await, expected);
        }
    )*};
}

outcomes! {
    #[rate_limit(rate = 10.0, burst = 1, timeout = "250ms")]
    slot_beyond_the_timeout_is_refused_at_once:
        [admitted(0), admitted(100), admitted(200), refused(0, 300)];

    // The last call only learns at the second window that the third is beyond its timeout.
    #[count_limit(limit = 2, period = "1s", timeout = "1500ms")]
    window_is_waited_for_in_order:
        [admitted(0), admitted(0), admitted(1000), admitted(1000), refused(1000, 1000)];

    #[funnel_limit(capacity = 2, leak_rate = 10.0, queue)]
    queue_waits_by_default: [admitted(0), admitted(100), admitted(200), refused(0, 100)];

    // A permit takes three intervals at first, less with each permit, and one in the end.
    #[rate_limit(rate = 10.0, warmup = "1s", timeout = "forever")]
    warming_up_bucket_speeds_up: [0, 280, 520, 720, 880, 1000, 1100, 1200].map(admitted);

    #[rate_limit(rate = 10.0, burst = 1, timeout = "1s")]
    #[funnel_limit(capacity = 1, leak_rate = 4.0, timeout = "forever")]
    stacked_buckets_wait_for_the_latest_slot: [0, 250, 500].map(admitted);

    #[rate_limit(rate = 10.0, burst = 2, timeout = "1s")]
    #[window_limit(limit = 1, period = "400ms", timeout = "1s")]
    bucket_beside_a_window_reserves_nothing: [admitted(0), admitted(400), admitted(800), refused(800, 400)];

    #[rate_limit(rate = 1.0, burst = 1, name = "attributes.shadow")]
    #[funnel_limit(capacity = 1, leak_rate = 1.0, queue, shadow)]
    shadow_queue_is_not_waited_for: [admitted(0), refused(0, 1000)];

    #[rate_limit("10/s", burst = 1, timeout = "99ms")]
    #[count_limit(1000, "1d", timeout = "10s")]
    timeout_shorter_than_the_wait: [admitted(0), refused(0, 100)];

    #[rate_limit("10/s", burst = 1, timeout = "100ms")]
    #[count_limit(1000, "1d", timeout = "10s")]
    timeout_as_long_as_the_wait: [admitted(0), admitted(100)];

    #[rate_limit("10/s", burst = 1, timeout = "10s")]
    #[count_limit(1000, "1d", timeout = "99ms")]
    timeout_of_another_policy_does_not_apply: [admitted(0), admitted(100)];
}

#[rate_limit(rate = 10.0, burst = 1, timeout = "90ms")]
#[funnel_limit(capacity = 1, leak_rate = 4.0, timeout = "forever")]
async fn two_timeouts() -> Result<(), Error> {
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn refused_call_leaves_no_reservation() {
    two_timeouts().await.unwrap();
    let (elapsed, refused) = timed(two_timeouts()).await;
    assert_eq!((elapsed, refused.unwrap_err().retry_after()), (ms(0), Some(ms(100))));
    advance(ms(10)).await;
    let (elapsed, admitted) = timed(two_timeouts()).await;
    assert_eq!((elapsed, admitted.is_ok()), (ms(240), true));
}

#[funnel_limit(capacity = 2, leak_rate = 10.0, queue)]
#[count_limit(1000, "1d")]
async fn queue_beside_a_window() -> Result<(), Error> {
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn queue_beside_a_window_keeps_its_capacity() {
    let outcomes = outcomes(8, queue_beside_a_window).await;
    assert_eq!(outcomes[..3], [admitted(0), admitted(100), admitted(200)]);
    for refused in &outcomes[3..] {
        let (elapsed, retry_after) = refused.unwrap_err();
        assert_eq!(elapsed, ms(0));
        assert!(retry_after.is_some_and(|wait| wait > ms(0)), "{outcomes:?}");
    }
}

#[rate_limit("1/2s", burst = 1, key = user, timeout = "10s")]
#[count_limit(1000, "1d")]
async fn bucket_by_user(user: u8) -> Result<(), Error> {
    let _ = user;
    Ok(())
}

#[count_limit(1000, "1d", key = "<7>")]
#[window_limit(1, "2s", key = user, timeout = "10s")]
async fn window_by_user(user: u8) -> Result<(), Error> {
    let _ = user;
    Ok(())
}

async fn assert_users_wait_separately<F: Future<Output = Result<(), Error>> + Send + 'static>(
    call: impl Fn(u8) -> F,
) {
    let first = spawn_all(3, || call(1));
    sleep(SECOND).await;
    let second = spawn_all(2, || call(2));
    for (call, seconds) in first.into_iter().chain(second).zip([0, 2, 4, 0, 2]) {
        let (result, elapsed) = timeout(60 * SECOND, call).await.expect("the call ends").unwrap();
        result.unwrap();
        assert_eq!(elapsed, seconds * SECOND);
    }
}

#[tokio::test(start_paused = true)]
async fn waiting_for_one_key_does_not_delay_another() {
    assert_users_wait_separately(bucket_by_user).await;
    assert_users_wait_separately(window_by_user).await;
}

#[rate_limit(rate = 1.0, burst = 1, timeout = "forever")]
async fn slow() -> Result<(), Error> {
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn dropped_call_lets_the_next_one_move_up() {
    slow().await.unwrap();
    let next = async {
        tokio::task::yield_now().await;
        timed(slow()).await
    };
    let (dropped, (elapsed, admitted)) = tokio::join!(timeout(ms(500), slow()), next);
    assert!(dropped.is_err());
    assert_eq!((elapsed, admitted.is_ok()), (ms(1000), true));
}

#[rate_limit(rate = 1.0, burst = 1, timeout = "forever", charge_when = |out| *out != Ok(false), fallback = |_| Ok(false))]
async fn charged_if(charged: bool) -> Result<bool, ()> {
    Ok(charged)
}

#[tokio::test(start_paused = true)]
async fn reserved_slot_is_refunded_by_the_output() {
    let (first, second) = tokio::join!(timed(charged_if(true)), timed(charged_if(false)));
    assert_eq!((first.0, second.0), (ms(0), ms(1000)));
    assert_eq!(timed(charged_if(true)).await.0, ms(0));
}

#[rate_limit(rate = 1.0, burst = 2, cost = cost, timeout = "10s")]
async fn waits_for_its_cost(cost: u64) -> Result<(), Error> {
    let _ = cost;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn calls_with_a_computed_cost_wait() {
    waits_for_its_cost(2).await.unwrap();
    let (elapsed, admitted) = timed(waits_for_its_cost(2)).await;
    assert_eq!((elapsed, admitted.is_ok()), (2 * SECOND, true));
}
