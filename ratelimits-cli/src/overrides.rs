//! `ratelimits override`.

mod clear;
mod known;
mod list;
mod set;
mod setting;
mod text;

use clap::Subcommand;

use crate::connection::Connection;
use crate::failure::Failure;

/// Change the numbers of policies, put them in shadow, or turn them off, without a restart.
///
/// The overrides are in Redis. Programs apply them within three seconds if their registries are made with
/// `Registry::builder().overrides_in_redis()`.
#[derive(Debug, Subcommand)]
pub(crate) enum Overrides {
    Set(set::Set),
    List(list::List),
    Clear(clear::Clear),
}

impl Overrides {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        match self {
            Overrides::Set(set) => set.run().await,
            Overrides::List(list) => list.run().await,
            Overrides::Clear(clear) => clear.run().await,
        }
    }

    pub(crate) fn connection(&mut self) -> &mut Connection {
        match self {
            Overrides::Set(set) => &mut set.connection,
            Overrides::List(list) => &mut list.connection,
            Overrides::Clear(clear) => &mut clear.connection,
        }
    }
}
