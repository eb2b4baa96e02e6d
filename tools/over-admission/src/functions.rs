//! The limited functions, and the same limits with other numbers.

use std::time::Duration;

use ratelimits::{
    ConcurrencyLimit, DecidedBy, Decision, Error, FixedWindow, Limiter, Policy, Registry, SlidingWindow,
    TokenBucket, concurrency_limit, count_limit, rate_limit, window_limit,
};
use tokio::time::sleep;

use crate::log::{middle, now};

/// An algorithm that is measured. Those of rate limits have about the same numbers, so that their lines can be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Algorithm {
    Bucket,
    Log,
    Counter,
    Window,
    Holds,
}

/// The numbers of a policy: what the functions have, what a new release has, and one permit too many, which has to be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Numbers {
    Old,
    New,
    Planted,
}

/// The rate of the buckets, per second.
pub(crate) const RATE: u64 = 10;

/// The burst of the buckets, and the limit of the windows.
pub(crate) const CAPACITY: u64 = 20;

/// The calls that may run at once.
pub(crate) const MAX: u64 = 4;

const PERIOD: Duration = Duration::from_secs(1);
const PRECISION: Duration = Duration::from_millis(100);

impl Algorithm {
    pub(crate) const ALL: [Algorithm; 5] =
        [Algorithm::Bucket, Algorithm::Log, Algorithm::Counter, Algorithm::Window, Algorithm::Holds];

    /// Those of rate limits, which are compared with other limiters.
    pub(crate) const RATES: &[Algorithm] = Algorithm::ALL.split_last().expect("there are some").1;

    /// Returns its name in logs and arguments.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Algorithm::Bucket => "bucket",
            Algorithm::Log => "log",
            Algorithm::Counter => "counter",
            Algorithm::Window => "window",
            Algorithm::Holds => "holds",
        }
    }

    pub(crate) fn find(name: &str) -> Option<Self> {
        Algorithm::ALL.into_iter().find(|algorithm| algorithm.name() == name)
    }

    /// Returns the policy with these numbers as `ratelimits verify` reads it.
    pub(crate) fn policy_text(self, numbers: Numbers) -> String {
        let (rate, capacity) = numbers.rate_and_capacity();
        match self {
            Algorithm::Bucket => format!("rate_limit(\"{rate}/s\", burst = {capacity})"),
            Algorithm::Log => format!("window_limit({capacity}, \"1s\")"),
            Algorithm::Counter => format!("window_limit({capacity}, \"1s\", precision = \"100ms\")"),
            Algorithm::Window => format!("count_limit({capacity}, \"1s\", aligned)"),
            Algorithm::Holds => format!("concurrency_limit({})", numbers.max()),
        }
    }

    fn policy(self, numbers: Numbers) -> Policy {
        let (rate, capacity) = numbers.rate_and_capacity();
        match self {
            Algorithm::Bucket => TokenBucket::per_second(rate).burst(capacity).into(),
            Algorithm::Log => SlidingWindow::new(capacity, PERIOD).into(),
            Algorithm::Counter => SlidingWindow::new(capacity, PERIOD).precision(PRECISION).into(),
            Algorithm::Window => FixedWindow::new(capacity, PERIOD).aligned().into(),
            Algorithm::Holds => ConcurrencyLimit::new(numbers.max()).into(),
        }
    }

    /// Returns the limit as a limiter. It is that of the function, if the numbers are.
    pub(crate) fn limiter(self, registry: &Registry, numbers: Numbers) -> Result<Limiter, Error> {
        registry.limiter(self.name(), self.policy(numbers))
    }
}

