//! The keys of the calls, and how to time these calls.

use std::hint::black_box;
use std::pin::pin;
use std::sync::{Barrier, LazyLock};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Instant;

use crate::machine::{pin, thread_time};

const KEYS: usize = 100_000;
/// How many calls one measurement makes.
const CALLS: usize = 1 << 17;

/// What calls are counted by, as number and as text.
pub(crate) struct Key {
    pub(crate) id: u64,
    pub(crate) text: String,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Workload {
    /// One key.
    Hot,
    /// A hundred thousand keys, each as often as the others.
    Uniform,
    /// The same keys, the n-th 1/n as often as the first.
    Zipf,
}

impl Workload {
    pub(crate) const ALL: [Workload; 3] = [Workload::Hot, Workload::Uniform, Workload::Zipf];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Workload::Hot => "hot",
            Workload::Uniform => "100k uniform",
            Workload::Zipf => "zipf",
        }
    }

    /// The keys of the calls, in an order that does not change, from some position on.
    fn keys(self, from: usize) -> impl Iterator<Item = &'static Key> {
        static ALL: LazyLock<Vec<Key>> = LazyLock::new(|| (1000..).take(KEYS).map(Key::new).collect());
        static HOT: LazyLock<Vec<u32>> = LazyLock::new(|| vec![7; CALLS]);
        static UNIFORM: LazyLock<Vec<u32>> = LazyLock::new(uniform);
        static ZIPF: LazyLock<Vec<u32>> = LazyLock::new(|| zipf(KEYS));

        let all = ALL.as_slice();
        let indices = match self {
            Workload::Hot => HOT.as_slice(),
            Workload::Uniform => UNIFORM.as_slice(),
            Workload::Zipf => ZIPF.as_slice(),
        };
        let (before, after) = indices.split_at(from);
        after.iter().chain(before).map(|&index| &all[index as usize])
    }

    /// Processor nanoseconds per call.
    pub(crate) fn time(self, mut call: impl FnMut(&Key)) -> f64 {
        let keys = self.keys(0);
        let start = thread_time();
        for key in keys {
            call(black_box(key));
        }
        (thread_time() - start).as_nanos() as f64 / CALLS as f64
    }

    /// Calls per second of so many threads together, by the clock on the wall, until the slowest thread is done. Each
    /// thread is on a processor of its own, if there are enough, and starts at another key.
    pub(crate) fn throughput(self, threads: usize, call: &(impl Fn(&Key) + Sync)) -> f64 {
        let barrier = &Barrier::new(threads);
        let work = |number: usize| {
            pin(None, number);
            let from = number * CALLS / threads;
            self.keys(from).take(CALLS / 8).for_each(|key| call(black_box(key)));
            barrier.wait();
            let start = Instant::now();
            self.keys(from).for_each(|key| call(black_box(key)));
            start.elapsed()
        };
        let slowest = thread::scope(|scope| {
            let running: Vec<_> = (0..threads).map(|number| scope.spawn(move || work(number))).collect();
            running.into_iter().map(|thread| thread.join().expect("calls do not panic")).max()
        });
        (threads * CALLS) as f64 / slowest.unwrap_or_default().as_secs_f64()
    }
}

impl Key {
    pub(crate) fn new(id: u64) -> Self {
        Key { id, text: format!("app:users:fetch:user:{id:08}") }
    }
}

/// The output of a future that does not wait, as decisions in process do not. No executor is part of the measurement. Inlined as
/// `.await` is: as a function it would copy each output once more.
#[inline(always)]
pub(crate) fn now<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("a decision in process is ready at once"),
    }
}

/// Draws of so many keys, the n-th 1/n as often as the first, in an order that does not change.
pub(crate) fn zipf(keys: usize) -> Vec<u32> {
    let mut random = Random::default();
    let mut sum = 0.0;
    let sums: Vec<f64> = (1..=keys)
        .map(|rank| {
            sum += 1.0 / rank as f64;
            sum
        })
        .collect();
    let mut shuffled: Vec<u32> = (0..keys as u32).collect();
    for last in (1..keys).rev() {
        shuffled.swap(last, (random.next() % (last as u64 + 1)) as usize);
    }
    (0..CALLS)
        .map(|_| {
            let drawn = (random.next() >> 11) as f64 / (1_u64 << 53) as f64 * sum;
            shuffled[sums.partition_point(|&sum| sum < drawn).min(keys - 1)]
        })
        .collect()
}

fn uniform() -> Vec<u32> {
    let mut random = Random::default();
    (0..CALLS).map(|_| (random.next() % KEYS as u64) as u32).collect()
}

/// SplitMix64, always with the same seed.
#[derive(Default)]
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}
