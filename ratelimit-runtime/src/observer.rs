//! What observers get of every decision.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::acquired::Acquired;
use crate::error::Error;
use crate::policy::Algorithm;
use crate::request::{AcquireRequest, ObservedCharge, RequestedPolicy};
use crate::source::Source;

/// A policy's decision about one call, as observers get it: [`RegistryBuilder::observer`](crate::RegistryBuilder::observer).
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Observation<'a> {
    /// The name of the policy.
    pub policy: &'a str,
    /// The algorithm of the policy.
    pub algorithm: Algorithm,
    /// The parts of the key, which may be personal data. `<@user_or_ip>` is two parts: `user` or `ip`, and which one. Empty for a
    /// single counter, and if the call was refused before it was decided.
    pub key: &'a [String],
    /// The permits that the call asked for. 0 if that is what was invalid.
    pub cost: u64,
    /// Whether the policy is a shadow, which never refuses. False if the call was refused before it was decided.
    pub shadow: bool,
    /// The outcome of the call.
    pub outcome: CallOutcome,
    /// Where the call was decided; `None` if it was not.
    pub source: Option<Source>,
    /// What the policy has left; `None` if it was not asked.
    pub quota: Option<Quota>,
    /// How long the call waited for its permits; zero if nothing decided it.
    pub waited: Duration,
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
}

/// What a policy has left after a decision, in the terms of [`Decision`](crate::Decision).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Quota {
    /// The burst, capacity or limit of the policy, in permits. For a queue it is the capacity plus one.
    pub limit: u64,
    /// The whole permits that a call now would get.
    pub remaining: u64,
    /// The time until the same call would be admitted; `None` if it was admitted, or never will be.
    pub retry_after: Option<Duration>,
    /// The time until the state of the key expires.
    pub reset_after: Duration,
    /// What the limit is for: the period of a window, or the time in which an empty bucket fills up.
    pub window: Duration,
}

/// A function that is called for every decision.
pub(crate) type Observer = dyn Fn(&Observation<'_>) + Send + Sync;

/// The observers of a registry.
#[derive(Clone, Default)]
pub(crate) struct Observers(Vec<Arc<Observer>>);

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
        self.0.push(observer);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Reports a request that was decided.
    #[cold]
    pub(crate) fn decided(&self, acquired: &Acquired<'_>) {
        for (policy, asked) in acquired.request.observed() {
            let verdict = acquired.verdict(policy);
            let observation = |outcome| observation(acquired.request, policy, asked, outcome);
            if acquired.shadow_failure(policy).is_some() {
                self.tell(&observation(CallOutcome::StoreError));
                continue;
            }
            let outcome = match verdict.admitted {
                false if acquired.is_shadow(policy) => CallOutcome::ShadowLimited,
                false => CallOutcome::Limited,
                true if !acquired.outcome.admitted => CallOutcome::NotCharged,
                true => CallOutcome::Admitted,
            };
            let quota = Quota {
                limit: verdict.limit,
                remaining: verdict.remaining,
                retry_after: verdict.retry_after.map(Duration::from_micros),
                reset_after: Duration::from_micros(verdict.reset_after),
                window: Duration::from_micros(acquired.request.charges()[policy.charge].spec.window()),
            };
            self.tell(&Observation {
                source: Some(acquired.source),
                quota: (acquired.source != Source::Allowed).then_some(quota),
                waited: acquired.waited,
                ..observation(outcome)
            });
        }
    }

    /// Reports a request that nothing decided.
    #[cold]
    pub(crate) fn failed(&self, request: &AcquireRequest) {
        for (policy, asked) in request.observed() {
            self.tell(&observation(request, policy, asked, CallOutcome::StoreError));
        }
    }

    /// Reports a call that this policy refused before it could be decided.
    pub(crate) fn refused(&self, policy: &str, algorithm: Algorithm, cost: u64, error: &Error) {
        let (key, outcome) = (&[][..], CallOutcome::of(error));
        let (shadow, source, quota, waited) = (false, None, None, Duration::ZERO);
        self.tell(&Observation { policy, algorithm, key, cost, shadow, outcome, source, quota, waited });
    }

    fn tell(&self, observation: &Observation<'_>) {
        self.0.iter().for_each(|observer| observer(observation));
    }
}

/// An observation of a call that was not decided.
fn observation<'a>(
    request: &'a AcquireRequest,
    policy: &'a RequestedPolicy,
    asked: &'a ObservedCharge,
    outcome: CallOutcome,
) -> Observation<'a> {
    let charge = &request.charges()[policy.charge];
    Observation {
        policy: policy.name.as_str(),
        algorithm: Algorithm::of(&charge.spec),
        key: &asked.key,
        cost: asked.cost,
        shadow: charge.shadow,
        outcome,
        source: None,
        quota: None,
        waited: Duration::ZERO,
    }
}

/// Without the key.
impl fmt::Debug for Observation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Observation { policy, algorithm, cost, shadow, outcome, source, quota, waited, .. } = self;
        f.debug_struct("Observation")
            .field("policy", policy)
            .field("algorithm", algorithm)
            .field("cost", cost)
            .field("shadow", shadow)
            .field("outcome", outcome)
            .field("source", source)
            .field("quota", quota)
            .field("waited", waited)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Observers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Observers").field(&self.0.len()).finish()
    }
}
