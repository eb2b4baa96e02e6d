//! Calls of limiters and of attributes say the same whether a shortcut decides them or a request.

#![cfg(feature = "overrides")]

mod steps;

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use proptest::prelude::*;

use self::steps::{Does, Kind, Numbers, Overridden, POLICIES, Setting, Step, kind, policies, step};
use super::Registry;
use crate::base::clock::Clock;
use crate::base::property_tests::config;
use crate::decide::backend::{Backend, BackendOptions};
use crate::decide::charges::{CallNumbers, Charges};
use crate::decide::decision::Decision;
use crate::decide::definition::{AttributeOptions, Definition, DefinitionRef};
use crate::decide::error::Error;
use crate::decide::observation::{Observation, Observers};
use crate::decide::on_store_error::OnStoreError;
use crate::decide::overrides::OverrideSet;
use crate::key::name::Name;
use crate::key::policy_id::PolicyId;
use crate::policy::{Algorithm, Policy};
use crate::store::{MemoryStore, Store};
use crate::usage::limiter::Limiter;
use crate::usage::private::{AttributeCall, Charged, Used};

const SECOND: Duration = Duration::from_secs(1);

/// An attribute of this kind for each policy, which has claimed no name.
fn attributes(n: u64, kinds: [Kind; POLICIES]) -> Vec<&'static Definition> {
    let attribute = |(i, (policy, kind)): (usize, (Policy, Kind))| {
        let Kind { is_shadow: shadow, has_charge_when, is_computed, has_penalty } = kind;
        let penalty: &[u64] = if has_penalty { &[5_000, 50_000] } else { &[] };
        let refundable = has_charge_when || policy.algorithm() == Algorithm::Semaphore;
        let name: &'static str = name(true, i).leak();
        let index = Some(i);
        let options = AttributeOptions { index, shadow, refundable, penalty, ..AttributeOptions::default() };
        let definition = Definition::new(
            Name::of_limiter(name.into()),
            policy.algorithm(),
            ("", PolicyId::new("", name)),
            None,
        )
        .of_attribute(options, None);
        let spec = policy.spec().expect("the policy is valid");
        let definition = if is_computed { definition } else { definition.with_numbers(policy, spec) };
        &*Box::leak(Box::new(definition))
    };
    policies(n, SECOND).into_iter().zip(kinds).enumerate().map(attribute).collect()
}

/// The name of a policy, of an attribute or of a limiter.
fn name(is_attribute: bool, policy: usize) -> String {
    if is_attribute { format!("attribute {policy}") } else { format!("policy {policy}") }
}

/// A registry, its limiters, what its observers have seen, the decisions that were not refunded, and the calls that last.
struct Tested {
    registry: Registry,
    limiters: Vec<Limiter>,
    attributes: Vec<&'static Definition>,
    /// The permits of each policy as it is written.
    n: u64,
    kinds: [Kind; POLICIES],
    has_shortcuts: bool,
    seen: Arc<Mutex<Vec<String>>>,
    decisions: Vec<Decision>,
    running: Vec<(Option<Charged>, Does)>,
}

