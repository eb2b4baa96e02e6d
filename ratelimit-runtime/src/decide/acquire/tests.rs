//! Concurrent waiting calls, and what they leave behind.

use std::future::Future;
use std::hash::{BuildHasher, RandomState};
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use crate::store::Store;
use crate::{FixedWindow, LeakyBucket, Limiter, Policy, Rate, Registry, SlidingWindow, TokenBucket};

/// How long calls come and go at random.
const RANDOM_PHASE: Duration = Duration::from_millis(300);

/// Policies that admit 1000 permits in `seconds`.
fn policies(seconds: u32) -> [Policy; 7] {
    let (rate, period) =
        (Rate::new(1000, Duration::from_secs(1) * seconds), Duration::from_millis(20) * seconds);
    let bucket = TokenBucket::new(rate);
    [
        bucket.burst(3).into(),
        TokenBucket::new(Rate::new(20, period)).interval_refill().into(),
        bucket.burst(3).borrow().into(),
        bucket.warmup(period).into(),
        LeakyBucket::new(1000, rate).queue().into(),
        FixedWindow::new(20, period).into(),
        SlidingWindow::new(20, period).into(),
    ]
}

/// No call waits, and no state of a wait remains.
fn assert_no_waiters(registry: &Registry) {
    let Some(endpoint) = registry.backend().primary() else { unreachable!("limits are on") };
    let Store::Memory(memory) = &endpoint.store else { unreachable!("the registry is in memory") };
    assert!(!memory.has_queues());
    assert!(endpoint.queues.lock().is_empty());
    assert_eq!(endpoint.waiters.waiting(), 0);
}

/// SplitMix64.
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed ^ (mixed >> 27)
}

/// An upper bound of the permits in `time`, for every policy: one per millisecond, plus bursts and two windows.
fn bound(time: Duration) -> u64 {
    time.as_millis() as u64 + 50
}

fn seed() -> u64 {
    let seed = std::env::var("RATELIMITS_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| RandomState::new().hash_one(0));
    println!("RATELIMITS_SEED={seed}");
    seed
}

#[tokio::test]
async fn dropping_all_waiters_leaves_nothing() {
    for (i, policy) in policies(1).into_iter().enumerate() {
        for backwards in [false, true] {
            let registry = Registry::in_memory();
            let limiter = registry.limiter("a", policy).unwrap();
            let mut calls = Vec::new();
            for _ in 0..1000 {
                let mut call = Box::pin(limiter.acquire(()));
                if call.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending() {
                    calls.push(call);
                }
            }
            assert!(calls.len() > 900);
            if backwards {
                calls.reverse();
            }
            drop(calls);
            assert_no_waiters(&registry);
            // Only the calls that were admitted at once are charged.
            let reset_after = limiter.peek(()).await.unwrap().reset_after;
            assert!(reset_after <= Duration::from_millis(100), "{i}: {reset_after:?}");
        }
    }
}

#[test]
fn cancelled_waiters_leave_nothing() {
    let mut state = seed();
    for policy in policies(1) {
        let registry = Registry::in_memory();
        let limiter = registry.limiter("a", policy).unwrap();
        let begin = Instant::now();
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let (limiter, seed) = (limiter.clone(), random(&mut state));
                std::thread::spawn(move || {
                    let mut runtime = tokio::runtime::Builder::new_multi_thread();
                    let runtime = runtime.worker_threads(2).enable_time().build().unwrap();
                    runtime.block_on(come_and_go(limiter, seed))
                })
            })
            .collect();
        let served: u64 = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
        assert!(served > 0 && served <= bound(begin.elapsed()), "{served} by {policy:?}");
        assert_no_waiters(&registry);
    }
}

/// Starts calls and cancels some of them. Returns the number of admitted calls.
async fn come_and_go(limiter: Limiter, mut state: u64) -> u64 {
    let begin = Instant::now();
    let (mut calls, mut served) = (Vec::new(), 0);
    while begin.elapsed() < RANDOM_PHASE {
        for _ in 0..random(&mut state) % 8 {
            let limiter = limiter.clone();
            let timeout = Duration::from_micros(random(&mut state) % 200_000);
            calls.push(tokio::spawn(async move { limiter.acquire_timeout((), timeout).await }));
        }
        for _ in 0..random(&mut state) % 6 {
            if !calls.is_empty() {
                let cancelled = random(&mut state) as usize % calls.len();
                calls[cancelled].abort();
            }
        }
        tokio::time::sleep(Duration::from_micros(random(&mut state) % 2000)).await;
    }
    // Cancels a third at once and awaits the others.
    for (i, call) in calls.iter().enumerate() {
        if i % 3 == 0 {
            call.abort();
        }
    }
    for call in calls {
        match call.await {
            Ok(Ok(_)) => served += 1,
            Ok(Err(error)) => assert!(error.is_limited(), "{error}"),
            Err(error) => assert!(error.is_cancelled()),
        }
    }
    served
}

