//! What observers get of every decision.

#[cfg(any(test, feature = "test-util"))]
mod for_tests;
mod holds;
mod near;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

pub(crate) use self::near::Near;
use crate::algorithm::{AlgorithmSpec, PlainSnapshot, PlainSpec, Verdict, known};
#[cfg(feature = "metrics")]
use crate::base::clock::Clock;
use crate::decide::acquired::Acquired;
pub(crate) use crate::decide::attachment::Owner;
use crate::decide::charges::PolicyCharge;
use crate::decide::definition::{ChargeNumbers, Definition};
use crate::decide::error::Error;
use crate::decide::request::AcquireRequest;
use crate::key::PartsOfKey;
use crate::policy::Algorithm;
use crate::store::Hold;
use crate::store::decided_by::DecidedBy;

/// A policy's decision about one call, as observers get it: [`RegistryBuilder::observer`](crate::RegistryBuilder::observer).
///
/// It borrows from the decision. What takes longer is made when it is asked for: [`key`](Self::key) and [`quota`](Self::quota).
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Observation<'a> {
    /// The name of the policy.
    pub policy: &'a str,
    /// The algorithm of the policy.
    pub algorithm: Algorithm,
    /// The permits that the call asked for, or those that it has released. 0 if that is what was invalid.
    pub cost: u64,
    /// Whether the policy is a shadow, which never refuses. False if the call was refused before it was decided.
    pub shadow: bool,
    /// The outcome of the call.
    pub outcome: CallOutcome,
    /// Where the call was decided; `None` if it was not.
    pub source: Option<DecidedBy>,
    /// How long the call waited for its permits; zero if nothing decided it.
    pub waited: Duration,
    definition: Option<&'a Definition>,
    parts: PartsOfKey<'a>,
    said: Said<'a>,
}

/// What a policy said about a call.
#[derive(Clone, Copy)]
enum Said<'a> {
    Nothing,
    /// A verdict, of a policy with these numbers.
    Verdict(&'a Verdict, &'a AlgorithmSpec),
    /// The lock-free steps of the memory store.
    Plain {
        now: u64,
        snapshot: PlainSnapshot,
        admitted: bool,
        plain: &'a PlainSpec,
        numbers: &'a ChargeNumbers<'a>,
    },
    Paused(Duration),
    Released(Duration),
    #[cfg(any(test, feature = "test-util"))]
    Quota(Quota),
}

/// The outcome of a call, as far as one policy is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CallOutcome {
    /// The call went ahead. If Redis failed, [`Observation::source`] says who decided instead.
    Admitted,
    /// The policy refused the call.
    Limited,
    /// The policy would have refused the call, but is a shadow policy.
    ShadowLimited,
    /// The policy would have admitted the call, but another one refused it, so nothing was charged.
    NotCharged,
    /// A part of the key was missing.
    MissingKey,
    /// The store failed, and nothing decided in its place. A call with only shadow policies goes ahead all the same.
    StoreError,
    /// The policy is invalid.
    Invalid,
    /// The key was paused, for as long as [`Observation::paused`] says. This is no call, and costs nothing.
    Paused,
    /// A call of a [`ConcurrencyLimit`](crate::ConcurrencyLimit) has ended, or was dropped, and has released the permits that it held
    /// for as long as [`Observation::held`] says. This is no call. It follows once on each call that was [`Admitted`](Self::Admitted),
    /// by a shadow as well, unless the source is [`Allowed`](DecidedBy::Allowed): such calls hold nothing.
    Released,
    /// The key has used the share of its limit that the attribute's `notify_at` says: once for each window, or in the time in which an
    /// empty bucket fills up, over all processes. [`Observation::quota`] is that of the call that has found it there. This is no call, and
    /// costs nothing. With Redis it comes a moment after that call.
    ///
    /// ```
    /// use ratelimits::observe::CallOutcome;
    /// use ratelimits::{Error, Registry, count_limit};
    ///
    /// #[count_limit(10, "1d", key = tenant, notify_at = 0.8, registry = registry)]
    /// async fn export(registry: &Registry, tenant: &str) -> Result<(), Error> {
    ///     Ok(())
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Error> {
    /// let (told, events) = std::sync::mpsc::channel();
    /// let observed = Registry::builder().observer(move |seen| {
    ///     if seen.outcome == CallOutcome::NearLimit {
    ///         let _ = told.send(seen.key().join(":"));
    ///     }
    /// });
    /// let registry = observed.in_memory();
    /// for _ in 0..10 {
    ///     export(&registry, "tenant-7").await?;
    /// }
    /// assert_eq!(events.try_iter().collect::<Vec<_>>(), ["tenant-7"]);
    /// # Ok(()) }
    /// ```
    NearLimit,
}

