//! The outcome of a rate-limit check.

#[cfg(feature = "test-util")]
mod for_tests;
mod pausing;
pub(crate) mod settling;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use once_cell::sync::OnceCell;
use smallvec::SmallVec;

use crate::algorithm::{ChargeId, Verdict, known};
use crate::base::lazy_box::LazyBox;
use crate::key::PartsOfKey;
use crate::policy::Algorithm;
use crate::store::decided_by::DecidedBy;
use crate::store::error::StoreError;
use crate::store::{Hold, MemoryReceipt, OwnedReceipt, OwnedReceipts, Receipt};

/// The outcome of a rate-limit check by one policy or several.
///
/// The fields are those of one policy. If any refused, it is the one with the longest `retry_after`, and `None` sorts last; if all
/// admitted the call, it is the one with the fewest `remaining`. [`policies`](Self::policies) returns all of them.
///
/// It is not `Clone`, because it holds the receipt for what was charged, which can be refunded once.
///
/// ```
/// # use ratelimits::{Registry, TokenBucket};
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), ratelimits::Error> {
/// let uploads = Registry::in_memory().limiter("uploads", TokenBucket::per_second(1).burst(10))?;
/// let decision = uploads.try_acquire_n("tenant-7", 4).await?;
/// assert_eq!((decision.limit, decision.remaining), (10, 6));
/// decision.refund().await?;
/// assert_eq!(uploads.peek("tenant-7").await?.remaining, 10);
/// # Ok(()) }
/// ```
#[non_exhaustive]
pub struct Decision {
    /// The burst, capacity or limit of the policy, in permits. For a queue it is the capacity plus one, for the call that leaves
    /// at once.
    pub limit: u64,
    /// The whole permits that a call now would get. For a queue this includes those that would have to wait.
    pub remaining: u64,
    /// Time until the same call would be admitted without waiting; for a queue, until the same call with the same timeout would
    /// get a slot. Exact: without competing callers, a retry after this delay succeeds. `None` if the call was admitted, if it
    /// costs more than the policy can ever admit, or if that is unknown, because a [`ConcurrencyLimit`](crate::ConcurrencyLimit)
    /// waits for other calls to end, or an operator has blocked the key.
    pub retry_after: Option<Duration>,
    /// Time until the key's state expires: the bucket is full, or the window is over. 0 for a
    /// [`ConcurrencyLimit`](crate::ConcurrencyLimit).
    pub reset_after: Duration,
    /// How long the call waited. For a bucket, from the decision to its slot by the store's clock; for a window, from the call.
    pub waited: Duration,
    /// Where the decision was made.
    pub source: DecidedBy,
    /// The name of the only policy, if it was not listed at once.
    pub(crate) single: Option<&'static str>,
    /// The algorithm of the reported policy.
    pub(crate) algorithm: Algorithm,
    /// Whether the reported policy admits the call.
    pub(crate) admitted: bool,
    /// Whether the call costs more than the reported policy can ever admit.
    pub(crate) is_unsatisfiable: bool,
    /// Whether what was charged has been replaced by what was used.
    settled: bool,
    /// The receipt, if it is for one charge in process. It owns nothing, so that it costs nothing to drop.
    receipt: Option<MemoryReceipt>,
    /// All that has to be dropped. A decision of one policy has it only with a general receipt, or once it is listed.
    more: LazyBox<More>,
}

/// Its cells are those of `once_cell`, because these can be made with their values, which costs a fraction of setting them.
#[derive(Default)]
struct More {
    /// Made for a single policy when somebody asks.
    listed: OnceCell<Listed>,
    /// In a box, as few decisions have it, and others would be slower by its length.
    receipt: OnceCell<Box<Receipt>>,
    /// What a few policies said, from which the list is made.
    few: FewPolicies,
    /// The receipts for their charges.
    memory_receipts: OwnedReceipts<FEW>,
    /// What the call holds of its only policy in process. It ends with the decision, and neither a refund nor a settlement changes it.
    hold: OnceCell<OwnedReceipt>,
    /// What reports the ends of holds in process. Dropped after their receipts, once the permits are free.
    observed: LazyBox<ObservedHolds>,
    /// The parts of the key that the reported policy refused, if there are observers.
    key: OnceCell<Box<[String]>>,
    /// What is left of the pause of the reported policy's key.
    paused: OnceCell<Duration>,
    /// The step of the penalties of that key.
    penalty: OnceCell<u64>,
}

/// What reports the ends of holds.
pub(crate) type ObservedHolds = SmallVec<[Arc<Hold>; 1]>;

/// What each policy said.
struct Listed {
    policies: Vec<PolicyDecision>,
    /// The index of the reported one.
    reported: usize,
}

/// The number of policies that are decided without a list.
pub(crate) const FEW: usize = 3;

/// What a few policies said.
pub(crate) type FewPolicies = SmallVec<[SinglePolicy; FEW]>;

/// What the only policy of a call said, or one of a few. Times are in microseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SinglePolicy {
    pub(crate) name: &'static str,
    pub(crate) algorithm: Algorithm,
    pub(crate) admitted: bool,
    pub(crate) limit: u64,
    pub(crate) remaining: u64,
    pub(crate) retry_after: Option<u64>,
    pub(crate) reset_after: u64,
}

