//! A process with the registry of the library, and what its calls tell.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ratelimits::observe::{CallOutcome, Observation};
use ratelimits::{DecidedBy, Decision, Error, Limiter, OnStoreError, PolicyHandle, Registry};

use super::bounds::Numbers;
use super::network::Link;
use super::notices::Notices;
use super::overridden::Overrides;
use super::target::Target;

pub(super) const HOLD_TTL: Duration = Duration::from_secs(3);

tokio::task_local! {
    /// What observers have seen of the call of this task. Attributes do not show it.
    static SEEN: Cell<Seen>;
}

#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    source: Option<DecidedBy>,
    penalty: Option<Duration>,
}

/// What became of a call.
pub(super) struct Called {
    pub(super) result: Result<(DecidedBy, Option<Decision>), Error>,
    /// For how long the store pauses the key because it was refused.
    pub(super) penalty: Option<Duration>,
}

#[derive(Debug)]
pub(super) struct Process {
    pub(super) id: usize,
    pub(super) link: Link,
    registry: Registry,
    limiters: Vec<Limiter>,
    /// Those of attributes whose numbers are those of each call.
    handles: Vec<Option<PolicyHandle>>,
    targets: Vec<Target>,
    /// What is in force, and what was before, with the times since when.
    overrides: Mutex<Vec<(u64, Overrides)>>,
    is_dead: AtomicBool,
}

/// A call of a process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub(super) target: usize,
    pub(super) key: u64,
    pub(super) cost: u64,
    /// For how long it may wait.
    pub(super) wait: Option<Duration>,
    /// The burst of a bucket whose size changes.
    pub(super) burst: u64,
}

impl Seen {
    fn with(self, seen: &Observation<'_>) -> Self {
        match seen.outcome {
            CallOutcome::Paused if seen.source == Some(DecidedBy::Local) => self,
            CallOutcome::Paused => Seen { penalty: seen.paused(), ..self },
            CallOutcome::Admitted => Seen { source: seen.source, ..self },
            _ => self,
        }
    }
}

impl Process {
    /// Without a mode for when the server fails, there is none: it decides alone.
    pub(super) fn start(
        id: usize,
        link: Link,
        targets: &[Target],
        (instances, mode): (u32, Option<OnStoreError>),
        notices: &Arc<Notices>,
    ) -> Arc<Self> {
        let notices = Arc::clone(notices);
        let registry = Registry::builder().instances(instances).hold_ttl(HOLD_TTL).observer(move |seen| {
            notices.take(seen);
            let _ = SEEN.try_with(|of_call| of_call.set(of_call.get().with(seen)));
        });
        let registry = match mode {
            Some(mode) => registry.on_store_error(mode).over(link.clone()),
            None => registry.in_memory(),
        };
        let handle = |target: &Target| {
            let name = target.attribute()?;
            Some(registry.policy(name).expect("the attribute exists"))
        };
        let handles: Vec<_> = targets.iter().map(handle).collect();
        let limiter = |(number, target): (usize, &Target)| match &handles[number] {
            _ if target.is_function() => {
                registry.policy(&target.name(number)).expect("the function exists").limiter()
            }
            Some(handle) => handle.limiter_with(target.policy()),
            None => registry.limiter(&target.name(number), target.policy()),
        };
        let limiters: Result<_, _> = targets.iter().enumerate().map(limiter).collect();
        let limiters = limiters.expect("the policies are valid");
        let (targets, is_dead, overrides) = (targets.to_vec(), AtomicBool::new(false), Mutex::default());
        Arc::new(Process { id, link, registry, limiters, handles, targets, overrides, is_dead })
    }

    /// Has it decide by other numbers from now on.
    pub(super) fn override_now(&self, now: u64, overrides: &Overrides) {
        self.registry.override_now(&overrides.text(&self.targets)).expect("the overrides are valid");
        self.overrides.lock().unwrap().push((now, overrides.clone()));
    }

    /// Returns what is in force as it is printed.
    pub(super) fn shown_overrides(&self) -> String {
        let overrides = self.overrides.lock().unwrap();
        format!("{:?} in {}", overrides.last(), self.id)
    }

    /// Returns the numbers in force for a call now: the largest that were since leases may have been taken.
    pub(super) fn numbers(&self, request: &Request, now: u64) -> Numbers {
        let target = &self.targets[request.target];
        let written = target.with_burst(request.burst).unwrap_or_else(|| target.numbers());
        let overrides = self.overrides.lock().unwrap();
        let all = overrides.iter().map(|(since, all)| (*since, all.of(request.target, request.key)));
        let all: Vec<_> = [(0, None)].into_iter().chain(all).collect();
        let of = |of: Option<Numbers>| of.unwrap_or(written);
        let (mut numbers, mut until) = (of(all[all.len() - 1].1), u64::MAX);
        for (since, one) in all.into_iter().rev() {
            let one = of(one);
            if until.saturating_add(target.lease_life()) >= now
                && target.is_leased()
                && one.is_overridden == numbers.is_overridden
            {
                numbers = numbers.with_larger(one);
            }
            until = since;
        }
        numbers
    }

    pub(super) fn die(&self) {
        self.is_dead.store(true, Ordering::Relaxed);
        self.link.die();
    }

    pub(super) fn is_dead(&self) -> bool {
        self.is_dead.load(Ordering::Relaxed)
    }

    pub(super) fn limiter(&self, target: usize) -> &Limiter {
        &self.limiters[target]
    }

    pub(super) async fn call(&self, request: Request) -> Called {
        let Request { target, key, cost, .. } = request;
        if !self.targets[target].is_function() {
            return Called { result: self.call_limiter(request).await, penalty: None };
        }
        let call = self.targets[target].call(&self.registry, key, cost);
        let call = async { (call.await, SEEN.get().get()) };
        let (result, Seen { source, penalty }) = SEEN.scope(Cell::default(), call).await;
        let result = result.map(|()| (source.expect("admitted calls are observed"), None));
        Called { result, penalty }
    }

    /// Calls, and returns who has decided.
    async fn call_limiter(&self, request: Request) -> Result<(DecidedBy, Option<Decision>), Error> {
        let Request { target, key, cost, wait, burst } = request;
        let limiter = match (&self.handles[target], self.targets[target].with_burst(burst)) {
            (Some(handle), Some(numbers)) => {
                let policy = self.targets[target].with(numbers).policy();
                handle.limiter_with(policy).expect("the policy is valid")
            }
            _ => self.limiters[target].clone(),
        };
        let decision = match wait {
            Some(wait) => limiter.acquire_n_timeout(key, cost, wait).await?,
            None => limiter.try_acquire_n(key, cost).await?,
        };
        Ok((decision.source, Some(decision)))
    }

    /// Calls by two policies at once.
    pub(super) async fn call_both(&self, requests: [Request; 2]) -> Result<Decision, Error> {
        let charges =
            requests.map(|request| self.limiters[request.target].charge_n(request.key, request.cost));
        self.registry.try_acquire_all(charges).await
    }
}
