//! Random schedules on which calls wait as long as in the reference, within a few microseconds that are bounded here, and
//! equally long on every store. A failure prints its seed; `RATELIMITS_SEED` repeats the run.
//!
//! Guava cuts off fractions of a microsecond, so that its limiter is a little faster than its rate. Ours takes up to a
//! microsecond more per call.
//!
//! * **With `borrow`** a call never goes before Guava's, and after k calls at most k µs later; a bucket that is full again has
//!   forgotten the difference. Of two consecutive calls that both pay a debt, the second adds at most 1 µs.
//! * **With `warmup`** a call takes the microseconds that Guava's takes in the same state, or one more. That adds up until there
//!   is a pause, which is shorter for ours by as much and leaves fewer stored permits; where the curve climbs, our next call
//!   is shorter by up to twice as much. So after k calls the waits differ by at most 2 · k µs.

use std::time::Duration;

use ratelimit_runtime::store::{AlgorithmSpec, Charge, Verdict};
use ratelimits::{Rate, TokenBucket};

use super::reference::Reference;
use super::spec;
use crate::support::budget::budget;
use crate::support::random::Random;
use crate::support::test_store::{FOREVER, START, TestStore};

const CALLS: i64 = 20;
const WORKERS: u64 = 4;

/// One policy, as ours and as Guava's.
struct Twins {
    name: String,
    spec: AlgorithmSpec,
    guava: Reference,
    /// The time scale of pauses between calls, in microseconds.
    period: u64,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_wait_as_in_the_reference() {
    let seeded = Random::seeded();
    let schedules = budget(300, 20_000);
    let workers: Vec<_> = (0..WORKERS)
        .map(|worker| {
            let seeded = seeded.clone();
            tokio::spawn(async move {
                let stores = TestStore::all().await;
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

async fn run(seeded: &Random, schedule: u64, stores: &[TestStore]) {
    let mut random = seeded.run(schedule);
    let Twins { name, spec, guava, period } = twins(&mut random);
    let (mut free, mut beside) = (guava.clone(), guava);
    let (mut now, mut last) = (0, (0, 0));
    let mut steps = vec![format!("schedule {schedule}, {name}")];
    let key = format!("guava {schedule}");
    for call in 1..=CALLS {
        let cost = if random.percent(50) { random.between(1, 3) } else { random.between(1, 20) };
        let mut verdicts = Vec::new();
        for store in stores {
            verdicts.push(acquire(store, &key, spec, now, cost).await);
        }
        let ours = verdicts[0];
        let guavas = free.acquire(now, cost);
        steps.push(format!("at {now} µs for {cost}: {} µs, in Guava {guavas} µs", ours.wait));
        let steps = steps.join("\n");
        assert!(verdicts.iter().all(|verdict| *verdict == ours), "the stores differ\n{steps}");

        let off = ours.wait as i64 - guavas as i64;
        if let AlgorithmSpec::WarmingUp(_) = spec {
            assert!(off.abs() <= 2 * call, "{off} µs off after {call} calls\n{steps}");
            // The same call by a Guava limiter in our state.
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
        // Half of the callers wait before the next call.
        now += if random.percent(50) { guavas } else { 0 } + gap(&mut random, period);
    }
}

async fn acquire(store: &TestStore, key: &str, spec: AlgorithmSpec, now: u64, cost: u64) -> Verdict {
    store.set_time(now as i64).await;
    let charge = Charge { key: store.key(key), spec, cost, wait: FOREVER as u64, shadow: false };
    let outcome = store.decide(&[charge]).await;
    assert!(outcome.admitted, "{key}: a call that waits forever is admitted");
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
    // One second, a whole number of permits, or any time.
    let time = match random.below(3) {
        0 => 1_000_000,
        1 => random.between(1, 40) * interval as u64,
        _ => random.between(1, 60_000_000),
    };
    let period = time.max(interval as u64);
    let length = Duration::from_micros(time);
    if random.percent(50) {
        let guava = Reference::bursty(interval, time);
        let name = format!("{permits} in {seconds} s, bursts of {time} µs");
        // One second's worth is the default.
        let bucket = if time == 1_000_000 { bucket.borrow() } else { bucket.borrow().burst_for(length) };
        Twins { name, spec: spec(bucket), guava, period }
    } else {
        let guava = Reference::warming_up(interval, time);
        let name = format!("{permits} in {seconds} s, warms up in {time} µs");
        Twins { name, spec: spec(bucket.warmup(length)), guava, period }
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
