//! Whether overrides fit the policies of a program.

use std::collections::HashMap;

use ratelimit_syntax::closest_path;

use super::entry::Entry;
use super::parse::of;
use crate::policy::Policy;

/// A policy that overrides may change.
#[derive(Clone, Debug)]
pub struct KnownPolicy {
    /// The name.
    pub name: String,
    /// The prefix of the keys. `None` is any.
    pub prefix: Option<String>,
    /// The policy, with any numbers for those that are computed.
    pub policy: Policy,
    /// The names of the numbers that are computed for each call.
    pub computed: Vec<String>,
    /// Whether its attribute has `shadow`.
    pub shadow: bool,
    /// Whether its calls have keys, if that is known.
    pub has_key: Option<bool>,
}

/// How many problems come with the name that may have been meant, which takes a look at all policies.
const WITH_HINT: usize = 10;

/// Checks that each override names a policy and leaves it valid. Returns all problems.
#[must_use]
pub fn check(overrides: &[Entry], known: &[KnownPolicy]) -> Vec<String> {
    let policies = Policies::of(known);
    overrides.iter().fold(Vec::new(), |mut found, it| {
        found.extend(policies.problems(it, found.len() < WITH_HINT));
        // One for all keys of a policy that does not exist.
        found.dedup();
        found
    })
}

/// Policies by their names.
pub(super) struct Policies<'a> {
    known: &'a [KnownPolicy],
    by_name: HashMap<&'a str, Vec<&'a KnownPolicy>>,
}

impl<'a> Policies<'a> {
    pub(super) fn of(known: &'a [KnownPolicy]) -> Self {
        let mut by_name = HashMap::<&str, Vec<_>>::new();
        known.iter().for_each(|policy| by_name.entry(&policy.name).or_default().push(policy));
        Policies { known, by_name }
    }

    /// Whether the override changes one of them.
    pub(super) fn fit(&self, it: &Entry) -> bool {
        self.named(&it.policy).any(|known| known.problem(it).is_none())
    }

    fn problems(&self, it: &Entry, with_hint: bool) -> Vec<String> {
        let name = &it.policy;
        let mut named = self.named(name).peekable();
        if named.peek().is_none() {
            let names = self.known.iter().filter(|_| with_hint).map(|known| &*known.name);
            let meant = closest_path(name, names);
            let hint = meant.map_or(String::new(), |meant| format!("; did you mean `{meant}`?"));
            return vec![format!("no policy is named `{name}`{hint}")];
        }
        let mut problems: Vec<_> = named
            .filter_map(|known| known.problem(it))
            .map(|problem| format!("{}: {problem}", of(it)))
            .collect();
        problems.dedup();
        problems
    }

    /// Returns the policies that have this name, or this prefix and name.
    fn named(&self, name: &str) -> impl Iterator<Item = &'a KnownPolicy> {
        let ends = name.match_indices(':').map(|(at, _)| at + 1);
        let names = std::iter::once(0).chain(ends).map(|at| &name[at..]);
        let found = names.filter_map(|it| self.by_name.get(it)).flatten().copied();
        found.filter(move |known| known.is_named(name))
    }
}

impl KnownPolicy {
    /// Whether the name is that of the policy, or its prefix and name.
    #[must_use]
    pub fn is_named(&self, name: &str) -> bool {
        let prefix = name.strip_suffix(&*self.name).and_then(|rest| rest.strip_suffix(':'));
        self.name == name || prefix.is_some_and(|prefix| self.prefix.as_ref().is_none_or(|own| own == prefix))
    }

    fn problem(&self, it: &Entry) -> Option<String> {
        if !it.key.is_empty() && self.has_key == Some(false) {
            return Some(
                "the policy has no key, as all its calls share one counter; override it by its name alone"
                    .to_owned(),
            );
        }
        if !it.fits(self.shadow) {
            return Some(
                "`shadow` is in its attribute; remove it there, as the function may have no way to refuse"
                    .to_owned(),
            );
        }
        let changed = match it.numbers_on(self.policy) {
            Ok(changed) => changed,
            Err(invalid) => return Some(invalid.to_string()),
        };
        let is_known = |computed: &String| it.numbers.iter().any(|(argument, _)| argument == computed);
        // Numbers of other calls decide whether the rest of the policy is valid.
        if self.computed.iter().all(is_known)
            && let Err(invalid) = if it.numbers.is_empty() { changed } else { changed.computed() }.check()
        {
            return Some(invalid.to_string());
        }
        None
    }
}
