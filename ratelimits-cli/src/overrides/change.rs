//! Changes of overrides, as the log has them.

use std::collections::BTreeMap;

use clap::Args;
use ratelimit_runtime::overrides::{Entry, Value};
use serde::{Deserialize, Serialize};
use serde_json::{Map, json};

/// Who changes overrides, and why, for the log.
#[derive(Clone, Debug, Args)]
pub(super) struct Note {
    /// Who changes it. Without it, USER in the environment.
    #[arg(long, visible_alias = "by", value_name = "NAME", env = "USER", hide_env = true)]
    author: Option<String>,
    /// Why.
    #[arg(long, visible_alias = "why", value_name = "TEXT")]
    reason: Option<String>,
}

/// A change of what a policy, or one of its keys, is overridden by.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Change {
    pub(super) policy: String,
    #[serde(default)]
    pub(super) key: Vec<String>,
    pub(super) author: Option<String>,
    pub(super) reason: Option<String>,
    /// What was set, if anything.
    pub(super) before: Option<Map<String, serde_json::Value>>,
    pub(super) after: Option<Map<String, serde_json::Value>>,
}

impl Note {
    /// Notes it with an override.
    pub(super) fn on(&self, entry: &mut Entry) {
        (entry.author, entry.reason) = (self.author(), self.reason.clone());
    }

    /// Returns the changes from some overrides to others.
    pub(super) fn changes(&self, before: &[Entry], after: &[Entry]) -> Vec<Change> {
        let mut both = BTreeMap::<_, (Option<&Entry>, Option<&Entry>)>::new();
        before.iter().for_each(|it| both.entry((&it.policy, &it.key)).or_default().0 = Some(it));
        after.iter().for_each(|it| both.entry((&it.policy, &it.key)).or_default().1 = Some(it));
        let changed = both.into_iter().filter(|(_, (before, after))| before != after);
        let settings = |it: &Entry| {
            let mut settings = settings_of(it);
            settings.retain(|name, _| name != "author" && name != "reason");
            settings
        };
        let changes = changed.map(|((policy, key), (before, after))| Change {
            policy: policy.clone(),
            key: key.clone(),
            author: self.author(),
            reason: self.reason.clone(),
            before: before.map(settings),
            after: after.map(settings),
        });
        changes.collect()
    }

    fn author(&self) -> Option<String> {
        self.author.clone().filter(|author| !author.is_empty())
    }
}

/// Returns what an override has, in JSON.
pub(super) fn settings_of(it: &Entry) -> Map<String, serde_json::Value> {
    let mut settings = Map::new();
    for (argument, value) in &it.numbers {
        let value = match value {
            Value::Integer(integer) => json!(integer),
            Value::Float(float) => json!(float),
            Value::Text(text) => json!(text),
        };
        settings.insert(argument.clone(), value);
    }
    if let Some(shadow) = it.shadow {
        settings.insert("shadow".to_owned(), json!(shadow));
    }
    for (name, is_set) in [("off", it.off), ("blocked", it.blocked)] {
        if is_set {
            settings.insert(name.to_owned(), json!(true));
        }
    }
    if let Some(until) = it.until {
        settings.insert("until".to_owned(), json!(until));
    }
    for (name, text) in [("author", &it.author), ("reason", &it.reason)] {
        if let Some(text) = text {
            settings.insert(name.to_owned(), json!(text));
        }
    }
    settings
}
