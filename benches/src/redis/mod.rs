//! What a decision in Redis costs: the second table of the design's budgets, in its order, as far as the library can do
//! what it names.

mod load;
mod script;
mod server;

use std::rc::Rc;
use std::time::Duration;

use ratelimits::{Error, FixedWindow, Limiter, Policy, Registry, SlidingWindow, TokenBucket, rate_limit};

use crate::table::{self, Line, Options};
use script::Script;

pub(crate) use load::{Load, Operation, operation};

const TASKS: usize = 256;

/// So long that no call misses it.
const DEADLINE: Duration = Duration::from_secs(60);

pub(crate) fn run(options: &Options) -> Result<(), String> {
    let bench = Bench::new()?;
    let lines = vec![
        bench.one_decision(&Bucket::BUSY).at_least(1.4),
        bench.one_decision(&Bucket::IDLE).at_least(1.05),
        bench.one_task(),
        bench.three_buckets(),
        bench.server_time("fixed window", FixedWindow::new(1_000_000_000, Duration::from_secs(3600)).into()),
        bench.server_time("sliding window counter", counter().into()),
        bench.limited_hot_key()?,
    ];
    table::run("In Redis", lines, 5, options);
    Ok(())
}

fn counter() -> SlidingWindow {
    SlidingWindow::new(1_000_000_000, Duration::from_secs(60)).precision(Duration::from_secs(1))
}

#[rate_limit(1000.0, 1_000_000_000, key = user, cost = cost, registry = registry)]
#[rate_limit(1000.0, 1_000_000_000, key = user, cost = cost, registry = registry)]
#[rate_limit(1000.0, 1_000_000_000, key = user, cost = cost, registry = registry)]
async fn three_buckets(registry: &Registry, user: usize, cost: u64) -> Result<(), Error> {
    Ok(())
}

/// A token bucket in either state that the budgets distinguish.
pub(crate) struct Bucket {
    name: &'static str,
    per_second: u64,
    burst: u64,
    /// What the first call of each key takes.
    debt: u64,
}

impl Bucket {
    /// Not full when a call comes: an hour in debt.
    pub(crate) const BUSY: Bucket =
        Bucket { name: "busy", per_second: 1000, burst: 1_000_000_000, debt: 3_600_000 };
    /// Full again when the next call comes.
    pub(crate) const IDLE: Bucket = Bucket { name: "idle", per_second: 1_000_000, burst: 1_000_000, debt: 0 };

    fn policy(&self) -> TokenBucket {
        TokenBucket::per_second(self.per_second).burst(self.burst)
    }
}

/// A server with a client, and a registry of the library.
pub(crate) struct Bench {
    pub(crate) load: Rc<Load>,
    registry: Registry,
}

impl Bench {
    pub(crate) fn new() -> Result<Self, String> {
        let load = Load::new()?;
        let builder = Registry::builder().deadline(DEADLINE);
        let registry = load.block_on(builder.connect(&load.url())).map_err(|error| error.to_string())?;
        Ok(Bench { load: Rc::new(load), registry })
    }

    /// Calls of a limiter, with its buckets in the given state.
    pub(crate) fn by_limiter(&self, bucket: &Bucket) -> Operation {
        let limiter = self.limiter(bucket.name, bucket.policy().into());
        self.put_in_debt(bucket, |permits| acquire(&limiter, permits))
    }

    /// The textbook script, with its buckets in the given state.
    pub(crate) fn by_textbook(&self, name: &str, bucket: &Bucket) -> Operation {
        let interval = 1_000_000 / bucket.per_second;
        let capacity = bucket.burst * interval;
        self.put_in_debt(bucket, |permits| {
            Script::textbook(&self.load, name, permits * interval, capacity).operation(&self.load)
        })
    }

    /// The scripts without the library.
    fn one_decision(&self, bucket: &Bucket) -> Line {
        let ours = self.by_our_script(bucket);
        let textbook = self.by_textbook(bucket.name, bucket);
        let line = Line::new(
            format!("one token bucket decision a call, {}", bucket.name),
            "/s",
            self.throughput(ours),
        );
        line.against("textbook GCRA script", self.throughput(textbook))
    }

