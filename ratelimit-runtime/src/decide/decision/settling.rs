//! What a call has really used, in place of what it was charged.

use smallvec::SmallVec;

use super::{Decision, FEW, More};
use crate::base::log::{LogBound, MINUTE, log};
use crate::store::error::StoreError;
use crate::store::{Corrected, MemoryReceipt};

impl Decision {
    /// Replaces what the call was charged by what it really used, in permits, as the cost: tokens of a language model, bytes of an
    /// answer.
    ///
    /// If it used less than it was charged, the rest is given back as far as [`refund`](Self::refund) would. If it used more, the
    /// difference is charged whatever is left, as a debt: a bucket pays it at its rate, the next windows begin with it, and a sliding
    /// window counts it for one period. A debt lasts for at most a day, or ten times as long as the policy takes to recover if that is
    /// longer; what exceeds this is cut, with a log event.
    ///
    /// The caller does not wait: in process it is done at once, and on Redis by a task that a caller who goes away does not interrupt.
    /// If Redis fails, the call stays charged as before, which is logged. So this can be called in a `Drop`, when a stream ends. A call
    /// that is never settled keeps its estimate, and so may one that is settled just before its tokio runtime or the process ends.
    ///
    /// Only the first figure counts, and a refund afterwards does nothing. Where nothing was charged, nothing happens: after a
    /// [`peek`](crate::Limiter::peek), and for a cost of 0, a shadow that was not charged, or a call from a lease. A queue and a bucket
    /// with `warmup` cannot be settled. Settling these, or a call twice, is logged and changes nothing.
    ///
    /// Settle calls of an [`adjustable`](crate::TokenBucket::adjustable) bucket where operators may override its numbers, or where it
    /// refills at intervals: another one starts fresh with an override, without its debts, and with interval refill gives less back
    /// while it owes.
    ///
    /// A decision of several policies needs a figure for each: [`settle_each`](Self::settle_each).
    ///
    /// ```
    /// # use ratelimits::{Registry, TokenBucket};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), ratelimits::Error> {
    /// let tokens = Registry::in_memory().limiter("tokens", TokenBucket::per_second(100).burst(10_000))?;
    /// let mut decision = tokens.try_acquire_n("tenant-7", 2_000).await?; // the usual use
    /// decision.settle(1_734);
    /// assert_eq!(tokens.peek("tenant-7").await?.remaining, 10_000 - 1_734);
    ///
    /// let mut decision = tokens.try_acquire_n("tenant-7", 2_000).await?;
    /// decision.settle(12_000);
    /// let refused = tokens.try_acquire("tenant-7").await.unwrap_err();
    /// // 3,734 permits are owed, and the next call takes one more.
    /// assert!(refused.retry_after() > Some(std::time::Duration::from_secs(37)));
    /// # Ok(()) }
    /// ```
    pub fn settle(&mut self, used: u64) {
        self.settle_each([used]);
    }

    /// Settles a decision of several policies, with a figure for each in the order of [`policies`](Self::policies), as
    /// [`settle`](Self::settle) does for one.
    ///
    /// A policy whose calls use what they are charged, such as requests per minute, gets its cost. An attribute that was skipped, or
    /// turned off, is none of them. With another number of figures nothing is settled, which is logged.
    ///
    /// ```
    /// # use ratelimits::{FixedWindow, Registry, TokenBucket};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), ratelimits::Error> {
    /// let registry = Registry::in_memory();
    /// let requests = registry.limiter("requests", FixedWindow::new(500, std::time::Duration::from_secs(60)))?;
    /// let tokens = registry.limiter("tokens", TokenBucket::per_second(100).burst(10_000))?;
    /// let mut decision =
    ///     registry.try_acquire_all([requests.charge("tenant-7"), tokens.charge_n("tenant-7", 2_000)]).await?;
    /// decision.settle_each([1, 1_734]);
    /// assert_eq!(tokens.peek("tenant-7").await?.remaining, 10_000 - 1_734);
    /// # Ok(()) }
    /// ```
    pub fn settle_each(&mut self, used: impl IntoIterator<Item = u64>) {
        static MISCOUNTED: LogBound = LogBound::new();
        static REPEATED: LogBound = LogBound::new();
        static UNSETTLED: LogBound = LogBound::new();
        let used: SmallVec<[u64; FEW]> = used.into_iter().collect();
        let (log, problem) = if self.count() == 0 {
            return;
        } else if used.len() != self.count() {
            (
                &MISCOUNTED,
                "the number of figures is not that of its policies; call `settle_each` with one for each",
            )
        } else if self.settled {
            (&REPEATED, "it has been settled before; the first figures count")
        } else if self.has_unsettled() {
            (&UNSETTLED, "a queue and a bucket with `warmup` cannot be settled")
        } else {
            self.settled = true;
            return self.settle_receipts(&used);
        };
        log_unsettled(log, &self.name(), problem);
    }

    fn settle_receipts(&self, used: &[u64]) {
        for (receipt, used) in self.memory_receipts().zip(used) {
            if receipt.settle(*used) == Corrected::Cut {
                report(&self.name(), Ok(Corrected::Cut));
            }
        }
        if let Some(receipt) = self.more.get().and_then(|more| more.receipt.get()) {
            let policy = self.name();
            receipt.settle(used, move |result| report(&policy, result));
        }
    }

    fn has_unsettled(&self) -> bool {
        let receipt = self.more.get().and_then(|more| more.receipt.get());
        !self.memory_receipts().all(MemoryReceipt::can_settle) || receipt.is_some_and(|it| it.has_unsettled())
    }

    fn memory_receipts(&self) -> impl Iterator<Item = &MemoryReceipt> {
        self.receipt.iter().chain(self.more.get().into_iter().flat_map(More::memory_receipts))
    }

    /// Returns the number of policies.
    fn count(&self) -> usize {
        let Some(more) = self.more.get() else { return 1 };
        match more.listed.get() {
            Some(listed) => listed.policies.len(),
            None => more.few.len().max(1),
        }
    }

    /// Returns the name of the first policy.
    fn name(&self) -> String {
        let first = || self.policies().first().map_or_else(String::new, |policy| policy.policy.to_string());
        self.single.map_or_else(first, str::to_owned)
    }
}

/// Logs what became of a settlement, unless it was made. Must not be called under a lock.
pub(crate) fn report(policy: &str, result: Result<Corrected, StoreError>) {
    static FAILED: LogBound = LogBound::new();
    static CUT: LogBound = LogBound::new();
    match result {
        Ok(Corrected::Whole | Corrected::Believed(_) | Corrected::Penalized(_)) => {}
        Ok(Corrected::Cut) => {
            if let Some(calls) = CUT.count(MINUTE) {
                log!(WARN, policy, calls, "debts were cut to the longest that their policies may have");
            }
        }
        Err(error) => {
            if let Some(calls) = FAILED.count(MINUTE) {
                log!(WARN, policy, %error, calls, "failed to settle calls");
            }
        }
    }
}

/// Logs that a call cannot be settled, which keeps what it was charged. Each problem has a bound of its own, so that none hides another.
/// Must not be called under a lock.
pub(crate) fn log_unsettled(log: &LogBound, policy: &str, problem: &str) {
    if let Some(calls) = log.count(MINUTE) {
        log!(WARN, policy, problem, calls, "calls are not settled");
    }
}
