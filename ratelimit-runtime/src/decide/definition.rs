//! Policies as they are decided: what is the same for all calls of one, made once.

mod events;

use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use super::attachment::Attachment;
use super::overridden::{ByHash, ByKey, KnownOverride, Overridden};
use super::overridden_key::{OverriddenKey, Written};
use crate::algorithm::{AlgorithmSpec, PlainSpec, Verdict};
use crate::base::invalid_policy::InvalidPolicy;
use crate::base::log::LogBound;
use crate::decide::decision::SinglePolicy;
use crate::decide::on_store_error::OnStoreError;
use crate::decide::overrides::Overrides;
use crate::key::name::Name;
use crate::key::policy_id::PolicyId;
use crate::key::{Fingerprint, Head, KeyHead, KeyHeads, PartsOfKey};
use crate::policy::{Algorithm, LeaseSize, NotifyAt, Policy};

/// A policy: that of an attribute, or of a limiter.
#[derive(Debug)]
pub(crate) struct Definition {
    pub(crate) name: Name,
    pub(crate) prefix: Box<str>,
    pub(crate) id: PolicyId,
    /// The function, if it is the tag of the keys.
    pub(crate) function: Option<Box<str>>,
    /// The name that stands for the policies of all types of a function, if it has several.
    pub(crate) declared: Option<Box<str>>,
    pub(crate) algorithm: Algorithm,
    pub(crate) on_store_error: Option<OnStoreError>,
    pub(crate) attribute: AttributeOptions,
    /// The numbers, if they are the same for all calls.
    literal: Option<Numbers>,
    /// The head of the keys of the first call with other numbers, which is mostly that of all such calls.
    computed: OnceLock<(AlgorithmSpec, KeyHeads)>,
    known_override: KnownOverride,
    /// The head of the marks of keys that observers were notified of.
    marks: OnceLock<Box<KeyHeads>>,
    /// What an observer keeps of the policy.
    pub(crate) attachment: Attachment,
    /// For calls that the policy would have refused if it were no shadow.
    refusal_log: LogBound,
    /// For calls that the policy could not decide: as a shadow, or for a fault of the program.
    failure_log: LogBound,
    /// For calls that fail although there is no outage.
    error_log: LogBound,
    /// For charges that were not given back.
    refund_log: LogBound,
    pause_log: LogBound,
}

/// What only attributes say of a policy.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AttributeOptions {
    /// The index of the attribute on its function.
    pub(crate) index: Option<usize>,
    pub(crate) shadow: bool,
    /// Whether charges may be refunded once the output is known.
    pub(crate) refundable: bool,
    /// Whether calls pause the key, and so ask once more when the slot comes that they wait for.
    pub(crate) pauses: bool,
    /// For how many microseconds each refusal in turn pauses the key, the last one the longest.
    pub(crate) penalty: &'static [u64],
    /// How many permits the process takes of Redis at a time.
    pub(crate) lease: Option<LeaseSize>,
    /// The share of the limit at which observers are notified of a key.
    pub(crate) notify_at: Option<NotifyAt>,
}

/// The numbers of a policy, and what follows from them.
#[derive(Clone, Debug)]
pub(crate) struct Numbers {
    pub(crate) policy: Policy,
    pub(crate) spec: AlgorithmSpec,
    /// The same for states that fit into a slot of the memory store.
    pub(crate) plain: Option<PlainSpec>,
    /// The limit of plain states.
    pub(crate) limit: u64,
    pub(crate) heads: KeyHeads,
}

