//! What is given back to a key.

use crate::algorithm::{AlgorithmSpec, ChargeId};
use crate::key::Key;
use crate::store::error::StoreError;

/// Permits that are given back to a key: of one charge as far as it still counts, or of whatever the key holds.
#[derive(Debug)]
pub(crate) struct Refund {
    pub(crate) key: Key,
    pub(crate) spec: AlgorithmSpec,
    pub(crate) cost: u64,
    pub(crate) charge_id: Option<ChargeId>,
}

/// Learns whether the store has given back what it was to.
pub(crate) type OnRefunded = Box<dyn FnOnce(Result<(), StoreError>) + Send>;
