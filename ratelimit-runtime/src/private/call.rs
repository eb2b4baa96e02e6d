//! A decision being put together.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use smallvec::SmallVec;

use super::{Charged, Checked, DecisionFuture, KeyPart, Refusal};
use crate::algorithm::AlgorithmSpec;
use crate::backend::By;
use crate::call_site::SiteName;
use crate::context;
use crate::error::Error;
use crate::error::missing_key::MissingKey;
use crate::error::store::StoreError;
use crate::key::KeyWriter;
use crate::name::Name;
use crate::policy::Policy;
use crate::question::{Question, patience};
use crate::registry::{self, Registry};
use crate::source::Source;
use crate::store::{Charge, INLINE, Outcome, Store};
use crate::waiting::{self, Answer};

/// A decision being put together: for each policy a charge, followed by the parts of its key.
#[derive(Debug)]
pub struct Call {
    registry: Registry,
    open: Option<Open>,
    asked: Asked,
    /// The first thing that is wrong with the call.
    refusal: Option<Refusal>,
}

#[derive(Debug)]
struct Open {
    named: &'static SiteName,
    spec: AlgorithmSpec,
    cost: u64,
    wait: u64,
    key: KeyWriter,
}

/// A question, and the attribute that each of its policies stands on.
#[derive(Debug, Default)]
struct Asked {
    question: Question,
    named: SmallVec<[&'static SiteName; INLINE]>,
}

impl Call {
    /// A decision of the current registry.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "nobody else makes one")]
    pub fn new() -> Self {
        Call::on(&registry::current())
    }

    /// A decision of this registry.
    #[must_use]
    pub fn on(registry: &Registry) -> Self {
        Call { registry: registry.clone(), open: None, asked: Asked::default(), refusal: None }
    }

    /// Begins the charge of a policy, for which the call waits for `timeout` at the most. A charge of nothing is none: nobody is
    /// asked, and nobody looks at its key.
    pub fn charge(
        &mut self,
        named: &'static SiteName,
        policy: Checked<Policy>,
        cost: Checked<u64>,
        timeout: Checked<Duration>,
    ) {
        self.close();
        if cost == Ok(0) {
            return;
        }
        let checked = named.check().and_then(|()| Ok((policy?.spec()?, cost?, timeout?)));
        match checked {
            Ok((spec, cost, timeout)) => {
                let key = self.registry.backend().key();
                self.open = Some(Open { named, spec, cost, wait: patience(timeout), key });
            }
            Err(invalid) => self.fail(named, invalid.into()),
        }
    }

    /// Adds a part to the key of the last charge.
    pub fn part<M, T: KeyPart<M> + ?Sized>(&mut self, part: &T) {
        if let Some(open) = &mut self.open
            && let Err(missing) = part.write(&mut open.key)
        {
            self.missing(missing);
        }
    }

    /// Adds the address of the context.
    pub fn ip(&mut self) {
        self.context(context::ip());
    }

    /// Adds the user of the context.
    pub fn user(&mut self) {
        self.context(context::user());
    }

    /// Adds the user of the context, or without one the address; one never meets the other.
    pub fn user_or_ip(&mut self) {
        match context::user() {
            Ok(user) => {
                self.part("user");
                self.part(&*user);
            }
            Err(_) => {
                self.part("ip");
                self.ip();
            }
        }
    }

