//! A task that calls continuously, and the outcomes of its calls.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ratelimit_runtime::store::{RedisStore, Store};
use tokio::runtime::Handle;

use super::FREQUENT;
use crate::support::stall_monitor::StallMonitor;
use crate::support::store::{charge, decide, store};
use crate::support::until::until;

const WITHIN: Duration = Duration::from_secs(90);

/// Stops when it is dropped.
#[derive(Debug)]
pub(super) struct Traffic {
    log: Arc<Mutex<Vec<Call>>>,
    task: tokio::task::AbortHandle,
    pub(super) stalls: StallMonitor,
}

#[derive(Clone, Copy, Debug)]
struct Call {
    start: Instant,
    end: Instant,
    succeeded: bool,
}

impl Traffic {
    /// Starts frequent calls at this URL, and waits for the first success.
    pub(super) async fn start(url: &str) -> Traffic {
        Traffic::start_on(&Handle::current(), &store(url), FREQUENT).await
    }

    /// Starts calls with this pause on a runtime, and waits for the first success.
    pub(super) async fn start_on(runtime: &Handle, store: &Store, pause: Duration) -> Traffic {
        let traffic = Traffic::start_unanswered(runtime, store, pause);
        traffic.success_after(Instant::now()).await;
        traffic
    }

    /// Starts calls to a server that may be down.
    pub(super) fn start_unanswered(runtime: &Handle, store: &Store, pause: Duration) -> Traffic {
        let log = Arc::<Mutex<Vec<Call>>>::default();
        let task = runtime.spawn(call_repeatedly(store.clone(), pause, Arc::clone(&log))).abort_handle();
        Traffic { log, task, stalls: StallMonitor::start() }
    }

    /// Waits for a call that starts after this moment and fails.
    pub(super) async fn failure_after(&self, since: Instant) {
        self.find("a call fails", |call| !call.succeeded && call.start >= since).await;
    }

    /// Returns how long after this moment a call succeeded.
    pub(super) async fn success_after(&self, since: Instant) -> Duration {
        let call = self.find("a call succeeds", |call| call.succeeded && call.end >= since).await;
        call.end.duration_since(since)
    }

    /// How many calls timed out after this moment.
    pub(super) fn timeouts_after(&self, since: Instant) -> u64 {
        let timed_out = |call: &&Call| !call.succeeded && call.end >= call.start + RedisStore::DEADLINE;
        self.log().iter().filter(|call| call.end >= since).filter(timed_out).count() as u64
    }

    /// Asserts that every call succeeded after this moment. On a busy machine some time out, and after five timeouts others
    /// fail at once.
    pub(super) fn assert_steady_after(&self, since: Instant) {
        let failed = self.log().iter().filter(|call| call.end >= since && !call.succeeded).count() as u64;
        let timeouts = self.timeouts_after(since);
        assert!(failed == timeouts || timeouts >= 5, "{failed} calls failed, {timeouts} by timeout");
    }

    /// The longest duration of a call.
    pub(super) fn longest(&self) -> Duration {
        let took = |call: &Call| call.end.duration_since(call.start);
        self.log().iter().map(took).max().unwrap_or_default()
    }

    async fn find(&self, what: &str, matches: impl Fn(&Call) -> bool) -> Call {
        until(what, WITHIN, async || {
            let log = self.log();
            let call = log.iter().copied().find(&matches);
            call.ok_or_else(|| format!("the last of {} is {:?}", log.len(), log.last()))
        })
        .await
    }

    fn log(&self) -> MutexGuard<'_, Vec<Call>> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Traffic {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn call_repeatedly(store: Store, pause: Duration, log: Arc<Mutex<Vec<Call>>>) {
    let charge = charge("a", 1_000_000);
    loop {
        let start = Instant::now();
        let succeeded = decide(&store, &charge).await.is_ok();
        let call = Call { start, end: Instant::now(), succeeded };
        log.lock().unwrap_or_else(PoisonError::into_inner).push(call);
        tokio::time::sleep(pause).await;
    }
}
