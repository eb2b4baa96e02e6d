//! What a node of a Cluster answers that does not have the keys.

use redis::ServerErrorKind;

use super::failure::Failure;
use super::slots::Address;

/// Where a command has to go instead.
pub(super) enum Redirect {
    Moved(Address),
    Ask(Address),
    TryAgain,
}

impl Redirect {
    /// Where the command has to go, if the node at this address has said so.
    pub(super) fn of(failure: &Failure, asked: &Address) -> Option<Self> {
        let Failure::Replied(error) = failure else { return None };
        let redis::ErrorKind::Server(kind) = error.kind() else { return None };
        if kind == ServerErrorKind::TryAgain {
            return Some(Redirect::TryAgain);
        }
        let (address, _) = error.redirect_node()?;
        let (host, port) = address.rsplit_once(':')?;
        // A node that does not know its own name leaves it out.
        let host = if matches!(host, "" | "?") { &asked.0 } else { host };
        let address = (host.trim_matches(['[', ']']).to_owned(), port.parse().ok()?);
        Some(if kind == ServerErrorKind::Ask { Redirect::Ask(address) } else { Redirect::Moved(address) })
    }
}
