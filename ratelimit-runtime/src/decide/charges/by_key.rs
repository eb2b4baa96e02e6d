//! Charges of keys for which operators may have changed something.

use std::time::Duration;

use super::{Blocked, Charges, PolicyCharge};
use crate::algorithm::{ChargeId, UNKNOWN, Verdict};
use crate::decide::decision::{Decision, PolicyDecision};
use crate::decide::definition::ChargeNumbers;
use crate::decide::overridden_key::OverriddenKey;
use crate::decide::overrides::Overrides;
use crate::key::KeyParts;
use crate::store::INLINE;
use crate::store::decided_by::DecidedBy;

impl<'a> Charges<'a> {
    /// Applies what operators have changed for the keys of charges, which are complete. Removes those that are turned off.
    #[inline]
    pub(crate) fn look_up(&mut self, overrides: &Overrides) {
        if self.by_key {
            self.by_key = false;
            self.look_up_keys(overrides);
        }
    }

    /// Takes the charge of a key that operators have blocked, after it was [looked up](Self::look_up).
    #[inline]
    pub(crate) fn take_blocked(&mut self) -> Option<Blocked<'a>> {
        self.rest.as_mut()?.blocked.take()
    }

    #[inline(never)]
    fn look_up_keys(&mut self, overrides: &Overrides) {
        let (mut blocked, mut off) = (None::<Blocked<'a>>, None);
        let Charges { first, len, rest, parts, .. } = self;
        let mut is_kept = |charge: &mut PolicyCharge<'a>| {
            let until = match apply(charge, overrides, parts) {
                Applied::Charged => return true,
                Applied::Off => {
                    off = Some(*charge);
                    return false;
                }
                Applied::Blocked(until) => until,
            };
            let new = Blocked { charge: *charge, until };
            // One that refuses is not hidden by one that costs nothing.
            let rank = |it: &Blocked<'_>| (it.refuses(), it.until.unwrap_or(u64::MAX));
            if blocked.as_ref().is_none_or(|other| rank(other) < rank(&new)) {
                blocked = Some(new);
            }
            true
        };
        for place in first.iter_mut().take(usize::from(*len)) {
            if place.as_mut().is_some_and(|charge| !is_kept(charge)) {
                *place = None;
            }
        }
        if let Some(rest) = rest {
            rest.more.retain_mut(is_kept);
        }
        if let Some(charge) = off {
            self.close_up();
            if self.keeps_free && self.iter().next().is_none() {
                let PolicyCharge { definition, numbers, key, parts, shadow, .. } = charge;
                self.push(definition, numbers, (key, parts), (0, 0), shadow);
            }
        }
        if blocked.is_some() {
            self.rest().blocked = blocked;
        }
    }

    /// Moves the charges in place together.
    fn close_up(&mut self) {
        let mut kept = 0;
        for i in 0..INLINE {
            if self.first[i].is_some() {
                self.first.swap(usize::from(kept), i);
                kept += 1;
            }
        }
        if self.rest.is_none() {
            self.len = kept;
        }
    }
}

/// What operators have made of a charge.
enum Applied {
    Charged,
    Off,
    /// Until this time, if it ends by itself.
    Blocked(Option<u64>),
}

/// Applies what operators have changed for the key of a charge, or else for all keys.
#[inline]
fn apply(charge: &mut PolicyCharge<'_>, overrides: &Overrides, parts: &KeyParts) -> Applied {
    let by_hash;
    let (spec, by_key) = match &charge.numbers {
        ChargeNumbers::ByKey(numbers, of) => {
            by_hash = of.by_key();
            (&numbers.spec, &by_hash)
        }
        ChargeNumbers::Computed(spec, Some(by_key)) => (spec, by_key),
        _ => return Applied::Charged,
    };
    let (definition, key) =
        (charge.definition.get(), (charge.key, parts.of_key(charge.parts.0, charge.parts.1)));
    let of_all = (by_key.is_off, None);
    let looked_up = definition.looked_up_by((spec, by_key), key);
    let (is_off, blocked) = match definition.known_key(by_key, looked_up) {
        Some(None) => of_all,
        // Not moved out of the match, because a copy would read together what was written apart, which is slow.
        Some(Some(of_key)) => replace(charge, of_key),
        None => match definition.look_up_key(overrides, by_key, (looked_up, key.1)) {
            Some(of_key) => replace(charge, of_key),
            None => of_all,
        },
    };
    match &mut charge.numbers {
        ChargeNumbers::ByKey(numbers, _) => charge.numbers = ChargeNumbers::Literal(numbers),
        ChargeNumbers::Computed(_, by_key) => *by_key = None,
        ChargeNumbers::Literal(_) => {}
    }
    if charge.shadow {
        charge.wait = 0;
    }
    match blocked {
        Some(until) => Applied::Blocked(until),
        None if is_off && charge.cost > 0 => Applied::Off,
        None => Applied::Charged,
    }
}

/// Makes a charge what the override of its key makes of it. Returns whether it is turned off, and until when it is blocked.
#[inline(always)]
fn replace(charge: &mut PolicyCharge<'_>, of_key: OverriddenKey) -> (bool, Option<Option<u64>>) {
    let OverriddenKey { is_off, is_shadow, blocked, spec, key } = of_key;
    charge.numbers = ChargeNumbers::Computed(spec, None);
    charge.key = key;
    charge.shadow = charge.definition.get().attribute.shadow || is_shadow;
    (is_off, blocked)
}

impl Blocked<'_> {
    /// Whether the call is refused: one that costs nothing is not.
    pub(crate) fn refuses(&self) -> bool {
        self.charge.cost > 0
    }

    /// Returns what is said of the call.
    pub(crate) fn verdict(&self, overrides: &Overrides) -> Verdict {
        // Another override may end it at any time, so it is never certain that it lasts.
        let retry_after = self.until.and_then(|until| overrides.micros_until(until)).unwrap_or(UNKNOWN);
        Verdict {
            admitted: false,
            wait: 0,
            limit: 0,
            remaining: 0,
            retry_after: Some(retry_after),
            reset_after: 0,
            charge_id: ChargeId::default(),
        }
    }

    /// Returns the decision about the call.
    pub(crate) fn decision(&self, overrides: &Overrides, source: DecidedBy) -> Decision {
        let definition = self.charge.definition;
        let (name, algorithm) = (definition.name.to_shared(), definition.algorithm);
        let policy = PolicyDecision::new(name, algorithm, false, &self.verdict(overrides));
        Decision::new(vec![policy], source, Duration::ZERO)
    }
}