impl Numbers {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Numbers::Old => "old",
            Numbers::New => "new",
            Numbers::Planted => "planted",
        }
    }

    pub(crate) fn find(name: &str) -> Option<Self> {
        [Numbers::Old, Numbers::New, Numbers::Planted].into_iter().find(|numbers| numbers.name() == name)
    }

    fn rate_and_capacity(self) -> (u64, u64) {
        match self {
            Numbers::Old => (RATE, CAPACITY),
            Numbers::New => (2 * RATE, 2 * CAPACITY),
            Numbers::Planted => (RATE, CAPACITY + 1),
        }
    }

    /// Returns how many calls may run at once.
    fn max(self) -> u64 {
        match self {
            Numbers::Old => MAX,
            Numbers::New => 2 * MAX,
            Numbers::Planted => MAX + 1,
        }
    }
}

/// A call that was admitted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Admitted {
    /// Where it was decided.
    pub(crate) by: DecidedBy,
    /// As in its line of the log.
    pub(crate) time: u64,
    pub(crate) took: u64,
    pub(crate) held: Option<Duration>,
}

/// Calls the limited function of an algorithm. One that holds a permit runs for so long.
pub(crate) async fn call(algorithm: Algorithm, key: &str, runs: Duration) -> Result<Admitted, Error> {
    let start = now();
    let by = match algorithm {
        Algorithm::Bucket => bucket(key).await?,
        Algorithm::Log => log(key).await?,
        Algorithm::Counter => counter(key).await?,
        Algorithm::Window => window(key).await?,
        Algorithm::Holds => return holds(key, runs).await,
    };
    Ok(Admitted::decided(by, start))
}

/// Does the same by a limiter.
pub(crate) async fn acquire(
    algorithm: Algorithm,
    limiter: &Limiter,
    key: &str,
    runs: Duration,
) -> Result<Admitted, Error> {
    let start = now();
    let decision = limiter.try_acquire(key).await?;
    match algorithm {
        Algorithm::Holds => Ok(run(&decision, runs).await),
        _ => Ok(Admitted::decided(decision.source, start)),
    }
}

impl Admitted {
    /// Returns a call that began at this time and has been decided.
    fn decided(by: DecidedBy, start: u64) -> Self {
        let (time, took) = middle(start, now());
        Admitted { by, time, took, held: None }
    }
}

/// Runs for so long. Both times are read while the decision holds its permit.
async fn run(decision: &Decision, runs: Duration) -> Admitted {
    let time = now();
    sleep(runs).await;
    let held = Some(Duration::from_nanos(now().saturating_sub(time)));
    Admitted { by: decision.source, time, took: 0, held }
}

#[rate_limit("10/s", burst = 20, key = key, name = "bucket", bind = decision)]
async fn bucket(key: &str) -> Result<DecidedBy, Error> {
    Ok(decision.source)
}

#[window_limit(20, "1s", key = key, name = "log", bind = decision)]
async fn log(key: &str) -> Result<DecidedBy, Error> {
    Ok(decision.source)
}

#[window_limit(20, "1s", precision = "100ms", key = key, name = "counter", bind = decision)]
async fn counter(key: &str) -> Result<DecidedBy, Error> {
    Ok(decision.source)
}

#[count_limit(20, "1s", aligned, key = key, name = "window", bind = decision)]
async fn window(key: &str) -> Result<DecidedBy, Error> {
    Ok(decision.source)
}

#[concurrency_limit(4, key = key, name = "holds", bind = decision)]
async fn holds(key: &str, runs: Duration) -> Result<Admitted, Error> {
    Ok(run(&decision, runs).await)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_have_the_old_numbers() {
        let sites = ratelimits::policies();
        for algorithm in Algorithm::ALL {
            let site = sites.iter().find(|site| *site.name == *algorithm.name()).expect("it has a function");
            let text = algorithm.policy_text(Numbers::Old);
            let numbers: Vec<&str> =
                text.split(|c: char| !c.is_ascii_digit()).filter(|word| !word.is_empty()).collect();
            let written = format!("{site:?}");
            assert!(numbers.iter().all(|number| written.contains(number)), "{text}: {written}");
        }
    }
}
