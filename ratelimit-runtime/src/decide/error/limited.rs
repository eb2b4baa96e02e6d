//! The refusal of a call by a policy.

use std::error::Error as StdError;
use std::fmt;
use std::sync::OnceLock;
use std::time::Duration;

use crate::algorithm::{UNKNOWN, known};
use crate::base::lazy_box::LazyBox;
use crate::decide::decision::{Decision, FewPolicies, SinglePolicy, reported_of_few};
use crate::key::{KeyParts, PartsOfKey};
use crate::policy::Algorithm;
use crate::store::decided_by::DecidedBy;

/// The call exceeded a policy. Nothing was charged.
///
/// ```
/// # use ratelimits::{Error, Registry, TokenBucket};
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Error> {
/// let reports = Registry::in_memory().limiter("reports", TokenBucket::per_second(1).burst(1))?;
/// reports.try_acquire("tenant-7").await?;
/// let Err(Error::Limited(limited)) = reports.try_acquire("tenant-7").await else { panic!() };
/// assert_eq!(limited.policy(), "reports");
/// assert_eq!(limited.algorithm(), ratelimits::Algorithm::TokenBucket);
/// assert_eq!(limited.decision().remaining, 0);
/// # Ok(()) }
/// ```
pub struct Limited {
    /// The name of the only policy; `None` if the decision names it.
    single: Option<&'static str>,
    algorithm: Algorithm,
    source: DecidedBy,
    limit: u64,
    remaining: u64,
    /// In microseconds, as the next. 0 if the call is never admitted, as an `Option` would be larger, and [`UNKNOWN`] if that is unknown.
    retry_after: u64,
    reset_after: u64,
    is_unsatisfiable: bool,
    more: LazyBox<More>,
}

/// What few callers ask for.
#[derive(Default)]
struct More {
    /// The parts of the key, if somebody may want to know it.
    key: Option<KeyParts>,
    /// What a few policies said, if more than one was asked.
    few: FewPolicies,
    /// Made when somebody asks, if a single policy refused a call that did not wait: then the fields and the key are all that
    /// varies.
    decision: OnceLock<Decision>,
}

/// The parts of a key that a refusal may tell. They are kept before anything else of it is known: it stays in registers then.
pub(crate) struct KeptKey(LazyBox<More>);

impl Limited {
    /// Returns the name of the policy that refused.
    #[must_use]
    pub fn policy(&self) -> &str {
        self.single.unwrap_or_else(|| {
            let decision = self.decision();
            &decision.policies()[decision.reported()].policy
        })
    }

    /// Returns the algorithm of the policy that refused.
    #[must_use]
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// Returns the parts of the key, as [`Observation::key`](crate::Observation::key) has them, if the registry has an
    /// [observer](crate::RegistryBuilder::observer). Otherwise `None`: a call in process has only a hash of its key. They may be
    /// personal data.
    ///
    /// ```
    /// # use ratelimits::{Error, FixedWindow, Registry};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Error> {
    /// let registry = Registry::builder().observer(|_| {}).in_memory();
    /// let reports = registry.limiter("reports", FixedWindow::new(1, std::time::Duration::from_secs(60)))?;
    /// reports.try_acquire(("tenant", 7)).await?;
    /// let Err(Error::Limited(limited)) = reports.try_acquire(("tenant", 7)).await else { panic!() };
    /// assert_eq!(limited.key(), Some(["tenant".to_owned(), "7".to_owned()].as_slice()));
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn key(&self) -> Option<&[String]> {
        let More { key, decision, .. } = self.more.get()?;
        match key {
            None => decision.get()?.key(),
            Some(_) => self.decision().key(),
        }
    }

    /// Returns the decision.
    #[must_use]
    pub fn decision(&self) -> &Decision {
        let More { key, few, decision } = self.more.get_or_init(More::default);
        decision.get_or_init(|| {
            let policy = SinglePolicy {
                name: self.single.unwrap_or_default(),
                algorithm: self.algorithm,
                admitted: false,
                limit: self.limit,
                remaining: self.remaining,
                retry_after: (!self.is_unsatisfiable).then_some(self.retry_after),
                reset_after: self.reset_after,
            };
            let decision = match few.is_empty() {
                true => Decision::of_one(policy, self.source, Duration::ZERO, None),
                false => Decision::of_few_said(few.clone(), self.source),
            };
            match key {
                Some(key) => decision.with_key(key.all()),
                None => decision,
            }
        })
    }

    /// The refusal of a call that did not wait, by its only policy. Allocates nothing.
    #[inline(always)]
    pub(crate) fn of_one(policy: SinglePolicy, source: DecidedBy, KeptKey(more): KeptKey) -> Self {
        let SinglePolicy { name, algorithm, limit, remaining, retry_after, reset_after, .. } = policy;
        Limited {
            single: Some(name),
            algorithm,
            source,
            limit,
            remaining,
            retry_after: retry_after.unwrap_or(0),
            reset_after,
            is_unsatisfiable: retry_after.is_none(),
            more,
        }
    }

    /// The refusal of a call that did not wait, by one of so many policies, and its index. Given that, `key` returns the parts of its key, if
    /// these may be told.
    #[inline(always)]
    pub(crate) fn of_few<'k>(
        policies: usize,
        of: impl Fn(usize) -> SinglePolicy,
        source: DecidedBy,
        key: impl FnOnce(usize) -> Option<PartsOfKey<'k>>,
    ) -> (Self, usize) {
        let mut more = Box::<More>::default();
        // Not by an iterator, of which the compiler makes copies.
        for i in 0..policies {
            more.few.push(of(i));
        }
        let reported = reported_of_few(&more.few);
        more.key = key(reported).map(PartsOfKey::to_owned);
        let limited = Limited::of_one(more.few[reported], source, KeptKey::none());
        (Limited { more: LazyBox::of(more), ..limited }, reported)
    }

    /// A decision that is a refusal.
    pub(super) fn new(decision: Decision) -> Self {
        let micros = |time: Duration| time.as_micros() as u64;
        let policy = SinglePolicy {
            name: decision.single.unwrap_or_default(),
            algorithm: decision.algorithm,
            admitted: false,
            limit: decision.limit,
            remaining: decision.remaining,
            retry_after: match decision.retry_after {
                None if decision.is_unsatisfiable => None,
                known => Some(known.map_or(UNKNOWN, micros)),
            },
            reset_after: micros(decision.reset_after),
        };
        let limited = Limited::of_one(policy, decision.source, KeptKey::none());
        let tells_of_key =
            decision.key().is_some() || decision.paused().is_some() || decision.penalty_step() > 0;
        if decision.single.is_some() && decision.waited.is_zero() && !tells_of_key {
            return limited;
        }
        let more = LazyBox::of(More { decision: decision.into(), ..More::default() });
        Limited { single: None, more, ..limited }
    }

    pub(super) fn source(&self) -> DecidedBy {
        self.source
    }

    pub(super) fn retry_after(&self) -> Option<Duration> {
        known((!self.is_unsatisfiable).then_some(self.retry_after))
    }

    pub(super) fn is_unsatisfiable(&self) -> bool {
        self.is_unsatisfiable
    }
}

