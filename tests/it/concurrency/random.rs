//! Random calls of limiters and attributes in process, compared with a count of what they hold.

use std::collections::HashMap;
use std::future::Future;
use std::mem;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use ratelimits::observe::{CallOutcome, Observation};
use ratelimits::{ConcurrencyLimit, Decision, Error, FixedWindow, Limiter, Registry, concurrency_limit};

use crate::support::budget::budget;
use crate::support::random::Random;

const DAY: Duration = Duration::from_secs(86_400);
const KEYS: u64 = 3;
const SMALL: u64 = 3;
const LARGE: u64 = 7;
const SHADOW: u64 = 2;
const WINDOW: u64 = 40;

#[concurrency_limit(most, key = key, cost = cost, name = "random.computed", bind = decision)]
async fn computed(key: u64, most: u64, cost: u64) -> Result<Decision, Error> {
    Ok(decision)
}

#[concurrency_limit(SHADOW, key = key, cost = cost, name = "random.shadow", shadow, bind = decision)]
async fn in_shadow(key: u64, cost: u64) -> Result<Decision, Error> {
    Ok(decision)
}

/// A policy of this test, and one of its keys.
type Counted = (&'static str, u64);

/// What a call was charged, and after how many resets.
type Share = (Counted, u64, u64);

/// What the keys have.
#[derive(Default)]
struct Counts {
    used: HashMap<Counted, u64>,
    resets: HashMap<Counted, u64>,
}

impl Counts {
    fn used(&self, of: Counted) -> u64 {
        self.used.get(&of).copied().unwrap_or(0)
    }

    fn resets(&self, of: Counted) -> u64 {
        self.resets.get(&of).copied().unwrap_or(0)
    }

    /// Returns what each charge takes, unless one does not fit.
    fn take(&mut self, charges: &[(Counted, u64, u64)]) -> Option<Vec<Share>> {
        let mut sums = HashMap::new();
        for (of, cost, _) in charges {
            *sums.entry(*of).or_insert(0) += cost;
        }
        let fits = charges.iter().all(|(of, _, max)| self.used(*of) + sums[of] <= *max);
        fits.then(|| charges.iter().map(|(of, cost, _)| self.add(*of, *cost)).collect())
    }

    fn add(&mut self, of: Counted, cost: u64) -> Share {
        *self.used.entry(of).or_default() += cost;
        (of, cost, self.resets(of))
    }

    fn give_back(&mut self, (of, cost, resets): Share) {
        if resets == self.resets(of) {
            *self.used.entry(of).or_default() -= cost;
        }
    }

    fn reset(&mut self, of: Counted) -> bool {
        *self.resets.entry(of).or_default() += 1;
        self.used.insert(of, 0).is_some_and(|used| used > 0)
    }
}

/// The permits that run by what an observer sees, by policy and key.
type Running = Arc<Mutex<HashMap<(String, String), u64>>>;

/// Adds what an observer sees of concurrency limits.
fn observe(running: &Running, seen: &Observation<'_>) {
    let of = (seen.policy.trim_start_matches("random.").to_owned(), seen.key().join(","));
    let mut running = running.lock().unwrap();
    match seen.outcome {
        CallOutcome::Admitted if seen.policy != "window" => *running.entry(of).or_default() += seen.cost,
        CallOutcome::Released => *running.get_mut(&of).unwrap() -= seen.cost,
        _ => {}
    }
}

struct Run {
    registry: Registry,
    small: Limiter,
    large: Limiter,
    window: Limiter,
    counts: Counts,
    held: Vec<(Decision, Vec<Share>)>,
    /// What observers have seen begin and not end, if there are any.
    seen: Option<Running>,
    refused: u64,
    admitted: u64,
}

impl Run {
    /// Compares what has come of a call.
    fn note(&mut self, step: u64, result: Result<Decision, Error>, charges: &[(Counted, u64, u64)]) {
        let expected = self.counts.take(charges);
        match (result, expected) {
            (Ok(decision), Some(shares)) => {
                self.admitted += 1;
                self.held.push((decision, shares));
            }
            (Err(Error::Limited(limited)), None) => {
                let impossible = charges.iter().any(|(_, cost, max)| cost > max);
                assert!(!impossible || limited.decision().retry_after.is_none(), "{step}");
                self.refused += 1;
            }
            (result, expected) => panic!("step {step}: {charges:?}: {result:?}, not {expected:?}"),
        }
    }

    async fn end(&mut self, index: usize, refunds: bool) {
        let (decision, shares) = self.held.swap_remove(index);
        if refunds {
            decision.refund().await.unwrap();
        } else {
            drop(decision);
        }
        // Only a refund gives back what is not held.
        let given = shares.into_iter().filter(|((name, _), ..)| refunds || *name != "window");
        given.for_each(|share| self.counts.give_back(share));
    }

    /// Compares what runs with what an observer has seen.
    fn check_seen(&self, step: u64) {
        let Some(seen) = &self.seen else { return };
        let mut expected = HashMap::new();
        let shares = self.held.iter().flat_map(|(_, shares)| shares);
        for ((name, key), cost, _) in shares.filter(|((name, _), ..)| *name != "window") {
            *expected.entry(((*name).to_owned(), key.to_string())).or_insert(0) += cost;
        }
        let mut seen = seen.lock().unwrap();
        seen.retain(|_, running| *running > 0);
        assert_eq!(*seen, expected, "step {step}");
    }

    async fn step(&mut self, step: u64, random: &mut Random) {
        let (key, cost) = (random.below(KEYS), random.pick(&[1, 1, 1, 2, 3, 4, 9]));
        let small = ("small", key);
        match random.below(100) {
            0..15 => {
                let result = self.small.try_acquire_n(key, cost).await;
                self.note(step, result, &[(small, cost, SMALL)]);
            }
            15..25 => {
                let result = self.small.acquire_n_timeout(key, cost, Duration::from_micros(50)).await;
                self.note(step, result, &[(small, cost, SMALL)]);
            }
            25..40 => {
                let other = random.below(KEYS);
                let mut charges =
                    vec![self.small.charge(key), self.large.charge_n(other, cost), self.window.charge(key)];
                let mut expected =
                    vec![(small, 1, SMALL), (("large", other), cost, LARGE), (("window", key), 1, WINDOW)];
                if random.percent(30) {
                    // The same key again.
                    charges.push(self.small.charge(key));
                    expected.push((small, 1, SMALL));
                }
                let result = self.registry.try_acquire_all(charges).await;
                self.note(step, result, &expected);
            }
            40..50 => {
                let most = random.pick(&[1, 2, 5]);
                let result = self.registry.scope(computed(key, most, cost)).await;
                self.note(step, result, &[(("computed", key), cost, most)]);
            }
            50..55 => {
                let decision = self.registry.scope(in_shadow(key, cost)).await.unwrap();
                let shares = self.counts.take(&[(("shadow", key), cost, SHADOW)]).unwrap_or_default();
                self.held.push((decision, shares));
            }
            55..90 if !self.held.is_empty() => {
                let index = random.below(self.held.len() as u64) as usize;
                self.end(index, random.percent(20)).await;
            }
            90..92 if random.percent(20) => {
                // In no more than a microsecond, what was taken before and after it would be the same.
                thread::sleep(Duration::from_micros(2));
                tokio::time::advance(Duration::from_micros(2)).await;
                let (limiter, name) =
                    random.pick(&[(&self.small, "small"), (&self.large, "large"), (&self.window, "window")]);
                let was_live = limiter.reset(key).await.unwrap();
                assert_eq!(was_live, self.counts.reset((name, key)), "step {step}");
                thread::sleep(Duration::from_micros(2));
                tokio::time::advance(Duration::from_micros(2)).await;
            }
            _ => {
                let peeked = self.small.peek(key).await.unwrap();
                assert_eq!(peeked.remaining, SMALL - self.counts.used(small), "step {step}");
                let large = self.large.peek(key).await.unwrap().remaining;
                assert_eq!(large, LARGE - self.counts.used(("large", key)), "step {step}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn calls_are_counted_as_long_as_they_run() {
    run(Registry::in_memory(), None).await;
}

#[tokio::test(start_paused = true)]
async fn observers_see_as_long_as_they_run() {
    let running = Running::default();
    let seen = Arc::clone(&running);
    run(Registry::builder().observer(move |it| observe(&seen, it)).in_memory(), Some(running)).await;
}

async fn run(registry: Registry, seen: Option<Running>) {
    let mut random = Random::seeded().run(0);
    let mut run = Run {
        small: registry.limiter("small", ConcurrencyLimit::new(SMALL)).unwrap(),
        large: registry.limiter("large", ConcurrencyLimit::new(LARGE)).unwrap(),
        window: registry.limiter("window", FixedWindow::new(WINDOW, DAY)).unwrap(),
        registry,
        counts: Counts::default(),
        held: Vec::new(),
        seen,
        refused: 0,
        admitted: 0,
    };
    for step in 0..budget(100_000, 10_000_000) {
        run.step(step, &mut random).await;
        run.check_seen(step);
        // Now and then all end.
        if step % 1000 == 999 {
            while !run.held.is_empty() {
                run.end(0, false).await;
            }
            for key in 0..KEYS {
                assert_eq!(run.small.peek(key).await.unwrap().remaining, SMALL);
                assert_eq!(run.large.peek(key).await.unwrap().remaining, LARGE);
                if run.window.reset(key).await.unwrap() {
                    run.counts.reset(("window", key));
                }
            }
            thread::sleep(Duration::from_micros(2));
            tokio::time::advance(Duration::from_micros(2)).await;
        }
    }
    println!("{} admitted, {} refused", run.admitted, run.refused);
    assert!(run.admitted > 1000 && run.refused > 1000);
}

/// Returns what a decision in process returns, which does not wait.
fn at_once<T>(decision: impl Future<Output = T>) -> T {
    match pin!(decision).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(decided) => decided,
        Poll::Pending => panic!("it waits"),
    }
}

/// Threads that take, wait for and release permits of a few keys, alone and beside others.
#[test]
fn threads_hold_no_more_than_there_are_and_leave_nothing() {
    const THREADS: u64 = 4;
    let registry = Registry::in_memory();
    let small = registry.limiter("small", ConcurrencyLimit::new(SMALL)).unwrap();
    let large = registry.limiter("large", ConcurrencyLimit::new(LARGE)).unwrap();
    let window = registry.limiter("window", FixedWindow::new(1_000_000_000, DAY)).unwrap();
    let running = [const { AtomicU64::new(0) }; 2 * KEYS as usize];
    let seeded = Random::seeded();
    let enter = |place: usize, cost: u64, max: u64| {
        let before = running[place].fetch_add(cost, Ordering::SeqCst);
        assert!(before + cost <= max, "{before} and {cost} of {max}");
    };
    thread::scope(|scope| {
        for number in 0..THREADS {
            let mut random = seeded.run(number);
            let (registry, small, large, window, running) = (&registry, &small, &large, &window, &running);
            scope.spawn(move || {
                let mut kept = Vec::new();
                for _ in 0..budget(20_000, 1_000_000) {
                    let (key, cost) = (random.below(KEYS), random.between(1, 2));
                    let place = key as usize;
                    let taken = match random.below(4) {
                        0 => small.blocking_try_acquire_n(key, cost).map(|held| (held, vec![(place, cost)])),
                        1 => {
                            let waits = Duration::from_micros(100);
                            let held = small.blocking_acquire_n_timeout(key, cost, waits);
                            held.map(|held| (held, vec![(place, cost)]))
                        }
                        _ => {
                            let charges =
                                [window.charge(key), large.charge_n(key, cost), small.charge_n(key, 1)];
                            let held = at_once(registry.try_acquire_all(charges));
                            held.map(|held| (held, vec![(place, 1), (place + KEYS as usize, cost)]))
                        }
                    };
                    if let Ok((held, places)) = taken {
                        for (place, cost) in &places {
                            let max = if *place < KEYS as usize { SMALL } else { LARGE };
                            enter(*place, *cost, max);
                        }
                        kept.push((held, places));
                    }
                    while kept.len() > random.below(3) as usize {
                        let (held, places) = kept.swap_remove(0);
                        for (place, cost) in places {
                            running[place].fetch_sub(cost, Ordering::SeqCst);
                        }
                        drop(held);
                    }
                }
                for (held, places) in mem::take(&mut kept) {
                    for (place, cost) in places {
                        running[place].fetch_sub(cost, Ordering::SeqCst);
                    }
                    drop(held);
                }
            });
        }
    });
    for key in 0..KEYS {
        assert!(small.blocking_try_acquire_n(key, SMALL).is_ok());
        assert!(large.blocking_try_acquire_n(key, LARGE).is_ok());
    }
}
