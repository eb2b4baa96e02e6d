//! The storm as users see it. Pauses outlast the deadline now and then, and `on_store_error` applies to exactly the calls
//! that Redis did not answer. What Redis admits and what this process admits each keep their bound.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ratelimits::{
    DecidedBy, Error, FixedWindow, LeakyBucket, Limiter, OnStoreError, Policy, Rate, Registry,
    RegistryBuilder, SlidingWindow, TokenBucket,
};

use super::{Quota, TASKS, storm};
use crate::support::budget::budget;
use crate::support::random::Random;
use crate::support::server::Server;

/// Few enough that some calls are limited, in either build.
const KEYS: u64 = if cfg!(debug_assertions) { 20 } else { 80 };
const MAX_COST: u64 = 5;
const PERIOD: Duration = Duration::from_millis(200);
/// What each policy holds and regains in each period. A quarter of it is less than the highest cost.
const CAPACITY: u64 = 16;

/// What a policy admits at most within a time.
#[derive(Clone, Copy, Debug)]
struct Bound {
    at_once: u64,
    /// Whether permits come back a whole capacity at a time.
    in_portions: bool,
    /// Whether a call of any cost may go into debt.
    lends: bool,
}

impl Bound {
    /// The permits of one of `instances` processes within this time.
    fn of(self, instances: u64, time: Duration) -> f64 {
        let periods = time.as_secs_f64() / PERIOD.as_secs_f64();
        let periods = if self.in_portions { periods.floor() } else { periods };
        let lent = if self.lends { MAX_COST } else { 0 };
        (self.at_once as f64 + CAPACITY as f64 * periods) / instances as f64 + lent as f64
    }
}

struct Case {
    name: &'static str,
    policy: Policy,
    bound: Bound,
}

fn cases() -> [Case; 10] {
    let rate = Rate::new(CAPACITY, PERIOD);
    let bucket = TokenBucket::new(rate).burst(CAPACITY);
    let log = SlidingWindow::new(CAPACITY, PERIOD);
    let smooth = Bound { at_once: CAPACITY, in_portions: false, lends: false };
    let portions = Bound { in_portions: true, ..smooth };
    // An aligned window may end right after the first call.
    let aligned = Bound { at_once: 2 * CAPACITY, ..portions };
    let paced = Bound { at_once: 1, in_portions: false, lends: true };
    [
        ("token-bucket", bucket.into(), smooth),
        ("leaky-bucket", LeakyBucket::new(CAPACITY, rate).into(), smooth),
        ("borrowing", bucket.borrow().into(), Bound { lends: true, ..smooth }),
        ("queue", LeakyBucket::new(CAPACITY, rate).queue().into(), paced),
        ("warming-up", TokenBucket::new(rate).warmup(PERIOD).into(), paced),
        ("interval-refill", bucket.interval_refill().into(), portions),
        ("fixed-window", FixedWindow::new(CAPACITY, PERIOD).into(), portions),
        ("aligned-window", FixedWindow::new(CAPACITY, PERIOD).aligned().into(), aligned),
        ("log", log.into(), portions),
        ("counter", log.precision(PERIOD / 10).into(), portions),
    ]
    .map(|(name, policy, bound)| Case { name, policy, bound })
}

/// The decisions of one source.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    admitted: u64,
    limited: u64,
    permits: u64,
}

impl Sum {
    fn add(&mut self, other: Sum) {
        self.admitted += other.admitted;
        self.limited += other.limited;
        self.permits += other.permits;
    }

    fn decisions(self) -> u64 {
        self.admitted + self.limited
    }
}

/// The decisions that a sum counts. `case` is an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Counted {
    case: usize,
    key: u64,
    source: DecidedBy,
}

/// A call that ended as a store error.
#[derive(Clone, Copy, Debug)]
struct Failed {
    case: usize,
    cost: u64,
}

/// The outcomes of one task's calls.
#[derive(Debug, Default)]
struct Outcomes {
    sums: HashMap<Counted, Sum>,
    failed: Vec<Failed>,
    calls: u64,
}

impl Outcomes {
    /// Returns the source of the decision, or none for a store error.
    fn add(
        &mut self,
        case: usize,
        key: u64,
        cost: u64,
        result: Result<DecidedBy, Error>,
    ) -> Option<DecidedBy> {
        self.calls += 1;
        let (source, sum) = match result {
            Ok(source) => (source, Sum { admitted: 1, permits: cost, ..Sum::default() }),
            Err(Error::Limited(limited)) => (limited.decision().source, Sum { limited: 1, ..Sum::default() }),
            Err(Error::Store(_)) => {
                self.failed.push(Failed { case, cost });
                return None;
            }
            Err(error) => panic!("{error}"),
        };
        self.sums.entry(Counted { case, key, source }).or_default().add(sum);
        Some(source)
    }

    fn merge(&mut self, other: Outcomes) {
        self.calls += other.calls;
        self.failed.extend(other.failed);
        for (counted, sum) in other.sums {
            self.sums.entry(counted).or_default().add(sum);
        }
    }

    fn of(&self, source: DecidedBy) -> Sum {
        let mut total = Sum::default();
        self.sums.iter().filter(|(counted, _)| counted.source == source).for_each(|(_, sum)| total.add(*sum));
        total
    }
}

