//! Calls of limiters and of attributes say the same whether a shortcut decides them or a request.

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use proptest::prelude::*;

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
use crate::policy::{FixedWindow, LeakyBucket, Policy, SlidingWindow, TokenBucket};
use crate::store::{MemoryStore, Store};
use crate::usage::limiter::Limiter;
use crate::usage::private::AttributeCall;

const POLICIES: usize = 9;

/// A policy of each kind, with few permits.
fn policies(n: u64) -> [Policy; POLICIES] {
    let second = Duration::from_secs(1);
    [
        TokenBucket::per_second(1_000).burst(n).into(),
        TokenBucket::per_second(1_000).burst(n).borrow().into(),
        TokenBucket::per_second(1_000).burst(n).interval_refill().into(),
        LeakyBucket::draining(n, second).into(),
        LeakyBucket::draining(n, second).queue().into(),
        FixedWindow::new(n, second).into(),
        FixedWindow::new(n, second).aligned().into(),
        SlidingWindow::new(n, second).into(),
        SlidingWindow::new(n, second).precision(second / 10).into(),
    ]
}

#[derive(Clone, Debug)]
enum Step {
    /// A policy, a key and a cost for each charge.
    All(Vec<(usize, u64, u64)>),
    /// The same of an attribute's call, and whether its output is one that is not charged.
    Attributes(Vec<(usize, u64, u64)>, bool),
    TryAcquire(usize, u64, u64),
    Peek(usize, u64),
    Refund(usize, u64, u64),
    Reset(usize, u64),
    /// Refunds one of the decisions.
    RefundDecision(usize),
    Pass(u64),
}

fn step() -> impl Strategy<Value = Step> {
    // Mostly policies with plain states, and keys that are known.
    let policy = || prop_oneof![2 => prop::sample::select(vec![0, 3, 5, 6]), 1 => 0..POLICIES];
    let key = || prop_oneof![5 => Just(0_u64), 1 => Just(1)];
    let charge = || (policy(), key(), prop_oneof![1 => Just(0_u64), 5 => 1..4_u64]);
    prop_oneof![
        4 => prop::collection::vec(charge(), 1..5).prop_map(Step::All),
        8 => (prop::collection::vec(charge(), 1..5), any::<bool>())
            .prop_map(|(charges, refunds)| Step::Attributes(charges, refunds)),
        6 => charge().prop_map(|(policy, key, cost)| Step::TryAcquire(policy, key, cost)),
        2 => (policy(), key()).prop_map(|(policy, key)| Step::Peek(policy, key)),
        1 => charge().prop_map(|(policy, key, cost)| Step::Refund(policy, key, cost)),
        1 => (policy(), key()).prop_map(|(policy, key)| Step::Reset(policy, key)),
        3 => (0..8_usize).prop_map(Step::RefundDecision),
        3 => (1..400_000_u64).prop_map(Step::Pass),
    ]
}

/// What is particular about an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Common,
    Shadow,
    ChargeWhen,
    Computed,
}

/// An attribute of this kind for each policy.
fn attributes(n: u64, kinds: [Kind; POLICIES]) -> Vec<(&'static Definition, Kind)> {
    let attribute = |(i, (policy, kind)): (usize, (Policy, Kind))| {
        let policy = if kind == Kind::Computed { policy.computed() } else { policy };
        let spec = policy.spec().expect("the policy is valid");
        let (shadow, refundable) = (kind == Kind::Shadow, kind == Kind::ChargeWhen);
        let options = AttributeOptions { index: Some(i), shadow, refundable, lease: None };
        let definition = Definition::of_limiter(format!("attribute {i}").into(), policy, spec);
        (&*Box::leak(Box::new(definition.of_attribute(options, None))), kind)
    };
    policies(n).into_iter().zip(kinds).enumerate().map(attribute).collect()
}

