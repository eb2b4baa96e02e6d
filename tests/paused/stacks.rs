//! Calls that wait for several buckets: each bucket counts a call when it starts, and so keeps its promise, whichever makes it wait.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use ratelimits::{Error, LeakyBucket, Rate, Registry, funnel_limit, rate_limit};
use tokio::task::{JoinSet, LocalSet};
use tokio::time::{Instant, sleep, timeout};

use crate::budget::budget;
use crate::random::Random;

/// A promise of at most `burst` calls, and one more each `interval`, in every interval of time.
#[derive(Clone, Copy)]
struct Promise {
    burst: u32,
    interval: Duration,
}

impl Promise {
    const fn new(burst: u32, interval: Duration) -> Self {
        Promise { burst, interval }
    }

    #[track_caller]
    fn assert_kept(self, mut starts: Vec<Instant>) {
        starts.sort();
        for (first, start) in starts.iter().enumerate() {
            for (last, end) in starts.iter().enumerate().skip(first) {
                let calls = (last - first + 1) as u32;
                let least = self.interval * calls.saturating_sub(self.burst);
                let elapsed = end.duration_since(*start);
                assert!(least <= elapsed, "{calls} calls started within {elapsed:?}: {starts:?}");
            }
        }
    }
}

/// The calls that have started: when, and whose.
type Starts = Rc<RefCell<Vec<(Instant, u64)>>>;

const SECOND: Duration = Duration::from_secs(1);
const QUEUE: Promise = Promise::new(1, Duration::from_millis(100));

#[funnel_limit(capacity = 100, leak_rate = 10.0, queue, name = "stacks.queue", registry = registry)]
#[rate_limit(rate = "1/5s", burst = 1, key = user, timeout = "1h", registry = registry)]
async fn queued(registry: &Registry, user: u64, starts: &Starts) -> Result<(), Error> {
    starts.borrow_mut().push((Instant::now(), user));
    Ok(())
}
const BY_USER: Promise = Promise::new(1, Duration::from_secs(5));

#[rate_limit(rate = "2/3s", burst = 2, key = user, timeout = "1h", registry = registry)]
#[rate_limit(rate = "10/s", burst = 3, name = "stacks.shared", timeout = "1h", registry = registry)]
async fn shared(registry: &Registry, user: u64, starts: &Starts) -> Result<(), Error> {
    starts.borrow_mut().push((Instant::now(), user));
    Ok(())
}
const SHARED: Promise = Promise::new(3, Duration::from_millis(100));
const SHARED_BY_USER: Promise = Promise::new(2, Duration::from_millis(1500));

#[rate_limit(rate = "1/s", burst = 2, key = user, registry = registry)]
#[funnel_limit(capacity = 100, leak_rate = 10.0, queue, registry = registry)]
async fn impatient(registry: &Registry, user: u64, starts: &Starts) -> Result<(), Error> {
    starts.borrow_mut().push((Instant::now(), user));
    Ok(())
}
const IMPATIENT_BY_USER: Promise = Promise::new(2, SECOND);

#[rate_limit(rate = "1/2s", burst = 2, key = user % 2, timeout = "1h", registry = registry)]
#[rate_limit(rate = "1/s", burst = 3, key = user, borrow, timeout = "1h", registry = registry)]
#[funnel_limit(capacity = 100, leak_rate = 10.0, queue, registry = registry)]
async fn three(registry: &Registry, user: u64, starts: &Starts) -> Result<(), Error> {
    starts.borrow_mut().push((Instant::now(), user));
    Ok(())
}
const BY_PAIR: Promise = Promise::new(2, Duration::from_secs(2));

#[track_caller]
fn assert_kept(starts: &Starts, promise: Promise, key: impl Fn(u64) -> u64) {
    let starts = starts.borrow();
    let mut keys: Vec<u64> = starts.iter().map(|(_, user)| key(*user)).collect();
    keys.sort_unstable();
    keys.dedup();
    for of in keys {
        let own = starts.iter().filter(|(_, user)| key(*user) == of);
        promise.assert_kept(own.map(|(at, _)| *at).collect());
    }
}

