//! Limiters by key against ours by the same key, and limiters without keys against ours by `()`.

use std::hint::black_box;
use std::rc::Rc;
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

use governor::DefaultDirectRateLimiter;
use leaky_bucket::RateLimiter as LeakyBucketLimiter;
use ratelimit::Ratelimiter;
use throttlecrab::AdaptiveStore;
use trypema::local::LocalRateLimiterProvider;
use trypema::{BucketSize, RateLimit, RateLimiterBuilder, WindowSize};

use crate::limiters::{admitting, governor_admitting, governor_quota};
use crate::table::Line;
use crate::workload::{Key, Workload, now};

const BILLION: u32 = 1_000_000_000;

pub(super) fn lines() -> Vec<Line> {
    [
        by_text("governor", governor()),
        by_text("throttlecrab in a Mutex", throttlecrab()),
        by_text("trypema", trypema()),
    ]
    .into_iter()
    .flatten()
    .chain(without_key())
    .collect()
}

fn governor() -> impl Fn(&Key) + Clone {
    let governor = Rc::new(governor_admitting::<String>());
    move |key| _ = black_box(governor.check_key(&key.text))
}

fn throttlecrab() -> impl Fn(&Key) + Clone {
    let limiter = Rc::new(Mutex::new(throttlecrab::RateLimiter::new(AdaptiveStore::new())));
    let (burst, period, per_period) = (i64::from(BILLION), 60, i64::from(BILLION));
    move |key| {
        let mut limiter = limiter.lock().expect("no call panics");
        _ = black_box(limiter.rate_limit(&key.text, burst, per_period, period, 1, SystemTime::now()));
    }
}

fn trypema() -> impl Fn(&Key) + Clone {
    let provider = LocalRateLimiterProvider::builder()
        .window_size(WindowSize::minutes_or_panic(1))
        .bucket_size(BucketSize::milliseconds_or_panic(100))
        .disable_cleanup()
        .build()
        .expect("a valid window");
    let rate = RateLimit::per_second_or_panic(f64::from(BILLION));
    move |key| _ = black_box(provider.absolute().inc(&key.text, &rate, 1))
}

fn by_text(peer: &str, theirs: impl Fn(&Key) + Clone + 'static) -> Vec<Line> {
    let ours = admitting("text");
    let line = |workload: Workload| {
        let (ours, theirs) = (ours.clone(), theirs.clone());
        let ours = move |key: &Key| _ = black_box(now(ours.try_acquire(key.text.as_str())));
        Line::new(format!("by &str, {}", workload.name()), "ns", move || workload.time(&ours))
            .against(peer, move || workload.time(&theirs))
    };
    Workload::ALL.map(line).into()
}

fn without_key() -> Vec<Line> {
    let governor = DefaultDirectRateLimiter::direct(governor_quota());
    let ratelimit = Ratelimiter::builder(u64::from(BILLION)).initial_available(u64::from(BILLION)).build();
    let ratelimit = ratelimit.expect("a valid rate");
    let leaky_bucket = LeakyBucketLimiter::builder()
        .max(BILLION as usize)
        .initial(BILLION as usize)
        .refill(BILLION as usize)
        .interval(Duration::from_millis(1))
        .build();
    let line = |peer: &str, theirs: Box<dyn Fn()>| {
        let ours = admitting("unkeyed");
        Line::new("no key", "ns", move || Workload::Hot.time(|_| _ = black_box(now(ours.try_acquire(())))))
            .against(peer, move || Workload::Hot.time(|_| theirs()))
    };
    vec![
        line("governor", Box::new(move || _ = black_box(governor.check()))),
        line("ratelimit", Box::new(move || _ = black_box(ratelimit.try_wait()))),
        line("leaky-bucket", Box::new(move || _ = black_box(leaky_bucket.try_acquire(1)))),
    ]
}
