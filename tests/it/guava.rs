//! Buckets with `borrow` or `warmup` wait like the `RateLimiter` of google/guava: its own tests in our steps, on every store.
//! Each case has the name, the calls and the events of a test in
//! `guava-tests/test/com/google/common/util/concurrent/RateLimiterTest.java`; the algorithm is in
//! `guava/src/com/google/common/util/concurrent/SmoothRateLimiter.java`.
//!
//! Left out is what this library does not have: rates that change or are infinite, cold factors other than 3, a rate of
//! `Double.MIN_VALUE`, and `acquire(0)`, which is an error in Guava and a peek here.

mod reference;
mod schedules;

use std::time::Duration;

use ratelimit_runtime::store::{AlgorithmSpec, Charge};
use ratelimits::{Policy, Rate, TokenBucket};

use crate::support::random::Random;
use crate::support::test_store::{FOREVER, TestStore, on_each_store};
use Call::{Acquire, Sleep, TryAcquire};

struct Case {
    name: &'static str,
    spec: AlgorithmSpec,
    /// Permits to take first: Guava's bursty limiter starts empty, ours full.
    drain: u64,
    calls: Vec<Call>,
    /// In Guava's notation: `R0.20` is a wait of 0.2 s, `U0.20` a time without calls.
    events: &'static str,
}

#[derive(Clone, Copy)]
enum Call {
    /// Permits.
    Acquire(u64),
    TryAcquire {
        permits: u64,
        timeout_millis: u64,
        admitted: bool,
    },
    /// Milliseconds.
    Sleep(u64),
}

/// `RateLimiter.create(permitsPerSecond)`, drained.
fn bursty(name: &'static str, per_second: u64, calls: Vec<Call>, events: &'static str) -> Case {
    let spec = spec(TokenBucket::per_second(per_second).borrow());
    Case { name, spec, drain: per_second, calls, events }
}

/// `RateLimiter.create(permitsPerSecond, warmup)`. Both start cold.
fn warming_up(name: &'static str, per_second: u64, calls: Vec<Call>, events: &'static str) -> Case {
    let spec = spec(TokenBucket::per_second(per_second).warmup(Duration::from_millis(4000)));
    Case { name, spec, drain: 0, calls, events }
}

fn spec(policy: TokenBucket) -> AlgorithmSpec {
    Policy::from(policy).spec().expect("the policy is valid")
}

fn admits(permits: u64, timeout_millis: u64) -> Call {
    TryAcquire { permits, timeout_millis, admitted: true }
}

fn refuses(permits: u64, timeout_millis: u64) -> Call {
    TryAcquire { permits, timeout_millis, admitted: false }
}

fn cases() -> Vec<Case> {
    let one = Acquire(1);
    let eight = [one; 8];
    vec![
        bursty("testSimple", 5, vec![one; 3], "R0.00, R0.20, R0.20"),
        // Also `testSimpleAcquireReturnValues`, which makes the same calls.
        bursty("testSimpleWithWait", 5, vec![one, Sleep(200), one, one], "R0.00, U0.20, R0.00, R0.20"),
        bursty(
            "testSimpleAcquireEarliestAvailableIsInPast",
            5,
            vec![one, Sleep(400), one, one, one],
            "R0.00, U0.40, R0.00, R0.00, R0.20",
        ),
        bursty(
            "testOneSecondBurst",
            5,
            vec![Sleep(1000), Sleep(1000), one, one, Acquire(3), one, one],
            "U1.00, U1.00, R0.00, R0.00, R0.00, R0.00, R0.20",
        ),
        bursty(
            "testSimpleWeights",
            1,
            [1, 1, 2, 4, 8, 1].map(Acquire).to_vec(),
            "R0.00, R1.00, R1.00, R2.00, R4.00, R8.00",
        ),
        bursty(
            "testTryAcquire_noWaitAllowed",
            5,
            vec![admits(1, 0), refuses(1, 0), refuses(1, 0), Sleep(100), refuses(1, 0)],
            "R0.00, U0.10",
        ),
        bursty(
            "testTryAcquire_someWaitAllowed",
            5,
            vec![admits(1, 0), admits(1, 200), refuses(1, 100), Sleep(100), admits(1, 100)],
            "R0.00, R0.20, U0.10, R0.10",
        ),
        bursty(
            "testTryAcquire_overflow",
            5,
            vec![admits(1, 0), Sleep(100), admits(1, u64::MAX / 1000)],
            "R0.00, U0.10, R0.10",
        ),
        // Timeouts below 0 are 0 here.
        bursty(
            "testTryAcquire_negative",
            5,
            vec![admits(5, 0), Sleep(900), refuses(1, 0), Sleep(100), admits(1, 0)],
            "R0.00, U0.90, U0.10, R0.00",
        ),
        // Repays the last call and is cold again after 4.5 s, but not after 2.5 s.
        warming_up(
            "testWarmUp",
            2,
            [&eight[..], &[Sleep(500), Sleep(4000)], &eight, &[Sleep(500), Sleep(2000)], &eight].concat(),
            "R0.00, R1.38, R1.13, R0.88, R0.63, R0.50, R0.50, R0.50, U0.50, U4.00, \
             R0.00, R1.38, R1.13, R0.88, R0.63, R0.50, R0.50, R0.50, U0.50, U2.00, \
             R0.00, R0.50, R0.50, R0.50, R0.50, R0.50, R0.50, R0.50",
        ),
        // Up to the change of the rate.
        warming_up(
            "testWarmUpAndUpdate",
            2,
            [&eight[..], &[Sleep(4500)], &eight[..3]].concat(),
            "R0.00, R1.38, R1.13, R0.88, R0.63, R0.50, R0.50, R0.50, U4.50, R0.00, R1.38, R1.13",
        ),
    ]
}

