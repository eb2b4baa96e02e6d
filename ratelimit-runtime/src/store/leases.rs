//! Leases: permits that Redis has charged in advance, for the calls of this process to spend.
//!
//! Leased permits belong to a key and the numbers of its policy. A call spends some of them. If there are too few, it waits for
//! the next lease: one request at a time takes what the waiting calls need, and at least a lease. Once three quarters of a lease
//! are spent, the next is asked for ahead of time. A key's first call asks for itself, and so does one that comes so long after the
//! last that a whole lease would have ended: idle keys lease nothing. So does one that finds no permits while another runtime asks,
//! which may be at rest.
//!
//! A lease is an ordinary charge. If it is refused, what is left is leased if that suffices for all who wait; otherwise every call
//! asks for itself for a while, so that the last permits of a limit can be used.
//!
//! With `slack`, [`chooser`] says how long leases live, and how many permits they have. Others have as many as the attribute says.
//!
//! Such a lease lives for at most a second: one of a window no longer than the window, one of a bucket no longer than its permits take
//! to refill. Both are counted from when it was asked for, thus before Redis charged it. What is spent of a bucket in an interval
//! of length `t` was therefore charged in one of length `t` + life, for which its promise holds, however many leases there are. A
//! call that waits already when a lease is asked for counts, as any call, when Redis charges it.
//!
//! What is left of a lease when it ends is given back by the receipt of its charge, if it is missed, and so is everything when the
//! registry ends. It is taken out of the lease first, under the lock under which calls spend it, so no permit is both spent and given back.
//!
//! A reset ends the leases of its key. A refund does not, as their permits are not what it returns.

mod chooser;
mod kept;
mod permits;
mod shard;

use std::array;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::Instant;

pub(crate) use self::kept::Kept;
use self::permits::{Lease, max_grant};
use self::shard::{LeasedKey, Queue, Shard};
use super::charge::Charge;
use crate::algorithm::{AlgorithmSpec, Verdict};
use crate::key::{Fingerprint, Key};
use crate::policy::LeaseSize;
use crate::store::error::StoreError;

/// The keys are divided among this many locks.
const SHARDS: usize = 64;

/// The leased permits of a store.
#[derive(Default)]
pub(crate) struct Leases(OnceLock<Shards>);

/// Made with the first lease: most registries have none.
type Shards = Box<[Mutex<Shard<Waiting>>; SHARDS]>;

/// A call that waits for a lease.
struct Waiting {
    cost: u64,
    /// Whether it has waited since before the lease was asked for. Others only get permits that live.
    is_asked_for: bool,
    reply: oneshot::Sender<Reply>,
}

/// What a call gets of a lease. If it gets nothing, it asks for itself.
pub(crate) type Reply = Result<Grant, StoreError>;

/// Permits for a call. If it is gone, others get them.
pub(crate) struct Grant {
    leases: Arc<Leases>,
    key: Fingerprint,
    permits: Lease,
    verdict: Verdict,
    is_spent: bool,
}

/// The one request for leases of a key. Dropped, it lets the calls that wait ask for themselves.
#[must_use]
pub(crate) struct Fetch {
    leases: Arc<Leases>,
    key: Fingerprint,
    /// What the policy can admit at once.
    most: u64,
    /// When the lease was asked for.
    sent: Option<Instant>,
    /// What Redis had left when it refused it.
    remaining: Option<u64>,
    /// Whether that is what it asks for now.
    is_rest: bool,
    is_done: bool,
}

/// Ends the leases of a key when it is dropped: after its reset, and even if nobody waits for the reply.
#[must_use]
pub(crate) struct EndLeasesGuard<'a> {
    leases: &'a Leases,
    key: Fingerprint,
}

