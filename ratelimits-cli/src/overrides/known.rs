//! Whether overrides fit the policies that are known.

use std::slice;

use ratelimit_runtime::inspect::{Keyspace, policy_of};
use ratelimit_runtime::overrides::{Entry, KnownPolicy, check};
use ratelimit_syntax::closest_path;

use crate::connection::Connection;
use crate::failure::Failure;
use crate::inventory::Inventory;
use crate::message::write_message;
use crate::scan::{Scan, Selection};

/// The policies of the inventory, and if these lack one that is overridden, those that have keys.
pub(super) struct Known {
    policies: Vec<KnownPolicy>,
    /// How many of them are of the inventory, which come first.
    of_inventory: usize,
    has_inventory: bool,
}

impl Known {
    pub(super) async fn read(
        connection: &Connection,
        keyspace: &Keyspace,
        inventory: &Inventory,
        change: &Entry,
        others: &[Entry],
    ) -> Result<Known, Failure> {
        let policies: Vec<_> = inventory.entries().filter_map(|entry| entry.known()).collect();
        let of_inventory = policies.len();
        let mut known = Known { policies, of_inventory, has_inventory: inventory.is_given() };
        if known.has(&change.policy) && others.iter().all(|other| known.has(&other.policy)) {
            return Ok(known);
        }
        let scan = Scan::without_overrides(connection, keyspace, inventory);
        known.policies.extend(scan.kinds(&Selection::default()).await?.into_iter().filter_map(|kind| {
            let (policy, has_numbers) = policy_of(&kind.shape)?;
            let numbers = policy.algorithm().attribute().numbers().iter();
            let computed = if has_numbers { Vec::new() } else { numbers.map(ToString::to_string).collect() };
            let (name, prefix) = (kind.name, Some(kind.prefix));
            Some(KnownPolicy { name, prefix, policy, computed, shadow: false, has_key: None })
        }));
        Ok(known)
    }

    /// Checks a change. Tells what is wrong with the overrides beside it, which programs ignore.
    pub(super) fn check(&self, change: &Entry, others: &[Entry]) -> Result<(), Failure> {
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

    /// Whether the inventory has the policy.
    pub(super) fn is_in_inventory(&self, name: &str) -> bool {
        self.policies[..self.of_inventory].iter().any(|policy| policy.is_named(name))
    }

    /// Returns the numbers of a change that the program computes for each call, or may compute, if the inventory lacks the policy:
    /// those that are not in its keys.
    pub(super) fn computed(&self, change: &Entry) -> Vec<String> {
        let (of_inventory, of_keys) = self.policies.split_at(self.of_inventory);
        let policies = if self.is_in_inventory(&change.policy) { of_inventory } else { of_keys };
        let named = policies.iter().filter(|it| it.is_named(&change.policy));
        let mut computed: Vec<_> = named.flat_map(|it| it.computed.iter().cloned()).collect();
        computed.retain(|computed| change.numbers.iter().any(|(number, _)| number == computed));
        computed.sort();
        computed.dedup();
        computed
    }

    /// Selects the keys that a change is for.
    pub(super) fn keys(&self, change: &Entry) -> Selection {
        let policy = &*change.policy;
        let known = self.policies.iter().find(|it| it.is_named(policy));
        let name = known.map_or(policy, |it| &it.name);
        let prefix = policy.strip_suffix(name).and_then(|rest| rest.strip_suffix(':'));
        let parts = (!change.key.is_empty()).then(|| change.key.clone());
        Selection { prefix: prefix.map(str::to_owned), name: Some(name.to_owned()), parts }
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
