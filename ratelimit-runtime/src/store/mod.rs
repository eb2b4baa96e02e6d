//! Stores of state. A store decides lists of charges, each all or nothing except for shadows. It knows nothing of functions,
//! names or policies.

pub mod account;
mod charge;
mod correction;
pub(crate) mod decided_by;
mod denials;
pub(crate) mod error;
mod hold;
mod judge;
mod leases;
mod memory;
mod memory_receipt;
#[cfg(ratelimits_loom)]
#[doc(hidden)]
pub mod models;
mod receipt;
#[cfg(feature = "redis")]
mod redis;
#[cfg(not(feature = "redis"))]
#[path = "redis_disabled.rs"]
mod redis;
#[cfg(feature = "metrics")]
pub(crate) mod series;
pub(crate) mod tls;

pub use charge::{Charge, Outcome, Verdicts};
pub(crate) use charge::{INLINE, SharedCharges};
pub(crate) use denials::Denials;
pub(crate) use hold::Hold;
pub(crate) use judge::line;
pub(crate) use leases::{Fetch, Kept, Leases, Reply};
pub use memory::MemoryStore;
pub(crate) use memory::Waiter;
pub(crate) use memory::{InList, ListedCharge, PlainCharge, PlainOutcome, SingleOutcome};
pub(crate) use memory_receipt::{MemoryReceipt, OwnedReceipt, OwnedReceipts};
pub(crate) use receipt::{Mirrored, Receipt, Share};
#[cfg(feature = "redis")]
pub use redis::Master;
pub use redis::RedisStore;
#[cfg(all(feature = "overrides", feature = "redis"))]
pub(crate) use redis::StoredOverrides;
#[cfg(all(feature = "redis", feature = "test-util"))]
pub use redis::{Dial, Stream};

use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::time::Instant;

pub(crate) use self::correction::Urgency;
pub use self::correction::{Corrected, Correction, CorrectionKind};
pub use crate::algorithm::{AlgorithmSpec, ChargeId, Verdict};
pub use crate::base::clock::Clock;
pub use crate::key::Key;
pub use crate::key::policy_id::PolicyId;
use crate::store::decided_by::DecidedBy;
pub use crate::store::error::StoreError;

/// One of the stores.
#[derive(Clone, Debug)]
pub enum Store {
    /// In process.
    Memory(Arc<MemoryStore>),
    /// In Redis.
    Redis(Arc<RedisStore>),
}

impl Store {
    /// Decides a list of charges, all or nothing except for shadows. The keys of the list are distinct.
    pub async fn decide(&self, charges: &[Charge]) -> Result<Box<Outcome>, StoreError> {
        match self {
            Store::Memory(store) => Ok(Box::new(store.decide(charges))),
            Store::Redis(store) => store.decide(charges).await,
        }
    }

    /// Decides a list of charges like [`decide`](Self::decide), in a call that begins at this time, and without a copy of them.
    pub(crate) async fn decide_shared(
        &self,
        charges: &SharedCharges,
        begun: Instant,
    ) -> Result<Box<Outcome>, StoreError> {
        match self {
            Store::Memory(store) => Ok(Box::new(store.decide(charges))),
            Store::Redis(store) => store.decide_shared(charges, begun).await,
        }
    }

    /// Decides several lists of charges, each on its own, in order and at one time.
    pub async fn decide_many(&self, decisions: &[&[Charge]]) -> Vec<Result<Box<Outcome>, StoreError>> {
        match self {
            Store::Memory(store) => {
                decisions.iter().map(|charges| Ok(Box::new(store.decide(charges)))).collect()
            }
            Store::Redis(store) => store.decide_many(decisions).await,
        }
    }

    /// Refunds `cost` permits: of one charge, or of whatever the key holds. Once polled, it ends even if it is dropped.
    pub async fn refund(
        &self,
        key: &Key,
        spec: &AlgorithmSpec,
        cost: u64,
        charge_id: Option<ChargeId>,
    ) -> Result<(), StoreError> {
        match self {
            Store::Memory(store) => {
                store.refund(key, spec, cost, charge_id);
                Ok(())
            }
            Store::Redis(store) => {
                let refund = Correction::refund(key.clone(), *spec, cost, charge_id);
                store.correct_all(vec![refund]).await.map(drop)
            }
        }
    }

