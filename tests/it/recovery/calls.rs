//! Calls that come all the time, and what became of them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ratelimit_runtime::store::{Charge, Key, RedisStore, Store};
use ratelimits::{FixedWindow, Policy};
use tokio::runtime::Handle;

use crate::support::stalls::Stalls;
use crate::support::until::until;

const WITHIN: Duration = Duration::from_secs(30);

/// Stopped when it is dropped.
#[derive(Debug)]
pub(super) struct Calls {
    log: Arc<Mutex<Vec<Call>>>,
    task: tokio::task::AbortHandle,
    stalls: Stalls,
}

#[derive(Clone, Copy, Debug)]
struct Call {
    began: Instant,
    ended: Instant,
    answered: bool,
}

impl Calls {
    /// Begins them on this key, one after another, and waits for the first answer.
    pub(super) async fn begin(store: &Store, key: &str, pace: Duration) -> Calls {
        Calls::begin_on(&Handle::current(), store, key, pace).await
    }

    /// As [`begin`](Self::begin), on another runtime.
    pub(super) async fn begin_on(runtime: &Handle, store: &Store, key: &str, pace: Duration) -> Calls {
        let calls = Calls::begin_unanswered(runtime, store, key, pace);
        calls.answered_after(Instant::now()).await;
        calls
    }

    /// Of a server that may be down.
    pub(super) fn begin_unanswered(runtime: &Handle, store: &Store, key: &str, pace: Duration) -> Calls {
        let log = Arc::<Mutex<Vec<Call>>>::default();
        let task = runtime.spawn(make(store.clone(), charge(key), pace, Arc::clone(&log))).abort_handle();
        Calls { log, task, stalls: Stalls::watch() }
    }

    /// Waits for a call that begins after this moment and fails.
    pub(super) async fn fail_after(&self, since: Instant) {
        self.find("a call fails", |call| !call.answered && call.began >= since).await;
    }

    /// How long after this moment a call was answered.
    pub(super) async fn answered_after(&self, since: Instant) -> Duration {
        let call = self.find("a call is answered", |call| call.answered && call.ended >= since).await;
        call.ended.duration_since(since)
    }

    /// How many calls waited in vain for all of their time after this moment.
    pub(super) fn late_after(&self, since: Instant) -> u64 {
        let is_late = |call: &&Call| !call.answered && call.ended >= call.began + RedisStore::DEADLINE;
        self.log().iter().filter(|call| call.ended >= since).filter(is_late).count() as u64
    }

    /// Every call was answered after this moment. On a busy machine some are late, and after five of them others fail at once.
    pub(super) fn hold_after(&self, since: Instant) {
        let failed = self.log().iter().filter(|call| call.ended >= since && !call.answered).count() as u64;
        let late = self.late_after(since);
        assert!(failed == late || late >= 5, "{failed} calls failed, of which {late} were late");
    }

    /// How long the machine stood still at the most.
    pub(super) fn stalled(&self) -> Duration {
        self.stalls.longest()
    }

    /// How long a call took at the most.
    pub(super) fn longest(&self) -> Duration {
        let took = |call: &Call| call.ended.duration_since(call.began);
        self.log().iter().map(took).max().unwrap_or_default()
    }

    async fn find(&self, what: &str, is_it: impl Fn(&Call) -> bool) -> Call {
        until(what, WITHIN, async || {
            let log = self.log();
            log.iter()
                .copied()
                .find(&is_it)
                .ok_or_else(|| format!("the last of {} is {:?}", log.len(), log.last()))
        })
        .await
    }

    fn log(&self) -> MutexGuard<'_, Vec<Call>> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Calls {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn make(store: Store, charge: Charge, pace: Duration, log: Arc<Mutex<Vec<Call>>>) {
    loop {
        let began = Instant::now();
        let answered = store.decide(&[std::slice::from_ref(&charge)]).await.remove(0).is_ok();
        let call = Call { began, ended: Instant::now(), answered };
        log.lock().unwrap_or_else(PoisonError::into_inner).push(call);
        tokio::time::sleep(pace).await;
    }
}

fn charge(key: &str) -> Charge {
    let policy: Policy = FixedWindow::new(1_000_000, Duration::from_secs(3600)).into();
    let spec = policy.spec().expect("the policy is valid");
    Charge { key: Key::raw(key), spec, cost: 1, wait: 0, shadow: false }
}