/// A registry, its limiters, what its observers have seen, and the decisions that were not refunded.
struct Tested {
    registry: Registry,
    limiters: Vec<Limiter>,
    attributes: Vec<(&'static Definition, Kind)>,
    seen: Arc<Mutex<Vec<String>>>,
    decisions: Vec<Decision>,
}

impl Tested {
    fn new(
        n: u64,
        time: &Arc<AtomicU64>,
        has_shortcuts: bool,
        is_observed: bool,
        attributes: &[(&'static Definition, Kind)],
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
            on_store_error: OnStoreError::Local,
            max_waiters: 10,
            max_keys: 10,
            instances: 1,
            observers,
        };
        let mut backend = Backend::new(Some(Store::Memory(Arc::new(store))), options);
        if !has_shortcuts {
            Arc::get_mut(&mut backend).expect("it is not shared yet").decide_by_requests();
        }
        let registry = Registry::new(backend, 100);
        let limiter =
            |(i, policy)| registry.limiter(&format!("policy {i}"), policy).expect("the policy is valid");
        let limiters = policies(n).into_iter().enumerate().map(limiter).collect();
        Tested { registry, limiters, attributes: attributes.to_vec(), seen, decisions: Vec::new() }
    }

    /// Takes a step. Returns all that its caller and the observers can see of it.
    fn take(&mut self, step: &Step) -> String {
        let said = match step {
            Step::All(charges) => {
                let charge =
                    |(policy, key, cost): &(usize, u64, u64)| self.limiters[*policy].charge(*key, *cost);
                let decided = now(self.registry.try_acquire_all(charges.iter().map(charge)));
                self.said(decided)
            }
            Step::Attributes(charges, refunds) => self.call(charges, *refunds),
            Step::TryAcquire(policy, key, cost) => {
                let decided = now(self.limiters[*policy].try_acquire(*key, *cost));
                self.said(decided)
            }
            Step::Peek(policy, key) => text(&now(self.limiters[*policy].peek(*key))),
            Step::Refund(policy, key, cost) => {
                format!("{:?}", now(self.limiters[*policy].refund(*key, *cost)))
            }
            Step::Reset(policy, key) => format!("{:?}", now(self.limiters[*policy].reset(*key))),
            Step::RefundDecision(i) if *i < self.decisions.len() => {
                format!("{:?}", now(self.decisions.swap_remove(*i).refund()))
            }
            Step::RefundDecision(_) | Step::Pass(_) => String::new(),
        };
        format!("{said}\n{:?}", std::mem::take(&mut *self.seen.lock().unwrap()))
    }

    /// Calls a function with these attributes. Their numbers and costs are as if they were computed.
    fn call(&self, asked: &[(usize, u64, u64)], refunds: bool) -> String {
        let backend = self.registry.backend();
        let mut charges = Charges::new(backend.keeps_parts());
        for (policy, key, cost) in asked {
            let (definition, kind) = self.attributes[*policy];
            let policy =
                definition.literal().map(|numbers| Ok(numbers.policy)).filter(|_| kind == Kind::Computed);
            let numbers = CallNumbers { policy: policy.as_ref(), cost: Ok(*cost), wait: Ok(0) };
            charges.begin(DefinitionRef::Static(definition), &numbers, false, backend.overrides());
            charges.key(key);
        }
        let Ok(decision) = backend.decide(&mut charges, &AttributeCall) else {
            panic!("a call in process that does not wait is decided at once");
        };
        match decision {
            None => String::new(),
            Some(Ok(charged)) => {
                let kept: Vec<_> = (0..POLICIES).map(|index| (index, !refunds)).collect();
                now(charged.refund(&kept));
                String::new()
            }
            Some(Err(refusal)) => format!("{:?} {}", refusal.policy(), text(&Err(refusal.into_error()))),
        }
    }

    fn said(&mut self, decided: Result<Decision, Error>) -> String {
        let text = text(&decided);
        self.decisions.extend(decided);
        text
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
    format!("{decision:?} {limit} {remaining} {retry_after:?} {reset_after:?} {rest}")
}

fn now<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("a call in process that does not wait is decided at once"),
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn shortcuts_say_what_requests_say(
        n in 1..20_u64,
        is_observed in any::<bool>(),
        kinds in prop::array::uniform9(prop_oneof![
            2 => Just(Kind::Common),
            1 => Just(Kind::Shadow),
            2 => Just(Kind::ChargeWhen),
            1 => Just(Kind::Computed),
        ]),
        steps in prop::collection::vec(step(), 1..40),
    ) {
        let time = Arc::new(AtomicU64::new(1_000_000_000));
        let attributes = attributes(n, kinds);
        let [mut by_shortcuts, mut by_requests] =
            [true, false].map(|has_shortcuts| Tested::new(n, &time, has_shortcuts, is_observed, &attributes));
        for step in &steps {
            if let Step::Pass(micros) = step {
                time.fetch_add(*micros, Ordering::SeqCst);
            }
            prop_assert_eq!(by_shortcuts.take(step), by_requests.take(step), "{:?}", step);
        }
    }
}
