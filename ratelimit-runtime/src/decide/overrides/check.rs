//! Whether overrides fit the policies of a program.

use ratelimit_syntax::closest_path;

use super::entry::Entry;
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
}

/// How many problems come with the name that may have been meant, which takes a look at all policies.
const WITH_HINT: usize = 10;

/// Checks that each override names a policy and leaves it valid. Returns all problems.
#[must_use]
pub fn check(overrides: &[Entry], known: &[KnownPolicy]) -> Vec<String> {
    overrides.iter().fold(Vec::new(), |mut found, it| {
        found.extend(problems(it, known, found.len() < WITH_HINT));
        found
    })
}

/// Whether the override changes one of these policies.
pub(super) fn fits(it: &Entry, known: &[KnownPolicy]) -> bool {
    known.iter().any(|known| known.is_named(&it.policy) && known.problem(it).is_none())
}

fn problems(it: &Entry, known: &[KnownPolicy], with_hint: bool) -> Vec<String> {
    let name = &it.policy;
    let mut named = known.iter().filter(|known| known.is_named(name)).peekable();
    if named.peek().is_none() {
        let names = known.iter().filter(|_| with_hint).map(|known| &*known.name);
        let meant = closest_path(name, names);
        let hint = meant.map_or(String::new(), |meant| format!("; did you mean `{meant}`?"));
        return vec![format!("no policy is named `{name}`{hint}")];
    }
    let mut problems: Vec<_> =
        named.filter_map(|known| known.problem(it)).map(|problem| format!("`{name}`: {problem}")).collect();
    problems.dedup();
    problems
}

impl KnownPolicy {
    /// Whether the name is that of the policy, or its prefix and name.
    #[must_use]
    pub fn is_named(&self, name: &str) -> bool {
        let prefix = name.strip_suffix(&*self.name).and_then(|rest| rest.strip_suffix(':'));
        self.name == name || prefix.is_some_and(|prefix| self.prefix.as_ref().is_none_or(|own| own == prefix))
    }

    fn problem(&self, it: &Entry) -> Option<String> {
        if self.shadow && it.shadow == Some(false) {
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
