//! What users see of the storm: a part of their calls is not answered, now and then because a pause outlasts the deadline,
//! and `on_store_error` decides on exactly these. What Redis admits and what this process admits each keeps to its bound.
//! `RATELIMITS_STORM_CALLS` makes it longer: so many calls that Redis decides.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ratelimits::{
    Error, FixedWindow, LeakyBucket, Limiter, OnStoreError, Policy, Rate, Registry, SlidingWindow, Source,
    TokenBucket,
};

use crate::support::numbers::number;
use crate::support::random::Random;
use crate::support::server::Server;

const TASKS: u64 = 64;
const CALLS: u64 = 10_000;
/// As many as make some of the calls too many, in either build.
const KEYS: u64 = if cfg!(debug_assertions) { 20 } else { 80 };
const COSTLIEST: u64 = 5;
const PERIOD: Duration = Duration::from_millis(200);
/// What each policy holds, and gives again in each period: of four instances less than the costliest call.
const CAPACITY: u64 = 16;

/// What a policy gives at the most within a time, beside the capacity that comes each period.
#[derive(Clone, Copy, Debug)]
struct Bound {
    at_once: u64,
    /// Whether it gives a whole capacity at a time.
    in_portions: bool,
    /// Whether each instance lends a call of any cost.
    lends: bool,
}

impl Bound {
    /// The permits of one of so many instances within this time.
    fn of(self, instances: u64, time: Duration) -> f64 {
        let periods = time.as_secs_f64() / PERIOD.as_secs_f64();
        let periods = if self.in_portions { periods.floor() } else { periods };
        let lent = if self.lends { COSTLIEST } else { 0 };
        (self.at_once as f64 + CAPACITY as f64 * periods) / instances as f64 + lent as f64
    }
}

fn policies() -> [(&'static str, Policy, Bound); 10] {
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
}

/// Of the decisions of one source.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    admitted: u64,
    limited: u64,
    permits: u64,
}

/// What a task has seen: of each limiter, key and source, and the costs of calls that nobody decided.
#[derive(Debug, Default)]
struct Seen {
    sums: HashMap<(usize, u64, Source), Sum>,
    refused: Vec<(usize, u64)>,
    calls: u64,
}

impl Seen {
    fn add(&mut self, (limiter, key, cost): (usize, u64, u64), result: Result<Source, Error>) {
        self.calls += 1;
        let (source, sum) = match result {
            Ok(source) => (source, Sum { admitted: 1, permits: cost, ..Sum::default() }),
            Err(Error::Limited(limited)) => (limited.decision().source, Sum { limited: 1, ..Sum::default() }),
            Err(Error::Store(_)) => return self.refused.push((limiter, cost)),
            Err(error) => panic!("{error}"),
        };
        let entry = self.sums.entry((limiter, key, source)).or_default();
        entry.admitted += sum.admitted;
        entry.limited += sum.limited;
        entry.permits += sum.permits;
    }

    fn merge(&mut self, other: Seen) {
        self.calls += other.calls;
        self.refused.extend(other.refused);
        for (place, Sum { admitted, limited, permits }) in other.sums {
            let entry = self.sums.entry(place).or_default();
            entry.admitted += admitted;
            entry.limited += limited;
            entry.permits += permits;
        }
    }

    fn of(&self, source: Source) -> Sum {
        let of_it = self.sums.iter().filter(|((_, _, of), _)| *of == source);
        of_it.fold(Sum::default(), |sum, (_, more)| Sum {
            admitted: sum.admitted + more.admitted,
            limited: sum.limited + more.limited,
            permits: sum.permits + more.permits,
        })
    }
}

