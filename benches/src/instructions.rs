//! The hot paths that `benches/instructions` counts the instructions of.

#[cfg(feature = "overrides")]
use std::cell::Cell;
use std::hint::black_box;
use std::time::{Duration, Instant};

use ratelimits::observe::Observation;
use ratelimits::{ConcurrencyLimit, Registry};

use crate::functions;
use crate::limiters::{admitting, admitting_policy, refusing};
#[cfg(feature = "overrides")]
use crate::overridden::{self, Overridden};
use crate::workload::{Key, now};

/// How long calls are made before those that are counted, until everything that is made once exists and the clock has found the
/// pace of the processor's counter.
const WARM_UP: Duration = Duration::from_secs(1);

type Call = Box<dyn Fn(&Key)>;

/// Prints the names of the paths.
pub(crate) fn list() {
    for (name, _) in paths() {
        println!("{name}");
    }
}

/// Makes some calls of a path with one key.
pub(crate) fn repeat(path: &str, calls: &str) -> Result<(), String> {
    let calls = calls.parse().map_err(|_| format!("`{calls}` is not a number"))?;
    let (_, call) = paths()
        .into_iter()
        .find(|(name, _)| *name == path)
        .ok_or_else(|| format!("there is no path `{path}`"))?;
    let key = Key::new(7);
    // Before the time is taken, as it makes what takes long.
    call(&key);
    let start = Instant::now();
    while start.elapsed() < WARM_UP {
        count(100, &key, &call);
    }
    counted(calls, &key, &call);
    Ok(())
}

/// Callgrind counts only within this function.
#[inline(never)]
fn counted(calls: u64, key: &Key, call: &Call) {
    count(calls, key, call);
}

fn count(calls: u64, key: &Key, call: &Call) {
    for _ in 0..calls {
        call(black_box(key));
    }
}

fn paths() -> Vec<(&'static str, Call)> {
    let (by_id, by_text, peeked, refused) =
        (admitting("id"), admitting("text"), admitting("peek"), refusing("refused"));
    let registry = Registry::in_memory();
    let three =
        ["a", "b", "c"].map(|name| registry.limiter(name, admitting_policy()).expect("the policy is valid"));
    let alone = registry.clone();
    let one = alone.limiter("alone", admitting_policy()).expect("the policy is valid");
    let (unobserved, observed) =
        (Registry::in_memory(), Registry::builder().observer(|_: &Observation<'_>| {}).in_memory());
    let refunded = admitting("refunded");
    let held = registry.limiter("held", ConcurrencyLimit::new(1_000_000)).expect("the policy is valid");
    let paths = vec![
        path("annotated, u64 key", |key| now(functions::by_id(key))),
        path("annotated, str key", |key| now(functions::by_text(key))),
        path("annotated, METHOD key", |key| now(functions::by_method(key))),
        path("limiter, u64 key", move |key| now(by_id.try_acquire(key.id))),
        path("limiter, &str key", move |key| now(by_text.try_acquire(key.text.as_str()))),
        path("annotated, refused", |key| now(functions::refused(key))),
        path("annotated, refused by one of two", |key| now(functions::refused_by_one_of_two(key))),
        path("annotated, refused in a registry", move |key| now(functions::refused_in(&unobserved, key))),
        path("annotated, refused, observed", move |key| now(functions::refused_in(&observed, key))),
        path("limiter, refused", move |key| now(refused.try_acquire(key.id))),
        path("annotated, three policies", |key| now(functions::three_policies(key))),
        path("annotated, four policies", |key| now(functions::four_policies(key))),
        path("annotated, fixed window", |key| now(functions::fixed_window(key))),
        path("annotated, aligned window", |key| now(functions::aligned_window(key))),
        path("annotated, interval refill", |key| now(functions::interval_refill(key))),
        path("annotated, warming up", |key| now(functions::warming_up(key))),
        path("annotated, calendar window", |key| now(functions::calendar_window(key))),
        path("annotated, sliding window counter", |key| now(functions::counter(key))),
        path("try_acquire_all of one", move |key| now(alone.try_acquire_all([one.charge(key.id)]))),
        path("try_acquire_all of three", move |key| {
            now(registry.try_acquire_all(three.each_ref().map(|limiter| limiter.charge(key.id))))
        }),
        path("annotated, hold", |key| now(functions::held(key))),
        path("limiter, hold", move |key| now(held.try_acquire(key.id))),
        path("annotated, bucket and hold", |key| now(functions::held_beside_one(key))),
        path("annotated, bucket, window and hold", |key| now(functions::held_beside_two(key))),
        path("not async, u64 key", functions::blocking),
        path("not async, refused", functions::blocking_refused),
        path("not async, three policies", functions::blocking_three_policies),
        path("not async, hold", functions::blocking_held),
        path("limiter, refunded", move |key| now(refunded.try_acquire(key.id)).map(|it| now(it.refund()))),
        path("limiter, peek", move |key| now(peeked.peek(key.id))),
    ];
    #[cfg(feature = "overrides")]
    let paths: Vec<_> = paths.into_iter().chain(overridden()).collect();
    #[cfg(feature = "redis")]
    let paths = paths.into_iter().chain(crate::redis::calls::paths()).collect();
    paths
}

/// Calls of policies of which something is overridden. Made with many keys in turn, as what one costs depends on the random seed.
#[cfg(feature = "overrides")]
fn overridden() -> impl Iterator<Item = (&'static str, Call)> {
    let path = |name, call: Call| {
        let (keys, next): (Vec<_>, _) = ((0..64).map(Key::new).collect(), Cell::new(0));
        let call = move |_: &Key| {
            call(&keys[next.get()]);
            next.set((next.get() + 1) % keys.len());
        };
        (name, Box::new(call) as Call)
    };
    [
        path("literal, not overridden", overridden::literal_call(Overridden::Nothing)),
        path("literal, overridden by name", overridden::literal_call(Overridden::ByName)),
        path("literal, other keys overridden", overridden::literal_call(Overridden::OtherKeys)),
        path("literal, overridden key", overridden::literal_call(Overridden::Keys)),
        path("computed, not overridden", overridden::computed_call(Overridden::Nothing)),
        path("computed, overridden by name", overridden::computed_call(Overridden::ByName)),
        path("computed, other keys overridden", overridden::computed_call(Overridden::OtherKeys)),
        path("computed, overridden key", overridden::computed_call(Overridden::Keys)),
    ]
    .into_iter()
}

fn path<T, E>(name: &'static str, call: impl Fn(&Key) -> Result<T, E> + 'static) -> (&'static str, Call) {
    (name, Box::new(move |key| _ = black_box(call(key).is_ok())))
}
