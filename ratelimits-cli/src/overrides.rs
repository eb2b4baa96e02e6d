//! `ratelimits override`.

mod change;
mod clear;
mod known;
mod list;
mod log;
mod set;
mod setting;
mod text;

use clap::Subcommand;

use crate::connection::Connection;
use crate::failure::Failure;

/// Change the numbers of policies, put them in shadow, or turn them off, without a restart: for all keys, or for one.
///
/// The overrides are in Redis. Programs apply them within three seconds if their registries are made with
/// `Registry::builder().overrides_in_redis()`.
#[derive(Debug, Subcommand)]
pub(crate) enum Overrides {
    Set(set::Set),
    List(list::List),
    #[command(visible_alias = "remove")]
    Clear(clear::Clear),
    Log(log::Log),
}

impl Overrides {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        match self {
            Overrides::Set(set) => set.run().await,
            Overrides::List(list) => list.run().await,
            Overrides::Clear(clear) => clear.run().await,
            Overrides::Log(log) => log.run().await,
        }
    }

    pub(crate) fn connection(&mut self) -> &mut Connection {
        match self {
            Overrides::Set(set) => &mut set.connection,
            Overrides::List(list) => &mut list.connection,
            Overrides::Clear(clear) => &mut clear.connection,
            Overrides::Log(log) => &mut log.connection,
        }
    }
}
