//! What a call asks: a charge for each of its policies, in place while the call is put together and decided.

mod begin;
mod by_key;

use std::sync::Arc;

use super::definition::{ChargeNumbers, Definition, DefinitionRef, Numbers};
use crate::algorithm::{AlgorithmSpec, PlainSpec};
use crate::base::invalid_policy::InvalidPolicy;
use crate::decide::error::Error;
use crate::key::missing_key::MissingKey;
use crate::key::{Fingerprint, IntoKey, Key, KeyHead, KeyPart, KeyParts, OpenKey, PartsOfKey};
use crate::policy::Policy;
use crate::store::{Charge, INLINE, InList, ListedCharge, PlainOutcome};

/// The charges of a call.
#[derive(Debug)]
pub(crate) struct Charges<'a> {
    first: [Option<PolicyCharge<'a>>; INLINE],
    /// How many of them there are. [`MORE`] if there is a rest, to which further ones are added.
    ///
    /// A byte, so that the compiler writes it and the three flags at once. It would write three bytes together with a part of the field
    /// before them, and who reads that field would wait for both writes.
    len: u8,
    /// The key of the last charge, while it may get further parts.
    open: Option<OpenKey>,
    /// The parts of all keys, if their texts may be wanted.
    parts: KeyParts,
    keeps_parts: bool,
    /// Whether operators may have changed something for the keys of some.
    by_key: bool,
    /// Whether a call that is turned off still counts as one that costs nothing.
    keeps_free: bool,
    /// What few calls have.
    rest: Option<Box<Rest<'a>>>,
}

/// More charges than there are places for.
const MORE: u8 = INLINE as u8 + 1;

/// What a call asks of one policy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PolicyCharge<'a> {
    pub(crate) definition: DefinitionRef<'a>,
    pub(crate) numbers: ChargeNumbers<'a>,
    pub(crate) key: Fingerprint,
    pub(crate) cost: u64,
    /// How long the call may wait, in microseconds.
    pub(crate) wait: u64,
    pub(crate) shadow: bool,
    /// Where the parts of the key are.
    pub(crate) parts: (u32, u32),
}

/// The charge of a key that operators have blocked.
#[derive(Debug)]
pub(crate) struct Blocked<'a> {
    pub(crate) charge: PolicyCharge<'a>,
    /// When that ends by itself, in seconds since the Unix epoch.
    until: Option<u64>,
}

/// A policy that cannot decide the call, and why.
#[derive(Debug)]
pub(crate) struct Failure<'a> {
    pub(crate) definition: DefinitionRef<'a>,
    /// What the call asked for, unless that is what was invalid.
    pub(crate) cost: Result<u64, InvalidPolicy>,
    pub(crate) shadow: bool,
    pub(crate) error: Error,
}

/// The numbers of a call, any of which may be invalid.
#[derive(Clone, Debug)]
pub(crate) struct CallNumbers<'c> {
    /// The policy, if its numbers are computed for the call.
    pub(crate) policy: Option<&'c Result<Policy, InvalidPolicy>>,
    pub(crate) cost: &'c Result<u64, InvalidPolicy>,
    pub(crate) wait: Result<u64, InvalidPolicy>,
}

#[derive(Debug, Default)]
struct Rest<'a> {
    /// The charges behind the first ones.
    more: Vec<PolicyCharge<'a>>,
    failures: Vec<Failure<'a>>,
    /// The charge of a key that is blocked, for the longest time if there are several.
    blocked: Option<Blocked<'a>>,
}

impl<'a> Charges<'a> {
    /// No charges. If the texts of keys may be wanted, their parts are kept.
    #[inline]
    pub(crate) fn new(keeps_parts: bool) -> Self {
        let (first, parts) = ([None; INLINE], KeyParts::default());
        Charges {
            first,
            len: 0,
            open: None,
            parts,
            keeps_parts,
            by_key: false,
            keeps_free: false,
            rest: None,
        }
    }

