//! One process with a store that comes and goes, at random. `RATELIMITS_SEED` repeats a failed run.

use std::hash::{BuildHasher, RandomState};
use std::slice;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::MemoryStore;
use crate::base::clock::Clock;
use crate::base::property_tests::config;
use crate::base::rate::Rate;
use crate::key::Key;
use crate::policy::{FixedWindow, LeakyBucket, Policy, SlidingWindow, TokenBucket};
use crate::store::charge::Charge;

/// Per run.
const STEPS: usize = 150;
const START: u64 = 1_700_000_000_000_000;

/// The permits that a policy admits from one time to another.
type Admits = Box<dyn Fn(u64, u64) -> u64>;

struct Case {
    policy: Policy,
    admits: Admits,
    /// The permits that it admits at once, of which every instance has a part, and those that every instance has too.
    capacity: u64,
    lent: u64,
    /// How long it remembers a call.
    memory: u64,
    max_cost: u64,
}

struct Random(u64);

impl Random {
    /// SplitMix64.
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed ^ (mixed >> 27)
    }

    fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.next() % (high - low + 1)
    }
}

fn case(random: &mut Random) -> Case {
    let (permits, micros, burst) =
        (random.between(1, 20), random.between(1, 100) * 20_000, random.between(1, 20));
    let (period, interval) = (Duration::from_micros(micros), micros.div_ceil(permits));
    let rate = Rate::new(permits, period);
    let max_cost = if random.between(0, 1) == 0 { 1 } else { random.between(1, burst.min(permits)) };
    let bucket = TokenBucket::new(rate).burst(burst);
    let filled = move |first: u64, last: u64| (burst * interval + last - first) / interval;
    let (policy, admits, memory): (Policy, Admits, u64) = match random.between(0, 9) {
        0 => (bucket.into(), Box::new(filled), burst * interval),
        1 => (LeakyBucket::new(burst, rate).into(), Box::new(filled), burst * interval),
        2 => {
            let admits = move |first, last| burst + permits * ((last - first) / micros + 1);
            (bucket.interval_refill().into(), Box::new(admits), burst.div_ceil(permits) * micros)
        }
        3 => {
            let admits = move |first, last| permits * ((last - first) / micros + 2);
            (FixedWindow::new(permits, period).into(), Box::new(admits), micros)
        }
        4 => {
            let admits = move |first, last| permits * (last / micros - first / micros + 1);
            (FixedWindow::new(permits, period).aligned().into(), Box::new(admits), micros)
        }
        7 => {
            let admits = move |first, last| filled(first, last) + max_cost;
            (bucket.borrow().into(), Box::new(admits), burst * interval)
        }
        8 => {
            let admits = move |first, last| permits * (last - first) / micros + max_cost;
            (TokenBucket::new(rate).warmup(period).into(), Box::new(admits), 3 * micros)
        }
        9 => {
            let admits = move |first, last| (last - first) / interval + max_cost;
            (LeakyBucket::new(burst, rate).queue().into(), Box::new(admits), burst * interval)
        }
        other => {
            let window = SlidingWindow::new(permits, period);
            let window = if other == 5 { window } else { window.precision(period / 4) };
            (window.into(), Box::new(move |first, last| permits * ((last - first) / micros + 1)), micros)
        }
    };
    let (capacity, lent) = match &policy {
        Policy::TokenBucket(bucket) if *bucket == bucket.borrow() => (burst, max_cost),
        Policy::LeakyBucket(bucket) if *bucket == bucket.queue() => (0, max_cost),
        // The intervals of the two stores begin at different times, which is worth one refill or window.
        Policy::TokenBucket(bucket) if *bucket == bucket.interval_refill() => (burst + permits, 0),
        Policy::FixedWindow(window) if *window != window.aligned() => (2 * permits, 0),
        _ => policy.spec().unwrap().max_cost().map_or((0, max_cost), |most| (most, 0)),
    };
    Case { policy, admits, capacity, lent, memory, max_cost }
}

