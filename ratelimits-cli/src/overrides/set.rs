//! `ratelimits override set`.

use std::time::Duration;

use clap::Args;
use jiff::{Timestamp, Zoned};
use ratelimit_runtime::inspect::{KeyState, Keyspace, parse_duration};
use ratelimit_runtime::overrides::Entry;
use serde_json::json;

use super::change::{Note, settings_of};
use super::known::Known;
use super::setting::{Setting, override_of};
use super::text::{parse_all, read, update};
use crate::connection::Connection;
use crate::failure::{EXIT_CODES, Failure};
use crate::inventory::{Inventory, InventoryFile};
use crate::key::KeyRow;
use crate::message::write_message;
use crate::output::{write, write_json};
use crate::progress::Progress;
use crate::scan::{Kind, Scan};
use crate::table::keys;
use crate::top::Limited;

/// When a change takes effect.
const IN_FORCE: &str = "in force within 3 seconds, in programs with `overrides_in_redis()`";

/// How to write when a change ends.
const DATE: &str = "write a date in a zone, '2027-03-01[America/New_York]', or a time with its offset, 2027-03-01T00:00-05:00";

/// How many keys are named that a change would refuse.
const NAMED: usize = 10;

/// Change a policy, or what it decides for one key. Replaces what was changed of that before.
///
/// The policy is one that programs have, or that has keys.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Set {
    /// The name of the policy, as in the code: `app::send`, or with its prefix `sms:app::send`.
    policy: String,
    /// Numbers as in the attribute, `shadow=true` or `off=true`: rate=100/min burst=20. For a key also `blocked=true`, which refuses
    /// every call.
    #[arg(required = true, value_name = "SETTING")]
    settings: Vec<Setting>,
    /// Change it for a key alone: a part of the key, in the order of the attribute's `key`. Once for each part.
    #[arg(long, value_name = "KEY_PART", allow_hyphen_values = true)]
    key: Vec<String>,
    /// End the change after this time, by the clock of Redis: 2h, or 90d.
    #[arg(long = "for", value_name = "TIME", value_parser = lifetime)]
    lifetime: Option<Duration>,
    /// End the change at this date, in a zone, or at this time: '2027-03-01[America/New_York]', or 2027-03-01T00:00-05:00.
    #[arg(long, value_name = "DATE", value_parser = end, conflicts_with = "lifetime")]
    until: Option<u64>,
    #[command(flatten)]
    note: Note,
    /// Write nothing, and show what would change, and which keys would be refused now.
    #[arg(long)]
    dry_run: bool,
    /// Write JSON: an object on one line.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    inventory: InventoryFile,
    #[command(flatten)]
    pub(crate) connection: Connection,
}

impl Set {
    pub(super) async fn run(self) -> Result<(), Failure> {
        let inventory = self.inventory.read()?;
        let mut change = override_of(&self.policy, &self.key, &self.settings);
        check(&change)?;
        let keyspace = self.connection.open().await?;
        let inventory = inventory.or_published(&self.connection, &keyspace).await?;
        change.until = self.until(&keyspace).await?;
        self.note.on(&mut change);
        let (_, text) = read(&self.connection, &keyspace).await?;
        let others = parse_all(&text)?;
        let before = others.iter().find(|other| change.replaces(other)).cloned();
        let known = Known::read(&self.connection, &keyspace, &inventory, &change, &others).await?;
        let apply = |overrides: &mut Vec<Entry>| {
            overrides.retain(|other| !change.replaces(other));
            known.check(&change, overrides)?;
            overrides.push(change.clone());
            Ok(())
        };
        let refused = if self.dry_run {
            apply(&mut others.clone())?;
            let of_policy =
                |it: &&Entry| it.policy == change.policy && it.key.is_empty() != change.key.is_empty();
            // Of those of keys, the change of the policy says nothing.
            let beside = others.iter().filter(of_policy).cloned().chain([change.clone()]).collect();
            Some(self.refused(&keyspace, &inventory, &known, (&change, beside)).await?)
        } else {
            update(&self.connection, &keyspace, &self.note, apply).await?;
            None
        };
        warn(&inventory, &known, &change);
        self.report(&change, before.as_ref(), refused)
    }

