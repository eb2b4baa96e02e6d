//! Calls that borrow and buckets that warm up wait as under `RateLimiter` of google/guava, whose own tests are told here in
//! our steps: what each says of a limiter whose rate stays is what both stores say. Sources, at google/guava:
//! `guava-tests/test/com/google/common/util/concurrent/RateLimiterTest.java`, from which each case has its name, its calls and
//! its events, and `guava/src/com/google/common/util/concurrent/SmoothRateLimiter.java`.
//!
//! Left out is what cannot be said here: rates that change or are infinite, other cold factors than 3 (10, and 1, which does
//! not warm up), a rate of `Double.MIN_VALUE`, and `acquire(0)`, which is an error there and a look here.

mod reference;
mod schedules;

use std::time::Duration;

use ratelimit_runtime::store::{AlgorithmSpec, Charge, Key};
use ratelimits::{Policy, TokenBucket};

use crate::support::random::Random;
use crate::support::scheduled::{Scheduled, on_each_store};

/// As long as it takes: the longest time that a policy remembers.
const FOREVER: u64 = 3650 * 86_400 * 1_000_000;

/// `RateLimiter.create(permitsPerSecond)`. Guava's begins empty and ours full, so the cases first [`drain`] it.
fn bursty(per_second: u64) -> AlgorithmSpec {
    spec(TokenBucket::per_second(per_second).borrow())
}

/// `RateLimiter.create(permitsPerSecond, warmup)`. Both begin cold.
fn warming_up(per_second: u64, warmup: Duration) -> AlgorithmSpec {
    spec(TokenBucket::per_second(per_second).warmup(warmup))
}

fn spec(policy: TokenBucket) -> AlgorithmSpec {
    Policy::from(policy).spec().expect("the policy is valid")
}

/// A limiter under the test's clock, which every wait moves, as in Guava's tests; and what happened, in their notation: `R0.20`
/// is a wait of 0.2 s, `U0.20` a time in which nobody calls.
struct Limiter<'a> {
    store: &'a Scheduled,
    key: Key,
    spec: AlgorithmSpec,
    now: i64,
    events: Vec<String>,
}

impl<'a> Limiter<'a> {
    fn new(store: &'a Scheduled, name: &str, spec: AlgorithmSpec) -> Self {
        Limiter { store, key: store.key(name), spec, now: 0, events: Vec::new() }
    }

    /// Takes at once what a new bucket holds.
    async fn drain(self, permits: u64) -> Self {
        assert_eq!(self.ask(permits, 0).await, Some(0));
        self
    }

    async fn acquire(&mut self, permits: u64) {
        let wait = self.ask(permits, FOREVER).await.expect("whoever waits as long as it takes gets in");
        self.pass("R", wait);
    }

    async fn acquire_times(&mut self, times: usize) {
        for _ in 0..times {
            self.acquire(1).await;
        }
    }

    /// Whether it gets the permits within the timeout, for which it then has waited.
    async fn try_acquire(&mut self, permits: u64, timeout_millis: u64) -> bool {
        let wait = self.ask(permits, timeout_millis * 1000).await;
        if let Some(wait) = wait {
            self.pass("R", wait);
        }
        wait.is_some()
    }

    fn sleep_millis(&mut self, millis: u64) {
        self.pass("U", millis * 1000);
    }

    /// The microseconds until the call's slot, if it gets one within `wait`.
    async fn ask(&self, cost: u64, wait: u64) -> Option<u64> {
        self.store.set(self.now).await;
        let charge = Charge { key: self.key.clone(), spec: self.spec, cost, wait, shadow: false };
        let outcome = self.store.decide(&[charge]).await;
        outcome.admitted.then(|| outcome.verdicts[0].wait)
    }

    fn pass(&mut self, whose: &str, micros: u64) {
        self.now += micros as i64;
        // Two decimals, halves up, as Java writes them: Rust would make 1.12 of 1.125.
        let hundredths = (micros + 5_000) / 10_000;
        self.events.push(format!("{whose}{}.{:02}", hundredths / 100, hundredths % 100));
    }

    #[track_caller]
    fn assert_events(&self, expected: &[&str]) {
        assert_eq!(self.events.join(", "), expected.join(", "));
    }
}

#[tokio::test]
async fn test_simple() {
    on_each_store(async |store| {
        let mut limiter = Limiter::new(&store, "simple", bursty(5)).drain(5).await;
        limiter.acquire_times(3).await;
        limiter.assert_events(&["R0.00", "R0.20", "R0.20"]);
    })
    .await;
}

/// And `testSimpleAcquireReturnValues`, which makes the same calls.
#[tokio::test]
async fn test_simple_with_wait() {
    on_each_store(async |store| {
        let mut limiter = Limiter::new(&store, "simple with wait", bursty(5)).drain(5).await;
        limiter.acquire(1).await;
        limiter.sleep_millis(200);
        limiter.acquire_times(2).await;
        limiter.assert_events(&["R0.00", "U0.20", "R0.00", "R0.20"]);
    })
    .await;
}

#[tokio::test]
async fn test_simple_acquire_earliest_available_is_in_past() {
    on_each_store(async |store| {
        let mut limiter = Limiter::new(&store, "in past", bursty(5)).drain(5).await;
        limiter.acquire(1).await;
        limiter.sleep_millis(400);
        limiter.acquire_times(3).await;
        limiter.assert_events(&["R0.00", "U0.40", "R0.00", "R0.00", "R0.20"]);
    })
    .await;
}

