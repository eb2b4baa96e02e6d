//! The policies of a program, as `ratelimits::policies()` lists them.

use std::collections::HashMap;
use std::fs;
use std::io::{Read, stdin};
use std::path::{Path, PathBuf};

use clap::Args;
use ratelimit_runtime::Policy;
use serde::Deserialize;

use crate::failure::Failure;
use crate::policy_text::PolicyText;

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
            if !entry.computed {
                entry.policy = Some(entry.parse().map_err(|problem| invalid(&problem))?);
            }
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
    fn parse(&self) -> Result<Policy, String> {
        let arguments = [&self.arguments].into_iter().chain(&self.flags);
        let arguments: Vec<&str> = arguments.map(String::as_str).filter(|text| !text.is_empty()).collect();
        let text = format!("{}({})", self.attribute, arguments.join(", "));
        let parsed: PolicyText = text.parse().map_err(|error| format!("{}: {text}: {error}", self.name))?;
        Ok(parsed.policy)
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