impl Leases {
    /// Spends leased permits on a charge, if there are enough. Returns what is left, and the request for the next lease if it is
    /// time to make it.
    pub(crate) fn spend(self: &Arc<Self>, charge: &Charge) -> Option<(Verdict, Option<Fetch>)> {
        let key = charge.key.fingerprint();
        let mut shard = self.shard(key);
        let leased = shard.keys.get_mut(&key).filter(|leased| leased.permits.spec == charge.spec)?;
        let (verdict, is_low) = leased.permits.spend(charge.cost, Instant::now())?;
        let fetches = is_low && leased.waiting.is_none();
        if let Some(runtime) = fetches.then(Handle::try_current).and_then(Result::ok) {
            leased.waiting = Some(Queue::new(runtime.id()));
            drop(shard);
            return Some((verdict, Some(self.fetch(charge))));
        }
        Some((verdict, None))
    }

    /// Spends leased permits on a charge, if so many are left that no request has to follow.
    pub(crate) fn spend_spare(&self, key: Fingerprint, spec: &AlgorithmSpec, cost: u64) -> Option<Verdict> {
        self.with(key, |leased| match leased.permits.spec == *spec {
            true => leased.permits.spend_spare(cost, Instant::now()),
            false => None,
        })?
    }

    /// Returns whether leased permits suffice for a charge.
    pub(crate) fn suffice(&self, key: Fingerprint, spec: &AlgorithmSpec, cost: u64) -> bool {
        let suffice = |leased: &mut LeasedKey<Waiting>| {
            leased.permits.spec == *spec && leased.permits.suffice(cost, Instant::now())
        };
        self.with(key, suffice).unwrap_or(false)
    }

    /// Waits for the next lease of this size. Returns the request for it as well, if nobody has made it, for this runtime to
    /// continue. Returns `None` if the call has to ask for itself.
    pub(crate) fn join(
        self: &Arc<Self>,
        charge: &Charge,
        size: LeaseSize,
    ) -> Option<(oneshot::Receiver<Reply>, Option<Fetch>)> {
        let most = max_grant(charge);
        let is_too_large = match size {
            LeaseSize::Permits(size) => charge.cost >= size.min(most),
            // One that is never admitted says nothing about how many permits others will take.
            LeaseSize::Slack(_) => charge.cost > most,
        };
        if is_too_large {
            return None;
        }
        let runtime = Handle::try_current().ok()?.id();
        let now = Instant::now();
        let mut shard = self.shard(charge.key.fingerprint());
        let leased = shard.leased(charge, size, now)?;
        let (fetches, is_wanted) = (leased.waiting.is_none(), leased.permits.is_wanted(charge.cost, now));
        if fetches && !is_wanted {
            return None;
        }
        let queue = leased.waiting.get_or_insert_with(|| Queue::new(runtime));
        if queue.runtime != runtime {
            return None;
        }
        let (reply, receiver) = oneshot::channel();
        queue.calls.push_back(Waiting { cost: charge.cost, is_asked_for: false, reply });
        drop(shard);
        Some((receiver, fetches.then(|| self.fetch(charge))))
    }

    /// Returns whether there are leased permits of a key, whatever its numbers.
    pub(crate) fn holds(&self, key: &Key) -> bool {
        let holds = |leased: &mut LeasedKey<Waiting>| leased.permits.suffice(1, Instant::now());
        self.with(key.fingerprint(), holds).unwrap_or(false)
    }