    /// A single charge, whose key is complete and has these parts, if they are kept.
    pub(crate) fn of(mut charge: PolicyCharge<'a>, parts: KeyParts) -> Self {
        charge.parts = (0, parts.end());
        Charges { first: [Some(charge), None, None, None], len: 1, parts, ..Charges::new(false) }
    }

    /// Adds the charge of a policy with its literal numbers, of a call that does not wait, to a key of these parts.
    #[inline]
    pub(crate) fn add_literal(
        &mut self,
        definition: DefinitionRef<'a>,
        numbers: &'a Numbers,
        cost: u64,
        (key, parts): (Fingerprint, PartsOfKey<'_>),
    ) {
        self.close();
        let shadow = definition.attribute.shadow;
        let parts = if self.keeps_parts { self.parts.append(parts) } else { (0, 0) };
        self.push(definition, ChargeNumbers::Literal(numbers), (key, parts), (cost, 0), shadow);
    }

    /// Keeps the parts of the keys that are added from now on.
    #[inline]
    pub(crate) fn keep_parts(&mut self, keeps_parts: bool) {
        self.keeps_parts = keeps_parts;
    }

    /// Adds a part to the key of the last charge.
    #[inline(always)]
    pub(crate) fn part<M, T: KeyPart<M> + ?Sized>(&mut self, part: &T) {
        let Some(open) = &mut self.open else { return };
        let kept = if self.keeps_parts { Some(&mut self.parts) } else { None };
        if let Err(missing) = open.part(part, kept) {
            self.missing(missing);
        }
    }

    /// Adds the parts of a whole key to the last charge.
    #[inline(always)]
    pub(crate) fn key<M>(&mut self, key: &impl IntoKey<M>) {
        let Some(open) = &mut self.open else { return };
        let kept = if self.keeps_parts { Some(&mut self.parts) } else { None };
        if let Err(missing) = open.key(key, kept) {
            self.missing(missing);
        }
    }

    /// Adds the parts of a whole key that were kept to the last charge.
    pub(crate) fn kept_key(&mut self, parts: PartsOfKey<'_>) {
        if let Some(open) = &mut self.open {
            open.parts(parts, if self.keeps_parts { Some(&mut self.parts) } else { None });
        }
    }

    /// Replaces the numbers by some that no key exceeds.
    pub(crate) fn unbounded(&mut self) {
        for charge in self.first.iter_mut().flatten() {
            charge.numbers = ChargeNumbers::Computed(charge.spec().unbounded(), None);
            charge.shadow = false;
        }
    }

    /// Drops the last charge, because its key lacks a part.
    #[cold]
    pub(crate) fn missing(&mut self, missing: MissingKey) {
        if self.open.take().is_none() {
            return;
        }
        let last = match &mut self.rest {
            Some(rest) => rest.more.pop(),
            None => {
                self.len -= 1;
                self.first[usize::from(self.len)].take()
            }
        };
        if let Some(PolicyCharge { definition, cost, shadow, .. }) = last {
            self.fail(definition, Ok(cost), shadow, missing.into());
        }
    }

    /// Notes that a policy cannot decide the call.
    #[cold]
    pub(crate) fn fail(
        &mut self,
        definition: DefinitionRef<'a>,
        cost: Result<u64, InvalidPolicy>,
        shadow: bool,
        error: Error,
    ) {
        self.close();
        self.rest().failures.push(Failure { definition, cost, shadow, error });
    }

    /// Takes the policies that cannot decide the call.
    pub(crate) fn take_failures(&mut self) -> Vec<Failure<'a>> {
        self.rest.as_mut().map(|rest| std::mem::take(&mut rest.failures)).unwrap_or_default()
    }

    /// Completes the key of the last charge.
    #[inline(always)]
    pub(crate) fn close(&mut self) {
        if self.open.is_some() {
            self.complete();
        }
    }