/// What one policy of a [`Decision`] said.
///
/// ```
/// # use ratelimits::{FixedWindow, Registry, TokenBucket};
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), ratelimits::Error> {
/// let registry = Registry::in_memory();
/// let burst = registry.limiter("burst", TokenBucket::per_second(1).burst(5))?;
/// let daily = registry.limiter("daily", FixedWindow::new(100, std::time::Duration::from_secs(86_400)))?;
/// let decision = registry.try_acquire_all([burst.charge("ann"), daily.charge("ann")]).await?;
/// let remaining: Vec<u64> = decision.policies().iter().map(|policy| policy.remaining).collect();
/// assert_eq!(remaining, [4, 99]);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PolicyDecision {
    /// The name of the policy.
    pub policy: Arc<str>,
    /// The algorithm of the policy.
    pub algorithm: Algorithm,
    /// Whether this policy admits the call.
    pub admitted: bool,
    /// Whether this policy is a shadow, which never refuses.
    pub shadow: bool,
    /// As [`Decision::limit`].
    pub limit: u64,
    /// As [`Decision::remaining`].
    pub remaining: u64,
    /// As [`Decision::retry_after`].
    pub retry_after: Option<Duration>,
    /// As [`Decision::reset_after`].
    pub reset_after: Duration,
    is_unsatisfiable: bool,
}

impl Decision {
    /// Returns what each policy said, in the order of the attributes or of the list. Attributes that are skipped or turned off say
    /// nothing: a call that no policy counts has an empty list, the source [`Skipped`](DecidedBy::Skipped), and `u64::MAX` permits.
    #[must_use]
    pub fn policies(&self) -> &[PolicyDecision] {
        let more = self.more.get_or_init(More::default);
        let list = || {
            if !more.few.is_empty() {
                let policies = more.few.iter().map(PolicyDecision::of).collect();
                return Listed { policies, reported: reported_of_few(&more.few) };
            }
            let policy = PolicyDecision {
                policy: self.single.unwrap_or_default().into(),
                algorithm: self.algorithm,
                admitted: self.admitted,
                shadow: false,
                limit: self.limit,
                remaining: self.remaining,
                retry_after: self.retry_after,
                reset_after: self.reset_after,
                is_unsatisfiable: self.is_unsatisfiable,
            };
            Listed { policies: vec![policy], reported: 0 }
        };
        &more.listed.get_or_init(list).policies
    }