/// What a policy has left after a decision, in the terms of [`Decision`](crate::Decision).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Quota {
    /// The burst, capacity or limit of the policy, in permits. For a queue it is the capacity plus one.
    pub limit: u64,
    /// The whole permits that a call now would get.
    pub remaining: u64,
    /// The time until the same call would be admitted; `None` if it was admitted, never will be, or that is unknown.
    pub retry_after: Option<Duration>,
    /// The time until the state of the key expires. Zero for a concurrency limit: it is unknown when calls end.
    pub reset_after: Duration,
    /// What the limit is for: the period of a window, or the time in which an empty bucket fills up. Zero for a concurrency limit, which
    /// is for no time.
    pub window: Duration,
}

/// A function that is called for every decision.
pub(crate) type Observer = dyn Fn(&Observation<'_>) + Send + Sync;

/// The observers of a registry, which holds keep.
#[derive(Clone, Default)]
pub(crate) struct Observers(Arc<[Arc<Observer>]>);

impl<'a> Observation<'a> {
    /// Returns the parts of the key, which may be personal data. `<@user_or_ip>` is two parts: `user` or `ip`, and which one. There
    /// are none for a single counter, and if the call was refused before it was decided.
    #[must_use]
    pub fn key(&self) -> Vec<Cow<'a, str>> {
        self.parts.texts().collect()
    }

    /// Returns what the policy has left; `None` if it was not asked.
    #[must_use]
    pub fn quota(&self) -> Option<Quota> {
        let (verdict, spec) = match self.said {
            _ if self.source == Some(DecidedBy::Allowed) => return None,
            Said::Nothing | Said::Paused(_) | Said::Released(_) => return None,
            Said::Verdict(verdict, spec) => (*verdict, spec),
            Said::Plain { now, snapshot, admitted, plain, numbers } => {
                // If another policy refuses the call, the state stays as it is.
                let cost = if self.outcome == CallOutcome::NotCharged { 0 } else { self.cost };
                let limit = numbers.limit(*plain);
                (plain.verdict(limit, snapshot, now, cost, admitted), numbers.spec())
            }
            #[cfg(any(test, feature = "test-util"))]
            Said::Quota(quota) => return Some(quota),
        };
        Some(Quota {
            limit: verdict.limit,
            remaining: verdict.remaining,
            retry_after: known(verdict.retry_after),
            reset_after: Duration::from_micros(verdict.reset_after),
            window: Duration::from_micros(spec.window()),
        })
    }

    /// Returns how long the key was paused for; `None` unless the outcome is [`CallOutcome::Paused`].
    #[must_use]
    pub fn paused(&self) -> Option<Duration> {
        match self.said {
            Said::Paused(duration) => Some(duration),
            _ => None,
        }
    }

    /// Returns the limit of the policy, if it was asked.
    #[cfg(feature = "metrics")]
    pub(crate) fn limit(&self) -> Option<u64> {
        match self.said {
            _ if self.source == Some(DecidedBy::Allowed) => None,
            Said::Plain { plain, numbers, .. } => Some(numbers.limit(*plain)),
            _ => self.quota().map(|quota| quota.limit),
        }
    }

    /// Returns the numbers of the policy as they are written, or those of the call if they are computed. `None` if they are not known, or
    /// those of a share.
    pub(crate) fn numbers(&self) -> Option<&'a AlgorithmSpec> {
        if let Some(literal) = self.definition.and_then(Definition::literal) {
            return Some(&literal.spec);
        }
        match self.said {
            _ if !matches!(self.source, Some(DecidedBy::Memory | DecidedBy::Redis)) => None,
            Said::Verdict(_, spec) => Some(spec),
            Said::Plain { numbers, .. } => Some(numbers.spec()),
            _ => None,
        }
    }

    /// Returns whether charges may be corrected once their calls have ended.
    pub(crate) fn is_corrected(&self) -> bool {
        self.definition.is_some_and(|definition| definition.attribute.refundable)
    }

    /// Returns the time of the decision, in microseconds: by the clock of the store if that is in process.
    #[cfg(feature = "metrics")]
    pub(crate) fn now(&self) -> u64 {
        match self.said {
            Said::Plain { now, .. } => now,
            _ => Clock::process().now(),
        }
    }

    /// Returns what the owner keeps of the policy, made at its first call. `None` if another owner keeps something of it.
    pub(crate) fn attached<T: Send + Sync + 'static>(
        &self,
        owner: &Owner,
        make: impl FnOnce() -> T,
    ) -> Option<&'a T> {
        self.definition?.attachment.get_or_make(owner, make)
    }

    /// Returns the parts of the key. Those of the same texts are equal.
    pub(crate) fn parts(&self) -> PartsOfKey<'a> {
        self.parts
    }

    /// A call that was not decided.
    fn undecided(definition: &'a Definition, cost: u64, outcome: CallOutcome) -> Self {
        Observation {
            policy: definition.name.as_str(),
            algorithm: definition.algorithm,
            cost,
            shadow: false,
            outcome,
            source: None,
            waited: Duration::ZERO,
            definition: Some(definition),
            parts: PartsOfKey::NONE,
            said: Said::Nothing,
        }
    }
}

