//! Limiters for code that is not async.

use std::time::Duration;

use super::{Limiter, LimiterCaller};
use crate::decide::decision::Decision;
use crate::decide::error::Error;
use crate::key::IntoKey;

/// For code that is not async. These methods block the thread: until Redis has decided, and until the permits have come.
///
/// They need no tokio runtime. In process the thread decides and sleeps by itself. The first call to Redis starts a thread with a
/// runtime of our own, which all blocking calls of the process share, and which has its own connection to each server. For a
/// registry on Redis use [`connect_lazy`](crate::Registry::connect_lazy), which is not async either.
///
/// A call that blocks queues like one that is awaited, and cannot be cancelled. Fork a process before its first call to Redis, or
/// `exec` afterwards: a forked child lacks that thread, and there these methods return [`Error::Store`] where they would ask Redis.
///
/// In async code use the methods of the same name without `blocking_`. There these return [`Error::Store`] where they would have
/// to wait or to ask Redis, as that would keep other tasks from running. `tokio::task::spawn_blocking` and `block_in_place` are
/// fine, and so is a thread that has only entered a runtime. Other executors, and futures inside `tokio::task::unconstrained`,
/// are not recognized: a call there blocks their thread.
impl Limiter {
    /// Takes a permit for `key`, if there is one, like [`try_acquire`](Self::try_acquire). Blocks the thread until the store has
    /// decided, and never waits for permits.
    ///
    /// # Errors
    ///
    /// As [`try_acquire`](Self::try_acquire), and [`Error::Store`] in async code.
    ///
    /// ```
    /// use ratelimits::{Registry, TokenBucket};
    ///
    /// fn main() -> Result<(), ratelimits::Error> {
    ///     let reports = Registry::in_memory().limiter("reports", TokenBucket::per_second(2).burst(10))?;
    ///     assert_eq!(reports.blocking_try_acquire("tenant-7")?.remaining, 9);
    ///     Ok(())
    /// }
    /// ```
    pub fn blocking_try_acquire<M>(&self, key: impl IntoKey<M>) -> Result<Decision, Error> {
        self.block(key, 1, Duration::ZERO, "try_acquire")
    }

    /// Takes `n` permits for `key`, or none, like [`blocking_try_acquire`](Self::blocking_try_acquire).
    ///
    /// # Errors
    ///
    /// As [`blocking_try_acquire`](Self::blocking_try_acquire).
    pub fn blocking_try_acquire_n<M>(&self, key: impl IntoKey<M>, n: u64) -> Result<Decision, Error> {
        self.block(key, n, Duration::ZERO, "try_acquire_n")
    }

    /// Takes a permit for `key` like [`acquire`](Self::acquire), and blocks the thread until it comes.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire), except that no runtime is needed, and [`Error::Store`] in async code.
    ///
    /// ```
    /// use ratelimits::{Registry, TokenBucket};
    ///
    /// fn main() -> Result<(), ratelimits::Error> {
    ///     let mails = Registry::in_memory().limiter("mails", TokenBucket::per_second(100).burst(1))?;
    ///     let workers: Vec<_> = (0..3)
    ///         .map(|_| {
    ///             let mails = mails.clone();
    ///             std::thread::spawn(move || mails.blocking_acquire(()).map(drop))
    ///         })
    ///         .collect();
    ///     workers.into_iter().try_for_each(|worker| worker.join().unwrap())
    /// }
    /// ```
    pub fn blocking_acquire<M>(&self, key: impl IntoKey<M>) -> Result<Decision, Error> {
        self.block(key, 1, Duration::MAX, "acquire")
    }

    /// Takes `n` permits for `key`, and blocks the thread until all of them come, like
    /// [`blocking_acquire`](Self::blocking_acquire).
    ///
    /// # Errors
    ///
    /// As [`blocking_acquire`](Self::blocking_acquire).
    pub fn blocking_acquire_n<M>(&self, key: impl IntoKey<M>, n: u64) -> Result<Decision, Error> {
        self.block(key, n, Duration::MAX, "acquire_n")
    }

    /// Takes a permit for `key` like [`acquire_timeout`](Self::acquire_timeout), and blocks the thread until it comes. If it does
    /// not come within `timeout`, the call is refused at once and takes nothing.
    ///
    /// # Errors
    ///
    /// As [`acquire_timeout`](Self::acquire_timeout), and [`Error::Store`] in async code.
    ///
    /// ```
    /// use std::time::Duration;
    /// use ratelimits::{Registry, TokenBucket};
    ///
    /// fn main() -> Result<(), ratelimits::Error> {
    ///     let mails = Registry::in_memory().limiter("mails", TokenBucket::per_second(1).burst(1))?;
    ///     mails.blocking_acquire_timeout((), Duration::from_millis(200))?;
    ///     let refused = mails.blocking_acquire_timeout((), Duration::from_millis(200)).unwrap_err();
    ///     assert!(refused.is_limited()); // at once: the next permit comes in a second
    ///     Ok(())
    /// }
    /// ```
    pub fn blocking_acquire_timeout<M>(
        &self,
        key: impl IntoKey<M>,
        timeout: Duration,
    ) -> Result<Decision, Error> {
        self.block(key, 1, timeout, "acquire_timeout")
    }

    /// Takes `n` permits for `key` like [`blocking_acquire_timeout`](Self::blocking_acquire_timeout): all of them within
    /// `timeout`, or none.
    ///
    /// # Errors
    ///
    /// As [`blocking_acquire_timeout`](Self::blocking_acquire_timeout).
    pub fn blocking_acquire_n_timeout<M>(
        &self,
        key: impl IntoKey<M>,
        n: u64,
        timeout: Duration,
    ) -> Result<Decision, Error> {
        self.block(key, n, timeout, "acquire_n_timeout")
    }

    fn block<M>(
        &self,
        key: impl IntoKey<M>,
        cost: u64,
        timeout: Duration,
        method: &str,
    ) -> Result<Decision, Error> {
        let call = self.call(cost, timeout);
        let hashed = match call.decide_plain(&key) {
            Ok(decision) => return decision,
            Err(hashed) => hashed,
        };
        let pending = match call.decide(hashed, &key) {
            Ok(decision) => return decision,
            Err(pending) => pending,
        };
        let result = pending.block_on(|_| {
            format!(
                "`blocking_{method}` was called in async code, where it would block other tasks; await `{method}` \
                 instead, or move the call into `tokio::task::spawn_blocking`"
            )
        });
        self.backend.finish(result, &LimiterCaller)
    }
}