    /// Gives back what the call was charged, at most once and only what still counts: all of it in a window that still counts
    /// the charge, and in a bucket the permits that have not been refilled since, or fewer if later charges were refunded first.
    /// If nothing was charged, as by [`peek`](crate::Limiter::peek), it does nothing.
    ///
    /// All policies of the call are refunded together, and what has been [settled](Self::settle) stays. Once the future has been polled,
    /// the refund is sent even if the future is dropped. A bucket that has been [reset](crate::Limiter::reset) since may be credited all
    /// the same.
    ///
    /// # Errors
    ///
    /// If the store fails. Whether it has refunded the permits is then unknown, and the refund is not repeated.
    pub async fn refund(self) -> Result<(), StoreError> {
        let Decision { receipt, more, settled, .. } = self;
        if settled {
            return Ok(());
        }
        receipt.iter().for_each(MemoryReceipt::refund);
        let Some(more) = more.get() else { return Ok(()) };
        more.memory_receipts().for_each(MemoryReceipt::refund);
        match more.receipt.get() {
            Some(receipt) => Box::pin(receipt.refund()).await,
            None => Ok(()),
        }
    }

    /// A decision of at least one policy.
    pub(crate) fn new(policies: Vec<PolicyDecision>, source: DecidedBy, waited: Duration) -> Self {
        // It is unknown how long some refuse a call, but those that never admit it refuse it for longer.
        let refusal = |it: &PolicyDecision| (it.is_unsatisfiable, it.retry_after.unwrap_or(Duration::MAX));
        let refused = longest_refusal(&policies, |it| (!it.admitted && !it.shadow).then(|| refusal(it)));
        let reported = refused.unwrap_or_else(|| fewest(&policies, |policy| policy.remaining));
        let PolicyDecision {
            algorithm, limit, remaining, retry_after, reset_after, is_unsatisfiable, ..
        } = policies[reported];
        // Shadows may say otherwise, but do not refuse.
        let (admitted, retry_after) = (refused.is_none(), retry_after.filter(|_| refused.is_some()));
        let listed = OnceCell::with_value(Listed { policies, reported });
        let more = LazyBox::of(More { listed, ..More::default() });
        let (single, receipt) = (None, None);
        Decision {
            limit,
            remaining,
            retry_after,
            reset_after,
            waited,
            source,
            single,
            algorithm,
            admitted,
            is_unsatisfiable: is_unsatisfiable && !admitted,
            settled: false,
            receipt,
            more,
        }
    }

    /// The decision about a call that no policy counts, because all are skipped or turned off.
    pub(crate) fn unlimited() -> Self {
        let listed = OnceCell::with_value(Listed { policies: Vec::new(), reported: 0 });
        let more = LazyBox::of(More { listed, ..More::default() });
        Decision { more, ..Decision::of_one(SinglePolicy::NONE, DecidedBy::Skipped, Duration::ZERO, None) }
    }

    /// A decision of one policy that is no shadow, with a receipt that is no hold. Allocates nothing, and compiles to nothing where it is not read.
    #[inline]
    pub(crate) fn of_one(
        policy: SinglePolicy,
        source: DecidedBy,
        waited: Duration,
        receipt: Option<MemoryReceipt>,
    ) -> Self {
        let SinglePolicy { name, algorithm, admitted, limit, remaining, retry_after, reset_after } = policy;
        Decision {
            limit,
            remaining,
            retry_after: known(retry_after),
            reset_after: Duration::from_micros(reset_after),
            waited,
            source,
            single: Some(name),
            algorithm,
            admitted,
            is_unsatisfiable: !admitted && retry_after.is_none(),
            settled: false,
            receipt,
            more: LazyBox::empty(),
        }
    }

