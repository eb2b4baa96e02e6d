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

    /// Checks a change. Tells what is wrong with the overrides beside it, which programs ignore.
    pub(super) fn check(&self, change: &Override, others: &[Override]) -> Result<(), Failure> {
        if !self.has(&change.policy) {
            return Err(Failure::NoSuchKey(self.unknown(&change.policy)));
        }
        let problems = check(slice::from_ref(change), &self.policies);
        if !problems.is_empty() {
            return Err(Failure::Usage(problems.join("\n")));
        }
        for problem in check(others, &self.policies) {
            write_message(format_args!("beside it, an override that programs may ignore: {problem}"));
        }
        Ok(())
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
}
