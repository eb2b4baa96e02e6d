//! `ratelimits override set`.

use clap::Args;
use jiff::SignedDuration;
use ratelimit_runtime::inspect::{KeyState, Keyspace};
use ratelimit_runtime::overrides::Entry;
use serde_json::json;

use super::known::Known;
use super::setting::{Setting, override_of};
use super::text::{json_of, parse_all, read, update};
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

/// How many keys are named that a change would refuse.
const NAMED: usize = 10;

/// Change a policy. Replaces what was changed of it before.
///
/// The policy is one that programs have, or that has keys.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Set {
    /// The name of the policy, as in the code: `app::send`, or with its prefix `sms:app::send`.
    policy: String,
    /// Numbers as in the attribute, `shadow=true` or `off=true`: rate=100/min burst=20.
    #[arg(required = true, value_name = "SETTING")]
    settings: Vec<Setting>,
    /// End the change after this time, by the clock of Redis: 2h.
    #[arg(long = "for", value_name = "TIME")]
    lifetime: Option<SignedDuration>,
    /// Who changes it. Without it, USER in the environment.
    #[arg(long, value_name = "NAME", env = "USER", hide_env = true)]
    author: Option<String>,
    /// Why.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
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
        let mut change = override_of(&self.policy, &self.settings);
        if change.settings().is_empty() {
            let problem =
                "this changes nothing; write a number, shadow=true or off=true, or use `override clear`";
            return Err(Failure::Usage(problem.to_owned()));
        }
        let keyspace = self.connection.open().await?;
        let inventory = inventory.or_published(&self.connection, &keyspace).await?;
        change.until = self.until(&keyspace).await?;
        change.author = self.author.clone().filter(|author| !author.is_empty());
        change.reason.clone_from(&self.reason);
        let (_, text) = read(&self.connection, &keyspace).await?;
        let others = parse_all(&text)?;
        let before = others.iter().find(|other| other.policy == change.policy).cloned();
        let known = Known::read(&self.connection, &keyspace, &inventory, &change, &others).await?;
        let apply = |overrides: &mut Vec<Entry>| {
            overrides.retain(|other| other.policy != change.policy);
            known.check(&change, overrides)?;
            overrides.push(change.clone());
            Ok(())
        };
        let refused = if self.dry_run {
            apply(&mut others.clone())?;
            Some(self.refused(&keyspace, &inventory, &known, &change).await?)
        } else {
            update(&self.connection, &keyspace, apply).await?;
            None
        };
        warn(&inventory, &known, &change);
        self.report(&change, before.as_ref(), refused)
    }

    /// Returns when the change ends, in seconds since the Unix epoch.
    async fn until(&self, keyspace: &Keyspace) -> Result<Option<u64>, Failure> {
        let Some(lifetime) = self.lifetime else { return Ok(None) };
        let seconds = u64::try_from(lifetime.as_secs()).ok().filter(|seconds| *seconds > 0);
        let seconds = seconds.ok_or_else(|| Failure::Usage("`--for` is at least 1s".to_owned()))?;
        let now = keyspace.now(self.connection.namespace()).await;
        now.map(|now| Some(now.saturating_add(seconds)))
            .map_err(|error| self.connection.failure(keyspace, &error))
    }

    /// Returns the keys that a call would find limited with the change.
    async fn refused(
        &self,
        keyspace: &Keyspace,
        inventory: &Inventory,
        known: &Known,
        change: &Entry,
    ) -> Result<Limited, Failure> {
        let scan = Scan::with_override(&self.connection, keyspace, inventory, change.clone());
        let mut refused = Limited::default();
        let add = |kind: &Kind, key: &str, state: Option<&KeyState>| {
            if let Some(state) = state.filter(|_| kind.is_in_force) {
                refused.add(KeyRow::new(kind, key, state), NAMED);
            }
        };
        scan.states(&known.keys(&change.policy), Progress::new(), add).await?;
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
            let mut report =
                json!({"policy": change.policy, "before": before.map(json_of), "after": json_of(change)});
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

/// Says what a change does beyond its settings, or may do, as far as it is unknown what programs have.
fn warn(inventory: &Inventory, known: &Known, change: &Entry) {
    let is_known = known.is_in_inventory(&change.policy);
    if let (false, Some(problem)) = (is_known, inventory.lacks(&change.policy)) {
        write_message(problem);
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
