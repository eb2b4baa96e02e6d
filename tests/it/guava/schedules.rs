//! Random schedules, on which calls wait as long as the reference has them wait, to a few microseconds that are bounded here,
//! and on both stores equally long, to the microsecond. A failure names its seed: `RATELIMITS_SEED` repeats the run,
//! `RATELIMITS_SCHEDULES` its length.
//!
//! Guava cuts off what is less than a microsecond, so that its limiter is a little faster than its rate. Ours is not: it
//! takes up to a microsecond more a call.
//!
//! * **What borrows** never goes before Guava's, and after k calls at most k µs later; a bucket that is full again has
//!   evicted it. Of two calls in a row that both pay a debt the second is at most 1 µs further off than the first.
//! * **What warms up** takes the microseconds that Guava's takes in the same state, or one more. That adds up until there is a
//!   pause, which is shorter to ours by so much and leaves less in store; where the curve climbs, the next call of ours is
//!   shorter by up to twice of it. So after k calls the waits are within 2 · k µs, earlier or later.

use std::sync::Arc;
use std::time::Duration;

use ratelimit_runtime::store::{AlgorithmSpec, Charge, Verdict};
use ratelimits::{Rate, TokenBucket};

use super::reference::Reference;
use super::{FOREVER, spec};
use crate::support::numbers::number;
use crate::support::random::Random;
use crate::support::scheduled::{START, Scheduled};
use crate::support::server::Server;

const SCHEDULES: u64 = 2_000;
const CALLS: i64 = 20;
const WORKERS: u64 = 4;

/// One policy, as ours and as Guava's.
struct Twins {
    told: String,
    spec: AlgorithmSpec,
    guava: Reference,
    /// The microseconds that matter to it.
    period: u64,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_wait_as_in_guava() {
    let seeded = Random::seeded();
    let schedules = number("RATELIMITS_SCHEDULES").unwrap_or(SCHEDULES);
    let server = Server::shared();
    let workers: Vec<_> = (0..WORKERS)
        .map(|worker| {
            let (server, seeded) = (Arc::clone(&server), seeded.clone());
            tokio::spawn(async move {
                let stores = [Scheduled::memory(), Scheduled::redis(server).await];
                for schedule in (worker..schedules).step_by(WORKERS as usize) {
                    run(&seeded, schedule, &stores).await;
                }
            })
        })
        .collect();
    for worker in workers {
        worker.await.unwrap_or_else(|failed| std::panic::resume_unwind(failed.into_panic()));
    }
}

async fn run(seeded: &Random, schedule: u64, stores: &[Scheduled; 2]) {
    let mut random = seeded.run(schedule);
    let Twins { told, spec, guava, period } = twins(&mut random);
    let (mut free, mut beside) = (guava.clone(), guava);
    let (mut now, mut last) = (0, (0, 0));
    let mut steps = vec![format!("schedule {schedule}, {told}")];
    for call in 1..=CALLS {
        let cost = if random.percent(50) { random.between(1, 3) } else { random.between(1, 20) };
        let [ours, in_redis] =
            [&stores[0], &stores[1]].map(|store| ask(store, format!("guava {schedule}"), spec, now, cost));
        let (ours, in_redis) = (ours.await, in_redis.await);
        let guavas = free.acquire(now, cost);
        steps.push(format!("at {now} µs for {cost}: {} µs, in Guava {guavas} µs", ours.wait));
        let steps = steps.join("\n");
        assert_eq!(ours, in_redis, "the stores differ\n{steps}");

        let off = ours.wait as i64 - guavas as i64;
        if let AlgorithmSpec::WarmingUp(_) = spec {
            assert!(off.abs() <= 2 * call, "{off} µs off after {call} calls\n{steps}");
            // The same call again, by a limiter of Guava's that is in our state: and goes on in ours.
            beside.acquire(now, cost);
            let next = ours.charge_id.at - START;
            let alone = next as i64 - beside.next as i64;
            beside.next = next;
            assert!((0..=1).contains(&alone), "the last call takes {alone} µs more\n{steps}");
        } else {
            assert!((0..=call).contains(&off), "{off} µs off after {call} calls\n{steps}");
            let (last_wait, last_off) = last;
            let in_debt = last_wait > 0 && guavas > 0;
            let alone = off - last_off;
            assert!(!in_debt || (0..=1).contains(&alone), "the call before takes {alone} µs more\n{steps}");
        }
        last = (guavas, off);
        // Half of them wait before they go on.
        now += if random.percent(50) { guavas } else { 0 } + gap(&mut random, period);
    }
}

async fn ask(store: &Scheduled, name: String, spec: AlgorithmSpec, now: u64, cost: u64) -> Verdict {
    store.set(now as i64).await;
    let charge = Charge { key: store.key(&name), spec, cost, wait: FOREVER, shadow: false };
    let outcome = store.decide(&[charge]).await;
    assert!(outcome.admitted, "{name}: whoever waits as long as it takes gets in");
    outcome.verdicts[0]
}

fn twins(random: &mut Random) -> Twins {
    let (permits, seconds) = match random.below(3) {
        0 => random.pick(&[(3, 1), (7, 1), (3, 10), (1, 1), (5, 1), (300, 1), (9_999, 1), (1, 60)]),
        1 => (random.between(1, 30), random.between(1, 30)),
        _ => (random.between(1, 1000), random.between(1, 60)),
    };
    let bucket = TokenBucket::new(Rate::new(permits, Duration::from_secs(seconds)));
    let interval = seconds as f64 * 1e6 / permits as f64;
    // A second, some permits' worth, or anything.
    let time = match random.below(3) {
        0 => 1_000_000,
        1 => random.between(1, 40) * interval as u64,
        _ => random.between(1, 60_000_000),
    };
    let period = time.max(interval as u64);
    let length = Duration::from_micros(time);
    if random.percent(50) {
        let guava = Reference::bursty(interval, time);
        let told = format!("{permits} in {seconds} s, bursts of {time} µs");
        // A second's worth is what it holds by default.
        let bucket = if time == 1_000_000 { bucket.borrow() } else { bucket.borrow().burst_for(length) };
        Twins { told, spec: spec(bucket), guava, period }
    } else {
        let guava = Reference::warming_up(interval, time);
        let told = format!("{permits} in {seconds} s, warms up in {time} µs");
        Twins { told, spec: spec(bucket.warmup(length)), guava, period }
    }
}

fn gap(random: &mut Random, period: u64) -> u64 {
    match random.below(100) {
        0..50 => 0,
        50..60 => random.between(1, 3),
        60..80 => random.below(period / 4 + 1),
        80..95 => random.below(period + 1),
        _ => random.below(4 * period + 1),
    }
}
