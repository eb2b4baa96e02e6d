//! The policies of a program, as `ratelimits::policies()` lists them.

use std::collections::HashMap;
use std::fs;
use std::io::{Read, stdin};
use std::path::{Path, PathBuf};

use clap::Args;
use ratelimit_runtime::Policy;
use ratelimit_runtime::inspect::{Keyspace, Reading};
use ratelimit_runtime::overrides::{Entry as Override, KnownPolicy};
use serde::Deserialize;

use crate::connection::Connection;
use crate::failure::Failure;
use crate::message::write_message;
use crate::policy_text::with_computed;

#[derive(Debug, Args)]
pub(crate) struct InventoryFile {
    /// The policies of the program, as `serde_json::to_string(&ratelimits::policies())` writes them; `-` for standard
    /// input. They tell the limits of windows, which are not in keys, and which policies have no keys. Without it, those that
    /// programs with overrides in Redis publish there.
    #[arg(long, value_name = "FILE")]
    inventory: Option<PathBuf>,
}

/// The policies of a program; none if no inventory is given.
#[derive(Debug, Default)]
pub(crate) struct Inventory {
    by_name: HashMap<String, Vec<Entry>>,
    is_given: bool,
    /// Whether it is what programs have published, which may be nothing.
    is_published: bool,
}

/// A policy of a program. Other fields are for other uses.
#[derive(Debug, Deserialize)]
pub(crate) struct Entry {
    pub(crate) name: String,
    /// `None` for a limiter, which may have any.
    #[serde(default = "no_prefix")]
    pub(crate) prefix: Option<String>,
    pub(crate) algorithm: String,
    attribute: String,
    #[serde(default)]
    arguments: String,
    /// The options without a value.
    #[serde(default)]
    flags: Vec<String>,
    /// The key as a template, if there is one.
    #[serde(default)]
    pub(crate) key: Option<String>,
    /// The function, if the keys share a slot by it.
    #[serde(default)]
    pub(crate) tag: Option<String>,
    /// Whether a number is computed for each call.
    #[serde(default)]
    computed: bool,
    /// The numbers, if they are literal.
    #[serde(skip)]
    pub(crate) policy: Option<Policy>,
}

impl InventoryFile {
    pub(crate) fn read(&self) -> Result<Inventory, Failure> {
        let Some(path) = &self.inventory else { return Ok(Inventory::default()) };
        let invalid = |problem: &dyn ToString| {
            Failure::Usage(format!("the inventory {}: {}", path.display(), problem.to_string()))
        };
        let text = read(path).map_err(|error| invalid(&error))?;
        let entries: Vec<Entry> = serde_json::from_str(&text).map_err(|error| {
            invalid(&format!(
                "{error}; write it with `serde_json::to_string(&ratelimits::policies())`, with the feature `serde`"
            ))
        })?;
        let mut inventory = Inventory { is_given: true, ..Inventory::default() };
        entries
            .into_iter()
            .try_for_each(|entry| inventory.add(entry))
            .map_err(|problem| invalid(&problem))?;
        Ok(inventory)
    }
}

impl Inventory {
    /// Without a file, takes what programs have published.
    pub(crate) async fn or_published(
        mut self,
        connection: &Connection,
        keyspace: &Keyspace,
    ) -> Result<Self, Failure> {
        if self.is_given {
            return Ok(self);
        }
        let published = match keyspace.inventory(connection.namespace()).await {
            Ok(published) => published,
            Err(error) => match connection.failure(keyspace, &error) {
                Failure::NoPermission(problem) => {
                    write_message(format_args!("what programs publish is not considered: {problem}"));
                    return Ok(self);
                }
                failure => return Err(failure),
            },
        };
        self.is_published = true;
        // Programs of other versions may have policies that this one does not know.
        let entries = published.iter().filter_map(|entry| serde_json::from_str::<Entry>(entry).ok());
        for entry in entries {
            self.is_given |= self.add(entry).is_ok();
        }
        Ok(self)
    }

    fn add(&mut self, mut entry: Entry) -> Result<(), String> {
        let (policy, computed) = entry.parse()?;
        entry.policy = (!entry.computed && computed.is_empty()).then_some(policy);
        self.by_name.entry(entry.name.clone()).or_default().push(entry);
        Ok(())
    }

    pub(crate) fn is_given(&self) -> bool {
        self.is_given
    }

    /// Says that it lacks a policy that has keys, and why that may be. Says nothing if it could not be read.
    pub(crate) fn lacks(&self, policy: &str) -> Option<String> {
        if self.is_published {
            Some(format!(
                "no program has published `{policy}`: is `overrides_in_redis()` set, without which programs ignore overrides, \
                 and has one run in the last minutes?"
            ))
        } else {
            self.is_given.then(|| format!("the inventory has no `{policy}`; keys in Redis do"))
        }
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.by_name.values().flatten()
    }

    pub(crate) fn entry(&self, prefix: &str, name: &str) -> Option<&Entry> {
        self.by_name.get(name)?.iter().find(|entry| entry.prefix.as_deref().is_none_or(|own| own == prefix))
    }
}

impl Entry {
    /// Returns the policy as overrides see it, if the inventory is of a program that this version knows.
    pub(crate) fn known(&self) -> Option<KnownPolicy> {
        let (policy, computed) = self.parse().ok()?;
        let (name, prefix) = (self.name.clone(), self.prefix.clone());
        let shadow = self.flags.iter().any(|flag| flag == "shadow");
        // A limiter is called with any key.
        let has_key = self.prefix.is_some().then_some(self.key.is_some());
        Some(KnownPolicy { name, prefix, policy, computed, shadow, has_key })
    }

    /// Returns how the keys are read that calls use, given what an operator has changed. `None` if that depends on a number that is
    /// computed.
    pub(crate) fn reading(&self, changed: Option<&Override>) -> Option<Reading> {
        let (policy, computed) = self.parse().ok()?;
        let reading = Reading::in_force(&policy, changed)?;
        let is_computed = |number: &&str| computed.iter().any(|computed| computed == number);
        let is_known = !policy.shaping().iter().any(is_computed);
        is_known.then(|| if self.policy.is_some() { reading } else { reading.computed() })
    }

    /// Returns the policy, and the names of the numbers that are computed.
    fn parse(&self) -> Result<(Policy, Vec<String>), String> {
        let arguments = [&self.arguments].into_iter().chain(&self.flags).map(String::as_str);
        let arguments: Vec<&str> = arguments.filter(|text| !text.is_empty()).collect();
        let text = format!("{}({})", self.attribute, arguments.join(", "));
        let invalid = |error: &dyn ToString| format!("{}: {text}: {}", self.name, error.to_string());
        let (policy, computed) = with_computed(&text).map_err(|error| invalid(&error))?;
        if computed.is_empty() {
            policy.check().map_err(|error| invalid(&error))?;
        }
        Ok((policy, computed))
    }
}

fn no_prefix() -> Option<String> {
    Some(String::new())
}

fn read(path: &Path) -> std::io::Result<String> {
    if path.as_os_str() != "-" {
        return fs::read_to_string(path);
    }
    let mut text = String::new();
    stdin().read_to_string(&mut text)?;
    Ok(text)
}