    /// Returns when the change ends, in seconds since the Unix epoch.
    async fn until(&self, keyspace: &Keyspace) -> Result<Option<u64>, Failure> {
        if self.lifetime.is_none() && self.until.is_none() {
            return Ok(None);
        }
        let now = keyspace.now(self.connection.namespace()).await;
        let now = now.map_err(|error| self.connection.failure(keyspace, &error))?;
        match self.until {
            Some(until) if until <= now => Err(Failure::Usage(
                "this date is in the past by the clock of Redis; write a later --until".to_owned(),
            )),
            until => Ok(until.or_else(|| Some(now.saturating_add(self.lifetime?.as_secs())))),
        }
    }

    /// Returns the keys that a call would find limited with the change.
    async fn refused(
        &self,
        keyspace: &Keyspace,
        inventory: &Inventory,
        known: &Known,
        (change, overrides): (&Entry, Vec<Entry>),
    ) -> Result<Limited, Failure> {
        let scan = Scan::with_overrides(&self.connection, keyspace, inventory, overrides);
        let mut refused = Limited::default();
        let add = |kind: &Kind, key: &str, state: Option<&KeyState>| {
            if let Some(state) = state.filter(|_| kind.is_in_force) {
                refused.add(KeyRow::new(kind, key, state), NAMED);
            }
        };
        scan.states(&known.keys(change), Progress::new(), add).await?;
        refused.cut(NAMED);
        Ok(refused)
    }

    fn report(
        &self,
        change: &Entry,
        before: Option<&Entry>,
        refused: Option<Limited>,
    ) -> Result<(), Failure> {
        if self.json {
            let (before, after) = (before.map(settings_of), settings_of(change));
            let mut report = json!({"policy": change.policy, "before": before, "after": after});
            if !change.key.is_empty() {
                report["key"] = json!(change.key);
            }
            if let Some(refused) = refused {
                report["refused"] = json!(refused.count);
                report["unknown"] = json!(refused.unknown);
                report["keys"] = json!(refused.keys);
            }
            return write_json(&report);
        }
        let Some(refused) = refused else {
            write(&change.to_string())?;
            write_message(IN_FORCE);
            return Ok(());
        };
        let before = before.map_or("# no override\n".to_owned(), ToString::to_string);
        write(&format!("# before\n{before}# after\n{change}"))?;
        write_message(format_args!("nothing is changed; it would refuse {} now", keys(refused.count)));
        if refused.unknown > 0 {
            write_message(format_args!("of {}, the limit is unknown", keys(refused.unknown)));
        }
        if refused.count > 0 { write(&refused.table()) } else { Ok(()) }
    }
}

/// Checks that a change sets something, and nothing that contradicts itself.
fn check(change: &Entry) -> Result<(), Failure> {
    let settings = change.settings();
    let problem = if settings.is_empty() {
        "this changes nothing; write a number, shadow=true or off=true, or use `override clear`"
    } else if change.blocked && change.key.is_empty() {
        "blocked=true is for a key; add --key"
    } else if change.blocked && settings.len() > 1 {
        "blocked=true refuses every call; write no other setting beside it"
    } else {
        return Ok(());
    };
    Err(Failure::Usage(problem.to_owned()))
}

/// Says what a change does beyond its settings, or may do, as far as it is unknown what programs have.
fn warn(inventory: &Inventory, known: &Known, change: &Entry) {
    let is_known = known.is_in_inventory(&change.policy);
    if let (false, Some(problem)) = (is_known, inventory.lacks(&change.policy)) {
        write_message(problem);
    }
    if !change.key.is_empty() {
        return;
    }
    for computed in known.computed(change) {
        if is_known {
            write_message(format_args!(
                "`{computed}` is computed for each call, and is now the same for all of them: every customer gets this number"
            ));
        } else {
            write_message(format_args!(
                "it is unknown whether `{computed}` is computed for each call; if it is, every customer gets this number"
            ));
        }
    }
}

fn lifetime(text: &str) -> Result<Duration, &'static str> {
    match parse_duration(text)? {
        lifetime if lifetime.as_secs() == 0 => Err("is less than a second; write a time such as 2h or 90d"),
        lifetime => Ok(lifetime),
    }
}

/// Returns a date and time in seconds since the Unix epoch.
fn end(text: &str) -> Result<u64, String> {
    // As a time alone, it would be read by its offset, whatever the zone says.
    let time = match text.contains('[') {
        true => text.parse().map(|time: Zoned| time.timestamp()),
        false => text.parse::<Timestamp>(),
    };
    let problem = |error| format!("{error}; {DATE}");
    let seconds = time.map_err(problem)?.as_second();
    seconds.try_into().map_err(|_| "is before 1970".to_owned())
}