impl CallOutcome {
    /// Returns a stable name, such as `shadow_limited`, for labels of metrics and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            CallOutcome::Admitted => "admitted",
            CallOutcome::Limited => "limited",
            CallOutcome::ShadowLimited => "shadow_limited",
            CallOutcome::NotCharged => "not_charged",
            CallOutcome::MissingKey => "missing_key",
            CallOutcome::StoreError => "store_error",
            CallOutcome::Invalid => "invalid",
            CallOutcome::Paused => "paused",
            CallOutcome::Released => "released",
            CallOutcome::NearLimit => "near_limit",
        }
    }

    /// The outcome of a call that a policy admits or not, and that goes ahead or not.
    #[inline]
    fn of_policy(admitted: bool, shadow: bool, goes_ahead: bool) -> Self {
        match admitted {
            false if shadow => CallOutcome::ShadowLimited,
            false => CallOutcome::Limited,
            true if !goes_ahead => CallOutcome::NotCharged,
            true => CallOutcome::Admitted,
        }
    }

    fn of(error: &Error) -> Self {
        match error {
            Error::Limited(_) => CallOutcome::Limited,
            Error::MissingKey(_) => CallOutcome::MissingKey,
            Error::Store(_) => CallOutcome::StoreError,
            Error::Invalid(_) => CallOutcome::Invalid,
        }
    }
}