    /// Ends the leases of a key once the reset that begins now has ended.
    pub(crate) fn end_after(&self, key: &Key) -> EndLeasesGuard<'_> {
        EndLeasesGuard { leases: self, key: key.fingerprint() }
    }

    fn fetch(self: &Arc<Self>, charge: &Charge) -> Fetch {
        let (leases, key, most) = (Arc::clone(self), charge.key.fingerprint(), max_grant(charge));
        Fetch { leases, key, most, sent: None, remaining: None, is_rest: false, is_done: false }
    }

    fn with<R>(&self, key: Fingerprint, then: impl FnOnce(&mut LeasedKey<Waiting>) -> R) -> Option<R> {
        self.0.get()?;
        self.shard(key).keys.get_mut(&key).map(then)
    }

    fn shard(&self, key: Fingerprint) -> MutexGuard<'_, Shard<Waiting>> {
        let shards = self.0.get_or_init(|| Box::new(array::from_fn(|_| Mutex::default())));
        shards[key.1 as usize % SHARDS].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Fetch {
    /// Returns how many permits to ask for next, or `None` if this is done.
    pub(crate) fn next(&mut self) -> Option<u64> {
        let (remaining, now) = (self.remaining.take(), Instant::now());
        let is_first = self.sent.replace(now).is_none();
        self.is_rest = remaining.is_some();
        let (permits, _ended) = self.leases.with(self.key, |leased| {
            let waiting = &mut leased.waiting.as_mut()?.calls;
            waiting.retain(|call| !call.reply.is_closed());
            let needed = waiting.iter().map(|call| call.cost).sum::<u64>();
            let permits = match remaining {
                Some(remaining) => Some(remaining).filter(|_| (1..=remaining).contains(&needed)),
                None if leased.permits.is_paused(now) => None,
                None if is_first || needed > 0 => {
                    let permits = needed.max(leased.permits.missing(now)).min(self.most);
                    (permits > 0).then_some(permits)
                }
                None => None,
            };
            waiting.iter_mut().for_each(|call| call.is_asked_for = true);
            // Those that wait are told without the lock.
            let ended = if permits.is_none() { leased.waiting.take() } else { None };
            Some((permits, ended))
        })??;
        self.is_done = permits.is_none();
        permits
    }

    /// Hands out the lease.
    pub(crate) fn granted(&self, permits: u64, verdict: &Verdict) {
        let (Fetch { leases, key, sent, .. }, now) = (self, Instant::now());
        let sent = sent.unwrap_or(now);
        let served = leases.with(*key, |leased| {
            let mut lease = leased.permits.lease(permits, verdict, sent);
            let mut served = Vec::new();
            if let Some(Queue { calls, .. }) = &mut leased.waiting {
                calls.retain(|call| !call.reply.is_closed());
                while let Some(call) = calls.front()
                    && call.cost <= lease.permits
                    && (call.is_asked_for || now < lease.until)
                {
                    lease.permits -= call.cost;
                    served.extend(calls.pop_front());
                }
            }
            leased.permits.add(lease, verdict, now);
            (served, lease)
        });
        let Some((served, lease)) = served else { return };
        // Without the lock, because permits of calls that are gone return to the lease.
        for Waiting { cost, reply, .. } in served {
            let (leases, permits) = (Arc::clone(leases), Lease { permits: cost, ..lease });
            let _ = reply.send(Ok(Grant { leases, key: *key, permits, verdict: *verdict, is_spent: false }));
        }
    }

    /// Notes that they were refused.
    pub(crate) fn refused(&mut self, verdict: &Verdict) {
        let now = Instant::now();
        let sent = self.sent.unwrap_or(now);
        self.leases.with(self.key, |leased| leased.permits.refused(verdict, sent, now));
        // What is left is asked for once.
        self.remaining = (!self.is_rest).then_some(verdict.remaining);
    }

    /// Fails the calls that wait.
    pub(crate) fn failed(&self, error: &StoreError) {
        let now = Instant::now();
        let failed = self.leases.with(self.key, |leased| {
            leased.permits.pause(Duration::ZERO, now);
            leased.waiting.as_mut().map(|queue| std::mem::take(&mut queue.calls))
        });
        for Waiting { reply, .. } in failed.flatten().unwrap_or_default() {
            let _ = reply.send(Err(error.clone()));
        }
    }
}

impl Drop for Fetch {
    fn drop(&mut self) {
        if !self.is_done {
            let _ended = self.leases.with(self.key, |leased| leased.waiting.take());
        }
    }
}

impl Grant {
    /// Spends the permits. Returns what Redis said of them.
    pub(crate) fn spend(mut self) -> Verdict {
        self.is_spent = true;
        self.verdict
    }
}

impl Drop for Grant {
    fn drop(&mut self) {
        if !self.is_spent {
            let now = Instant::now();
            self.leases.with(self.key, |leased| leased.permits.put(self.permits, now));
        }
    }
}

impl Drop for EndLeasesGuard<'_> {
    fn drop(&mut self) {
        let now = Instant::now();
        self.leases.with(self.key, |leased| leased.permits.reset(now));
    }
}

/// Without keys.
impl fmt::Debug for Leases {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leases").finish_non_exhaustive()
    }
}

#[cfg(all(test, feature = "test-util"))]
mod tests;
