//! Measurements that need a process of their own: memory, and the longest call, which depends on what was allocated before.

use std::hint::black_box;
use std::mem;
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
    ("longest-growing", || Ok(longest_call([4 * MILLION; 3], 0, MILLION))),
    ("longest-full", || Ok(longest_call([MILLION; 3], MILLION, MILLION))),
    ("longest-passing", || Ok(longest_call([MILLION; 3], 0, 10 * MILLION))),
    ("longest-passing-one", || Ok(longest_call([MILLION], 0, 10 * MILLION))),
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
    let with_pauses = line(("call through one store, with the machine's pauses", "longest-passing-one"));
    calls.map(|call| line(call).at_most(1.0)).into_iter().chain([with_pauses]).collect()
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
    growth_per_key(|key| _ = black_box(now(limiter.try_acquire(key.text.as_str()))))
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
///
/// Each call is made in several stores, and the shortest counts: a store takes about as long for a key as another in which the
/// same calls were made, but a pause of the machine falls into one of them.
fn longest_call<const N: usize>(max_keys: [u64; N], untimed: u64, timed: u64) -> f64 {
    // As in a program that has run for a while, allocations are from memory that was used before.
    (0..2).for_each(|_| drop(black_box(vec![1_u8; 31 << 20])));
    let limiters = max_keys.map(limiter);
    let call = |limiter: &Limiter, key| _ = black_box(now(limiter.try_acquire(key)));
    for key in 0..untimed {
        limiters.iter().for_each(|limiter| call(limiter, key));
    }
    let mut before = thread_time();
    let mut time = |limiter, key| {
        call(limiter, key);
        let after = thread_time();
        after - mem::replace(&mut before, after)
    };
    let shortest = |key| limiters.iter().map(|limiter| time(limiter, key)).min();
    let longest = (untimed..untimed + timed).filter_map(shortest).max();
    longest.unwrap_or_default().as_secs_f64() * 1e3
}

/// A limiter whose keys all stay alive, in a store of its own.
fn limiter(max_keys: u64) -> Limiter {
    let registry = Registry::builder().max_keys(max_keys as usize).in_memory();
    registry.limiter("many", TokenBucket::new(hourly()).burst(10)).expect("the policy is valid")
}