#[tokio::test(start_paused = true)]
async fn queue_keeps_its_spacing_beside_slower_buckets() {
    let (registry, starts) = (Registry::in_memory(), Starts::default());
    let all = LocalSet::new();
    for user in (0..20).chain(0..20) {
        let (registry, starts) = (registry.clone(), Rc::clone(&starts));
        all.spawn_local(async move { queued(&registry, user, &starts).await.unwrap() });
    }
    all.await;
    assert_eq!(starts.borrow().len(), 40);
    assert_kept(&starts, QUEUE, |_| 0);
    assert_kept(&starts, BY_USER, |user| user);
    // Five seconds after the first twenty, which took two.
    let last = starts.borrow().iter().map(|(at, _)| *at).max().unwrap();
    assert!(last <= starts.borrow()[0].0 + Duration::from_millis(7_100), "{starts:?}");
}

/// Random calls of one kind and of its line alone, of which some are dropped while they wait.
async fn history(mut random: Random) {
    let (registry, starts, alone) = (Registry::in_memory(), Starts::default(), Starts::default());
    let kind = random.below(4);
    let calls = random.between(5, 30);
    let (users, spread) = (random.between(1, 6), random.between(1, 10_000));
    let mut tasks = JoinSet::new();
    let mut dropped = 0;
    for _ in 0..calls {
        let (registry, starts, alone) = (registry.clone(), Rc::clone(&starts), Rc::clone(&alone));
        let (at, user) = (Duration::from_millis(random.below(spread)), random.below(users));
        let patience = if random.percent(20) { random.below(20_000) } else { 3_600_000 };
        let of_line = kind == 0 && random.percent(20);
        tasks.spawn_local(async move {
            sleep(at).await;
            let call = async {
                match kind {
                    0 if of_line => {
                        let queue = LeakyBucket::new(100, Rate::new(10, SECOND)).queue();
                        let line = registry.limiter("stacks.queue", queue).unwrap();
                        line.function(concat!(module_path!(), "::queued")).acquire(()).await?;
                        alone.borrow_mut().push((Instant::now(), 0));
                        Ok(())
                    }
                    0 => queued(&registry, user, &starts).await,
                    1 => shared(&registry, user, &starts).await,
                    2 => impatient(&registry, user, &starts).await,
                    _ => three(&registry, user, &starts).await,
                }
            };
            match timeout(Duration::from_millis(patience), call).await {
                Ok(Ok(())) => 0,
                // One that may not wait for its user.
                Ok(Err(error)) => {
                    assert!(kind == 2 && error.is_limited(), "{error}");
                    1
                }
                Err(_) => 1,
            }
        });
    }
    while let Some(task) = tasks.join_next().await {
        dropped += task.unwrap();
    }
    let started = starts.borrow().len() + alone.borrow().len();
    assert_eq!(started as u64, calls - dropped);
    match kind {
        0 => {
            assert_kept(&starts, BY_USER, |user| user);
            starts.borrow_mut().extend(alone.take());
            assert_kept(&starts, QUEUE, |_| 0);
        }
        1 => {
            assert_kept(&starts, SHARED_BY_USER, |user| user);
            assert_kept(&starts, SHARED, |_| 0);
        }
        2 => {
            assert_kept(&starts, IMPATIENT_BY_USER, |user| user);
            assert_kept(&starts, QUEUE, |_| 0);
        }
        _ => {
            assert_kept(&starts, BY_PAIR, |user| user % 2);
            assert_kept(&starts, Promise::new(3 + 1, SECOND), |user| user);
            assert_kept(&starts, QUEUE, |_| 0);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn random_histories_keep_every_promise() {
    let seeded = Random::seeded();
    for run in 0..budget(300, 20_000) {
        LocalSet::new().run_until(history(seeded.run(run))).await;
    }
}