impl Tested {
    fn new(
        n: u64,
        time: &Arc<AtomicU64>,
        has_shortcuts: bool,
        is_observed: bool,
        kinds: [Kind; POLICIES],
    ) -> Self {
        let store = MemoryStore::new(1_000, Clock::manual(Arc::clone(time)));
        let (mut observers, seen) = (Observers::default(), Arc::new(Mutex::new(Vec::new())));
        if is_observed {
            let seen = Arc::clone(&seen);
            observers.push(Arc::new(move |observation: &Observation<'_>| {
                seen.lock().unwrap().push(format!("{observation:?} of {:?}", observation.key()));
            }));
        }
        let options = BackendOptions {
            namespace: "test".to_owned(),
            hash_keys: false,
            on_store_error: OnStoreError::Local,
            max_waiters: 10,
            max_pause: Duration::from_secs(1),
            max_keys: 10,
            instances: 1,
            observers,
        };
        let mut backend = Backend::new(Some(Store::Memory(Arc::new(store))), options);
        if !has_shortcuts {
            Arc::get_mut(&mut backend).expect("it is not shared yet").decide_by_requests();
        }
        let registry = Registry::new(backend, 100);
        let limiter = |(i, policy)| registry.limiter(&name(false, i), policy).expect("the policy is valid");
        let limiters = policies(n, SECOND).into_iter().enumerate().map(limiter).collect();
        let attributes = attributes(n, kinds);
        let (decisions, running) = (Vec::new(), Vec::new());
        let mut tested =
            Tested { registry, limiters, attributes, n, kinds, has_shortcuts, seen, decisions, running };
        tested.set(&[]);
        tested
    }

    /// Takes a step. Returns all that its caller and the observers can see of it.
    fn take(&mut self, step: &Step) -> String {
        let said = match step {
            Step::All(charges) => {
                let charge =
                    |(policy, key, cost): &(usize, u64, u64)| self.limiters[*policy].charge_n(*key, *cost);
                let decided = now(self.registry.try_acquire_all(charges.iter().map(charge)));
                self.said(decided)
            }
            Step::Attributes(charges, does) => self.call(charges, *does),
            Step::TryAcquire(policy, key, cost) => {
                let decided = now(self.limiters[*policy].try_acquire_n(*key, *cost));
                self.said(decided)
            }
            Step::Acquire(policy, key, cost, wait) => {
                let wait = Duration::from_micros(*wait);
                match once(self.limiters[*policy].acquire_n_timeout(*key, *cost, wait)) {
                    Some(decided) => self.said(decided),
                    None => "it waits".to_owned(),
                }
            }
            Step::Peek(policy, key) => {
                let limiter = &self.limiters[*policy];
                format!("{} {:?}", text(&now(limiter.peek(*key))), now(limiter.used(*key)))
            }
            Step::Refund(policy, key, cost) => {
                format!("{:?}", now(self.limiters[*policy].refund(*key, *cost)))
            }
            Step::Reset(policy, key) => format!("{:?}", now(self.limiters[*policy].reset(*key))),
            Step::RefundDecision(i) if *i < self.decisions.len() => {
                format!("{:?}", now(self.decisions.swap_remove(*i).refund()))
            }
            Step::Settle(i, used) if *i < self.decisions.len() => {
                let decision = &mut self.decisions[*i];
                let policies = decision.policies().len();
                decision.settle_each(vec![*used; policies]);
                String::new()
            }
            Step::Pause(policy, key, micros) => {
                format!("{:?}", now(self.limiters[*policy].pause(*key, Duration::from_micros(*micros))))
            }
            Step::Override(overrides) => {
                self.set(overrides);
                String::new()
            }
            Step::End(i) if *i < self.running.len() => {
                let (charged, does) = self.running.swap_remove(*i);
                end(charged, does);
                String::new()
            }
            Step::RefundDecision(_) | Step::Settle(..) | Step::End(_) | Step::Pass(_) => String::new(),
        };
        format!("{said}\n{:?}", std::mem::take(&mut *self.seen.lock().unwrap()))
    }

    /// Replaces all overrides by these. Without shortcuts, the other policies have one that changes nothing, so that their calls do not
    /// know that, and nothing is remembered of what was in force before.
    fn set(&mut self, overrides: &[(Overridden, Setting)]) {
        let all =
            |is_attribute| (0..POLICIES).map(move |policy| Overridden { is_attribute, policy, key: None });
        let mut last = BTreeMap::new();
        if !self.has_shortcuts {
            last.extend([true, false].into_iter().flat_map(all).map(|it| (it, "shadow = false".to_owned())));
            self.limiters.iter_mut().for_each(|limiter| *limiter = limiter.prefix(""));
            self.attributes = attributes(self.n, self.kinds);
        }
        for (overridden, setting) in overrides {
            let number = |number| format!("{} = {number}", steps::ARGUMENTS[overridden.policy]);
            let settings = match setting {
                Setting::Blocked if overridden.key.is_none() => continue,
                Setting::Blocked => "blocked = true".to_owned(),
                Setting::Number(to) => number(to),
                Setting::Shadow => "shadow = true".to_owned(),
                Setting::ShadowWithNumber(to) => format!("shadow = true\n{}", number(to)),
                Setting::Off => "off = true".to_owned(),
            };
            last.insert(*overridden, settings);
        }
        let section = |(Overridden { is_attribute, policy, key }, settings)| {
            let key = key.map(|key| format!(".keys.{key}")).unwrap_or_default();
            format!("[\"{}\"{key}]\n{settings}\n", name(is_attribute, policy))
        };
        let text: String = last.into_iter().map(section).collect();
        let set = OverrideSet::parse(&text).expect("the overrides are valid");
        self.registry.backend().overrides().replace(&Arc::new(set));
    }

    /// Calls a function with these attributes. Their costs are as if they were computed.
    fn call(&mut self, asked: &[((usize, u64, u64), Numbers)], does: Does) -> String {
        let backend = self.registry.backend();
        let mut charges = Charges::new(backend.keeps_parts());
        for ((policy, key, cost), numbers) in asked {
            let definition = self.attributes[*policy];
            let (n, period) = match numbers {
                Numbers::Usual => (self.n, SECOND),
                Numbers::MorePermits => (self.n + 3, SECOND),
                Numbers::OtherPeriod => (self.n, SECOND / 2),
            };
            let computed = Ok(policies(n, period)[*policy].computed());
            let policy = definition.literal().is_none().then_some(&computed);
            let numbers = CallNumbers { policy, cost: &Ok(*cost), wait: Ok(0) };
            let (overrides, attribute) = (backend.overrides(), DefinitionRef::Static(definition));
            // As generated code does.
            let literal = definition.literal().filter(|_| *cost > 0);
            let asked = (*cost, 0);
            if !literal
                .is_some_and(|literal| charges.begin_literal(attribute, literal, asked, false, overrides))
            {
                charges.begin(attribute, &numbers, false, overrides);
            }
            charges.key(key);
        }
        if does.pauses {
            backend.close(&mut charges);
        }
        let Ok(decision) = backend.decide(&mut charges, &AttributeCall) else {
            panic!("a call in process that does not wait is decided at once");
        };
        let charged = match decision.transpose() {
            Ok(charged) => charged,
            Err(refusal) => return format!("{:?} {}", refusal.policy(), text(&Err(refusal.into_error()))),
        };
        if does.lasts {
            self.running.push((charged, does));
        } else {
            end(charged, does);
        }
        String::new()
    }

    fn said(&mut self, decided: Result<Decision, Error>) -> String {
        let text = text(&decided);
        self.decisions.extend(decided);
        text
    }
}

