//! `ratelimits override log`.

use clap::Args;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::change::Change;
use crate::connection::Connection;
use crate::failure::{EXIT_CODES, Failure};
use crate::key::quoted;
use crate::message::write_message;
use crate::output::{write, write_json};
use crate::table::{Column, Table};

/// List the last thousand changes that this command has made, the last one first: when, by whom, from what to what, and why.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Log {
    /// Only those of this policy, as in `override list`.
    policy: Option<String>,
    /// Only those of this key: a part of it, in the order of the attribute's `key`. Once for each part.
    #[arg(long, value_name = "KEY_PART", allow_hyphen_values = true, requires = "policy")]
    key: Vec<String>,
    /// Write JSON: an object on one line.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    pub(crate) connection: Connection,
}

impl Log {
    pub(super) async fn run(self) -> Result<(), Failure> {
        let keyspace = self.connection.open().await?;
        let log = keyspace.override_log(self.connection.namespace()).await;
        let log = log.map_err(|error| self.connection.failure(&keyspace, &error))?;
        let changes =
            log.into_iter().filter_map(|(time, text)| Some((time, serde_json::from_str(&text).ok()?)));
        let changes: Vec<(u64, Change)> = changes.filter(|(_, change)| self.is_meant(change)).collect();
        if self.json {
            let with_time = |(time, change): &(u64, Change)| {
                let mut change = json!(change);
                change["time"] = json!(time);
                change
            };
            return write_json(&json!({"changes": changes.iter().map(with_time).collect::<Vec<_>>()}));
        }
        if changes.is_empty() {
            write_message("no changes");
            return Ok(());
        }
        let columns = ["time", "author", "policy", "key", "before", "after", "reason"].map(Column::text);
        let mut table = Table::new(columns.into());
        for (time, change) in changes {
            table.row([
                time_of(time),
                change.author.unwrap_or_default(),
                change.policy,
                if change.key.is_empty() { String::new() } else { quoted(&change.key) },
                settings(change.before),
                settings(change.after),
                change.reason.unwrap_or_default(),
            ]);
        }
        write(&table.text())
    }

    fn is_meant(&self, change: &Change) -> bool {
        self.policy.as_ref().is_none_or(|policy| *policy == change.policy)
            && (self.key.is_empty() || self.key == change.key)
    }
}

fn time_of(seconds: u64) -> String {
    let time = i64::try_from(seconds).ok().and_then(|seconds| Timestamp::from_second(seconds).ok());
    time.map_or_else(|| seconds.to_string(), |time| time.to_string())
}

/// Writes settings as arguments of `override set`, with the time at which they end.
fn settings(settings: Option<Map<String, Value>>) -> String {
    let Some(settings) = settings else { return "none".to_owned() };
    let setting = |(name, value): (String, Value)| match (&*name, value) {
        ("until", Value::Number(until)) => format!("until {}", time_of(until.as_u64().unwrap_or_default())),
        (name, Value::String(text)) => format!("{name}={text}"),
        (name, value) => format!("{name}={value}"),
    };
    settings.into_iter().map(setting).collect::<Vec<_>>().join(" ")
}
