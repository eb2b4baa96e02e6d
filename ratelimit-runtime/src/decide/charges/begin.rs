//! How the charge of a policy begins: by its literal numbers, by those that were computed, or by what operators have made of either.

use super::{CallNumbers, Charges};
use crate::decide::definition::{ChargeNumbers, DefinitionRef, Numbers};
use crate::decide::overrides::Overrides;
use crate::policy::Policy;

impl<'a> Charges<'a> {
    /// Starts the charge of a policy with its literal numbers, of a call that waits for at most `wait` microseconds, a shadow for none, if
    /// it is known that operators have changed nothing of it, or only of some keys. Returns whether that is known.
    #[inline(always)]
    pub(crate) fn begin_literal(
        &mut self,
        definition: DefinitionRef<'a>,
        numbers: &'a Numbers,
        (cost, wait): (u64, u64),
        keeps_free: bool,
        overrides: &Overrides,
    ) -> bool {
        let (head, shadow) = (&numbers.heads.hash, definition.attribute.shadow);
        if definition.is_as_written(overrides) {
            self.push_open(definition, ChargeNumbers::Literal(numbers), head, (cost, wait), shadow);
        } else if let Some(by_key) = definition.by_key_alone(overrides) {
            (self.by_key, self.keeps_free) = (true, keeps_free);
            self.push_open(definition, ChargeNumbers::ByKey(numbers, by_key), head, (cost, wait), shadow);
        } else {
            return false;
        }
        true
    }

    /// Starts the charge of a policy with these numbers, as operators have changed them for all keys, to be
    /// [looked up](Self::look_up) if they have changed some for its key. Adds none that costs something if the policy is turned off, and
    /// none that costs nothing unless these are kept.
    pub(crate) fn begin(
        &mut self,
        definition: DefinitionRef<'a>,
        numbers: &CallNumbers<'_>,
        keeps_free: bool,
        overrides: &Overrides,
    ) {
        self.close();
        let CallNumbers { policy, cost, ref wait } = *numbers;
        if let (Some(Ok(policy)), &Ok(cost), &Ok(wait)) = (policy, cost, wait)
            && cost > 0
            && self.begin_computed(definition, policy, (cost, wait), keeps_free, overrides)
        {
            return;
        }
        let (is_free, mut shadow) = (*cost == Ok(0), definition.attribute.shadow);
        if is_free && !keeps_free {
            return;
        }
        let numbers = match definition.overridden(overrides, policy) {
            None => definition.get().numbers(policy),
            Some(overridden) if overridden.is_off && !is_free && !overridden.has_keys() => return,
            Some(overridden) => {
                shadow |= overridden.is_shadow;
                match (overridden.by_key(policy), overridden.numbers) {
                    (Some(by_key), Ok(spec)) => {
                        self.keeps_parts |= by_key.needs_parts();
                        (self.by_key, self.keeps_free) = (true, keeps_free);
                        Ok(ChargeNumbers::Computed(spec, Some(by_key)))
                    }
                    (_, numbers) => numbers.map(|spec| definition.get().numbers_of(spec)),
                }
            }
        };
        // One after the other, as a list of them would be a copy of the numbers.
        let invalid = match numbers {
            Err(invalid) => invalid,
            Ok(numbers) => match (cost, wait) {
                (&Ok(cost), &Ok(wait)) => {
                    // An override of the key may end the shadow.
                    let never_waits = shadow && !matches!(numbers, ChargeNumbers::Computed(_, Some(_)));
                    let wait = if never_waits { 0 } else { wait };
                    let head = definition.key_head(&numbers);
                    return self.push_open(definition, numbers, &head, (cost, wait), shadow);
                }
                (Err(invalid), _) | (_, Err(invalid)) => invalid.clone(),
            },
        };
        self.fail(definition, cost.clone(), shadow, invalid.into());
    }

    /// Starts a charge as [`begin_literal`](Self::begin_literal) does, with numbers that were computed.
    #[inline(always)]
    fn begin_computed(
        &mut self,
        definition: DefinitionRef<'a>,
        policy: &Policy,
        (cost, wait): (u64, u64),
        keeps_free: bool,
        overrides: &Overrides,
    ) -> bool {
        let shadow = definition.attribute.shadow;
        if definition.is_as_written(overrides) {
            // Copied only at the end, because a copy right after it was written waits until that is done.
            let spec = policy.spec();
            let Ok(spec) = &spec else { return false };
            let head = definition.with_heads(spec, |heads| heads.hash);
            let wait = if shadow { 0 } else { wait };
            self.push_open(definition, ChargeNumbers::Computed(*spec, None), &head, (cost, wait), shadow);
        } else if let Some(by_hash) = definition.by_key_alone(overrides) {
            let spec = policy.spec();
            let Ok(spec) = &spec else { return false };
            let (head, true) = definition.lookup_head(spec) else { return false };
            (self.by_key, self.keeps_free) = (true, keeps_free);
            let numbers = ChargeNumbers::Computed(*spec, Some(by_hash.of_policy(policy)));
            self.push_open(definition, numbers, head, (cost, wait), shadow);
        } else {
            return false;
        }
        true
    }
}
