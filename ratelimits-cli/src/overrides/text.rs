//! The overrides in Redis, and how they are written.

use ratelimit_runtime::inspect::Keyspace;
use ratelimit_runtime::overrides::{Entry, MAX_KEYS, MAX_SIZE, parse};

use super::change::Note;
use crate::connection::Connection;
use crate::failure::Failure;
use crate::table::grouped;

/// How often another change of the overrides is tolerated.
const ATTEMPTS: usize = 5;

pub(super) async fn read(connection: &Connection, keyspace: &Keyspace) -> Result<(String, String), Failure> {
    let read = keyspace.overrides(connection.namespace()).await;
    read.map_err(|error| connection.overrides_failure(keyspace, &error))
}

/// Changes the overrides, those of all policies, and notes that in the log.
pub(super) async fn update(
    connection: &Connection,
    keyspace: &Keyspace,
    note: &Note,
    change: impl Fn(&mut Vec<Entry>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    replace(connection, keyspace, note, |text| {
        let before = parse_all(text)?;
        let mut after = before.clone();
        change(&mut after)?;
        let keys = after.iter().filter(|it| !it.key.is_empty()).count();
        if keys > MAX_KEYS {
            let most = grouped(MAX_KEYS as u64);
            return Err(Failure::Usage(format!(
                "{most} keys have overrides, and no more may; clear some first"
            )));
        }
        after.sort_by(|one, other| (&one.policy, &one.key).cmp(&(&other.policy, &other.key)));
        Ok((before, after))
    })
    .await
}

/// Replaces the overrides, again if somebody else does so at the same time. `change` returns those that the text has, and others.
pub(super) async fn replace(
    connection: &Connection,
    keyspace: &Keyspace,
    note: &Note,
    change: impl Fn(&str) -> Result<(Vec<Entry>, Vec<Entry>), Failure>,
) -> Result<(), Failure> {
    for _ in 0..ATTEMPTS {
        let (version, text) = read(connection, keyspace).await?;
        let (before, after) = change(&text)?;
        let changed = text_of(&after);
        if changed.len() > MAX_SIZE {
            return Err(Failure::Usage("the overrides would be larger than 4 MiB".to_owned()));
        }
        let changes = note.changes(&before, &after);
        let changes: Vec<String> = changes.iter().filter_map(|it| serde_json::to_string(it).ok()).collect();
        let namespace = connection.namespace();
        let replaced = keyspace.replace_overrides(namespace, &version, &changed, &changes).await;
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