/// Calls a store that is there at times, and its stand-in at others. Returns the time and the cost of
/// the admitted calls, 0 for those that were refunded.
fn simulate(case: &Case, instances: u32, had_outage: bool, random: &mut Random) -> Vec<(u64, u64)> {
    let time = Arc::new(AtomicU64::new(START));
    let [remote, local] = [(); 2].map(|()| MemoryStore::new(10, Clock::manual(Arc::clone(&time))));
    let spec = case.policy.spec().unwrap();
    let (mut had_outage, mut is_up) = (had_outage, true);
    let (mut admitted, mut refundable) = (Vec::new(), Vec::new());
    let busy = random.between(1, 20);
    for _ in 0..STEPS {
        is_up ^= random.between(0, 9) == 0;
        had_outage |= !is_up;
        for _ in 0..random.between(1, busy) {
            let cost = random.between(1, case.max_cost);
            let charge = Charge { key: Key::raw("a"), spec, cost, wait: 0, shadow: false };
            let share = Charge { spec: spec.per_instance(instances), ..charge.clone() };
            let store = if is_up { &remote } else { &local };
            let charge = if is_up { charge } else { share.clone() };
            let outcome = store.decide(slice::from_ref(&charge));
            if !outcome.admitted {
                continue;
            }
            let mirrored = if is_up && had_outage { local.mirror(&share, true) } else { None };
            admitted.push((time.load(Ordering::SeqCst), cost));
            if random.between(0, 9) == 0 {
                // At once or a few calls later.
                refundable.push((
                    admitted.len() - 1,
                    is_up,
                    (charge, outcome.verdicts[0].charge_id),
                    mirrored,
                ));
            }
            if !refundable.is_empty() && random.between(0, 4) == 0 {
                let (call, was_up, charged, mirrored) = refundable.remove(0);
                admitted[call].1 = 0;
                for (store, (charge, charge_id)) in [(if was_up { &remote } else { &local }, charged)]
                    .into_iter()
                    .chain(mirrored.map(|it| (&local, it)))
                {
                    store.refund(&charge.key, &charge.spec, charge.cost, Some(charge_id));
                }
            }
        }
        let pause = match random.between(0, 9) {
            0..=7 => random.between(1, case.memory / 8),
            8 => random.between(1, case.memory),
            _ => random.between(1, case.memory * 2),
        };
        time.fetch_add(pause, Ordering::SeqCst);
    }
    admitted
}

/// Returns the most permits beyond the policy in any interval.
fn excess(case: &Case, admitted: &[(u64, u64)]) -> u64 {
    let mut most = 0;
    for (i, (first, _)) in admitted.iter().enumerate() {
        let mut sum = 0;
        for (last, cost) in &admitted[i..] {
            sum += cost;
            most = most.max(sum.saturating_sub((case.admits)(*first, *last)));
        }
    }
    most
}

#[test]
fn intermittent_outages_add_one_share() {
    let seed = std::env::var("RATELIMITS_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed: u64 = seed.unwrap_or_else(|| RandomState::new().hash_one(0));
    println!("RATELIMITS_SEED={seed}");
    let mut runs_with_excess = 0;
    let runs = u64::from(config().cases);
    for run in 0..runs {
        let random = &mut Random(seed ^ run.wrapping_mul(0x2545_f491_4f6c_dd1d));
        let case = case(random);
        let instances = random.between(1, 6) as u32;
        let had_outage = random.between(0, 1) == 0;
        let admitted = simulate(&case, instances, had_outage, random);
        let share = case.capacity.div_ceil(instances.into()) + case.lent;
        // What was charged before the first outage is not known here. A share of less than one permit is a whole one.
        let shares = if had_outage { 1 } else { 2 } + u64::from(case.capacity < instances.into());
        let excess = excess(&case, &admitted);
        assert!(
            excess <= shares * share,
            "run {run}: {excess} permits beyond {:?} of {instances}, a share of {share}, {shares}, cost {}",
            case.policy,
            case.max_cost
        );
        runs_with_excess += u64::from(excess > 0);
    }
    println!("{runs_with_excess} runs exceeded the policy");
    assert!(runs_with_excess > 0);
}