/// Calls on random keys of all limiters, until Redis has decided so many or it takes too long, and how long they took.
async fn call(limiters: &[Limiter], calls: u64) -> (Seen, Duration) {
    let (decided, random) = (Arc::new(AtomicU64::new(0)), Random::seeded());
    let (begin, longest) = (Instant::now(), super::longest(calls));
    let tasks: Vec<_> = (0..TASKS)
        .map(|task| {
            let (limiters, decided, mut random) = (limiters.to_vec(), Arc::clone(&decided), random.run(task));
            tokio::spawn(async move {
                let mut seen = Seen::default();
                while decided.load(Ordering::Relaxed) < calls && begin.elapsed() < longest {
                    let limiter = random.below(limiters.len() as u64) as usize;
                    let (key, cost) = (random.below(KEYS), random.between(1, COSTLIEST));
                    let result = limiters[limiter].try_acquire(key, cost).await;
                    let result = result.map(|decision| decision.source);
                    let is_of_redis = match &result {
                        Ok(source) => *source == Source::Redis,
                        Err(Error::Limited(limited)) => limited.decision().source == Source::Redis,
                        Err(_) => false,
                    };
                    seen.add((limiter, key, cost), result);
                    if is_of_redis {
                        decided.fetch_add(1, Ordering::Relaxed);
                    } else {
                        // While Redis is not asked a decision takes no time.
                        tokio::time::sleep(Duration::from_millis(2)).await;
                    }
                }
                seen
            })
        })
        .collect();
    let mut seen = Seen::default();
    for task in tasks {
        seen.merge(task.await.expect("the task ends"));
    }
    (seen, begin.elapsed())
}

async fn weather(mode: OnStoreError, instances: u64) {
    let server = Arc::new(Server::start());
    let storm = tokio::spawn(super::storm(server.connect().await));
    let pauses = tokio::spawn(pauses(Arc::clone(&server)));
    let registry = Registry::builder().on_store_error(mode).instances(instances as u32);
    let registry = registry.connect_lazy(&server.url()).expect("the URL is right");
    let policies = policies();
    let limiter = |(name, policy, _): (&str, Policy, _)| registry.limiter(name, policy).expect("it is valid");
    let limiters = policies.map(limiter);
    let calls = number("RATELIMITS_STORM_CALLS").unwrap_or(CALLS);
    let (seen, took) = call(&limiters, calls).await;
    let made = seen.calls;
    assert!(!storm.is_finished() && !pauses.is_finished(), "the storm lasted");
    storm.abort();
    pauses.abort();

    let [redis, local, allowed] = [Source::Redis, Source::Local, Source::Allowed].map(|of| seen.of(of));
    let (unanswered, refused) = (registry.store_health().failed_decisions, seen.refused.len() as u64);
    println!(
        "{mode:?} by {instances}: {made} calls within {took:.1?}, {unanswered} not answered, {refused} refused"
    );
    println!("redis {redis:?}\nlocal {local:?}\nallowed {allowed:?}");
    let all = |sum: Sum| sum.admitted + sum.limited;
    assert_eq!(all(redis) + all(local) + all(allowed) + refused, made, "every call was decided once");
    assert!(all(redis) * 10 > calls && redis.limited > 0 && unanswered > 0, "both had something to decide");
    if mode == OnStoreError::Allow {
        assert_eq!((allowed.admitted, allowed.limited, all(local), refused), (unanswered, 0, 0, 0));
    } else {
        assert_eq!((all(local) + refused, all(allowed)), (unanswered, 0));
    }
    for (limiter, cost) in &seen.refused {
        let share = policies[*limiter].1.spec().map(|spec| spec.per_instance(instances as u32));
        assert!(!share.expect("it is valid").fits(*cost), "a share of {} has {cost}", policies[*limiter].0);
    }

    // The clock of Redis is not that of this process: a little more is no more.
    let time = took + took / 100 + Duration::from_millis(20);
    let mut closest = HashMap::<Source, (f64, &str)>::new();
    for ((limiter, key, source), sum) in &seen.sums {
        let (name, _, bound) = policies[*limiter];
        let most = match source {
            Source::Redis => bound.of(1, time),
            Source::Local => bound.of(instances, time),
            _ => continue,
        };
        assert!(sum.permits as f64 <= most, "{name}, key {key}, {source:?}: {sum:?} of {most}");
        let part = (sum.permits as f64 / most, name);
        let closest = closest.entry(*source).or_insert(part);
        if part.0 > closest.0 {
            *closest = part;
        }
    }
    println!("closest to its bound: {closest:.3?}");
}

/// Now and then nobody is answered for longer than the deadline. Never ends.
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
async fn this_process_admits_what_redis_does_not_answer_and_nothing_else() {
    weather(OnStoreError::Local, 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_of_four_admits_its_share_of_what_redis_does_not_answer() {
    weather(OnStoreError::Local, 4).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_allowed_but_what_redis_does_not_answer() {
    weather(OnStoreError::Allow, 1).await;
}
