//! Whether overrides fit the policies that are known.

use std::slice;

use ratelimit_runtime::inspect::{Keyspace, policy_of};
use ratelimit_runtime::overrides::{KnownPolicy, Override, check};
use ratelimit_syntax::closest_path;

use crate::connection::Connection;
use crate::failure::Failure;
use crate::inventory::Inventory;
use crate::message::write_message;
use crate::scan::Scan;

/// The policies of the inventory, and if these lack one that is overridden, those that have keys.
pub(super) struct Known {
    policies: Vec<KnownPolicy>,
    has_inventory: bool,
}

impl Known {
    /// Warns of a change to a policy that the inventory lacks.
    pub(super) async fn read(
        connection: &Connection,
        keyspace: &Keyspace,
        inventory: &Inventory,
        change: &Override,
        others: &[Override],
    ) -> Result<Known, Failure> {
        let policies = inventory.entries().filter_map(|entry| entry.known()).collect();
        let mut known = Known { policies, has_inventory: inventory.is_given() };
        let is_in_inventory = known.has(&change.policy);
        if is_in_inventory && others.iter().all(|other| known.has(&other.policy)) {
            return Ok(known);
        }
        let scan = Scan::without_overrides(connection, keyspace, inventory);
        known.policies.extend(scan.kinds().await?.into_iter().filter_map(|kind| {
            let (policy, has_numbers) = policy_of(&kind.shape)?;
            let numbers = policy.algorithm().attribute().numbers().iter();
            let computed = if has_numbers { Vec::new() } else { numbers.map(ToString::to_string).collect() };
            Some(KnownPolicy { name: kind.name, prefix: Some(kind.prefix), policy, computed, shadow: false })
        }));
        if known.has_inventory && !is_in_inventory && known.has(&change.policy) {
            write_message(format_args!("the inventory has no `{}`; keys in Redis do", change.policy));
        }
        Ok(known)
    }

    /// Checks a change and the overrides beside it: a program applies all of them or none.
    pub(super) fn check(&self, change: &Override, others: &[Override]) -> Result<(), Failure> {
        if !self.has(&change.policy) {
            return Err(Failure::NoSuchKey(self.unknown(&change.policy)));
        }
        let problems = check(slice::from_ref(change), &self.policies);
        if !problems.is_empty() {
            return Err(Failure::Usage(problems.join("\n")));
        }
        let (known, unknown): (Vec<_>, Vec<_>) = others.iter().partition(|other| self.has(&other.policy));
        // It may be a limiter without traffic, which is in no inventory.
        unknown.into_iter().for_each(|other| write_message(self.may_block(other)));
        let problems: Vec<String> = known.into_iter().flat_map(|other| self.blocks(other)).collect();
        if problems.is_empty() { Ok(()) } else { Err(Failure::Usage(problems.join("\n"))) }
    }

    fn has(&self, name: &str) -> bool {
        self.policies.iter().any(|policy| policy.is_named(name))
    }

    fn unknown(&self, name: &str) -> String {
        let hint = closest_path(name, self.policies.iter().map(|policy| &*policy.name))
            .map_or(String::new(), |meant| format!("; did you mean `{meant}`?"));
        match (self.has_inventory, hint.is_empty()) {
            (true, _) => {
                format!("neither the inventory nor a key in Redis has a policy named `{name}`{hint}")
            }
            (false, false) => format!("no key in Redis has a policy named `{name}`{hint}"),
            (false, true) => format!(
                "there is no inventory, and no key in Redis has a policy named `{name}`; \
                 pass --inventory, or try again when it has keys"
            ),
        }
    }

    /// Returns why programs would reject an override, and with it all others.
    fn blocks(&self, other: &Override) -> Vec<String> {
        let remedy = "this override is in Redis already; set or clear it first";
        let problems = check(slice::from_ref(other), &self.policies);
        problems.into_iter().map(|problem| format!("{problem}; {remedy}")).collect()
    }

    /// Returns that programs may reject an override, and with it all others.
    fn may_block(&self, other: &Override) -> String {
        let inventory = if self.has_inventory { "" } else { "pass --inventory, or " };
        let name = &other.policy;
        format!(
            "`{name}` is overridden as well, but no policy that is known has this name; a program without it applies no \
             override: {inventory}clear it if the policy is gone"
        )
    }
}
