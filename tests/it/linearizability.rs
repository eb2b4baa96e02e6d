//! Threads share a memory store in many small histories. Each must be linearizable (Herlihy and Wing, 1990): there is an order
//! of its operations, in which none comes before one that had ended when it began, and in which every result is as if they
//! had been made one after the other, and time does not step back, or for a single charge at most to when its window was opened or emptied.

mod search;

use std::hint::spin_loop;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use ratelimit_runtime::algorithm::adjustable_gcra::AdjustableGcraSpec;
use ratelimit_runtime::algorithm::fixed_window::FixedWindowSpec;
use ratelimit_runtime::algorithm::gcra::{GcraKind, GcraSpec};
use ratelimit_runtime::algorithm::interval_bucket::IntervalBucketSpec;
use ratelimit_runtime::algorithm::settled_gcra::SettledGcraSpec;
use ratelimit_runtime::algorithm::sliding_window::SlidingWindowSpec;
use ratelimit_runtime::store::{AlgorithmSpec, Charge, ChargeId, Clock, Key, MemoryStore, Outcome};

use crate::support::budget::budget;
use crate::support::random::Random;
use search::{Event, Record, is_linearizable};

const THREADS: usize = 4;

/// How many histories run between two searches.
const BATCH: u64 = 500;

const NAMES: [&str; 3] = ["a", "b", "c"];

/// What a thread does.
#[derive(Debug)]
enum Operation {
    Decide(Vec<Request>),
    /// Refunds the thread's last charge of a decision that has not been refunded.
    RefundLast,
    /// Refunds without a receipt.
    Refund {
        key: usize,
        cost: u64,
    },
    Reset(usize),
    /// Steps the clock forward.
    Step(u64),
}

/// A charge of a key. At cost 0 it only reads.
#[derive(Clone, Copy, Debug)]
struct Request {
    key: usize,
    cost: u64,
    wait: u64,
}

/// A store, and what each thread does with it.
struct History {
    store: MemoryStore,
    clock: Arc<AtomicU64>,
    specs: Vec<AlgorithmSpec>,
    plans: Vec<Vec<Operation>>,
    /// Ticks whenever an operation begins or ends.
    ticks: AtomicU64,
    /// The threads that are ready.
    ready: AtomicU64,
}

#[test]
fn decisions_of_threads_are_linearizable() {
    let seeded = Random::seeded();
    let (mut operations, mut concurrent) = (0, 0);
    let batches = budget(10, 1_000);
    for batch in 0..batches {
        let histories: Vec<History> =
            (0..BATCH).map(|run| History::random(&mut seeded.run(batch * BATCH + run))).collect();
        let records = run_all(&histories, &mut seeded.run(batch));
        for (run, (history, records)) in histories.iter().zip(records).enumerate() {
            operations += records.len();
            concurrent += records.iter().filter(|record| record.overlaps(&records)).count();
            assert!(
                is_linearizable(&history.specs, &records),
                "history {} is not linearizable:\n{}",
                batch * BATCH + run as u64,
                history.report(&records),
            );
        }
    }
    println!("{} histories, {concurrent} of {operations} operations overlap another", batches * BATCH);
}

/// Runs the histories one after the other. Returns the records of each.
fn run_all(histories: &[History], random: &mut Random) -> Vec<Vec<Record>> {
    let seeds = [(); THREADS].map(|()| Random::new(random.next()));
    let of_threads: Vec<Vec<Vec<Record>>> = thread::scope(|scope| {
        let run = |(thread, mut random): (usize, Random)| {
            scope.spawn(move || histories.iter().map(|history| history.run(thread, &mut random)).collect())
        };
        let threads: Vec<_> = seeds.into_iter().enumerate().map(run).collect();
        threads.into_iter().map(|thread| thread.join().expect("no thread panics")).collect()
    });
    (0..histories.len())
        .map(|i| of_threads.iter().flat_map(|records| records[i].iter().cloned()).collect())
        .collect()
}

impl History {
    fn random(random: &mut Random) -> Self {
        let clock = Arc::new(AtomicU64::new(1000));
        let store = MemoryStore::new(100, Clock::manual(Arc::clone(&clock)));
        let specs: Vec<AlgorithmSpec> = (0..random.between(1, 3)).map(|_| spec(random)).collect();
        let threads = random.between(2, THREADS as u64) as usize;
        let mut plans: Vec<Vec<Operation>> = (0..threads)
            .map(|_| (0..random.between(1, 4)).map(|_| operation(random, specs.len())).collect())
            .collect();
        // Most keys exist at first.
        if random.percent(80) {
            let all = (0..specs.len()).map(|key| Request { key, cost: 1, wait: 0 });
            plans[0].insert(0, Operation::Decide(all.collect()));
        }
        History {
            store: if random.percent(20) { store.locked() } else { store },
            clock,
            specs,
            plans,
            ticks: AtomicU64::new(0),
            ready: AtomicU64::new(0),
        }
    }