    /// A decision of so many policies that are no shadows, of a call that did not wait, given what each said and the receipt for its
    /// charge, with what reports the ends of its holds.
    #[inline(always)]
    pub(crate) fn of_few(
        policies: usize,
        said: impl Fn(usize) -> SinglePolicy,
        receipt: impl Fn(usize) -> MemoryReceipt,
        source: DecidedBy,
        observed: Option<ObservedHolds>,
    ) -> Self {
        let mut more = Box::<More>::default();
        // Not by an iterator, of which the compiler makes copies.
        for i in 0..policies {
            more.few.push(said(i));
            more.memory_receipts.0[i] = Some(receipt(i));
        }
        more.observed = observed.map_or_else(LazyBox::empty, LazyBox::of);
        Decision::of_more(more, source)
    }

    /// A decision of a few policies without receipts.
    pub(crate) fn of_few_said(few: FewPolicies, source: DecidedBy) -> Self {
        Decision::of_more(More { few, ..More::default() }.into(), source)
    }

    fn of_more(more: Box<More>, source: DecidedBy) -> Self {
        let policy = more.few[reported_of_few(&more.few)];
        let one = Decision::of_one(policy, source, Duration::ZERO, None);
        Decision { single: None, more: LazyBox::of(more), ..one }
    }

    /// Adds the receipt for a charge in process. Of a hold, if nothing else was added, with what reports its end.
    #[inline(always)]
    pub(crate) fn with_memory_receipt(
        self,
        receipt: Option<MemoryReceipt>,
        observed: impl FnOnce() -> Option<Arc<Hold>>,
    ) -> Self {
        match receipt {
            Some(hold) if hold.is_hold() => {
                let more = self.more.get_or_init(More::default);
                more.hold.get_or_init(|| OwnedReceipt(hold));
                if let Some(observed) = observed() {
                    more.observed.get_or_init(|| ObservedHolds::from_elem(observed, 1));
                }
                self
            }
            receipt => Decision { receipt, ..self },
        }
    }

    /// Adds any other receipt.
    pub(crate) fn with_receipt(self, receipt: Receipt) -> Self {
        let receipt = Box::new(receipt);
        if let Some(more) = self.more.get() {
            more.receipt.get_or_init(|| receipt);
            return self;
        }
        // Made where it stays, and the cell not set but made with its value: a fraction of the work.
        let mut more = Box::<More>::default();
        more.receipt = OnceCell::with_value(receipt);
        Decision { more: LazyBox::of(more), ..self }
    }

    /// Adds the parts of the key that the reported policy refused.
    pub(crate) fn with_key(self, key: PartsOfKey<'_>) -> Self {
        let texts = || key.texts().map(Cow::into_owned).collect();
        self.more.get_or_init(More::default).key.get_or_init(texts);
        self
    }

    pub(crate) fn key(&self) -> Option<&[String]> {
        self.more.get()?.key.get().map(|key| &**key)
    }

    /// Returns the index of the reported policy.
    pub(crate) fn reported(&self) -> usize {
        let Some(more) = self.more.get() else { return 0 };
        more.listed.get().map_or_else(|| reported_of_few(&more.few), |listed| listed.reported)
    }
}

impl More {
    fn memory_receipts(&self) -> impl Iterator<Item = &MemoryReceipt> {
        self.memory_receipts.0.iter().flatten()
    }
}

/// Returns the index of the policy that is reported of a few.
pub(crate) fn reported_of_few(few: &[SinglePolicy]) -> usize {
    longest_refusal(few, |policy| {
        (!policy.admitted).then_some((policy.retry_after.is_none(), policy.retry_after))
    })
    .unwrap_or_else(|| fewest(few, |policy| policy.remaining))
}

/// Returns the index of the policy that refuses the call for the longest time, given for how long each does if it does.
#[inline]
fn longest_refusal<T, D: Ord>(policies: &[T], refusal: impl Fn(&T) -> Option<D>) -> Option<usize> {
    let refused = policies.iter().enumerate().filter_map(|(i, policy)| Some((refusal(policy)?, i)));
    refused.max().map(|(_, i)| i)
}

/// Returns the index of the policy with the fewest permits.
fn fewest<T>(policies: &[T], remaining: impl Fn(&T) -> u64) -> usize {
    (0..policies.len()).min_by_key(|i| remaining(&policies[*i])).unwrap_or(0)
}

