//! `ratelimits reset`.

use std::collections::BTreeSet;
use std::io::{IsTerminal, Write, stderr, stdin};

use clap::Args;
use ratelimit_runtime::Algorithm;
use ratelimit_runtime::inspect::{KeyPieces, Reading, path_of};
use serde::Serialize;

use crate::connection::Connection;
use crate::failure::{EXIT_CODES, Failure};
use crate::inventory::Inventory;
use crate::message::write_message;
use crate::output::{write, write_json};
use crate::progress::Progress;
use crate::scan::{Scan, Selection};
use crate::table::keys;
use crate::target::Target;

/// Delete the state of a key: its next call finds a full bucket or an empty window.
///
/// Processes that have just refused the key may do so for up to a second longer. Calls of a concurrency limit go on, and what they hold
/// counts again once their processes report it, within seconds.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Reset {
    #[command(flatten)]
    target: Target,
    /// Delete the states of all keys of the policy.
    #[arg(long, conflicts_with = "parts")]
    all: bool,
    /// With --all, do not ask.
    #[arg(long, requires = "all")]
    yes: bool,
    /// Write JSON: an object on one line.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    pub(crate) connection: Connection,
}

#[derive(Debug, Serialize)]
struct Deleted {
    deleted: u64,
}

/// The keys that a reset would delete.
#[derive(Default)]
struct Found {
    keys: u64,
    prefixes: BTreeSet<String>,
    /// Whether they are of a concurrency limit.
    is_held: bool,
    /// Encoded, to decode few.
    last_prefix: Option<String>,
}

impl Reset {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        if self.all && !self.yes && !(stdin().is_terminal() && stderr().is_terminal()) {
            return Err(Failure::Usage("there is no terminal to ask on; add --yes".to_owned()));
        }
        let keyspace = self.connection.open().await?;
        let inventory = Inventory::default();
        let scan = Scan::without_overrides(&self.connection, &keyspace, &inventory);
        let selection = if self.all { self.target.all_keys() } else { self.target.key() };
        let found = count(&scan, &selection).await?;
        self.target.check_prefixes(found.prefixes.iter().map(String::as_str))?;
        if self.all && !self.yes && found.keys > 0 && !confirms(found.keys)? {
            return Err(Failure::Usage("nothing was deleted".to_owned()));
        }
        let deleted = if found.keys > 0 { delete(&scan, &selection).await? } else { 0 };
        if self.json {
            write_json(&Deleted { deleted })?;
        } else if deleted > 0 {
            write(&format!("deleted {}\n", keys(deleted)))?;
        }
        if deleted > 0 && found.is_held {
            write_message(
                "calls that run go on; their processes report what they hold within seconds, and it counts again",
            );
        }
        if deleted == 0 { Err(self.target.absent(&scan, !self.all).await) } else { Ok(()) }
    }
}

async fn count(scan: &Scan<'_>, selection: &Selection) -> Result<Found, Failure> {
    let mut found = Found::default();
    scan.keys(selection, &mut Progress::new(), async |page| {
        found.keys += page.len() as u64;
        for pieces in page.iter().filter_map(|key| KeyPieces::split(key)) {
            found.is_held |= Reading::of(pieces.shape, None, None)
                .is_some_and(|reading| reading.algorithm() == Algorithm::Semaphore);
            if found.last_prefix.as_deref() != Some(pieces.prefix) {
                found.last_prefix = Some(pieces.prefix.to_owned());
                found.prefixes.insert(path_of(pieces.prefix));
            }
        }
        Ok(())
    })
    .await?;
    Ok(found)
}

async fn delete(scan: &Scan<'_>, selection: &Selection) -> Result<u64, Failure> {
    let mut deleted = 0;
    scan.keys(selection, &mut Progress::new(), async |page| {
        let page = scan.keyspace.delete(&page).await;
        deleted += page.map_err(|error| scan.connection.failure(scan.keyspace, &error))?;
        Ok(())
    })
    .await?;
    Ok(deleted)
}

fn confirms(count: u64) -> Result<bool, Failure> {
    _ = write!(stderr(), "Delete {}? [y/N] ", keys(count));
    let mut answer = String::new();
    stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}