impl Observers {
    pub(crate) fn push(&mut self, observer: Arc<Observer>) {
        self.0 = self.0.iter().cloned().chain([observer]).collect();
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Reports a charge that the memory store decided by its lock-free steps, and whether that or another one refuses the call.
    #[inline]
    pub(crate) fn plain(
        &self,
        charge: &PolicyCharge<'_>,
        plain: &PlainSpec,
        (now, snapshot): (u64, PlainSnapshot),
        (admitted, goes_ahead): (bool, bool),
        parts: PartsOfKey<'_>,
    ) {
        let said = Said::Plain { now, snapshot, admitted, plain, numbers: &charge.numbers };
        let outcome = CallOutcome::of_policy(admitted, charge.shadow, goes_ahead);
        self.charge(charge, outcome, DecidedBy::Memory, parts, said);
    }

    /// Reports the decision about a call with a single charge.
    pub(crate) fn single(
        &self,
        charge: &PolicyCharge<'_>,
        verdict: &Verdict,
        source: DecidedBy,
        parts: PartsOfKey<'_>,
    ) {
        let outcome = CallOutcome::of_policy(verdict.admitted, charge.shadow, true);
        self.charge(charge, outcome, source, parts, Said::Verdict(verdict, charge.spec()));
    }

    #[inline]
    fn charge(
        &self,
        charge: &PolicyCharge<'_>,
        outcome: CallOutcome,
        source: DecidedBy,
        parts: PartsOfKey<'_>,
        said: Said<'_>,
    ) {
        let undecided = Observation::undecided(charge.definition.get(), charge.cost, outcome);
        self.tell(&Observation { shadow: charge.shadow, source: Some(source), parts, said, ..undecided });
    }

    /// Reports a request that was decided. Returns what reports the ends of its holds.
    pub(crate) fn decided(&self, acquired: &Acquired<'_>) -> Vec<Arc<Hold>> {
        let Acquired { request, outcome, waited, source, .. } = *acquired;
        let mut holds = Vec::new();
        for policy in request.policies().iter().filter(|policy| policy.cost > 0) {
            let (charge, verdict) = (&request.charges()[policy.charge], acquired.verdict(policy));
            let (parts, shadow) = (request.parts_of(policy), charge.shadow);
            let undecided = Observation::undecided(&policy.definition, policy.cost, CallOutcome::StoreError);
            let observation = Observation { shadow, parts, ..undecided };
            if acquired.shadow_failure(policy).is_some() {
                self.tell(&observation);
                continue;
            }
            let observation = Observation {
                outcome: CallOutcome::of_policy(verdict.admitted, shadow, outcome.admitted),
                source: Some(source),
                waited,
                said: Said::Verdict(verdict, &charge.spec),
                ..observation
            };
            self.tell(&observation);
            if observation.begins_hold() {
                holds.push(self.hold(policy.charge, &observation, policy.definition.clone()));
            }
        }
        holds
    }

    /// Reports a request that nothing decided.
    #[cold]
    pub(crate) fn failed(&self, request: &AcquireRequest) {
        for policy in request.policies().iter().filter(|policy| policy.cost > 0) {
            let (parts, shadow) = (request.parts_of(policy), request.charges()[policy.charge].shadow);
            let undecided = Observation::undecided(&policy.definition, policy.cost, CallOutcome::StoreError);
            self.tell(&Observation { shadow, parts, ..undecided });
        }
    }

    /// Reports a call that this policy refused before it could be decided.
    pub(crate) fn refused(&self, definition: &Definition, cost: u64, error: &Error) {
        self.tell(&Observation::undecided(definition, cost, CallOutcome::of(error)));
    }

    /// Reports that the key of these parts was paused.
    #[cold]
    pub(crate) fn paused(
        &self,
        definition: &Definition,
        shadow: bool,
        source: Option<DecidedBy>,
        parts: PartsOfKey<'_>,
        duration: Duration,
    ) {
        let observation = Observation::undecided(definition, 0, CallOutcome::Paused);
        self.tell(&Observation { shadow, source, parts, said: Said::Paused(duration), ..observation });
    }

    #[inline]
    fn tell(&self, observation: &Observation<'_>) {
        self.0.iter().for_each(|observer| observer(observation));
    }
}

impl fmt::Display for CallOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Without the key.
impl fmt::Debug for Observation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Observation { policy, algorithm, cost, shadow, outcome, source, waited, .. } = self;
        f.debug_struct("Observation")
            .field("policy", policy)
            .field("algorithm", algorithm)
            .field("cost", cost)
            .field("shadow", shadow)
            .field("outcome", outcome)
            .field("source", source)
            .field("quota", &self.quota())
            .field("waited", waited)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Observers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Observers").field(&self.0.len()).finish()
    }
}
