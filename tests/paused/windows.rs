//! Windows are waited for in turn, and only the first in line asks.

use std::time::Duration;

use ratelimits::{Decision, Error, FixedWindow, Limiter, Policy, Registry, SlidingWindow};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

use crate::calls::at_once;
use crate::drops::{Acquiring, poll};

type Told = (Result<Decision, Error>, Duration);

const SECOND: Duration = Duration::from_secs(1);

fn windows() -> [Policy; 4] {
    let sliding = SlidingWindow::new(3, SECOND);
    let fixed = FixedWindow::new(3, SECOND);
    [fixed.into(), fixed.aligned().into(), sliding.into(), sliding.precision(SECOND / 4).into()]
}

fn limiter(policy: Policy) -> Limiter {
    Registry::in_memory().limiter("a", policy).unwrap()
}

fn call(limiter: &Limiter, calls: usize, timeout: Duration) -> Vec<JoinHandle<Told>> {
    at_once(calls, || {
        let limiter = limiter.clone();
        async move { limiter.acquire_timeout((), 1, timeout).await }
    })
}

#[tokio::test(start_paused = true)]
async fn a_hundred_are_served_in_turn_by_each_kind_of_window() {
    for policy in windows() {
        let limiter = limiter(policy);
        limiter.peek(()).await.unwrap();
        let mut last = Duration::ZERO;
        for (i, call) in call(&limiter, 100, Duration::MAX).into_iter().enumerate() {
            let (decision, at) = call.await.unwrap();
            assert_eq!(decision.unwrap().waited, at, "{policy:?}");
            // Three a second, however the counter rounds.
            let second = (at.as_millis() / 1000) as usize;
            assert!(at >= last && second >= i / 3, "{policy:?}: {i} at {at:?}");
            if policy != windows()[3] {
                assert_eq!(second, i / 3, "{policy:?}: {i} at {at:?}");
            }
            last = at;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn who_runs_out_of_patience_is_told_the_truth_and_lets_the_others_go_on() {
    for policy in windows() {
        let limiter = limiter(policy);
        limiter.try_acquire((), 3).await.unwrap();
        // Room for three at one second and three at two: the second of them stands in line when its time is over.
        let patient = call(&limiter, 4, Duration::MAX);
        tokio::task::yield_now().await;
        let impatient = call(&limiter, 1, SECOND * 3 / 2).remove(0);
        tokio::task::yield_now().await;
        let behind = call(&limiter, 1, Duration::MAX).remove(0);
        let (answer, at) = impatient.await.unwrap();
        let error = answer.unwrap_err();
        assert_eq!(at, SECOND * 3 / 2, "{policy:?}");
        let Error::Limited(limited) = &error else { panic!("{policy:?}: {error}") };
        assert_eq!(limited.decision().waited, at);
        let lone = error.retry_after().unwrap();
        assert_eq!(lone, limiter.try_acquire((), 1).await.unwrap_err().retry_after().unwrap());
        let mut last = Duration::ZERO;
        for call in patient.into_iter().chain([behind]) {
            let (decision, at) = call.await.unwrap();
            decision.unwrap();
            assert!(at >= last);
            last = at;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn nobody_stands_in_line_in_vain() {
    let limiter = limiter(FixedWindow::new(1, SECOND).into());
    limiter.try_acquire((), 1).await.unwrap();
    let first = call(&limiter, 1, Duration::MAX).remove(0);
    tokio::task::yield_now().await;
    let begin = Instant::now();
    let error = limiter.acquire_timeout((), 1, SECOND / 2).await.unwrap_err();
    assert_eq!((begin.elapsed(), error.retry_after()), (Duration::ZERO, Some(SECOND)));
    // What can never be admitted neither.
    let error = limiter.acquire((), 2).await;
    assert_eq!((begin.elapsed(), error.unwrap_err().retry_after()), (Duration::ZERO, None));
    first.await.unwrap().0.unwrap();
}

#[tokio::test(start_paused = true)]
async fn when_the_first_is_dropped_the_next_asks() {
    for policy in windows() {
        let limiter = limiter(policy);
        limiter.try_acquire((), 3).await.unwrap();
        let mut calls = call(&limiter, 20, Duration::MAX);
        sleep(SECOND / 2).await;
        // The first, and some from the middle.
        for gone in [16, 7, 3, 0] {
            calls.remove(gone).abort();
        }
        let mut last = Duration::ZERO;
        for call in calls {
            let (decision, at) = call.await.unwrap();
            decision.unwrap();
            assert!(at >= last);
            last = at;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn room_that_comes_early_is_seen_at_the_next_try() {
    let limiter = limiter(FixedWindow::new(1, 60 * SECOND).into());
    limiter.try_acquire((), 1).await.unwrap();
    let calls = call(&limiter, 2, Duration::MAX);
    sleep(SECOND).await;
    limiter.reset(()).await.unwrap();
    // The first is asleep until the window would have ended, and who comes now does not wait for it.
    let error = limiter.acquire_timeout((), 2, SECOND).await.unwrap_err();
    assert_eq!(error.retry_after(), None);
    let waited = [60, 120];
    for (call, seconds) in calls.into_iter().zip(waited) {
        assert_eq!(call.await.unwrap().0.unwrap().waited, SECOND * seconds);
    }
}

#[tokio::test(start_paused = true)]
async fn keys_do_not_wait_for_each_other() {
    let limiter = limiter(FixedWindow::new(1, SECOND).into());
    let begin = Instant::now();
    let calls: Vec<_> = (0..200u32)
        .map(|i| {
            let limiter = limiter.clone();
            tokio::spawn(async move { limiter.acquire(i % 50, 1).await })
        })
        .collect();
    for (i, call) in calls.into_iter().enumerate() {
        let waited = call.await.unwrap().unwrap().waited;
        assert_eq!(waited.as_secs(), i as u64 / 50);
    }
    assert_eq!(begin.elapsed(), 3 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn one_that_nobody_polls_any_more_does_not_stop_the_others_for_good() {
    for policy in windows() {
        let limiter = limiter(policy);
        limiter.try_acquire((), 3).await.unwrap();
        let room = limiter.try_acquire((), 1).await.unwrap_err().retry_after().unwrap();
        let lame = limiter.clone();
        let mut lame: Acquiring = Box::pin(async move { lame.acquire((), 1).await });
        assert!(poll(&mut lame).is_pending());
        for call in call(&limiter, 2, Duration::MAX) {
            let served = timeout(60 * SECOND, call).await;
            let (decision, at) = served.unwrap_or_else(|_| panic!("{policy:?}: nobody is served")).unwrap();
            decision.unwrap();
            assert!(at >= room && at <= room + SECOND, "{policy:?}: {at:?}");
        }
        drop(lame);
    }
}

#[tokio::test(start_paused = true)]
async fn who_comes_wakes_those_before_it_for_what_was_given_back() {
    let minute = 60 * SECOND;
    for policy in [FixedWindow::new(1, minute).into(), Policy::from(SlidingWindow::new(1, minute))] {
        let limiter = limiter(policy);
        let first = limiter.try_acquire((), 1).await.unwrap();
        let asleep = call(&limiter, 1, Duration::MAX).remove(0);
        sleep(SECOND).await;
        first.refund().await.unwrap();
        let newcomer = call(&limiter, 1, Duration::MAX).remove(0);
        let (decision, at) = asleep.await.unwrap();
        assert_eq!((decision.unwrap().waited, at), (SECOND, SECOND), "{policy:?}");
        let (decision, at) = newcomer.await.unwrap();
        assert_eq!((decision.unwrap().waited, at), (minute, minute), "{policy:?}");
    }
}
