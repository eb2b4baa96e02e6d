//! The policies of a program, as `ratelimits::policies()` lists them.

use std::collections::HashMap;
use std::fs;
use std::io::{Read, stdin};
use std::path::{Path, PathBuf};

use clap::Args;
use ratelimit_runtime::Policy;
use ratelimit_runtime::overrides::KnownPolicy;
use serde::Deserialize;

use crate::failure::Failure;
use crate::policy_text::with_computed;

#[derive(Debug, Args)]
pub(crate) struct InventoryFile {
    /// The policies of the program, as `serde_json::to_string(&ratelimits::policies())` writes them; `-` for standard
    /// input. They tell the limits of windows, which are not in Redis, and which policies have no keys.
    #[arg(long, value_name = "FILE")]
    inventory: Option<PathBuf>,
}

/// The policies of a program; none if no inventory is given.
#[derive(Debug, Default)]
pub(crate) struct Inventory {
    by_name: HashMap<String, Vec<Entry>>,
    is_given: bool,
}

/// A policy of a program. Other fields are for other uses.
#[derive(Debug, Deserialize)]
pub(crate) struct Entry {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) prefix: String,
    pub(crate) algorithm: String,
    attribute: String,
    #[serde(default)]
    arguments: String,
    /// The options without a value.
    #[serde(default)]
    flags: Vec<String>,
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
        for mut entry in entries {
            let (policy, computed) = entry.parse().map_err(|problem| invalid(&problem))?;
            entry.policy = (!entry.computed && computed.is_empty()).then_some(policy);
            inventory.by_name.entry(entry.name.clone()).or_default().push(entry);
        }
        Ok(inventory)
    }
}

impl Inventory {
    pub(crate) fn is_given(&self) -> bool {
        self.is_given
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.by_name.values().flatten()
    }

    pub(crate) fn entry(&self, prefix: &str, name: &str) -> Option<&Entry> {
        self.by_name.get(name)?.iter().find(|entry| entry.prefix == prefix)
    }
}

impl Entry {
    /// Returns the policy as overrides see it, if the inventory is of a program that this version knows.
    pub(crate) fn known(&self) -> Option<KnownPolicy> {
        let (policy, computed) = self.parse().ok()?;
        let (name, prefix) = (self.name.clone(), self.prefix.clone());
        let shadow = self.flags.iter().any(|flag| flag == "shadow");
        Some(KnownPolicy { name, prefix: Some(prefix), policy, computed, shadow })
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

fn read(path: &Path) -> std::io::Result<String> {
    if path.as_os_str() != "-" {
        return fs::read_to_string(path);
    }
    let mut text = String::new();
    stdin().read_to_string(&mut text)?;
    Ok(text)
}