/// The numbers by which a policy decides a call.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ChargeNumbers<'a> {
    /// Those of all calls.
    Literal(&'a Numbers),
    /// The same, unless the key has an override of its own, and how to find that out.
    ByKey(&'a Numbers, ByHash),
    /// Others, and how to find out whether the key has an override of its own, while that is to be found out.
    Computed(AlgorithmSpec, Option<ByKey>),
}

/// A definition that lives as long as the process, or one that is counted.
#[derive(Clone, Copy, Debug)]
pub(crate) enum DefinitionRef<'a> {
    Static(&'static Definition),
    Counted(&'a Arc<Definition>),
}

/// The same for a call that outlives its caller's references.
#[derive(Clone, Debug)]
pub(crate) enum OwnedDefinition {
    Static(&'static Definition),
    Counted(Arc<Definition>),
}

impl AttributeOptions {
    /// Whether calls may pause the key.
    pub(crate) fn may_pause(&self) -> bool {
        self.pauses || !self.penalty.is_empty()
    }
}

impl Definition {
    /// A policy whose numbers are given, or computed for each call. The function is the tag of its keys, if there is one.
    #[inline(always)]
    pub(crate) fn new(
        name: Name,
        algorithm: Algorithm,
        (prefix, id): (&str, PolicyId),
        function: Option<&str>,
    ) -> Self {
        Definition {
            name,
            prefix: prefix.into(),
            id,
            function: function.map(Into::into),
            declared: None,
            algorithm,
            on_store_error: None,
            attribute: AttributeOptions::default(),
            literal: None,
            computed: OnceLock::new(),
            known_override: KnownOverride::default(),
            marks: OnceLock::new(),
            attachment: Attachment::default(),
            refusal_log: LogBound::default(),
            failure_log: LogBound::default(),
            error_log: LogBound::default(),
            refund_log: LogBound::default(),
            pause_log: LogBound::default(),
        }
    }

    /// The policy of a limiter, without a prefix.
    pub(crate) fn of_limiter(name: Arc<str>, policy: Policy, spec: AlgorithmSpec) -> Self {
        let id = PolicyId::new("", &name);
        let name = Name::of_limiter(name);
        Definition::new(name, policy.algorithm(), ("", id), None).with_numbers(policy, spec)
    }

    /// The same policy with what its attribute says of it.
    pub(crate) fn of_attribute(
        self,
        attribute: AttributeOptions,
        on_store_error: Option<OnStoreError>,
    ) -> Self {
        Definition { attribute, on_store_error, ..self }
    }

    /// Returns the same policy with other keys, and without numbers. Of what its attribute says, limiters know the penalty.
    #[inline]
    pub(crate) fn with_keys(&self, prefix: &str, function: Option<&str>) -> Self {
        let id = if *prefix == *self.prefix { self.id } else { PolicyId::new(prefix, self.name.as_str()) };
        let same = Definition::new(self.name.clone(), self.algorithm, (prefix, id), function);
        let attribute = AttributeOptions { penalty: self.attribute.penalty, ..same.attribute };
        Definition { on_store_error: self.on_store_error, attribute, ..same }
    }

    /// The same policy with these numbers for all calls.
    pub(crate) fn with_numbers(self, policy: Policy, spec: AlgorithmSpec) -> Self {
        let heads = KeyHeads::new(self.head(&spec));
        self.with_numbers_of_keys(policy, spec, heads)
    }

    /// Returns the same policy of a limiter with other numbers, whose keys mostly begin as before.
    #[inline(always)]
    pub(crate) fn renumbered(&self, policy: Policy, spec: AlgorithmSpec) -> Self {
        let heads = match &self.literal {
            Some(literal) if literal.spec.has_keys_of(&spec) => literal.heads.clone(),
            _ => KeyHeads::new(self.head(&spec)),
        };
        self.with_keys(&self.prefix, self.function.as_deref()).with_numbers_of_keys(policy, spec, heads)
    }

    #[inline(always)]
    fn with_numbers_of_keys(mut self, policy: Policy, spec: AlgorithmSpec, heads: KeyHeads) -> Self {
        let plain = PlainSpec::of(&spec).filter(|_| self.decides_lock_free());
        let limit = plain.map_or(0, PlainSpec::limit);
        self.literal = Some(Numbers { policy, spec, plain, limit, heads });
        self
    }

    /// Whether the lock-free steps of the memory store may decide, if they know the algorithm. What they say names the policy for as
    /// long as the process lives, and they pause no key.
    pub(crate) fn decides_lock_free(&self) -> bool {
        self.static_name().is_some() && self.attribute.penalty.is_empty()
    }

    /// Returns the numbers, if they are the same for all calls.
    #[inline]
    pub(crate) fn literal(&self) -> Option<&Numbers> {
        self.literal.as_ref()
    }

    /// Returns the hashed head of the keys of calls with these numbers.
    #[inline]
    pub(crate) fn key_head(&self, numbers: &ChargeNumbers<'_>) -> KeyHead {
        match numbers {
            ChargeNumbers::Literal(numbers) | ChargeNumbers::ByKey(numbers, _) => numbers.heads.hash,
            ChargeNumbers::Computed(spec, _) => self.with_heads(spec, |heads| heads.hash),
        }
    }

    /// Returns the numbers of a limiter, which always has some.
    #[inline]
    pub(crate) fn limiter_numbers(&self) -> &Numbers {
        self.literal.as_ref().expect("a limiter has numbers")
    }

    /// Calls a function with the head of the keys of calls with this spec, which is mostly kept.
    #[inline]
    pub(crate) fn with_heads<T>(&self, spec: &AlgorithmSpec, then: impl FnOnce(&KeyHeads) -> T) -> T {
        if let Some(literal) = &self.literal
            && literal.spec.has_keys_of(spec)
        {
            return then(&literal.heads);
        }
        let (of, heads) = self.computed.get_or_init(|| (*spec, KeyHeads::new(self.head(spec))));
        if of.has_keys_of(spec) { then(heads) } else { then(&KeyHeads::new(self.head(spec))) }
    }

    /// Returns what the keys of calls with this spec begin with.
    pub(crate) fn head<'a>(&'a self, spec: &'a AlgorithmSpec) -> Head<'a> {
        let (prefix, name) = (&*self.prefix, self.name.as_str());
        Head { prefix, name, shape: spec, function: self.function.as_deref() }
    }

    /// Returns the heads of the marks of keys that observers were notified of, and what these are made from.
    pub(crate) fn marks(&self) -> (&KeyHeads, Head<'_>) {
        // No key of a policy is like it, as its shape is two pieces.
        let (prefix, name, shape) = (&*self.prefix, self.name.as_str(), &"near:1");
        let head = Head { prefix, name, shape, function: self.function.as_deref() };
        (self.marks.get_or_init(|| Box::new(KeyHeads::new(head))), head)
    }

    /// Returns the numbers of a call: those that were computed for it, or the literal ones.
    #[inline(always)]
    pub(crate) fn numbers(
        &self,
        computed: Option<&Result<Policy, InvalidPolicy>>,
    ) -> Result<ChargeNumbers<'_>, InvalidPolicy> {
        match (computed, &self.literal) {
            (Some(Ok(policy)), _) => Ok(ChargeNumbers::Computed(policy.spec()?, None)),
            (Some(Err(invalid)), _) => Err(invalid.clone()),
            (None, Some(literal)) => Ok(ChargeNumbers::Literal(literal)),
            (None, None) => Err(InvalidPolicy::new("policy", "has numbers that are no literals")),
        }
    }

    /// Returns the numbers of a call by this spec, which may be the literal one.
    pub(crate) fn numbers_of(&self, spec: AlgorithmSpec) -> ChargeNumbers<'_> {
        match &self.literal {
            Some(literal) if literal.spec == spec => ChargeNumbers::Literal(literal),
            _ => ChargeNumbers::Computed(spec, None),
        }
    }

    /// Returns what operators have changed of a call, if anything.
    #[inline]
    pub(crate) fn overridden(
        &self,
        overrides: &Overrides,
        computed: Option<&Result<Policy, InvalidPolicy>>,
    ) -> Option<Overridden> {
        if self.is_as_written(overrides) {
            return None;
        }
        self.known_override.get(overrides, self.written(), computed, |spec| self.lookup_head(spec))
    }

    /// Returns the hash by which the override of a key with these parts is looked up, for calls with otherwise these numbers.
    #[inline(always)]
    pub(crate) fn looked_up_by(
        &self,
        (spec, by_key): (&AlgorithmSpec, &ByKey),
        (key, parts): (Fingerprint, PartsOfKey<'_>),
    ) -> Fingerprint {
        if by_key.needs_parts() { self.lookup_head(spec).0.of_parts(parts) } else { key }
    }

    /// Returns what operators have changed of calls of a key, if that is at hand.
    #[inline(always)]
    pub(crate) fn known_key(&self, by_key: &ByKey, looked_up: Fingerprint) -> Option<Option<OverriddenKey>> {
        self.known_override.of_known_key(by_key, looked_up)
    }

    /// Returns the numbers and the key that operators have made of a call, if that is at hand and they have changed nothing else.
    /// `Some(None)` if those of the call are in force.
    #[inline(always)]
    pub(crate) fn plain_of_known_key(
        &self,
        by_key: &ByKey,
        looked_up: Fingerprint,
    ) -> Option<Option<(PlainSpec, Fingerprint)>> {
        self.known_override.plain_of_known_key(by_key, looked_up)
    }

    /// Looks for what operators have changed of calls of a key with these parts.
    #[inline(never)]
    pub(crate) fn look_up_key(
        &self,
        overrides: &Overrides,
        by_key: &ByKey,
        key: (Fingerprint, PartsOfKey<'_>),
    ) -> Option<OverriddenKey> {
        let hash = |spec: &AlgorithmSpec, parts: PartsOfKey<'_>| {
            self.with_heads(spec, |heads| heads.hash.of_parts(parts))
        };
        let head = |spec: &AlgorithmSpec| self.lookup_head(spec);
        self.known_override.of_key(overrides, self.written(), by_key, key, head, hash)
    }

    fn written(&self) -> Written<'_> {
        let literal = self.literal.as_ref().map(|literal| (&literal.spec, literal.policy));
        Written { prefix: &self.prefix, names: self.names(), is_shadow: self.attribute.shadow, literal }
    }

    /// Returns the head of the keys by which overrides are looked up, and whether those of calls with this spec have it.
    #[inline(always)]
    pub(crate) fn lookup_head(&self, spec: &AlgorithmSpec) -> (&KeyHead, bool) {
        if let Some(literal) = &self.literal {
            return (&literal.heads.hash, literal.spec.has_keys_of(spec));
        }
        let (of, heads) = self.computed.get_or_init(|| (*spec, KeyHeads::new(self.head(spec))));
        (&heads.hash, of.has_keys_of(spec))
    }

    /// Whether it is known that operators have changed nothing of the policy.
    #[inline]
    pub(crate) fn is_as_written(&self, overrides: &Overrides) -> bool {
        self.known_override.is_none(overrides)
    }

    /// Returns how a call finds out whether its key has an override, if it is known that calls of other keys are as they are written.
    #[inline]
    pub(crate) fn by_key_alone(&self, overrides: &Overrides) -> Option<ByHash> {
        self.known_override.by_key_alone(overrides)
    }

    /// Returns the name, if it lives as long as the process.
    #[inline]
    pub(crate) fn static_name(&self) -> Option<&'static str> {
        self.name.interned
    }

    /// Returns what a call hears of the policy, which has a static name.
    #[inline(always)]
    pub(crate) fn said(&self, verdict: &Verdict) -> SinglePolicy {
        SinglePolicy::new(self.static_name().unwrap_or_default(), self.algorithm, verdict)
    }

    /// Returns the names by which overrides find the policy, the most specific first.
    fn names(&self) -> [&str; 2] {
        let name = self.name.as_str();
        [name, self.declared.as_deref().unwrap_or(name)]
    }
}

