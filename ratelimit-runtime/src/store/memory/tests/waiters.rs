//! Whatever happens to a queue of reservations, no slot moves back: with numbers that differ between the calls of a key, and
//! with a clock that steps back.

use super::*;
use crate::algorithm::AlgorithmSpec;
use crate::policy::LeakyBucket;
use crate::rate::Rate;

const RUNS: u64 = 300;
const OPERATIONS: u64 = 300;

struct Call {
    charge: Charge,
    waiter: Arc<Waiter>,
    /// As it was last seen.
    slot: u64,
}

/// SplitMix64.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed ^ (mixed >> 27)) % bound
    }
}

/// Policies of one kind with different numbers on one key: computed ones, or one that is literal and others on its keys.
fn specs(random: &mut Random) -> Vec<AlgorithmSpec> {
    let is_literal = random.below(2) == 0;
    let specs: Vec<_> = policies(random, !is_literal).iter().map(|policy| policy.spec().unwrap()).collect();
    specs.iter().map(|spec| AlgorithmSpec::changed(&specs[0], spec)).collect()
}

fn policies(random: &mut Random, adjustable: bool) -> Vec<Policy> {
    let kind = random.below(5);
    let period = Duration::from_millis(100 + random.below(900));
    let numbers = (0..1 + random.below(4)).map(|_| (1 + random.below(9), 4 + random.below(16)));
    let policy = |(permits, burst)| {
        let bucket = TokenBucket::new(Rate::new(permits, period));
        let bucket = if adjustable { bucket.adjustable() } else { bucket };
        let funnel = LeakyBucket::new(burst * 5, Rate::new(permits, period)).queue();
        match kind {
            0 => bucket.burst(burst).into(),
            1 => bucket.burst(burst).interval_refill().into(),
            2 => bucket.burst(burst).borrow().into(),
            3 => bucket.warmup(period * 10).into(),
            _ => if adjustable { funnel.adjustable() } else { funnel }.into(),
        }
    };
    numbers.map(policy).collect()
}

#[test]
fn slots_never_move_back() {
    let mut moved_up = 0;
    for run in 0..RUNS {
        let mut random = Random(run);
        let specs = specs(&mut random);
        let time = Arc::new(AtomicU64::new(1_000_000_000));
        let store = MemoryStore::new(10, Clock::manual(Arc::clone(&time)));
        let key = Key::raw("key");
        let mut calls: Vec<Call> = Vec::new();
        for _ in 0..OPERATIONS {
            let now = time.load(Ordering::SeqCst);
            let spec = specs[random.below(specs.len() as u64) as usize];
            let cost = 1 + random.below(4);
            let charge = Charge { key: key.clone(), spec, cost, wait: 20_000_000, shadow: false };
            match random.below(14) {
                0..5 => {
                    let (outcome, waiter) = store.reserve(std::slice::from_ref(&charge));
                    if let Some(waiter) = waiter {
                        assert_eq!(waiter.start(), now + outcome.wait());
                        calls.push(Call { charge, slot: waiter.start(), waiter });
                    }
                }
                5..7 if !calls.is_empty() => {
                    let Call { charge, waiter, .. } = calls.remove(random.below(calls.len() as u64) as usize);
                    store.leave(&[(charge, waiter.slot(0).charge_id)], &waiter);
                }
                7 => store.move_up(&[charge]),
                8 => _ = store.decide(&[Charge { cost: 0, ..charge }]),
                9 => store.refund(&key, &spec, cost, None),
                10 if random.below(5) == 0 => _ = store.reset(&key),
                11 => time.store(now + random.below(50_000), Ordering::SeqCst),
                12 => time.store(now + random.below(3_000_000), Ordering::SeqCst),
                13 if random.below(8) == 0 => time.store(now - random.below(2_000_000), Ordering::SeqCst),
                _ => {}
            }
            for call in &mut calls {
                let slot = call.waiter.start();
                assert!(slot <= call.slot, "run {run}: from {} to {slot} by {specs:?}", call.slot);
                moved_up += u64::from(slot < call.slot);
                call.slot = slot;
            }
            // Sometimes those whose slots have come start.
            if random.below(3) == 0 {
                let now = time.load(Ordering::SeqCst);
                let (started, waiting) = calls.into_iter().partition(|call| call.slot <= now);
                calls = waiting;
                let started: Vec<Call> = started;
                started.into_iter().for_each(|call| store.move_up(&[call.charge]));
            }
        }
    }
    assert!(moved_up > 3_000, "{moved_up}");
}
