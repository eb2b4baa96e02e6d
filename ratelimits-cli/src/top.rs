//! `ratelimits top`.

use clap::Args;
use ratelimit_runtime::inspect::KeyState;
use serde::Serialize;

use crate::connection::Connection;
use crate::duration::human;
use crate::failure::{EXIT_CODES, Failure};
use crate::inventory::InventoryFile;
use crate::key::{KeyRow, quoted};
use crate::message::write_message;
use crate::output::{write, write_json};
use crate::progress::Progress;
use crate::scan::{Kind, Scan, Selection};
use crate::summary::unknown_limits;
use crate::table::{Column, Table, grouped, grouped_unless_zero, keys};
use crate::target::check_name;

/// List the keys that are limited the longest from now.
///
/// Those of concurrency limits come last, because it is unknown when calls end.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Top {
    /// The number of keys.
    #[arg(short = 'n', long, default_value_t = 10, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    count: u32,
    /// Only the policy of this name, as in the code: `app::send`.
    #[arg(long, value_name = "NAME")]
    policy: Option<String>,
    #[command(flatten)]
    inventory: InventoryFile,
    /// Write JSON: an object on one line.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    pub(crate) connection: Connection,
}

/// Keys that are limited.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Limited {
    pub(crate) keys: Vec<KeyRow>,
    /// The keys of which it is not known whether they are limited.
    pub(crate) unknown: u64,
    /// How many there are.
    #[serde(skip)]
    pub(crate) count: u64,
}

impl Top {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let inventory = self.inventory.read()?;
        let keyspace = self.connection.open().await?;
        let inventory = inventory.or_published(&self.connection, &keyspace).await?;
        let scan = Scan::new(&self.connection, &keyspace, &inventory).await?;
        let selection = Selection { name: self.policy.clone(), ..Selection::default() };
        let count = self.count as usize;
        let mut limited = Limited::default();
        let mut is_found = false;
        let add = |kind: &Kind, key: &str, state: Option<&KeyState>| {
            is_found = true;
            if let Some(state) = state.filter(|_| kind.is_in_force) {
                limited.add(KeyRow::new(kind, key, state), count);
            }
        };
        scan.states(&selection, Progress::new(), add).await?;
        if let (Some(name), false) = (&self.policy, is_found) {
            check_name(&scan, name).await?;
        }
        limited.cut(count);
        if self.json {
            return write_json(&limited);
        }
        write(&limited.table())?;
        if limited.unknown > 0 {
            let why = unknown_limits(inventory.is_given());
            write_message(format_args!("not considered: {}; {why}", keys(limited.unknown)));
        }
        Ok(())
    }
}

impl Limited {
    /// Adds a key, if it is limited.
    pub(crate) fn add(&mut self, row: KeyRow, most: usize) {
        self.unknown += u64::from(row.state.limited.is_none());
        if row.state.limited != Some(true) {
            return;
        }
        self.count += 1;
        self.keys.push(row);
        if self.keys.len() >= 2 * most + 1000 {
            self.cut(most);
        }
    }

    /// Keeps those that are limited the longest.
    pub(crate) fn cut(&mut self, most: usize) {
        self.keys.sort_by(|one, other| {
            other
                .state
                .retry_after
                .cmp(&one.state.retry_after)
                .then_with(|| one.redis_key.cmp(&other.redis_key))
        });
        self.keys.truncate(most);
    }

    pub(crate) fn table(&self) -> String {
        let mut table = Table::new(vec![
            Column::text("policy"),
            Column::text("prefix"),
            Column::text("key"),
            Column::number("retry after"),
            Column::number("paused"),
            Column::number("step"),
            Column::number("used"),
            Column::number("limit"),
        ]);
        for row in &self.keys {
            let number = |number: Option<u64>| number.map_or("?".to_owned(), grouped);
            table.row([
                row.policy.clone(),
                row.prefix.clone(),
                quoted(&row.key),
                row.retry_after(),
                row.state.paused.map(human).unwrap_or_default(),
                grouped_unless_zero(row.state.penalty_step),
                number(row.state.used),
                number(row.state.limit),
            ]);
        }
        table.text()
    }
}
