//! `ratelimits override list`.

use clap::Args;
use jiff::Timestamp;
use ratelimit_runtime::overrides::Entry;
use serde_json::{Map, Value, json};

use super::change::settings_of;
use super::text::{parse_all, read, text_of};
use crate::connection::Connection;
use crate::failure::{EXIT_CODES, Failure};
use crate::message::write_message;
use crate::output::{write, write_json};

/// List what is changed, until when, by whom and why.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct List {
    /// Write JSON: an object on one line.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    pub(crate) connection: Connection,
}

impl List {
    pub(super) async fn run(self) -> Result<(), Failure> {
        let keyspace = self.connection.open().await?;
        let (version, text) = read(&self.connection, &keyspace).await?;
        let mut overrides = parse_all(&text)?;
        if overrides.iter().any(|it| it.until.is_some()) {
            let now = keyspace.now(self.connection.namespace()).await;
            let now = now.map_err(|error| self.connection.failure(&keyspace, &error))?;
            overrides.retain(|it| !it.has_ended(now));
        }
        if !self.json {
            if overrides.is_empty() {
                write_message("no overrides");
            }
            return write(&with_times(&overrides));
        }
        let (of_policies, of_keys): (Vec<_>, Vec<_>) = overrides.iter().partition(|it| it.key.is_empty());
        let of_policies: Map<String, Value> =
            of_policies.iter().map(|it| (it.policy.clone(), settings_of(it).into())).collect();
        let of_keys = of_keys.iter().map(|it| {
            let mut settings = settings_of(it);
            settings.insert("policy".to_owned(), json!(it.policy));
            settings.insert("key".to_owned(), json!(it.key));
            Value::from(settings)
        });
        let of_keys: Vec<_> = of_keys.collect();
        write_json(&json!({"version": version, "overrides": of_policies, "keys": of_keys}))
    }
}

/// Writes overrides, with the times at which they end for people.
fn with_times(overrides: &[Entry]) -> String {
    let line = |line: &str| {
        let until = line.strip_prefix("until = ").and_then(|until| until.parse().ok());
        let time = until.and_then(|until| Timestamp::from_second(until).ok());
        time.map_or_else(|| format!("{line}\n"), |time| format!("{line}  # {time}\n"))
    };
    text_of(overrides).lines().map(line).collect()
}