    /// Charges `cost` permits that a call has used beyond its cost. Once polled, it ends even if it is dropped.
    pub async fn debit(&self, key: &Key, spec: &AlgorithmSpec, cost: u64) -> Result<(), StoreError> {
        let kind = CorrectionKind::Debit;
        self.correct_all(vec![Correction { key: key.clone(), spec: *spec, cost, kind }]).await
    }

    /// Admits no call of a key until this many microseconds have passed, or until its pause is over if that takes longer. Once
    /// polled, it ends even if it is dropped.
    pub async fn pause(&self, key: &Key, spec: &AlgorithmSpec, micros: u64) -> Result<(), StoreError> {
        self.correct_all(vec![Correction::pause(key.clone(), *spec, micros)]).await
    }

    /// Pauses a key that has refused a call for as many microseconds as the next of these steps says, of which the last is the longest.
    /// Returns the number of the step, or `None` if the refusal is no penalty. Once polled, it ends even if it is dropped.
    pub async fn penalize(
        &self,
        key: &Key,
        spec: &AlgorithmSpec,
        steps: &'static [u64],
    ) -> Result<Option<u64>, StoreError> {
        let correction =
            Correction { key: key.clone(), spec: *spec, cost: 0, kind: CorrectionKind::Penalty(steps) };
        let corrected = match self {
            Store::Memory(store) => store.correct(&correction),
            Store::Redis(store) => store.correct_all(vec![correction]).await?,
        };
        Ok(if let Corrected::Penalized(step) = corrected { Some(step) } else { None })
    }

    /// Corrects what one call was charged. Once polled, it ends even if it is dropped.
    pub(crate) async fn correct_all(&self, corrections: Vec<Correction>) -> Result<(), StoreError> {
        match self {
            Store::Memory(_) => {
                self.correct(None, corrections, Urgency::AtOnce, drop);
                Ok(())
            }
            Store::Redis(store) => store.correct_all(corrections).await.map(drop),
        }
    }

    /// Corrects what one call was charged, and calls `done` with the result or the first error: at once in process; in Redis with one
    /// call that is sent whether or not anybody waits for it, at most once, by a task of this runtime or else the current one.
    pub(crate) fn correct(
        &self,
        runtime: Option<&Handle>,
        corrections: Vec<Correction>,
        urgency: Urgency,
        done: impl FnOnce(Result<Corrected, StoreError>) + Send + 'static,
    ) {
        match self {
            Store::Memory(store) => {
                let corrected = corrections.iter().map(|correction| store.correct(correction));
                done(Ok(corrected.fold(Corrected::Whole, Corrected::and)));
            }
            Store::Redis(store) => store.correct(runtime, corrections, urgency, Box::new(done)),
        }
    }

    /// Removes the state of a key. Returns whether there was any.
    pub async fn reset(&self, key: &Key) -> Result<bool, StoreError> {
        match self {
            Store::Memory(store) => Ok(store.reset(key)),
            Store::Redis(store) => {
                let _forgets = store.denials().map(|denials| denials.forget_after(key));
                let (is_leased, _ends) = (store.leases().holds(key), store.leases().end_after(key));
                Ok(Box::pin(store.reset(key)).await? || is_leased)
            }
        }
    }

    /// Returns what the store has refused lately, if it remembers that.
    pub(crate) fn denials(&self) -> Option<&Denials> {
        match self {
            Store::Memory(_) => None,
            Store::Redis(store) => store.denials(),
        }
    }

    /// Returns what the store has charged in advance, if it does.
    pub(crate) fn leases(&self) -> Option<&Arc<Leases>> {
        match self {
            Store::Memory(_) => None,
            Store::Redis(store) => Some(store.leases()),
        }
    }

    pub(crate) fn source(&self) -> DecidedBy {
        match self {
            Store::Memory(_) => DecidedBy::Memory,
            Store::Redis(_) => DecidedBy::Redis,
        }
    }
}
