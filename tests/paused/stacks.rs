//! Several attributes that wait as one: who stands in whose way, and for how long.

use std::time::Duration;

use ratelimits::{Error, Registry, count_limit, funnel_limit, rate_limit, window_limit};
use tokio::time::{Instant, sleep, timeout};

use crate::attributes::{all_at_once, ms};
use crate::calls::at_once;

const SECOND: Duration = Duration::from_secs(1);

#[rate_limit("1/2s", burst = 1, key = user, timeout = "10s")]
#[count_limit(1000, "1d")]
async fn of_users(user: &'static str) -> Result<(), Error> {
    let _ = user;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_a_bucket_of_its_own_stands_in_nobodys_way() {
    let a = at_once(3, || of_users("a"));
    sleep(SECOND).await;
    let b = at_once(2, || of_users("b"));
    for (calls, seconds) in [(a, &[0, 2, 4][..]), (b, &[0, 2])] {
        let mut told = Vec::new();
        for call in calls {
            let (done, took) = timeout(60 * SECOND, call).await.expect("the call ends").unwrap();
            done.unwrap();
            told.push(took.as_secs());
        }
        assert_eq!(told, seconds);
    }
}

#[count_limit(1000, "1d", key = room)]
#[window_limit(1, "2s", key = user, timeout = "10s")]
async fn of_rooms(room: u8, user: u8) -> Result<(), Error> {
    let _ = (room, user);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_a_window_of_its_own_stands_in_nobodys_way() {
    let of = |user| at_once(2, move || of_rooms(1, user));
    let first = of(1);
    sleep(SECOND).await;
    for (call, seconds) in first.into_iter().chain(of(2)).zip([0, 2, 0, 2]) {
        let (done, took) = timeout(60 * SECOND, call).await.expect("the call ends").unwrap();
        done.unwrap();
        assert_eq!(took, SECOND * seconds);
    }
}

#[funnel_limit(capacity = 2, leak_rate = 10.0, queue)]
#[count_limit(1000, "1d")]
async fn queue_beside_a_window() -> Result<(), Error> {
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_queue_beside_a_window_holds_no_more_than_alone() {
    let told = all_at_once(8, queue_beside_a_window).await;
    assert_eq!(told[..3], [Ok(ms(0)), Ok(ms(100)), Ok(ms(200))]);
    for refused in &told[3..] {
        let (took, retry_after) = refused.unwrap_err();
        assert_eq!(took, ms(0));
        assert!(retry_after.is_some_and(|wait| wait > ms(0)), "{told:?}");
    }
}

/// A bucket beside a window, with their timeouts.
macro_rules! beside {
    ($($function:ident: $bucket:literal, $window:literal;)*) => {$(
        #[rate_limit("10/s", burst = 1, timeout = $bucket)]
        #[count_limit(1000, "1d", timeout = $window)]
        async fn $function() -> Result<(), Error> {
            Ok(())
        }
    )*};
}
beside! {
    too_short: "99ms", "10s";
    long_enough: "100ms", "10s";
    window_short: "10s", "99ms";
}

#[tokio::test(start_paused = true)]
async fn beside_a_window_too_each_wait_must_fit_its_own_timeout() {
    assert_eq!(the_second(too_short).await, (Err(Some(ms(100))), ms(0)));
    assert_eq!(the_second(long_enough).await, (Ok(()), ms(100)));
    assert_eq!(the_second(window_short).await, (Ok(()), ms(100)));
}

/// What becomes of the second call of two, and after how long.
async fn the_second<F: Future<Output = Result<(), Error>>>(
    call: impl Fn() -> F,
) -> (Result<(), Option<Duration>>, Duration) {
    let calls = async {
        call().await.unwrap();
        let begin = Instant::now();
        let done = call().await;
        (done.map_err(|error| error.retry_after()), begin.elapsed())
    };
    Registry::in_memory().scope(calls).await
}