    fn one_task(&self) -> Line {
        let (limiter, script) = (self.by_limiter(&Bucket::BUSY), self.by_our_script(&Bucket::BUSY));
        let latency = |operation: Operation| {
            let load = Rc::clone(&self.load);
            move || load.latency(&operation)
        };
        Line::new("one task, nothing in flight: p50", "µs", latency(limiter))
            .against("our own script alone", latency(script))
            .at_most(1.05)
    }

    fn three_buckets(&self) -> Line {
        let annotated = |cost| {
            let registry = self.registry.clone();
            operation(move |key| {
                let registry = registry.clone();
                async move { three_buckets(&registry, key, cost).await.expect("the buckets hold enough") }
            })
        };
        self.load.for_each_key(&annotated(Bucket::BUSY.debt));
        let textbook = ["first", "second", "third"].map(|name| self.by_textbook(name, &Bucket::BUSY));
        let textbook = operation(move |key| {
            let calls = textbook.each_ref().map(|call| call(key));
            async move {
                for call in calls {
                    call.await;
                }
            }
        });
        Line::new("three token buckets on a call", "/s", self.throughput(annotated(1)))
            .against("three calls of the textbook script", self.throughput(textbook))
            .at_least(2.0)
    }

    fn server_time(&self, name: &str, policy: Policy) -> Line {
        let script = Script::ours(&self.load, &acquire(&self.limiter(name, policy), 1)).operation(&self.load);
        let textbook = self.by_textbook(Bucket::BUSY.name, &Bucket::BUSY);
        let server_time = |operation: Operation| {
            let load = Rc::clone(&self.load);
            move || load.server_time(TASKS, &operation)
        };
        Line::new(format!("{name}: server's processor time"), "µs", server_time(script))
            .against("textbook GCRA script", server_time(textbook))
            .at_most(1.1)
    }

    /// One key whose bucket refills ten permits a second, of which the load takes all.
    fn limited_hot_key(&self) -> Result<Line, String> {
        let asking = Registry::builder().deadline(DEADLINE).local_denials(false);
        let asking =
            self.load.block_on(asking.connect(&self.load.url())).map_err(|error| error.to_string())?;
        let throughput = |registry: &Registry| {
            let policy = TokenBucket::per_second(10);
            let limiter = registry.limiter("limited", policy).expect("the policy is valid");
            self.throughput(operation(move |_| {
                let limiter = limiter.clone();
                async move {
                    let result = limiter.try_acquire("hot", 1).await;
                    assert!(result.is_ok() || result.is_err_and(|error| error.is_limited()));
                }
            }))
        };
        let line = Line::new("limited hot key, answered locally", "/s", throughput(&self.registry));
        Ok(line.against("always asking Redis", throughput(&asking)).at_least(100.0))
    }

    /// Our own script without the library.
    fn by_our_script(&self, bucket: &Bucket) -> Operation {
        let limiter = self.limiter(bucket.name, bucket.policy().into());
        self.put_in_debt(bucket, |permits| {
            Script::ours(&self.load, &acquire(&limiter, permits)).operation(&self.load)
        })
    }

    /// Takes the bucket's debt from each key, and returns the operation that takes one permit.
    fn put_in_debt(&self, bucket: &Bucket, take: impl Fn(u64) -> Operation) -> Operation {
        if bucket.debt > 0 {
            self.load.for_each_key(&take(bucket.debt));
        }
        take(1)
    }

    fn limiter(&self, name: &str, policy: Policy) -> Limiter {
        self.registry.limiter(name, policy).expect("the policy is valid")
    }

    fn throughput(&self, operation: Operation) -> impl FnMut() -> f64 + 'static {
        let load = Rc::clone(&self.load);
        move || load.throughput(TASKS, &operation)
    }
}

fn acquire(limiter: &Limiter, cost: u64) -> Operation {
    let limiter = limiter.clone();
    operation(move |key| {
        let limiter = limiter.clone();
        async move {
            limiter.try_acquire(script::FIRST_KEY + key, cost).await.expect("the policy admits the call");
        }
    })
}
