//! `ratelimits list` and `ratelimits watch`.

use std::io::{IsTerminal, stdout};
use std::time::Duration;

use clap::Args;
use ratelimit_runtime::inspect::Keyspace;
use tokio::signal::ctrl_c;
use tokio::time::{MissedTickBehavior, interval};

use crate::connection::Connection;
use crate::failure::{EXIT_CODES, Failure};
use crate::inventory::{Inventory, InventoryFile};
use crate::message::write_message;
use crate::output::{write, write_json};
use crate::progress::Progress;
use crate::scan::{Scan, Selection};
use crate::summary::Summary;
use crate::target::check_name;

/// List the policies that have keys, and how many of these are limited now.
///
/// A key is limited if a call of cost 1 would be refused now.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct List {
    #[command(flatten)]
    listed: Listed,
    #[command(flatten)]
    pub(crate) connection: Connection,
}

/// List the policies again and again, with what has changed.
///
/// If Redis fails later, it goes on, and writes why to standard error. It ends with Ctrl-C, or at once if Redis cannot be reached
/// or no policy has the given name.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Watch {
    /// The seconds from one list to the next.
    #[arg(long, default_value_t = 2, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    interval: u64,
    #[command(flatten)]
    listed: Listed,
    #[command(flatten)]
    pub(crate) connection: Connection,
}

#[derive(Debug, Args)]
struct Listed {
    /// Only the policy of this name, as in the code: `app::send`.
    #[arg(long, value_name = "NAME")]
    policy: Option<String>,
    #[command(flatten)]
    inventory: InventoryFile,
    /// Write JSON: an object on one line.
    #[arg(long)]
    json: bool,
}

impl List {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let inventory = self.listed.inventory.read()?;
        let keyspace = self.connection.open().await?;
        let inventory = inventory.or_published(&self.connection, &keyspace).await?;
        let summary = self.listed.summary(&self.connection, &keyspace, &inventory, Progress::new()).await?;
        self.listed.check_name(&self.connection, &keyspace, &inventory, &summary).await?;
        if self.listed.json {
            return write_json(&summary);
        }
        write(&summary.table(None))?;
        summary.notes(inventory.is_given()).iter().for_each(write_message);
        Ok(())
    }
}

impl Watch {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        tokio::select! {
            ended = self.rounds() => ended,
            _ = ctrl_c() => Ok(()),
        }
    }

    async fn rounds(&self) -> Result<(), Failure> {
        let inventory = self.listed.inventory.read()?;
        let keyspace = self.connection.open().await?;
        let inventory = inventory.or_published(&self.connection, &keyspace).await?;
        let mut rounds = interval(Duration::from_secs(self.interval));
        rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut last: Option<Summary> = None;
        loop {
            rounds.tick().await;
            let summary = async {
                let (connection, listed) = (&self.connection, &self.listed);
                let summary = listed.summary(connection, &keyspace, &inventory, Progress::hidden()).await?;
                // Later the keys may have expired.
                if last.is_none() {
                    listed.check_name(connection, &keyspace, &inventory, &summary).await?;
                }
                Ok(summary)
            };
            let summary = match summary.await {
                Ok(summary) => summary,
                // The next round may find it well again.
                Err(failure @ Failure::Redis(_)) => {
                    write_message(format_args!("error: {failure}"));
                    continue;
                }
                Err(failure) => return Err(failure),
            };
            if self.listed.json {
                write_json(&summary)?;
            } else {
                let mut text = summary.table(last.as_ref());
                for note in summary.notes(inventory.is_given()) {
                    text += &(note + "\n");
                }
                // To the top, and then without what is left of the last round.
                let screen = stdout().is_terminal();
                write(&if screen { format!("\x1b[H\x1b[J{text}") } else { text + "\n" })?;
            }
            last = Some(summary);
        }
    }
}

impl Listed {
    async fn summary(
        &self,
        connection: &Connection,
        keyspace: &Keyspace,
        inventory: &Inventory,
        progress: Progress,
    ) -> Result<Summary, Failure> {
        let selection = Selection { name: self.policy.clone(), ..Selection::default() };
        let scan = Scan::new(connection, keyspace, inventory).await?;
        Summary::read(&scan, &selection, progress).await
    }

    /// Checks that the policy exists, if one is selected and nothing of it is found.
    async fn check_name(
        &self,
        connection: &Connection,
        keyspace: &Keyspace,
        inventory: &Inventory,
        summary: &Summary,
    ) -> Result<(), Failure> {
        let (Some(name), []) = (&self.policy, &summary.policies[..]) else { return Ok(()) };
        check_name(&Scan::without_overrides(connection, keyspace, inventory), name).await
    }
}