    fn run(&self, thread: usize, random: &mut Random) -> Vec<Record> {
        let Some(plan) = self.plans.get(thread) else { return Vec::new() };
        let mut records = Vec::new();
        let mut charged = Vec::new();
        let mut plan = plan.iter();
        // The keys are made before the others begin.
        if thread == 0 && plan.len() > 1 {
            records.extend(plan.next().and_then(|operation| self.operate(operation, &mut charged)));
        }
        self.ready.fetch_add(1, Ordering::SeqCst);
        let mut spins = 0;
        while self.ready.load(Ordering::SeqCst) < self.plans.len() as u64 {
            spins += 1;
            if spins % 200 == 0 { thread::yield_now() } else { spin_loop() }
        }
        for operation in plan {
            (0..random.below(20)).for_each(|_| spin_loop());
            records.extend(self.operate(operation, &mut charged));
        }
        records
    }

    fn operate(&self, operation: &Operation, charged: &mut Vec<(Request, ChargeId)>) -> Option<Record> {
        let earliest = self.clock.load(Ordering::SeqCst);
        let invoked = self.ticks.fetch_add(1, Ordering::SeqCst);
        let event = match operation {
            Operation::Decide(requests) => {
                let outcome = self.decide(requests);
                let made = requests.iter().zip(&outcome.verdicts);
                let made = made.filter(|(request, _)| outcome.admitted && request.cost > 0);
                charged.extend(made.map(|(request, verdict)| (*request, verdict.charge_id)));
                Event::Decided(requests.clone(), Box::new(outcome))
            }
            Operation::RefundLast => {
                let (Request { key, cost, .. }, id) = charged.pop()?;
                self.refund(key, cost, Some(id))
            }
            Operation::Refund { key, cost } => self.refund(*key, *cost, None),
            Operation::Reset(key) => Event::Reset(*key, self.store.reset(&Key::raw(NAMES[*key]))),
            Operation::Step(micros) => {
                self.clock.fetch_add(*micros, Ordering::SeqCst);
                return None;
            }
        };
        let responded = self.ticks.fetch_add(1, Ordering::SeqCst);
        Some(Record { invoked, responded, earliest, latest: self.clock.load(Ordering::SeqCst), event })
    }

    fn report(&self, records: &[Record]) -> String {
        let specs = self.specs.iter().map(|spec| format!("{spec:?}"));
        specs.chain(records.iter().map(|record| format!("{record:?}"))).collect::<Vec<_>>().join("\n")
    }

    fn decide(&self, requests: &[Request]) -> Outcome {
        let charge = |&Request { key, cost, wait }: &Request| Charge {
            key: Key::raw(NAMES[key]),
            spec: self.specs[key],
            cost,
            wait,
            shadow: false,
        };
        self.store.decide(&requests.iter().map(charge).collect::<Vec<_>>())
    }

    fn refund(&self, key: usize, cost: u64, id: Option<ChargeId>) -> Event {
        self.store.refund(&Key::raw(NAMES[key]), &self.specs[key], cost, id);
        Event::Refunded { key, cost, id }
    }
}

/// Returns a small policy that refills within a few steps of the clock.
fn spec(random: &mut Random) -> AlgorithmSpec {
    let (permits, interval) = (random.between(1, 4), random.between(5, 15));
    let bucket = |kind| GcraSpec { kind, interval, capacity: permits * interval };
    let window = |aligned| {
        AlgorithmSpec::FixedWindow(FixedWindowSpec { limit: permits, period: 3 * interval, aligned })
    };
    match random.below(100) {
        0..35 => AlgorithmSpec::Gcra(bucket(GcraKind::TokenBucket)),
        35..45 => AlgorithmSpec::Gcra(bucket(GcraKind::Queue)),
        45..60 => window(false),
        60..65 => window(true),
        65..73 => AlgorithmSpec::AdjustableGcra(AdjustableGcraSpec(bucket(GcraKind::TokenBucket))),
        73..80 => AlgorithmSpec::SettledGcra(SettledGcraSpec(bucket(GcraKind::TokenBucket))),
        80..90 => {
            let (period, precision) = (3 * interval, random.pick(&[0, interval]));
            AlgorithmSpec::SlidingWindow(SlidingWindowSpec { limit: permits, period, precision })
        }
        _ => {
            let (burst, refill, period) = (permits, 1 + permits / 2, 2 * interval);
            AlgorithmSpec::IntervalBucket(IntervalBucketSpec { burst, refill, period, adjustable: false })
        }
    }
}

fn operation(random: &mut Random, keys: usize) -> Operation {
    let key = random.below(keys as u64) as usize;
    match random.below(100) {
        0..60 => {
            // A stack takes the keys in any order.
            let mut order: Vec<usize> = (0..keys).collect();
            (1..keys).for_each(|i| order.swap(i, random.below(i as u64 + 1) as usize));
            order.truncate(random.between(1, keys as u64) as usize);
            let wait = random.pick(&[0, 0, 0, 0, 0, 0, 0, 10]);
            let request = |key| Request { key, cost: random.pick(&[1, 1, 1, 2]), wait };
            Operation::Decide(order.into_iter().map(request).collect())
        }
        60..70 => Operation::Decide(vec![Request { key, cost: 0, wait: 0 }]),
        70..82 => Operation::RefundLast,
        82..86 => Operation::Refund { key, cost: random.between(1, 2) },
        86..90 => Operation::Reset(key),
        _ => Operation::Step(random.between(1, 30)),
    }
}
