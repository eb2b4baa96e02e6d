//! Measurements that need a process of their own: memory, and the longest call, which depends on what was allocated before.

use std::hint::black_box;
use std::process::Command;

use ratelimits::{Limiter, Registry, TokenBucket};

use crate::limiters::{governor_admitting, hourly};
use crate::machine::{resident_bytes, thread_time};
use crate::table::Line;
use crate::workload::{Key, now};

const MILLION: u64 = 1_000_000;

type Measurement = fn() -> Result<f64, String>;

const MEASUREMENTS: [(&str, Measurement); 6] = [
    ("bytes-per-key", bytes_per_key),
    ("governor-bytes-per-key", governor_bytes_per_key),
    ("longest-growing", || Ok(longest_call(&limiter(4 * MILLION), 0, MILLION))),
    ("longest-full", || Ok(longest_call(&limiter(MILLION), MILLION, MILLION))),
    ("longest-passing", || Ok(longest_call(&limiter(MILLION), 0, 10 * MILLION))),
    ("longest-writes", || Ok(longest_writes(10 * MILLION))),
];

pub(super) fn memory_per_key() -> Vec<Line> {
    let line = Line::new("memory per live key at 1M keys, by &str", "B", || start("bytes-per-key"))
        .against("governor by String", || start("governor-bytes-per-key"));
    vec![line.at_most(0.6).in_own_process()]
}

pub(super) fn longest_calls() -> Vec<Line> {
    let line = |(what, name): (&str, &'static str)| {
        Line::new(format!("longest {what}, worst of 3"), "ms", move || start(name))
            .in_own_process()
            .by_the_worst()
    };
    let calls = [
        ("call while 1M keys come", "longest-growing"),
        ("call while a full store makes room", "longest-full"),
        ("call while 10M keys pass through", "longest-passing"),
    ];
    let machine = line(("of 10M steps of 240 writes to 64 MB, without a limiter", "longest-writes"));
    calls.map(|call| line(call).at_most(1.0)).into_iter().chain([machine]).collect()
}

/// Makes one measurement in this process, and prints its result.
pub(crate) fn measure(name: &str) -> Result<(), String> {
    let (_, measurement) = MEASUREMENTS
        .iter()
        .find(|(known, _)| *known == name)
        .ok_or_else(|| format!("there is no measurement `{name}`"))?;
    println!("{}", measurement()?);
    Ok(())
}

/// Makes one measurement in a new process.
fn start(name: &str) -> f64 {
    let program = std::env::current_exe().expect("this program has a path");
    let output = Command::new(program).args(["measure", name]).output().expect("this program can be started");
    let text = String::from_utf8_lossy(&output.stdout);
    text.trim().parse().unwrap_or_else(|_| panic!("{name}: {}", String::from_utf8_lossy(&output.stderr)))
}

fn bytes_per_key() -> Result<f64, String> {
    let limiter = limiter(4 * MILLION);
    growth_per_key(|key| _ = black_box(now(limiter.try_acquire(key.text.as_str(), 1))))
}

fn governor_bytes_per_key() -> Result<f64, String> {
    let governor = governor_admitting::<String>();
    growth_per_key(|key| _ = black_box(governor.check_key(&key.text)))
}

fn growth_per_key(call: impl Fn(&Key)) -> Result<f64, String> {
    call(&Key::new(0));
    let before = resident_bytes()?;
    (1..=MILLION).for_each(|id| call(&Key::new(id)));
    Ok((resident_bytes()? - before) as f64 / MILLION as f64)
}

/// The longest call in milliseconds of processor time, among `timed` calls with new keys after `untimed` ones.
fn longest_call(limiter: &Limiter, untimed: u64, timed: u64) -> f64 {
    let call = |key| _ = black_box(now(limiter.try_acquire(key, 1)));
    (0..untimed).for_each(call);
    longest((untimed..untimed + timed).map(call))
}

/// The longest of as many steps as there are calls, which write to random places of as much memory and take about as long: what the
/// machine itself may add to a call.
fn longest_writes(steps: u64) -> f64 {
    let (mut memory, mut random) = (vec![0_u64; 8 << 20], 1_u64);
    longest((0..steps).map(|_| {
        for _ in 0..240 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let place = (random >> 32) as usize % memory.len();
            memory[place] = black_box(random);
        }
    }))
}

/// The longest step in milliseconds of processor time.
fn longest(steps: impl Iterator<Item = ()>) -> f64 {
    let mut before = thread_time();
    let times = steps.map(|()| {
        let after = thread_time();
        after - std::mem::replace(&mut before, after)
    });
    times.max().unwrap_or_default().as_secs_f64() * 1e3
}

/// A limiter whose keys all stay alive, in a store of its own.
fn limiter(max_keys: u64) -> Limiter {
    let registry = Registry::builder().max_keys(max_keys as usize).in_memory();
    registry.limiter("many", TokenBucket::new(hourly()).burst(10)).expect("the policy is valid")
}
