//! Attributes that wait: alone and in stacks, with `charge_when`, in shadow, dropped on the way.

use std::time::Duration;

use ratelimits::{Error, count_limit, funnel_limit, rate_limit, window_limit};
use tokio::time::{Instant, advance, timeout};

use crate::calls::at_once;

pub(super) const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// How long it took, and what came of it.
async fn timed<T>(call: impl Future<Output = T>) -> (Duration, T) {
    let begin = Instant::now();
    let output = call.await;
    (begin.elapsed(), output)
}

/// How long each of so many calls took, and those that were refused with what they were told.
pub(super) async fn all_at_once<F: Future<Output = Result<(), Error>> + Send + 'static>(
    calls: usize,
    call: impl Fn() -> F,
) -> Vec<Result<Duration, (Duration, Option<Duration>)>> {
    let mut told = Vec::new();
    for call in at_once(calls, call) {
        let (done, took) = call.await.expect("the call ends");
        told.push(done.map(|()| took).map_err(|error| (took, error.retry_after())));
    }
    told
}

#[rate_limit(rate = 10.0, burst = 1, timeout = "250ms")]
async fn bucket() -> Result<(), Error> {
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_slot_is_too_far_away_is_limited_at_once() {
    let told = all_at_once(4, bucket).await;
    assert_eq!(told, [Ok(ms(0)), Ok(ms(100)), Ok(ms(200)), Err((ms(0), Some(ms(300))))]);
}

#[count_limit(limit = 2, period = "1s", timeout = "1500ms")]
async fn window() -> Result<(), Error> {
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn calls_wait_for_a_window_in_turn() {
    let told = all_at_once(5, window).await;
    // The last one learns at the second window that it has no patience for the third.
    assert_eq!(told, [Ok(ms(0)), Ok(ms(0)), Ok(ms(1000)), Ok(ms(1000)), Err((ms(1000), Some(ms(1000))))]);
}

#[funnel_limit(capacity = 2, leak_rate = 10.0, queue)]
async fn queue() -> Result<(), Error> {
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_queue_waits_without_being_told_to() {
    let told = all_at_once(4, queue).await;
    assert_eq!(told, [Ok(ms(0)), Ok(ms(100)), Ok(ms(200)), Err((ms(0), Some(ms(100))))]);
}

#[rate_limit(rate = 10.0, warmup = "1s", timeout = "forever")]
async fn warming_up() -> Result<(), Error> {
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_cold_bucket_gives_less_and_less_slowly() {
    let told = all_at_once(8, warming_up).await;
    // Of three intervals at first, one less a fifth of two with each permit, and of one at last.
    let slots = [0, 280, 520, 720, 880, 1000, 1100, 1200].map(|at| Ok(ms(at)));
    assert_eq!(told, slots);
}

#[rate_limit(rate = 10.0, burst = 1, timeout = "1s")]
#[funnel_limit(capacity = 1, leak_rate = 4.0, timeout = "forever")]
async fn two_buckets() -> Result<(), Error> {
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn buckets_reserve_together_and_the_last_of_the_slots_counts() {
    assert_eq!(all_at_once(3, two_buckets).await, [Ok(ms(0)), Ok(ms(250)), Ok(ms(500))]);
}

#[rate_limit(rate = 10.0, burst = 1, timeout = "90ms")]
#[funnel_limit(capacity = 1, leak_rate = 4.0, timeout = "forever")]
async fn two_timeouts() -> Result<(), Error> {
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn each_wait_must_fit_its_own_timeout() {
    two_timeouts().await.unwrap();
    let (took, refused) = timed(two_timeouts()).await;
    assert_eq!((took, refused.unwrap_err().retry_after()), (ms(0), Some(ms(100))));
    advance(ms(10)).await;
    // The funnel has kept its place for nobody.
    let (took, done) = timed(two_timeouts()).await;
    assert_eq!((took, done.is_ok()), (ms(240), true));
}

#[rate_limit(rate = 10.0, burst = 2, timeout = "1s")]
#[window_limit(limit = 1, period = "400ms", timeout = "1s")]
async fn with_a_window() -> Result<(), Error> {
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn with_a_window_nothing_is_reserved_and_the_call_decides_again() {
    let told = all_at_once(4, with_a_window).await;
    assert_eq!(told, [Ok(ms(0)), Ok(ms(400)), Ok(ms(800)), Err((ms(800), Some(ms(400))))]);
}

#[rate_limit(rate = 1.0, burst = 1, name = "attributes.shadow")]
#[funnel_limit(capacity = 1, leak_rate = 1.0, queue, shadow)]
async fn in_shadow() -> Result<(), Error> {
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_for_a_shadow() {
    let told = all_at_once(2, in_shadow).await;
    assert_eq!(told, [Ok(ms(0)), Err((ms(0), Some(ms(1000))))]);
}

#[rate_limit(rate = 1.0, burst = 1, timeout = "forever")]
async fn slow() -> Result<(), Error> {
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_dropped_while_it_waits_lets_the_next_one_move_up() {
    slow().await.unwrap();
    let behind = async {
        tokio::task::yield_now().await;
        timed(slow()).await
    };
    let (dropped, behind) = tokio::join!(timeout(ms(500), slow()), behind);
    assert!(dropped.is_err());
    assert_eq!((behind.0, behind.1.is_ok()), (ms(1000), true));
}

#[rate_limit(rate = 1.0, burst = 1, timeout = "forever", charge_when = |out| *out != Ok(false), fallback = |_| Ok(false))]
async fn charged_if(charged: bool) -> Result<bool, ()> {
    Ok(charged)
}

#[tokio::test(start_paused = true)]
async fn what_a_call_waited_for_can_be_given_back_by_its_output() {
    let (first, second) = tokio::join!(timed(charged_if(true)), timed(charged_if(false)));
    assert_eq!((first.0, second.0), (ms(0), ms(1000)));
    // The second has taken the slot at 1 s, and given it back.
    assert_eq!(timed(charged_if(true)).await.0, ms(0));
}