    #[inline(never)]
    fn complete(&mut self) {
        let (key, end) = (self.open.as_ref().and_then(OpenKey::finish), self.parts.end());
        self.open = None;
        let last = match &mut self.rest {
            Some(rest) => rest.more.last_mut(),
            None => self.len.checked_sub(1).and_then(|last| self.first[usize::from(last)].as_mut()),
        };
        if let Some(charge) = last {
            charge.key = key.unwrap_or(charge.key);
            charge.parts.1 = end;
        }
    }

    /// Returns the only charge, whose key may be open, if there is only one and nothing has failed.
    #[inline(always)]
    pub(crate) fn only(&self) -> Option<&PolicyCharge<'a>> {
        let (Some(charge), 1) = (&self.first[0], self.len) else { return None };
        Some(charge)
    }

    /// Whether operators may have changed something for the keys of some.
    #[inline(always)]
    pub(crate) fn are_by_key(&self) -> bool {
        self.by_key
    }

    /// Returns the key of the last charge.
    #[inline(always)]
    pub(crate) fn last_key(&self, charge: &PolicyCharge<'a>) -> Fingerprint {
        self.open.as_ref().and_then(OpenKey::finish).unwrap_or(charge.key)
    }

    /// Returns the only charge and its key, if there is only one and nothing has failed.
    pub(crate) fn single(&self) -> Option<(&PolicyCharge<'a>, Fingerprint)> {
        self.only().map(|charge| (charge, self.last_key(charge)))
    }

    /// Returns all charges with complete keys, if there are no more than a few and nothing has failed.
    #[inline]
    pub(crate) fn few(&self) -> Option<&[Option<PolicyCharge<'a>>; INLINE]> {
        self.rest.is_none().then_some(&self.first)
    }

    /// Returns all charges, whose keys are complete.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &PolicyCharge<'a>> + Clone {
        self.first.iter().flatten().chain(self.rest.iter().flat_map(|rest| &rest.more))
    }

    /// Whether a policy cannot decide the call.
    pub(crate) fn have_failed(&self) -> bool {
        self.rest.as_ref().is_some_and(|rest| !rest.failures.is_empty())
    }

    /// Whether nothing is asked, and nothing has failed.
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the parts of the key of the only charge, which may be open.
    #[inline(always)]
    pub(crate) fn parts_of_only(&self, charge: &PolicyCharge<'_>) -> PartsOfKey<'_> {
        let to = if self.open.is_some() { self.parts.end() } else { charge.parts.1 };
        self.parts.of_key(charge.parts.0, to)
    }

    /// Returns the parts of the key of a charge, which is complete.
    #[inline]
    pub(crate) fn parts_of(&self, charge: &PolicyCharge<'_>) -> PartsOfKey<'_> {
        self.parts.of_key(charge.parts.0, charge.parts.1)
    }

    /// Whether they have allocated memory.
    #[inline(always)]
    pub(crate) fn own_memory(&self) -> bool {
        self.rest.is_some() || self.parts.own_memory()
    }

    /// Takes the parts of all keys, after which the charges have none.
    pub(crate) fn take_parts(&mut self) -> KeyParts {
        std::mem::take(&mut self.parts)
    }

    #[inline(always)]
    fn push_open(
        &mut self,
        definition: DefinitionRef<'a>,
        numbers: ChargeNumbers<'a>,
        head: &KeyHead,
        (cost, wait): (u64, u64),
        shadow: bool,
    ) {
        self.close();
        let from = self.parts.end();
        self.push(definition, numbers, (head.without_parts(), (from, from)), (cost, wait), shadow);
        self.open = Some(head.open());
    }

    #[inline(always)]
    fn push(
        &mut self,
        definition: DefinitionRef<'a>,
        numbers: ChargeNumbers<'a>,
        (key, parts): (Fingerprint, (u32, u32)),
        (cost, wait): (u64, u64),
        shadow: bool,
    ) {
        // Written where it stays: a copy would read together what was written apart, which is slow.
        match self.first.get_mut(usize::from(self.len)) {
            Some(free) => {
                *free = Some(PolicyCharge { definition, numbers, key, cost, wait, shadow, parts });
                self.len += 1;
            }
            None => self.push_more(PolicyCharge { definition, numbers, key, cost, wait, shadow, parts }),
        }
    }

    #[cold]
    fn push_more(&mut self, charge: PolicyCharge<'a>) {
        self.rest().more.push(charge);
    }

    #[cold]
    fn rest(&mut self) -> &mut Rest<'a> {
        self.len = MORE;
        self.rest.get_or_insert_default()
    }
}

