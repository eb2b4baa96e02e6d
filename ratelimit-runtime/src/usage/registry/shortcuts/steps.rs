//! What happens in a schedule: calls, changes by operators, and time that passes.

use std::time::Duration;

use proptest::prelude::*;

use crate::policy::{ConcurrencyLimit, FixedWindow, LeakyBucket, Policy, SlidingWindow, TokenBucket};

pub(super) const POLICIES: usize = 13;

/// A policy of each kind, with few permits.
pub(super) fn policies(n: u64, period: Duration) -> [Policy; POLICIES] {
    [
        TokenBucket::per_second(1_000).burst(n).into(),
        TokenBucket::per_second(1_000).burst(n).borrow().into(),
        TokenBucket::per_second(1_000).burst(n).interval_refill().into(),
        LeakyBucket::draining(n, period).into(),
        LeakyBucket::draining(n, period).queue().into(),
        FixedWindow::new(n, period).into(),
        FixedWindow::new(n, period).aligned().into(),
        SlidingWindow::new(n, period).into(),
        SlidingWindow::new(n, period).precision(period / 10).into(),
        ConcurrencyLimit::new(n).into(),
        TokenBucket::per_second(1_000).burst(n).adjustable().into(),
        TokenBucket::per_second(1_000).burst(n).settled().into(),
        TokenBucket::per_second(100).warmup(period).into(),
    ]
}

/// The number of each policy that overrides change.
pub(super) const ARGUMENTS: [&str; POLICIES] = [
    "burst", "burst", "burst", "capacity", "capacity", "limit", "limit", "limit", "limit", "max", "burst",
    "burst", "rate",
];

#[derive(Clone, Debug)]
pub(super) enum Step {
    /// A policy, a key and a cost for each charge.
    All(Vec<(usize, u64, u64)>),
    /// The same of an attribute's call, each with its numbers.
    Attributes(Vec<((usize, u64, u64), Numbers)>, Does),
    TryAcquire(usize, u64, u64),
    /// A call that may wait for this long, in microseconds, and is dropped if it has to.
    Acquire(usize, u64, u64, u64),
    /// A look at what is left, and at what is used.
    Peek(usize, u64),
    Refund(usize, u64, u64),
    Reset(usize, u64),
    /// Refunds one of the decisions.
    RefundDecision(usize),
    /// Settles one of the decisions by so many permits for each policy.
    Settle(usize, u64),
    /// Pauses a key for this long, in microseconds.
    Pause(usize, u64, u64),
    /// Ends one of the calls of attributes that last.
    End(usize),
    /// Overrides these, and no others.
    Override(Vec<(Overridden, Setting)>),
    Pass(u64),
}

/// What else a call of an attribute does.
#[derive(Clone, Copy, Debug)]
pub(super) struct Does {
    /// Whether the output is one that is not charged.
    pub(super) refunds: bool,
    /// Whether it may pause its keys, which are completed before it is decided.
    pub(super) pauses: bool,
    /// Whether it ends in a later step.
    pub(super) lasts: bool,
}

/// The numbers of a call, if they are computed.
#[derive(Clone, Copy, Debug)]
pub(super) enum Numbers {
    Usual,
    MorePermits,
    OtherPeriod,
}

/// What is overridden.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Overridden {
    /// Whether the policy is that of an attribute, or else of a limiter.
    pub(super) is_attribute: bool,
    pub(super) policy: usize,
    /// `None` for all keys.
    pub(super) key: Option<u64>,
}

/// What an override sets.
#[derive(Clone, Copy, Debug)]
pub(super) enum Setting {
    Number(u64),
    Shadow,
    ShadowWithNumber(u64),
    Off,
    /// Of a key alone.
    Blocked,
}

/// What is particular about an attribute.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kind {
    pub(super) is_shadow: bool,
    pub(super) has_charge_when: bool,
    pub(super) is_computed: bool,
    pub(super) has_penalty: bool,
}

pub(super) fn kind() -> impl Strategy<Value = Kind> {
    let [shadow, other, penalty] = [0.2, 0.3, 0.2].map(prop::bool::weighted);
    (shadow, other, other, penalty).prop_map(|(is_shadow, has_charge_when, is_computed, has_penalty)| Kind {
        is_shadow,
        has_charge_when,
        is_computed,
        has_penalty,
    })
}

fn setting() -> impl Strategy<Value = Setting> {
    prop_oneof![
        3 => (1..20_u64).prop_map(Setting::Number),
        1 => Just(Setting::Shadow),
        1 => (1..20_u64).prop_map(Setting::ShadowWithNumber),
        1 => Just(Setting::Off),
        1 => Just(Setting::Blocked),
    ]
}

fn overridden(policy: impl Strategy<Value = usize>) -> impl Strategy<Value = Overridden> {
    let key = prop_oneof![1 => Just(None), 2 => (0..2_u64).prop_map(Some)];
    (any::<bool>(), policy, key).prop_map(|(is_attribute, policy, key)| Overridden {
        is_attribute,
        policy,
        key,
    })
}

pub(super) fn step() -> impl Strategy<Value = Step> {
    // Mostly policies with plain states, and keys that are known.
    let policy = || prop_oneof![2 => prop::sample::select(vec![0, 3, 5, 6, 9]), 1 => 0..POLICIES];
    let key = || prop_oneof![5 => Just(0_u64), 1 => Just(1)];
    let charge = || (policy(), key(), prop_oneof![1 => Just(0_u64), 5 => 1..4_u64]);
    let numbers = prop_oneof![
        3 => Just(Numbers::Usual),
        1 => Just(Numbers::MorePermits),
        1 => Just(Numbers::OtherPeriod),
    ];
    prop_oneof![
        4 => prop::collection::vec(charge(), 1..5).prop_map(Step::All),
        8 => (prop::collection::vec((charge(), numbers), 1..5), any::<[bool; 3]>()).prop_map(
            |(charges, [refunds, pauses, lasts])| Step::Attributes(charges, Does { refunds, pauses, lasts })
        ),
        6 => charge().prop_map(|(policy, key, cost)| Step::TryAcquire(policy, key, cost)),
        2 => (charge(), 1..4_000_u64)
            .prop_map(|((policy, key, cost), wait)| Step::Acquire(policy, key, cost, wait)),
        2 => (policy(), key()).prop_map(|(policy, key)| Step::Peek(policy, key)),
        1 => charge().prop_map(|(policy, key, cost)| Step::Refund(policy, key, cost)),
        1 => (policy(), key()).prop_map(|(policy, key)| Step::Reset(policy, key)),
        3 => (0..8_usize).prop_map(Step::RefundDecision),
        2 => (0..8_usize, 0..6_u64).prop_map(|(decision, used)| Step::Settle(decision, used)),
        1 => (policy(), key(), 1..40_000_u64)
            .prop_map(|(policy, key, micros)| Step::Pause(policy, key, micros)),
        3 => (0..4_usize).prop_map(Step::End),
        2 => prop::collection::vec((overridden(policy()), setting()), 0..12).prop_map(Step::Override),
        3 => (1..400_000_u64).prop_map(Step::Pass),
    ]
}
