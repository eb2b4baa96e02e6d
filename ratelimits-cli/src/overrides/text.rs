//! The overrides in Redis, and how they are written.

use ratelimit_runtime::inspect::Keyspace;
use ratelimit_runtime::overrides::{Entry, Value, parse};
use serde_json::{Map, json};

use crate::connection::Connection;
use crate::failure::Failure;

/// How often another change of the overrides is tolerated.
const ATTEMPTS: usize = 5;

/// The maximum size that programs read.
const MAX_SIZE: usize = 1 << 20;

pub(super) async fn read(connection: &Connection, keyspace: &Keyspace) -> Result<(String, String), Failure> {
    let read = keyspace.overrides(connection.namespace()).await;
    read.map_err(|error| connection.overrides_failure(keyspace, &error))
}

/// Changes the overrides, those of all policies.
pub(super) async fn update(
    connection: &Connection,
    keyspace: &Keyspace,
    change: impl Fn(&mut Vec<Entry>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    replace(connection, keyspace, |text| {
        let mut overrides = parse_all(text)?;
        change(&mut overrides)?;
        overrides.sort_by(|one, other| one.policy.cmp(&other.policy));
        Ok(text_of(&overrides))
    })
    .await
}

/// Replaces the text of the overrides, again if somebody else does so at the same time.
pub(super) async fn replace(
    connection: &Connection,
    keyspace: &Keyspace,
    change: impl Fn(&str) -> Result<String, Failure>,
) -> Result<(), Failure> {
    for _ in 0..ATTEMPTS {
        let (version, text) = read(connection, keyspace).await?;
        let changed = change(&text)?;
        if changed.len() > MAX_SIZE {
            return Err(Failure::Usage("the overrides would be larger than 1 MiB".to_owned()));
        }
        let replaced = keyspace.replace_overrides(connection.namespace(), &version, &changed).await;
        if replaced.map_err(|error| connection.overrides_failure(keyspace, &error))? {
            return Ok(());
        }
    }
    Err(Failure::Redis("the overrides change all the time; try again".to_owned()))
}

pub(super) fn parse_all(text: &str) -> Result<Vec<Entry>, Failure> {
    let invalid = |problem: &str| {
        Failure::Redis(format!(
            "the overrides in Redis are invalid: {problem}\nDelete them: ratelimits override clear --all"
        ))
    };
    let parsed = parse(text).map_err(|problem| invalid(&problem))?;
    if parsed.problems.is_empty() { Ok(parsed.overrides) } else { Err(invalid(&parsed.problems.join("; "))) }
}

pub(super) fn text_of(overrides: &[Entry]) -> String {
    overrides.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

pub(super) fn json_of(it: &Entry) -> serde_json::Value {
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
    if it.off {
        settings.insert("off".to_owned(), json!(true));
    }
    if let Some(until) = it.until {
        settings.insert("until".to_owned(), json!(until));
    }
    for (name, text) in [("author", &it.author), ("reason", &it.reason)] {
        if let Some(text) = text {
            settings.insert(name.to_owned(), json!(text));
        }
    }
    settings.into()
}
