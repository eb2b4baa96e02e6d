//! `ratelimits override clear`.

use clap::Args;
use ratelimit_runtime::overrides::Entry;
use serde_json::json;

use super::change::Note;
use super::text::{parse_all, read, replace, update};
use crate::connection::Connection;
use crate::failure::{EXIT_CODES, Failure};
use crate::key::quoted;
use crate::output::{write, write_json};
use crate::table::printable;

/// Change a policy no longer, or not for a key: those of its keys stay if it is cleared itself.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Clear {
    /// The name of the policy, as in `override list`.
    #[arg(required_unless_present = "all")]
    policy: Option<String>,
    /// Change it for a key alone no longer: a part of the key, in the order of the attribute's `key`. Once for each part.
    #[arg(long, value_name = "KEY_PART", allow_hyphen_values = true, requires = "policy")]
    key: Vec<String>,
    /// Change no policy any longer, nor any key.
    #[arg(long, conflicts_with = "policy")]
    all: bool,
    #[command(flatten)]
    note: Note,
    /// Write JSON: an object on one line.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    pub(crate) connection: Connection,
}

impl Clear {
    pub(super) async fn run(self) -> Result<(), Failure> {
        let keyspace = self.connection.open().await?;
        let cleared = match &self.policy {
            Some(policy) => {
                let cleared = Entry { policy: policy.clone(), key: self.key.clone(), ..Entry::default() };
                update(&self.connection, &keyspace, &self.note, |overrides| {
                    let before = overrides.len();
                    let of_policy = overrides.iter().filter(|other| other.policy == *policy).count();
                    overrides.retain(|other| !cleared.replaces(other));
                    if overrides.len() < before {
                        return Ok(());
                    }
                    let hint = match of_policy {
                        0 => "`override list` lists them".to_owned(),
                        _ if self.key.is_empty() => "keys of it have; add --key".to_owned(),
                        _ => format!("`override list` lists those of `{policy}`"),
                    };
                    Err(Failure::NoSuchKey(format!("{} has no override; {hint}", of(&cleared))))
                })
                .await?;
                vec![cleared]
            }
            None => {
                let (version, text) = read(&self.connection, &keyspace).await?;
                // Programs keep overrides that Redis has lost until there is a version again.
                if text.is_empty() && !version.is_empty() {
                    return Err(Failure::NoSuchKey("there are no overrides".to_owned()));
                }
                // Also those that cannot be read.
                let readable = |text: &str| parse_all(text).unwrap_or_default();
                replace(&self.connection, &keyspace, &self.note, |text| Ok((readable(text), Vec::new())))
                    .await?;
                readable(&text)
            }
        };
        if self.json {
            let (of_policies, of_keys): (Vec<_>, Vec<_>) = cleared.iter().partition(|it| it.key.is_empty());
            let policies: Vec<_> = of_policies.iter().map(|it| &it.policy).collect();
            let mut report = json!({"cleared": policies});
            if !of_keys.is_empty() {
                let key = |it: &&Entry| json!({"policy": it.policy, "key": it.key});
                report["keys"] = of_keys.iter().map(key).collect();
            }
            return write_json(&report);
        }
        let names = cleared.iter().map(of).collect::<Vec<_>>().join(", ");
        write(&match cleared.len() {
            // Lost, or unreadable.
            0 => "cleared all overrides\n".to_owned(),
            1 => format!("cleared the override of {names}\n"),
            _ => format!("cleared the overrides of {names}\n"),
        })
    }
}

/// Returns what an override is for, for people.
fn of(it: &Entry) -> String {
    let policy = printable(&it.policy);
    match &*it.key {
        [] => format!("`{policy}`"),
        key => format!("`{policy}`, key {}", printable(&quoted(key))),
    }
}
