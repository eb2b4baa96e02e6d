//! Other rate limiters in process: `over-admission-peers NAME BURSTS LOG`. Two threads call four keys during the bursts, which are
//! `START-END,…` in Unix milliseconds, and write a line for each call that is admitted. Prints how many were refused.
#![forbid(unsafe_code)]

use std::collections::HashMap;
use std::convert::Infallible;
use std::fs::File;
use std::io::{self, Write};
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, SystemTime};

use governor::{Quota, RateLimiter};
use limitador::limit::{Context, Limit};
use tower::limit::RateLimit;
use tower::limit::rate::Rate;
use tower::{Service, ServiceExt, service_fn};

const THREADS: usize = 2;
const KEYS: [&str; 4] = ["key-0", "key-1", "key-2", "key-3"];
const SECOND: Duration = Duration::from_secs(1);

/// Between two calls of a caller.
const PAUSE: Duration = Duration::from_millis(1);

type Check = Arc<dyn Fn(&str) -> bool + Send + Sync>;

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [name, bursts, log] = arguments.as_slice() else {
        return Err(io::Error::other("usage: over-admission-peers NAME BURSTS LOG"));
    };
    let calls =
        Arc::new(Calls { bursts: parse(bursts)?, log: File::create(log)?, refused: AtomicU64::new(0) });
    match name.as_str() {
        "governor" => calls.of_all_threads(governor()),
        "limitador" => calls.of_all_threads(limitador()),
        "throttlecrab" => calls.of_all_threads(throttlecrab()),
        "tower" => Arc::clone(&calls).of_tower()?,
        _ => return Err(io::Error::other(format!("no peer {name}"))),
    }
    println!("{}", calls.refused.load(Ordering::Relaxed));
    Ok(())
}

fn governor() -> Check {
    let quota = Quota::per_second(NonZeroU32::new(10).expect("10 is not 0"));
    let limiter = RateLimiter::keyed(quota.allow_burst(NonZeroU32::new(20).expect("20 is not 0")));
    Arc::new(move |key| limiter.check_key(&key.to_owned()).is_ok())
}

fn limitador() -> Check {
    let limiter = limitador::RateLimiter::new(1_000);
    limiter.add_limit(Limit::new("peers", 20, 1, vec![], vec!["key".try_into().expect("a variable")]));
    Arc::new(move |key| {
        let context = Context::from(HashMap::from([("key".to_owned(), key.to_owned())]));
        let checked = limiter.check_rate_limited_and_update(&"peers".into(), &context, 1);
        !checked.expect("it is in memory").limited
    })
}

fn throttlecrab() -> Check {
    let limiter = Mutex::new(throttlecrab::RateLimiter::new(throttlecrab::AdaptiveStore::new()));
    Arc::new(move |key| {
        let mut limiter = limiter.lock().expect("no call panics");
        let (is_allowed, _) =
            limiter.rate_limit(key, 20, 10, 1, 1, SystemTime::now()).expect("valid numbers");
        is_allowed
    })
}

struct Calls {
    bursts: Vec<(u64, u64)>,
    log: File,
    refused: AtomicU64,
}

impl Calls {
    fn of_all_threads(&self, check: Check) {
        thread::scope(|scope| {
            for number in 0..THREADS {
                let check = Arc::clone(&check);
                scope.spawn(move || self.of_thread(number, &check));
            }
        });
    }

    fn of_thread(&self, number: usize, check: &Check) {
        for call in number.. {
            let key = KEYS[call % KEYS.len()];
            match self.wait(now() / 1_000_000) {
                None => return,
                Some(0) => {}
                Some(wait) => thread::sleep(Duration::from_millis(wait)),
            }
            let start = now();
            let is_admitted = check(key);
            if is_admitted {
                self.admit(key, start, now());
            } else {
                self.refused.fetch_add(1, Ordering::Relaxed);
            }
            thread::sleep(PAUSE);
        }
    }

    /// tower's layer refuses nothing: a service is ready once a call may start. Each key has a service.
    fn of_tower(self: Arc<Self>) -> io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
        let local = tokio::task::LocalSet::new();
        for key in KEYS {
            let calls = Arc::clone(&self);
            local.spawn_local(async move {
                let mut service =
                    RateLimit::new(service_fn(|()| async { Ok::<_, Infallible>(()) }), Rate::new(20, SECOND));
                while let Some(wait) = calls.wait(now() / 1_000_000) {
                    tokio::time::sleep(Duration::from_millis(wait)).await;
                    let ready = service.ready().await.expect("it does not fail");
                    let start = now();
                    let response = ready.call(());
                    calls.admit(key, start, now());
                    response.await.expect("it does not fail");
                    tokio::time::sleep(PAUSE).await;
                }
            });
        }
        runtime.block_on(local);
        Ok(())
    }

    /// Returns how many milliseconds it is from this time to the next burst, if there is one.
    fn wait(&self, now: u64) -> Option<u64> {
        let (start, _) = self.bursts.iter().find(|(_, end)| now < *end)?;
        Some(start.saturating_sub(now))
    }

    fn admit(&self, key: &str, start: u64, end: u64) {
        let took = end.saturating_sub(start);
        let time = start + took / 2;
        let line = format!("{{\"time\":{time},\"took\":{took},\"key\":\"{key}\"}}\n");
        (&self.log).write_all(line.as_bytes()).expect("the log can be written");
    }
}

/// Returns the time since the Unix epoch in nanoseconds.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    since.as_nanos().try_into().unwrap_or(u64::MAX)
}

fn parse(bursts: &str) -> io::Result<Vec<(u64, u64)>> {
    let burst = |text: &str| {
        let (start, end) = text.split_once('-')?;
        Some((start.parse().ok()?, end.parse().ok()?))
    };
    let bursts: Option<Vec<_>> = bursts.split(',').map(burst).collect();
    bursts.ok_or_else(|| io::Error::other("bursts are START-END,… in Unix milliseconds"))
}