#[tokio::test]
async fn test_one_second_burst() {
    on_each_store(async |store| {
        let mut limiter = Limiter::new(&store, "one second burst", bursty(5)).drain(5).await;
        limiter.sleep_millis(1000);
        limiter.sleep_millis(1000);
        for permits in [1, 1, 3, 1, 1] {
            limiter.acquire(permits).await;
        }
        limiter.assert_events(&["U1.00", "U1.00", "R0.00", "R0.00", "R0.00", "R0.00", "R0.20"]);
    })
    .await;
}

#[tokio::test]
async fn test_simple_weights() {
    on_each_store(async |store| {
        let mut limiter = Limiter::new(&store, "simple weights", bursty(1)).drain(1).await;
        for permits in [1, 1, 2, 4, 8, 1] {
            limiter.acquire(permits).await;
        }
        limiter.assert_events(&["R0.00", "R1.00", "R1.00", "R2.00", "R4.00", "R8.00"]);
    })
    .await;
}

/// `_noWaitAllowed`, `_someWaitAllowed`, `_overflow` and `_negative`, whose timeouts below 0 are 0 here.
#[tokio::test]
async fn test_try_acquire() {
    on_each_store(async |store| {
        let mut limiter = Limiter::new(&store, "no wait allowed", bursty(5)).drain(5).await;
        assert!(limiter.try_acquire(1, 0).await);
        assert!(!limiter.try_acquire(1, 0).await);
        assert!(!limiter.try_acquire(1, 0).await);
        limiter.sleep_millis(100);
        assert!(!limiter.try_acquire(1, 0).await);

        let mut limiter = Limiter::new(&store, "some wait allowed", bursty(5)).drain(5).await;
        assert!(limiter.try_acquire(1, 0).await);
        assert!(limiter.try_acquire(1, 200).await);
        assert!(!limiter.try_acquire(1, 100).await);
        limiter.sleep_millis(100);
        assert!(limiter.try_acquire(1, 100).await);

        let mut limiter = Limiter::new(&store, "overflow", bursty(5)).drain(5).await;
        assert!(limiter.try_acquire(1, 0).await);
        limiter.sleep_millis(100);
        assert!(limiter.ask(1, u64::MAX).await.is_some());

        let mut limiter = Limiter::new(&store, "negative", bursty(5)).drain(5).await;
        assert!(limiter.try_acquire(5, 0).await);
        limiter.sleep_millis(900);
        assert!(!limiter.try_acquire(1, 0).await);
        limiter.sleep_millis(100);
        assert!(limiter.try_acquire(1, 0).await);
    })
    .await;
}

#[tokio::test]
async fn test_warm_up() {
    on_each_store(async |store| {
        let mut limiter = Limiter::new(&store, "warm up", warming_up(2, Duration::from_millis(4000)));
        limiter.acquire_times(8).await; // #1
        limiter.sleep_millis(500); // #2: to repay for the last one
        limiter.sleep_millis(4000); // #3: cold again
        limiter.acquire_times(8).await; // #4
        limiter.sleep_millis(500); // #5: to repay for the last one
        limiter.sleep_millis(2000); // #6: not cold, which would take 2 s more
        limiter.acquire_times(8).await; // #7
        limiter.assert_events(&[
            "R0.00, R1.38, R1.13, R0.88, R0.63, R0.50, R0.50, R0.50", // #1
            "U0.50",                                                  // #2
            "U4.00",                                                  // #3
            "R0.00, R1.38, R1.13, R0.88, R0.63, R0.50, R0.50, R0.50", // #4
            "U0.50",                                                  // #5
            "U2.00",                                                  // #6
            "R0.00, R0.50, R0.50, R0.50, R0.50, R0.50, R0.50, R0.50", // #7
        ]);
    })
    .await;
}

/// What of `testWarmUpAndUpdate` comes before its rate changes.
#[tokio::test]
async fn test_warm_up_and_update() {
    on_each_store(async |store| {
        let mut limiter = Limiter::new(&store, "and update", warming_up(2, Duration::from_millis(4000)));
        limiter.acquire_times(8).await;
        limiter.sleep_millis(4500); // cold again, and the last one repaid
        limiter.acquire_times(3).await;
        limiter.assert_events(&[
            "R0.00, R1.38, R1.13, R0.88, R0.63, R0.50, R0.50, R0.50",
            "U4.50",
            "R0.00, R1.38, R1.13",
        ]);
    })
    .await;
}

/// From cold to warm takes the warm-up, whatever the costs of the calls: with Guava's numbers at its cold factor of 3, each a
/// warm-up of 10 permits. Guava compares milliseconds, cut off; to the microsecond each call may cut off one, or round up one.
#[tokio::test]
async fn test_time_to_warm_up_is_honoured_even_with_weights() {
    on_each_store(async |store| {
        let mut random = Random::new(1);
        for (tenths_per_second, warmup_millis) in
            [(40, 5_000), (20, 10_000), (10, 20_000), (5, 40_000), (1, 200_000)]
        {
            let rate = ratelimits::Rate::new(tenths_per_second, Duration::from_secs(10));
            let spec = spec(TokenBucket::new(rate).warmup(Duration::from_millis(warmup_millis)));
            for trial in 0..20 {
                let name = format!("weights {tenths_per_second} {trial}");
                let (mut limiter, mut left, mut calls) = (Limiter::new(&store, &name, spec), 10, 0);
                while left > 0 {
                    let permits = random.below(left).max(1);
                    left -= permits;
                    calls += 1;
                    limiter.acquire(permits).await;
                }
                limiter.acquire(1).await; // repays
                let off = limiter.now.abs_diff(warmup_millis as i64 * 1000);
                assert!(off <= calls, "{name}: {off} µs off after {calls} calls");
            }
        }
    })
    .await;
}