/// Ends a call of attributes, if there is anything of it to correct.
fn end(charged: Option<Charged>, does: Does) {
    let used = || if does.refunds { Used::Nothing } else { Used::Cost };
    if let Some(charged) = charged {
        charged.correct(&(0..POLICIES).map(|index| (index, used())).collect::<Vec<_>>());
    }
}

/// Returns all that a caller can read of a decision.
fn text(decided: &Result<Decision, Error>) -> String {
    let (decision, rest) = match decided {
        Ok(decision) => (decision, String::new()),
        Err(Error::Limited(limited)) => {
            let said = (limited.policy(), limited.algorithm(), limited.key());
            (limited.decision(), format!("{said:?} {limited}"))
        }
        Err(error) => return format!("{error:?}"),
    };
    let Decision { limit, remaining, retry_after, reset_after, .. } = decision;
    let (paused, step) = (decision.paused(), decision.penalty_step());
    format!("{decision:?} {limit} {remaining} {retry_after:?} {reset_after:?} {paused:?} {step} {rest}")
}

fn now<F: Future>(future: F) -> F::Output {
    once(future).expect("a call in process that does not wait is decided at once")
}

/// Polls a future once, and drops it.
fn once<F: Future>(future: F) -> Option<F::Output> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn shortcuts_say_what_requests_say(
        n in 1..20_u64,
        is_observed in any::<bool>(),
        kinds in prop::array::uniform13(kind()),
        steps in prop::collection::vec(step(), 1..40),
    ) {
        let time = Arc::new(AtomicU64::new(1_000_000_000));
        let [mut by_shortcuts, mut by_requests] =
            [true, false].map(|has_shortcuts| Tested::new(n, &time, has_shortcuts, is_observed, kinds));
        for step in &steps {
            if let Step::Pass(micros) = step {
                time.fetch_add(*micros, Ordering::SeqCst);
            }
            prop_assert_eq!(by_shortcuts.take(step), by_requests.take(step), "{:?}", step);
        }
    }
}