impl ChargeNumbers<'_> {
    #[inline]
    pub(crate) fn spec(&self) -> &AlgorithmSpec {
        match self {
            ChargeNumbers::Literal(numbers) | ChargeNumbers::ByKey(numbers, _) => &numbers.spec,
            ChargeNumbers::Computed(spec, _) => spec,
        }
    }

    /// Returns the limit of plain states, which literal numbers have at hand.
    #[inline]
    pub(crate) fn limit(&self, plain: PlainSpec) -> u64 {
        match self {
            ChargeNumbers::Literal(numbers) | ChargeNumbers::ByKey(numbers, _) => numbers.limit,
            ChargeNumbers::Computed(..) => plain.limit(),
        }
    }
}

impl<'a> DefinitionRef<'a> {
    /// Returns the definition.
    #[inline]
    pub(crate) fn get(self) -> &'a Definition {
        match self {
            DefinitionRef::Static(definition) => definition,
            DefinitionRef::Counted(definition) => definition,
        }
    }

    /// Returns the definition for a call that outlives this reference.
    pub(crate) fn to_owned(self) -> OwnedDefinition {
        match self {
            DefinitionRef::Static(definition) => OwnedDefinition::Static(definition),
            DefinitionRef::Counted(definition) => OwnedDefinition::Counted(Arc::clone(definition)),
        }
    }
}

impl Deref for DefinitionRef<'_> {
    type Target = Definition;

    #[inline]
    fn deref(&self) -> &Definition {
        self.get()
    }
}

impl Deref for OwnedDefinition {
    type Target = Definition;

    fn deref(&self) -> &Definition {
        match self {
            OwnedDefinition::Static(definition) => definition,
            OwnedDefinition::Counted(definition) => definition,
        }
    }
}