/// A limiter under the test's clock, which every wait advances, as in Guava's tests.
struct Limiter<'a> {
    store: &'a TestStore,
    name: String,
    spec: AlgorithmSpec,
    now: i64,
    events: Vec<String>,
}

impl<'a> Limiter<'a> {
    fn new(store: &'a TestStore, name: &str, spec: AlgorithmSpec) -> Self {
        Limiter { store, name: name.to_owned(), spec, now: 0, events: Vec::new() }
    }

    /// Returns the microseconds until the call's slot, if that is within `max_wait`, and lets them pass.
    async fn acquire(&mut self, cost: u64, max_wait: u64) -> Option<u64> {
        self.store.set_time(self.now).await;
        let key = self.store.key(&self.name);
        let charge = Charge { key, spec: self.spec, cost, wait: max_wait, shadow: false };
        let outcome = self.store.decide(&[charge]).await;
        let wait = outcome.admitted.then(|| outcome.verdicts[0].wait)?;
        self.pass("R", wait);
        Some(wait)
    }

    fn pass(&mut self, event: &str, micros: u64) {
        self.now += micros as i64;
        // Two decimals, rounded half up as in Java. Rust would turn 1.125 into 1.12.
        let hundredths = (micros + 5_000) / 10_000;
        self.events.push(format!("{event}{}.{:02}", hundredths / 100, hundredths % 100));
    }
}

#[tokio::test]
async fn guavas_own_tests_hold() {
    on_each_store(async |store| {
        for Case { name, spec, drain, calls, events } in cases() {
            let mut limiter = Limiter::new(&store, name, spec);
            if drain > 0 {
                assert_eq!(limiter.acquire(drain, 0).await, Some(0), "{name}");
                limiter.events.clear();
            }
            for call in calls {
                match call {
                    Acquire(permits) => {
                        limiter.acquire(permits, FOREVER as u64).await.expect("admitted in the end");
                    }
                    TryAcquire { permits, timeout_millis, admitted } => {
                        let wait = limiter.acquire(permits, timeout_millis * 1000).await;
                        assert_eq!(wait.is_some(), admitted, "{name}");
                    }
                    Sleep(millis) => limiter.pass("U", millis * 1000),
                }
            }
            assert_eq!(limiter.events.join(", "), events, "{name} in {}", store.name);
        }
    })
    .await;
}

/// `testTimeToWarmUpIsHonouredEvenWithWeights`, with Guava's numbers for a cold factor of 3, each a warm-up of 10 permits.
/// Guava compares whole milliseconds. In microseconds each call may be rounded by one.
#[tokio::test]
async fn warmup_time_does_not_depend_on_costs() {
    on_each_store(async |store| {
        let mut random = Random::new(1);
        for (tenths_per_second, warmup_millis) in
            [(40, 5_000), (20, 10_000), (10, 20_000), (5, 40_000), (1, 200_000)]
        {
            let rate = Rate::new(tenths_per_second, Duration::from_secs(10));
            let spec = spec(TokenBucket::new(rate).warmup(Duration::from_millis(warmup_millis)));
            for trial in 0..20 {
                let name = format!("weights {tenths_per_second} {trial}");
                let (mut limiter, mut left, mut calls) = (Limiter::new(&store, &name, spec), 10, 0);
                while left > 0 {
                    let permits = random.below(left).max(1);
                    left -= permits;
                    calls += 1;
                    limiter.acquire(permits, FOREVER as u64).await.expect("admitted in the end");
                }
                // Repays the last call.
                limiter.acquire(1, FOREVER as u64).await.expect("admitted in the end");
                let off = limiter.now.abs_diff(warmup_millis as i64 * 1000);
                assert!(off <= calls, "{name}: {off} µs off after {calls} calls");
            }
        }
    })
    .await;
}