impl<'a> PolicyCharge<'a> {
    /// The charge of a limiter's call with its literal numbers.
    #[inline]
    pub(crate) fn literal(
        definition: &'a Arc<Definition>,
        numbers: &'a Numbers,
        key: Fingerprint,
        cost: u64,
        wait: u64,
    ) -> Self {
        let (definition, numbers) = (DefinitionRef::Counted(definition), ChargeNumbers::Literal(numbers));
        PolicyCharge { definition, numbers, key, cost, wait, shadow: false, parts: (0, 0) }
    }

    /// Returns the same for the memory store.
    pub(crate) fn in_process(&self, key: Fingerprint) -> Charge {
        let PolicyCharge { definition, cost, wait, shadow, .. } = *self;
        Charge { key: Key::hashed(key, definition.id), spec: *self.spec(), cost, wait, shadow }
    }

    /// Returns the numbers of the call.
    #[inline]
    pub(crate) fn spec(&self) -> &AlgorithmSpec {
        self.numbers.spec()
    }

    /// Returns the literal numbers for the lock-free steps of the memory store, if these may decide the charge.
    #[inline(always)]
    pub(crate) fn lock_free(&self) -> Option<&'a PlainSpec> {
        let ChargeNumbers::Literal(numbers) = self.numbers else { return None };
        self.lock_free_by(numbers.plain.as_ref()?)
    }

    /// Returns these numbers, if the lock-free steps may decide the charge by them.
    #[inline(always)]
    pub(crate) fn lock_free_by<'s>(&self, spec: &'s PlainSpec) -> Option<&'s PlainSpec> {
        // A refused call that waits for a window queues, and may overtake none that wait already.
        (self.cost > 0 && (self.wait == 0 || spec.reserves())).then_some(spec)
    }

    /// Whether a decision by these steps stands: a refused call that may wait asks again.
    #[inline(always)]
    pub(crate) fn is_final(&self, outcome: &PlainOutcome<1>) -> bool {
        outcome.admitted || self.wait == 0
    }

    /// Returns the same numbers for the memory store, if the states of the key are plain.
    #[inline]
    pub(crate) fn plain(&self) -> Option<PlainSpec> {
        match &self.numbers {
            ChargeNumbers::Literal(numbers) | ChargeNumbers::ByKey(numbers, _) => numbers.plain,
            ChargeNumbers::Computed(spec, _) => self.plain_of(spec),
        }
    }

    /// Returns them where they are, if they are literal: a copy would read together what was written apart, which is slow.
    #[inline]
    pub(crate) fn literal_plain(&self) -> Option<&'a PlainSpec> {
        match self.numbers {
            ChargeNumbers::Literal(numbers) | ChargeNumbers::ByKey(numbers, _) => numbers.plain.as_ref(),
            ChargeNumbers::Computed(..) => None,
        }
    }

    #[inline(never)]
    fn plain_of(&self, spec: &AlgorithmSpec) -> Option<PlainSpec> {
        PlainSpec::of(spec).filter(|_| self.definition.decides_lock_free())
    }
}

impl InList for PolicyCharge<'_> {
    #[inline]
    fn listed(&self) -> ListedCharge<'_> {
        let PolicyCharge { key, cost, wait, shadow, .. } = *self;
        ListedCharge { key, spec: self.spec(), plain: self.literal_plain(), cost, wait, shadow }
    }
}