impl PolicyDecision {
    fn of(policy: &SinglePolicy) -> Self {
        let SinglePolicy { name, algorithm, admitted, limit, remaining, retry_after, reset_after } = *policy;
        let charge_id = ChargeId::default();
        let verdict = Verdict { admitted, wait: 0, limit, remaining, retry_after, reset_after, charge_id };
        PolicyDecision::new(name.into(), algorithm, false, &verdict)
    }

    pub(crate) fn new(policy: Arc<str>, algorithm: Algorithm, shadow: bool, verdict: &Verdict) -> Self {
        let Verdict { admitted, limit, remaining, retry_after, reset_after, .. } = *verdict;
        PolicyDecision {
            policy,
            algorithm,
            admitted,
            shadow,
            limit,
            remaining,
            retry_after: known(retry_after),
            reset_after: Duration::from_micros(reset_after),
            is_unsatisfiable: !admitted && retry_after.is_none(),
        }
    }
}

impl SinglePolicy {
    /// What a call hears that no policy counts.
    pub(crate) const NONE: Self = SinglePolicy {
        name: "",
        algorithm: Algorithm::TokenBucket,
        admitted: true,
        limit: u64::MAX,
        remaining: u64::MAX,
        retry_after: None,
        reset_after: 0,
    };

    #[inline]
    pub(crate) fn new(name: &'static str, algorithm: Algorithm, verdict: &Verdict) -> Self {
        let Verdict { admitted, limit, remaining, retry_after, reset_after, .. } = *verdict;
        SinglePolicy { name, algorithm, admitted, limit, remaining, retry_after, reset_after }
    }
}

impl fmt::Debug for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decision")
            .field("policies", &self.policies())
            .field("waited", &self.waited)
            .field("source", &self.source)
            .finish_non_exhaustive()
    }
}

/// Every call of a limiter returns one.
const _: () = assert!(size_of::<Decision>() <= 208);

#[cfg(test)]
mod tests {
    use std::slice;

    use super::*;

    fn verdict(admitted: bool) -> Verdict {
        let retry_after = (!admitted).then_some(1_500_001);
        Verdict {
            admitted,
            limit: 10,
            remaining: 3,
            retry_after,
            reset_after: 7_000_002,
            ..Verdict::default()
        }
    }

    #[test]
    fn lazy_list_equals_the_eager_one() {
        for admitted in [true, false] {
            let policy = SinglePolicy::new("reports", Algorithm::FixedWindow, &verdict(admitted));
            let waited = Duration::from_nanos(1);
            let lazy = Decision::of_one(policy, DecidedBy::Memory, waited, None);
            let eager = PolicyDecision {
                policy: "reports".into(),
                algorithm: Algorithm::FixedWindow,
                admitted,
                shadow: false,
                limit: 10,
                remaining: 3,
                retry_after: (!admitted).then_some(Duration::from_micros(1_500_001)),
                reset_after: Duration::from_micros(7_000_002),
                is_unsatisfiable: false,
            };
            assert_eq!(lazy.policies(), slice::from_ref(&eager));
            let eager = Decision::new(vec![eager], DecidedBy::Memory, waited);
            assert_eq!(format!("{lazy:?}"), format!("{eager:?}"));
            assert_eq!((lazy.reported(), lazy.admitted), (eager.reported(), eager.admitted));
            let numbers = |of: &Decision| (of.limit, of.remaining, of.retry_after, of.reset_after, of.waited);
            assert_eq!(numbers(&lazy), numbers(&eager));
        }
    }

    #[test]
    fn list_is_built_once() {
        let policy = SinglePolicy::new("reports", Algorithm::FixedWindow, &verdict(true));
        let decision = Decision::of_one(policy, DecidedBy::Memory, Duration::ZERO, None);
        assert!(std::ptr::eq(decision.policies(), decision.policies()));
    }
}