    /// Decides, at once where nothing has to be awaited.
    pub fn decide(mut self) -> DecisionFuture {
        self.close();
        let Call { registry, asked, refusal, .. } = self;
        let backend = registry.backend();
        let Some(store) = &backend.store else { return DecisionFuture::ready(Ok(Charged::NOTHING)) };
        match refusal {
            Some(refusal) => DecisionFuture::ready(Err(refusal)),
            None if asked.question.is_empty() => DecisionFuture::ready(Ok(Charged::NOTHING)),
            None => {
                let Asked { mut question, named } = asked;
                let shadow = question.is_shadow();
                match waiting::ask(&mut question, backend, store) {
                    waiting::Asked::Here(Ok(outcome)) => {
                        let decided = backend.decided(By::Store);
                        DecisionFuture::ready(settle(&question, &outcome, Duration::ZERO, &named, decided))
                    }
                    waiting::Asked::Here(Err(error)) => {
                        DecisionFuture::ready(unanswered(error, &named, shadow))
                    }
                    waiting::Asked::Later(asking) => {
                        let backend = Arc::clone(backend);
                        DecisionFuture::asked(async move {
                            match waiting::answer(asking, &backend).await {
                                Ok(Answer { question, outcome, waited, by }) => {
                                    settle(&question, &outcome, waited, &named, backend.decided(by))
                                }
                                Err(error) => unanswered(error, &named, shadow),
                            }
                        })
                    }
                }
            }
        }
    }

    fn context(&mut self, part: Result<impl Display, MissingKey>) {
        if self.open.is_none() {
            return;
        }
        match part {
            Ok(part) => self.part(&part),
            Err(missing) => self.missing(missing),
        }
    }

    /// The key of the open charge lacks something, so there is nothing to charge.
    fn missing(&mut self, missing: MissingKey) {
        if let Some(open) = self.open.take() {
            self.fail(open.named, missing.into());
        }
    }

    /// Ends the charge that was begun.
    fn close(&mut self) {
        let Some(Open { named, spec, cost, wait, key }) = self.open.take() else { return };
        let name = Name::Static(&named.name);
        let head = (named.options.prefix, &name, named.function.as_deref());
        let pushed = match self.registry.backend().finish(key, head, &spec) {
            Ok(key) => {
                let charge = Charge { key, spec, cost, wait, shadow: named.options.shadow };
                let otherwise = named.options.on_store_error;
                let otherwise = otherwise.unwrap_or(self.registry.backend().on_store_error);
                self.asked.question.push(name, charge, otherwise).map_err(Error::from)
            }
            Err(missing) => Err(missing.into()),
        };
        match pushed {
            Ok(()) => self.asked.named.push(named),
            Err(error) => self.fail(named, error),
        }
    }

    /// Refuses the call, unless the policy never does.
    fn fail(&mut self, named: &SiteName, error: Error) {
        if named.options.shadow {
            report(&named.name, &error);
        } else {
            self.refusal.get_or_insert(Refusal { policy: Some(named.options.policy), error });
        }
    }
}

/// What it means for the call that nobody has decided.
fn unanswered(error: StoreError, named: &[&'static SiteName], all_shadows: bool) -> Result<Charged, Refusal> {
    let error = Error::Store(error);
    if !all_shadows {
        return Err(Refusal { policy: None, error });
    }
    named.iter().for_each(|named| report(&named.name, &error));
    Ok(Charged::NOTHING)
}

/// What the answer means for the call.
fn settle(
    question: &Question,
    outcome: &Outcome,
    waited: Duration,
    named: &[&'static SiteName],
    (source, store): (Source, Option<&Store>),
) -> Result<Charged, Refusal> {
    let places = || named.iter().enumerate();
    for (place, named) in places().filter(|(_, named)| named.options.shadow) {
        if let Some(failure) = question.failure(outcome, place) {
            report(&named.name, &failure.into());
        } else if !question.verdict(outcome, place).admitted {
            tracing::info!(policy = &*named.name, "a policy in shadow would have limited this call");
        }
    }
    if outcome.admitted {
        let Some(store) = store else { return Ok(Charged::NOTHING) };
        let refundable = places().filter(|(_, named)| named.options.refundable);
        return Ok(Charged::new(
            refundable.map(|(place, named)| (*named, question.receipt(outcome, place, store))),
        ));
    }
    let decision = question.decision(outcome, waited, (source, store));
    let policy = Some(named[decision.reported()].options.policy);
    Err(Refusal { policy, error: decision.into_error() })
}

/// Tells of a policy in shadow that could not be asked.
fn report(policy: &str, error: &Error) {
    let error = error as &(dyn std::error::Error + 'static);
    tracing::info!(policy, error, "a policy in shadow could not decide on this call");
}
