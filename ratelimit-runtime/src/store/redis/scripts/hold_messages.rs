//! What travels with decisions about holds.

use crate::store::account::Sent;

/// What a process says about holds in decisions.
#[derive(Debug, Default)]
pub(in crate::store::redis) struct HoldMessages {
    /// Of the first decisions, one each.
    pub(in crate::store::redis) releases: Vec<Sent>,
    /// Of the charges to semaphores in the others, in order.
    pub(in crate::store::redis) takes: Vec<Option<Sent>>,
}