impl KeptKey {
    /// No parts.
    #[inline]
    pub(crate) const fn none() -> Self {
        KeptKey(LazyBox::empty())
    }

    /// Keeps these parts, if there are any.
    #[inline(always)]
    pub(crate) fn new(key: Option<PartsOfKey<'_>>) -> Self {
        key.map_or_else(KeptKey::none, KeptKey::of)
    }

    #[inline(never)]
    fn of(key: PartsOfKey<'_>) -> Self {
        let mut more = Box::<More>::default();
        // Copied to where they stay.
        more.key.insert(KeyParts::default()).append(key);
        KeptKey(LazyBox::of(more))
    }
}

impl fmt::Display for Limited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "limited by policy `{}` ({})", self.policy(), self.algorithm())?;
        match self.retry_after() {
            Some(wait) => write!(f, "; retry after {wait:?}"),
            None if self.limit == 0 => f.write_str("; an operator has blocked its key"),
            None if !self.is_unsatisfiable => f.write_str("; other calls have to end first"),
            None => f.write_str("; the call costs more than the policy can ever admit"),
        }
    }
}

impl fmt::Debug for Limited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Limited").field(self.decision()).finish()
    }
}

impl StdError for Limited {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::error::Error;

    const REFUSED: SinglePolicy = SinglePolicy {
        name: "reports",
        algorithm: Algorithm::TokenBucket,
        admitted: false,
        limit: 10,
        remaining: 3,
        retry_after: Some(1_500_001),
        reset_after: 7_000_002,
    };

    #[test]
    fn refusal_says_the_same_before_and_after_its_decision_is_built() {
        for retry_after in [REFUSED.retry_after, Some(0), None] {
            let policy = SinglePolicy { retry_after, ..REFUSED };
            let decided = Decision::of_one(policy, DecidedBy::Local, Duration::from_micros(1), None);
            let (lazy, eager) =
                (Error::limited_by(policy, DecidedBy::Local, KeptKey::none()), decided.into_error());
            let said = |error: &Error| {
                let Error::Limited(limited) = error else { panic!("{error}") };
                let text = (error.to_string(), limited.policy().to_owned(), limited.algorithm());
                (text, error.retry_after(), error.is_unsatisfiable(), error.is_limited())
            };
            assert_eq!(said(&lazy), said(&eager));
            let decisions = [&lazy, &eager].map(|error| match error {
                Error::Limited(limited) => limited.decision(),
                _ => panic!("{error}"),
            });
            let [lazily, eagerly] =
                decisions.map(|of| (of.limit, of.remaining, of.retry_after, of.reset_after));
            assert_eq!(lazily, eagerly);
            assert_eq!(decisions[0].policies(), decisions[1].policies());
            assert_eq!(decisions.map(|decision| decision.source), [DecidedBy::Local; 2]);
            assert_eq!(decisions.map(|decision| decision.waited.as_micros()), [0, 1]);
            assert_eq!(said(&lazy), said(&eager));
            assert!(
                format!("{lazy:?}").starts_with("Limited(Limited(Decision { policies: [PolicyDecision {")
            );
        }
    }
}
