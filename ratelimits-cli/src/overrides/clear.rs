//! `ratelimits override clear`.

use clap::Args;
use serde_json::json;

use super::text::{parse_all, read, replace, update};
use crate::connection::Connection;
use crate::failure::{EXIT_CODES, Failure};
use crate::output::{write, write_json};
use crate::table::printable;

/// Change a policy no longer.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Clear {
    /// The name of the policy, as in `override list`.
    #[arg(required_unless_present = "all")]
    policy: Option<String>,
    /// Change no policy any longer.
    #[arg(long, conflicts_with = "policy")]
    all: bool,
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
                update(&self.connection, &keyspace, |overrides| {
                    let before = overrides.len();
                    overrides.retain(|other| other.policy != *policy);
                    if overrides.len() == before {
                        return Err(Failure::NoSuchKey(format!(
                            "`{policy}` has no override; `override list` lists them"
                        )));
                    }
                    Ok(())
                })
                .await?;
                vec![policy.clone()]
            }
            None => {
                let (version, text) = read(&self.connection, &keyspace).await?;
                // Programs keep overrides that Redis has lost until there is a version again.
                if text.is_empty() && !version.is_empty() {
                    return Err(Failure::NoSuchKey("there are no overrides".to_owned()));
                }
                replace(&self.connection, &keyspace, |_| Ok(String::new())).await?;
                // Also those that cannot be read.
                parse_all(&text).unwrap_or_default().into_iter().map(|it| it.policy).collect()
            }
        };
        if self.json {
            return write_json(&json!({"cleared": cleared}));
        }
        let names =
            cleared.iter().map(|name| format!("`{}`", printable(name))).collect::<Vec<_>>().join(", ");
        write(&match cleared.len() {
            // Lost, or unreadable.
            0 => "cleared all overrides\n".to_owned(),
            1 => format!("cleared the override of {names}\n"),
            _ => format!("cleared the overrides of {names}\n"),
        })
    }
}