#[test]
fn window_queues_are_removed_with_their_last_waiter() {
    let registry = Registry::in_memory();
    let limiter = registry.limiter("a", FixedWindow::new(1, Duration::from_secs(60))).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    for _ in 0..2000 {
        let waiting = |limiter: Limiter| Box::pin(async move { limiter.acquire(()).await });
        let mut calls = [(); 2].map(|()| waiting(limiter.clone()));
        let entered = runtime.enter();
        for call in &mut calls {
            let _ = call.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        }
        drop(entered);
        // Drops both at the same time.
        let threads = calls.map(|call| std::thread::spawn(move || drop(call)));
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_no_waiters(&registry);
    }
}

/// Far too many for steps through all others.
#[test]
fn many_calls_may_wait_and_leave() {
    const CALLS: usize = 10_000;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let _entered = runtime.enter();
    let hour = Duration::from_secs(3600);
    for policy in
        [Policy::from(FixedWindow::new(1, hour)), TokenBucket::new(Rate::new(1, hour)).burst(1).into()]
    {
        for order in [0, 1, 2] {
            let registry = Registry::builder().max_waiters(CALLS).in_memory();
            let limiter = registry.limiter("a", policy).unwrap();
            let mut calls = Vec::new();
            while calls.len() < CALLS {
                let mut call = Box::pin(limiter.acquire(()));
                if call.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending() {
                    calls.push(call);
                }
            }
            match order {
                0 => {}
                1 => calls.reverse(),
                _ => calls.sort_by_key(|call| std::ptr::from_ref(&**call).addr() % 997),
            }
            // Each of the others may look at its slot in between.
            while let Some(call) = calls.pop() {
                drop(call);
                if let Some(next) = calls.last_mut() {
                    assert!(next.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
                }
            }
            assert_no_waiters(&registry);
        }
    }
}

#[test]
fn waits_without_a_timer_fail_uncharged() {
    let without_time = tokio::runtime::Builder::new_current_thread().build().unwrap();
    for policy in policies(3600) {
        for runtime in [None, Some(&without_time)] {
            let registry = Registry::in_memory();
            let limiter = registry.limiter("a", policy).unwrap();
            let _entered = runtime.map(|runtime| runtime.enter());
            let now = |cost| {
                let call = pin!(limiter.acquire_n((), cost));
                match { call }.poll(&mut Context::from_waker(Waker::noop())) {
                    Poll::Ready(result) => result,
                    Poll::Pending => panic!("{policy:?}: the call waits"),
                }
            };
            assert_eq!(now(1).unwrap().waited, Duration::ZERO);
            let error = loop {
                if let Err(error) = now(1) {
                    break error;
                }
            };
            assert!(matches!(error, crate::Error::Store(_)), "{policy:?}: {error}");
            assert_no_waiters(&registry);
            // Still an error: the first attempt was not charged.
            assert!(!now(1).unwrap_err().is_limited());
        }
    }
}

#[test]
fn calls_behind_a_queue_without_runtime_are_charged_once() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let registry = Registry::in_memory();
    let limiter = registry.limiter("a", FixedWindow::new(10, Duration::from_secs(3600))).unwrap();
    let now = |cost| {
        let call = pin!(limiter.acquire_n((), cost));
        match { call }.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(result) => result,
            Poll::Pending => panic!("it cannot wait"),
        }
    };
    now(8).unwrap();
    let mut queued = Box::pin(limiter.acquire_n((), 5));
    {
        let _entered = runtime.enter();
        assert!(queued.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    }
    assert_eq!(now(1).unwrap().remaining, 1);
    assert_eq!(now(1).unwrap().remaining, 0);
    let error = now(1).unwrap_err();
    assert!(error.to_string().contains("no tokio runtime"), "{error}");
    drop(queued);
    assert_no_waiters(&registry);
}
