//! `ratelimits pause`.

use std::time::Duration;

use clap::Args;
use ratelimit_runtime::Algorithm;
use ratelimit_runtime::inspect::{KeyState, MAX_PAUSE, Reading, key_text, parse_duration};

use crate::connection::Connection;
use crate::duration::human;
use crate::failure::{EXIT_CODES, Failure};
use crate::inventory::InventoryFile;
use crate::key::{KeyRow, States, quoted};
use crate::message::write_message;
use crate::output::{write, write_json};
use crate::scan::{Kind, Scan};
use crate::table::printable;
use crate::target::Target;

/// Admit no call of a key for a time, in any process.
///
/// The key needs no state. A pause ends by itself, and `reset` ends it. Of several pauses the one that ends last counts. Permits that
/// processes have leased are spent all the same, and calls that wait already start at their slots, unless their attribute has
/// `pause_when`. A concurrency limit cannot be paused.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES, allow_missing_positional = true)]
pub(crate) struct Pause {
    #[command(flatten)]
    target: Target,
    /// For how long: 30s, 1h30m. At most a day.
    #[arg(required = true, value_name = "TIME", value_parser = time)]
    duration: Duration,
    #[command(flatten)]
    inventory: InventoryFile,
    /// Write JSON: an object on one line.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    pub(crate) connection: Connection,
}

/// A key to pause.
struct Paused {
    kind: Kind,
    key: (String, Reading),
    state: Option<KeyState>,
}

impl Pause {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let inventory = self.inventory.read()?;
        let keyspace = self.connection.open().await?;
        let inventory = inventory.or_published(&self.connection, &keyspace).await?;
        let scan = Scan::new(&self.connection, &keyspace, &inventory).await?;
        let mut paused = self.keys(&scan).await?;
        if self.duration > MAX_PAUSE {
            write_message(format_args!("a pause lasts at most {0}; it is cut to {0}", human(MAX_PAUSE)));
        }
        let failed = |error| self.connection.failure(&keyspace, &error);
        for Paused { key: (key, reading), .. } in &paused {
            keyspace.pause(key, reading, self.duration).await.map_err(failed)?;
        }
        let keys: Vec<_> = paused.iter().map(|paused| paused.key.clone()).collect();
        keyspace.read(&keys, |i, state| paused[i].state = state).await.map_err(failed)?;
        self.report(&paused)
    }

    /// Returns the keys that calls use: those that the inventory says, or else those that other keys of the policy are like.
    async fn keys(&self, scan: &Scan<'_>) -> Result<Vec<Paused>, Failure> {
        let policy = self.target.all_keys();
        let mut kinds = scan.declared(&policy, false);
        if kinds.is_empty() {
            kinds = scan.kinds(&policy).await?;
            kinds.retain(|kind| kind.is_in_force && kind.reading.is_some());
        }
        if kinds.is_empty() {
            kinds = scan.declared(&policy, true);
            kinds.iter_mut().for_each(|kind| kind.has_parts = !self.target.parts().is_empty());
        }
        if kinds.is_empty() {
            return Err(self.target.unknown(scan).await);
        }
        self.check_algorithms(&kinds)?;
        kinds.retain(|kind| kind.has_parts != self.target.parts().is_empty());
        if kinds.is_empty() {
            let problem = match self.target.parts() {
                [] => "its keys have parts; write them before the time",
                _ => "all its calls share one key; write no part of a key",
            };
            return Err(Failure::Usage(format!("`{}`: {problem}", self.target.policy())));
        }
        self.target.check_prefixes(kinds.iter().map(|kind| &*kind.prefix))?;
        let paused = |kind: Kind| {
            let Kind { prefix, name, shape, function, reading, .. } = &kind;
            let namespace = self.connection.namespace();
            let key = key_text(namespace, prefix, name, shape, function.as_deref(), self.target.parts());
            let key = (key.ok()?, (*reading)?);
            Some(Paused { kind, key, state: None })
        };
        let mut paused: Vec<_> = kinds.into_iter().filter_map(paused).collect();
        // Attributes may share a policy.
        paused.dedup_by(|one, other| one.key == other.key);
        Ok(paused)
    }

    fn check_algorithms(&self, kinds: &[Kind]) -> Result<(), Failure> {
        let is_semaphore =
            |kind: &Kind| kind.reading.is_some_and(|reading| reading.algorithm() == Algorithm::Semaphore);
        if !kinds.iter().any(is_semaphore) {
            return Ok(());
        }
        Err(Failure::Usage(format!(
            "`{}` is a concurrency limit, which cannot be paused; override its `max`, or pause a rate limit of the function",
            self.target.policy()
        )))
    }

    fn report(&self, paused: &[Paused]) -> Result<(), Failure> {
        if self.json {
            let rows = paused.iter().filter_map(|Paused { kind, key: (key, _), state }| {
                Some(KeyRow::new(kind, key, state.as_ref()?))
            });
            return write_json(&States { states: rows.collect() });
        }
        let left = paused.iter().filter_map(|paused| paused.state?.paused).max();
        let asked = self.duration.min(MAX_PAUSE);
        let (policy, parts) = (self.target.policy(), quoted(self.target.parts()));
        let key = if parts.is_empty() { String::new() } else { format!(" for {parts}") };
        write(&printable(&format!("paused `{policy}`{key}: {} left", human(left.unwrap_or(asked)))))?;
        write("\n")?;
        if left.is_some_and(|left| left > asked) {
            write_message("it was paused for longer already");
        }
        if let Some(switch) = paused.iter().find_map(|paused| paused.kind.switch) {
            write_message(format_args!("calls go on, as the policy is overridden to be `{switch}`"));
        }
        write_message("`ratelimits reset` ends the pause");
        Ok(())
    }
}

fn time(text: &str) -> Result<Duration, &'static str> {
    match parse_duration(text)? {
        Duration::ZERO => Err("pauses nothing; write a time such as 30s"),
        duration => Ok(duration),
    }
}
