//! `ratelimits peek`.

use clap::Args;
use ratelimit_runtime::inspect::KeyState;

use crate::connection::Connection;
use crate::failure::{EXIT_CODES, Failure};
use crate::inventory::InventoryFile;
use crate::key::{KeyRow, States};
use crate::output::{write, write_json};
use crate::progress::Progress;
use crate::scan::{Kind, Scan};
use crate::target::Target;

/// Show the state of a key: what is used or held, what remains, and when a call is admitted.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Peek {
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    inventory: InventoryFile,
    /// Write JSON: an object on one line.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    pub(crate) connection: Connection,
}

impl Peek {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let inventory = self.inventory.read()?;
        let keyspace = self.connection.open().await?;
        let inventory = inventory.or_published(&self.connection, &keyspace).await?;
        let scan = Scan::new(&self.connection, &keyspace, &inventory).await?;
        let (mut found, mut unreadable) = (States { states: Vec::new() }, None);
        let add = |kind: &Kind, key: &str, state: Option<&KeyState>| match state {
            Some(state) if state.has_ended() => {}
            Some(state) => found.states.push(KeyRow::new(kind, key, state)),
            None => unreadable = Some(key.to_owned()),
        };
        scan.states(&self.target.key(), Progress::new(), add).await?;
        for row in found.states.iter_mut().filter(|row| row.is_held()) {
            let holders = keyspace.holders(&row.redis_key).await;
            row.holders = holders.map_err(|error| self.connection.failure(&keyspace, &error))?;
            if row.holders.is_none() {
                unreadable = Some(row.redis_key.clone());
            }
        }
        if let Some(key) = unreadable {
            return Err(Failure::Redis(format!("the value under {key} is no state of a policy; delete it")));
        }
        if self.json {
            write_json(&found)?;
        } else {
            let states = found.states.iter().map(|state| state.lines(inventory.is_given()));
            write(&states.collect::<Vec<_>>().join("\n"))?;
        }
        if found.states.is_empty() { Err(self.target.absent(&scan, true).await) } else { Ok(()) }
    }
}
