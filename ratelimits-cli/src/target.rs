//! The key or the policy that a command is about.

use std::collections::BTreeSet;

use clap::Args;
use ratelimit_syntax::closest_path;

use crate::failure::Failure;
use crate::key::quoted;
use crate::scan::{Scan, Selection};

#[derive(Debug, Args)]
pub(crate) struct Target {
    /// The name of the policy, as in the code: `app::send`, or `app::send#2` for the second attribute of a function.
    policy: String,
    /// The parts of the key, in the order of the attribute's `key`. None for a policy without a key. After `--`, a part may begin
    /// with `-`.
    #[arg(value_name = "KEY_PART")]
    parts: Vec<String>,
    /// The prefix of the policy, where policies of one name have several.
    #[arg(long, value_name = "PREFIX")]
    prefix: Option<String>,
}

impl Target {
    /// Selects the key.
    pub(crate) fn key(&self) -> Selection {
        Selection { parts: Some(self.parts.clone()), ..self.all_keys() }
    }

    /// Selects all keys of the policy.
    pub(crate) fn all_keys(&self) -> Selection {
        Selection { prefix: self.prefix.clone(), name: Some(self.policy.clone()), parts: None }
    }

    pub(crate) fn policy(&self) -> &str {
        &self.policy
    }

    pub(crate) fn parts(&self) -> &[String] {
        &self.parts
    }

    /// Returns why it is not known what keys the policy has.
    pub(crate) async fn unknown(&self, scan: &Scan<'_>) -> Failure {
        let Target { policy, .. } = self;
        let problem = match check_name(scan, policy).await {
            Err(Failure::NoSuchKey(problem)) => problem,
            Err(failure) => return failure,
            Ok(()) => format!("it is not known what such keys of `{policy}` are like, as there is none"),
        };
        let advice = match scan.inventory.is_given() {
            true => "",
            false => "\nIf the policy has no keys yet, add the program's inventory with --inventory",
        };
        Failure::NoSuchKey(problem + advice)
    }

    /// Returns the failure of a command that concerns keys of policies with several prefixes.
    pub(crate) fn check_prefixes<'p>(&self, found: impl Iterator<Item = &'p str>) -> Result<(), Failure> {
        let prefixes: BTreeSet<&str> = found.collect();
        if prefixes.len() < 2 {
            return Ok(());
        }
        let written = prefixes.iter().map(|prefix| format!("--prefix '{prefix}'")).collect::<Vec<_>>();
        let problem =
            format!("policies named `{}` have several prefixes; add {}", self.policy, written.join(" or "));
        Err(Failure::Usage(problem))
    }

    /// Returns why there is no such key. A name that no policy has is probably misspelled.
    pub(crate) async fn absent(&self, scan: &Scan<'_>, with_parts: bool) -> Failure {
        let policy = &self.policy;
        if let Err(failure) = check_name(scan, policy).await {
            return failure;
        }
        Failure::NoSuchKey(match (with_parts, &self.parts[..]) {
            (false, _) => {
                format!("`{policy}` has no keys: its calls find full buckets, empty windows, or nothing held")
            }
            (true, []) => {
                format!(
                    "`{policy}` has no state without a key: a call finds a full bucket, an empty window, or nothing held"
                )
            }
            (true, parts) => format!(
                "`{policy}` has no state for {}: a call finds a full bucket, an empty window, or nothing held",
                quoted(parts)
            ),
        })
    }
}

/// Checks that a policy of this name has keys or is in the inventory.
pub(crate) async fn check_name(scan: &Scan<'_>, name: &str) -> Result<(), Failure> {
    let mut names: BTreeSet<String> = scan.inventory.entries().map(|entry| entry.name.clone()).collect();
    if names.contains(name) {
        return Ok(());
    }
    names.extend(scan.kinds(&Selection::default()).await?.into_iter().map(|kind| kind.name));
    if names.contains(name) {
        return Ok(());
    }
    Err(Failure::NoSuchKey(match closest_path(name, names.iter().map(String::as_str)) {
        Some(suggestion) => {
            format!("no key belongs to a policy named `{name}`; did you mean `{suggestion}`?")
        }
        None => format!("no key belongs to a policy named `{name}`; `ratelimits list` lists the names"),
    }))
}
