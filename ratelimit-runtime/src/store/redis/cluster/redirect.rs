//! Redirections: replies of a Cluster node that does not have the keys.

use redis::{ErrorKind, ServerErrorKind};

use super::slots::NodeAddress;
use crate::store::redis::error::CallError;

/// Where to send a command instead.
pub(super) enum Redirect {
    /// To this node, from now on.
    Moved(NodeAddress),
    /// To this node, once, after `ASKING`.
    Ask(NodeAddress),
    /// To the same node, later.
    TryAgain,
}

impl Redirect {
    /// Returns the redirection in the reply of the node at `sender`, if it is one.
    pub(super) fn of(error: &CallError, sender: &NodeAddress) -> Option<Self> {
        let CallError::Replied(error) = error else { return None };
        let ErrorKind::Server(kind) = error.kind() else { return None };
        if kind == ServerErrorKind::TryAgain {
            return Some(Redirect::TryAgain);
        }
        let (address, _) = error.redirect_node()?;
        let (host, port) = address.rsplit_once(':')?;
        // A node that does not know its hostname leaves it out.
        let host = if matches!(host, "" | "?") { &sender.host } else { host };
        let address =
            NodeAddress { host: host.trim_matches(['[', ']']).to_owned(), port: port.parse().ok()? };
        Some(if kind == ServerErrorKind::Ask { Redirect::Ask(address) } else { Redirect::Moved(address) })
    }
}