/// Calls random limiters with random keys until Redis has made enough decisions. Returns the time it took too.
async fn call(limiters: &[Limiter], quota: Quota) -> (Outcomes, Duration) {
    let (decided, random, start) = (Arc::new(AtomicU64::new(0)), Random::seeded(), Instant::now());
    let tasks: Vec<_> = (0..TASKS)
        .map(|task| {
            let (limiters, decided, mut random) = (limiters.to_vec(), Arc::clone(&decided), random.run(task));
            tokio::spawn(async move {
                let mut outcomes = Outcomes::default();
                while quota.is_open(decided.load(Ordering::Relaxed), start) {
                    let case = random.below(limiters.len() as u64) as usize;
                    let (key, cost) = (random.below(KEYS), random.between(1, MAX_COST));
                    let result = limiters[case].try_acquire_n(key, cost).await;
                    let result = result.map(|decision| decision.source);
                    if outcomes.add(case, key, cost, result) == Some(DecidedBy::Redis) {
                        decided.fetch_add(1, Ordering::Relaxed);
                    } else {
                        // Such decisions are immediate and would crowd out the others.
                        tokio::time::sleep(Duration::from_millis(2)).await;
                    }
                }
                outcomes
            })
        })
        .collect();
    let mut outcomes = Outcomes::default();
    for task in tasks {
        outcomes.merge(task.await.expect("no call panics"));
    }
    (outcomes, start.elapsed())
}

async fn check(mode: OnStoreError, instances: u64, change: impl FnOnce(RegistryBuilder) -> RegistryBuilder) {
    let server = Arc::new(Server::start());
    let storm = tokio::spawn(storm(server.connect().await));
    let pauses = tokio::spawn(pauses(Arc::clone(&server)));
    let registry = change(Registry::builder().on_store_error(mode).instances(instances as u32));
    let registry = registry.connect_lazy(&server.url()).expect("the URL is valid");
    let cases = cases();
    let limiter = |case: &Case| registry.limiter(case.name, case.policy).expect("the policy is valid");
    let limiters: Vec<_> = cases.iter().map(limiter).collect();
    let quota = Quota::new(budget(800, 10_000), Duration::from_millis(1_500));
    let (outcomes, took) = call(&limiters, quota).await;
    assert!(!storm.is_finished() && !pauses.is_finished(), "the storm ended early");
    storm.abort();
    pauses.abort();

    let [redis, local, allowed] =
        [DecidedBy::Redis, DecidedBy::Local, DecidedBy::Allowed].map(|of| outcomes.of(of));
    let (calls, failed) = (outcomes.calls, outcomes.failed.len() as u64);
    let unanswered = registry.store_health().failed_decisions;
    println!("{mode:?}, {instances} instances: {calls} calls in {took:.1?}, {unanswered} unanswered");
    println!("redis {redis:?}\nlocal {local:?}\nallowed {allowed:?}\nfailed {failed}");
    let decisions = redis.decisions() + local.decisions() + allowed.decisions();
    assert_eq!(decisions + failed, calls, "every call was decided once");
    let redis_decided = redis.decisions() * 10 > quota.decisions && redis.limited > 0;
    assert!(redis_decided && unanswered > 0, "Redis answered some calls and not others");
    if mode == OnStoreError::Allow {
        assert_eq!((allowed.admitted, allowed.limited, local.decisions(), failed), (unanswered, 0, 0, 0));
    } else {
        assert_eq!((local.decisions() + failed, allowed.decisions()), (unanswered, 0));
    }
    for Failed { case, cost } in &outcomes.failed {
        let spec = cases[*case].policy.spec().expect("the policy is valid");
        let fits = spec.per_instance(instances as u32).fits(*cost);
        assert!(!fits, "{}: the share of an instance holds {cost}", cases[*case].name);
    }
    assert_bounds(&outcomes, &cases, instances, took);
}

fn assert_bounds(outcomes: &Outcomes, cases: &[Case], instances: u64, took: Duration) {
    // The clocks of Redis and of this process differ a little.
    let time = took + took / 100 + Duration::from_millis(20);
    for (counted, sum) in &outcomes.sums {
        let case = &cases[counted.case];
        let max = match counted.source {
            DecidedBy::Redis => case.bound.of(1, time),
            DecidedBy::Local => case.bound.of(instances, time),
            _ => continue,
        };
        assert!(sum.permits as f64 <= max, "{}, {counted:?}: {sum:?} of {max}", case.name);
    }
}

/// Every now and then, no call is answered within the deadline. Never ends.
async fn pauses(server: Arc<Server>) {
    loop {
        tokio::time::sleep(Duration::from_millis(500)).await;
        // The storm kills this client too.
        let Ok(mut connection) = server.try_connect().await else { continue };
        let mut pause = redis::cmd("CLIENT");
        pause.arg(&["PAUSE", "150", "ALL"]);
        let _: Result<(), _> = pause.query_async(&mut connection).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn local_decides_exactly_the_unanswered_calls() {
    check(OnStoreError::Local, 1, |builder| builder).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_of_four_instances_admits_its_share() {
    check(OnStoreError::Local, 4, |builder| builder.local_denials(false)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn allow_admits_exactly_the_unanswered_calls() {
    check(OnStoreError::Allow, 1, RegistryBuilder::without_batches).await;
}
