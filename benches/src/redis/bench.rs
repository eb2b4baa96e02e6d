//! A server, a client, and a registry of the library, with the operations that lines compare.

use std::rc::Rc;
use std::time::Duration;

use ratelimits::{Limiter, Policy, Registry, TokenBucket};
use redis::cmd;

use super::load::{KEYS, Load, Operation, Usage, operation};
use super::script::{FIRST_KEY, Script};

/// How many tasks call at once, unless a line says otherwise.
const TASKS: usize = 256;
/// So long that no call misses it.
const DEADLINE: Duration = Duration::from_secs(60);

pub(crate) struct Bench {
    pub(crate) load: Rc<Load>,
    pub(super) registry: Registry,
}

/// A token bucket in either state that the budgets distinguish.
pub(crate) struct Bucket {
    pub(super) name: &'static str,
    per_second: u64,
    burst: u64,
    /// What the first call of each key takes.
    pub(super) debt: u64,
    keys: usize,
}

impl Bench {
    pub(crate) fn new() -> Result<Self, String> {
        let load = Load::new()?;
        let registry = connect(&load, true)?;
        Ok(Bench { load: Rc::new(load), registry })
    }

    /// A registry on the same server that asks it about every call, those of keys that it has just refused included.
    pub(super) fn always_asking(&self) -> Result<Registry, String> {
        connect(&self.load, false)
    }

    /// Calls of a limiter, with its buckets in the given state.
    pub(crate) fn by_limiter(&self, bucket: &Bucket) -> Operation {
        let limiter = self.limiter(bucket.name, bucket.policy().into());
        self.put_in_debt(bucket, |permits| acquire(&limiter, permits))
    }

    /// The script that a limiter calls, without the library.
    pub(super) fn by_our_script(&self, bucket: &Bucket) -> Operation {
        let limiter = self.limiter(bucket.name, bucket.policy().into());
        self.put_in_debt(bucket, |permits| {
            Script::ours(&self.load, &acquire(&limiter, permits)).operation(&self.load)
        })
    }

    /// The textbook GCRA script, with its buckets in the given state.
    pub(crate) fn by_textbook(&self, name: &str, bucket: &Bucket) -> Operation {
        let interval = 1_000_000 / bucket.per_second;
        let capacity = bucket.burst * interval;
        self.put_in_debt(bucket, |permits| {
            Script::gcra(&self.load, name, permits * interval, capacity).operation(&self.load)
        })
    }

    pub(crate) fn incr(&self) -> Operation {
        let connection = self.load.connection.clone();
        operation(move |key| {
            let mut connection = connection.clone();
            async move {
                let key = format!("incr:user:{key:05}");
                let _: i64 = cmd("INCR").arg(key).query_async(&mut connection).await.expect("INCR succeeds");
            }
        })
    }

    /// A figure of many tasks that repeat the operation.
    pub(super) fn of(&self, operation: Operation, figure: fn(&Usage) -> f64) -> impl FnMut() -> f64 + use<> {
        let load = Rc::clone(&self.load);
        move || figure(&load.measure(TASKS, &operation))
    }

    pub(super) fn limiter(&self, name: &str, policy: Policy) -> Limiter {
        self.registry.limiter(name, policy).expect("the policy is valid")
    }

    /// Takes the bucket's debt from each key, and returns the operation that takes one permit.
    fn put_in_debt(&self, bucket: &Bucket, take: impl Fn(u64) -> Operation) -> Operation {
        if bucket.debt > 0 {
            self.load.for_each_key(&take(bucket.debt));
        }
        let (operation, keys) = (take(1), bucket.keys);
        Rc::new(move |key| operation(key % keys))
    }
}

impl Bucket {
    /// Not full when a call comes: an hour in debt.
    pub(crate) const BUSY: Bucket =
        Bucket { name: "busy", per_second: 1000, burst: 1_000_000_000, debt: 3_600_000, keys: KEYS };
    /// Full again when the next call comes, of so few keys that Redis still has most of them: a new key costs more.
    pub(crate) const IDLE: Bucket =
        Bucket { name: "idle", per_second: 1_000_000, burst: 1_000_000, debt: 0, keys: 2000 };

    fn policy(&self) -> TokenBucket {
        TokenBucket::per_second(self.per_second).burst(self.burst)
    }
}

/// Calls of a limiter that are admitted.
pub(super) fn acquire(limiter: &Limiter, cost: u64) -> Operation {
    let limiter = limiter.clone();
    operation(move |key| {
        let limiter = limiter.clone();
        async move {
            limiter.try_acquire_n(FIRST_KEY + key, cost).await.expect("the policy admits the call");
        }
    })
}

fn connect(load: &Load, local_denials: bool) -> Result<Registry, String> {
    let builder = Registry::builder().deadline(DEADLINE).local_denials(local_denials);
    load.block_on(builder.connect(&load.url())).map_err(|error| error.to_string())
}
