//! Where state lives. A store takes decisions, each a list of charges, and decides each of them all or nothing but for
//! shadows; of functions and names it knows nothing. Outside semver.

mod memory;
#[cfg(feature = "redis")]
mod redis;

pub use memory::MemoryStore;
pub(crate) use memory::Waiter;
#[cfg(feature = "redis")]
pub use redis::RedisStore;
#[cfg(all(feature = "redis", feature = "test-util"))]
pub use redis::{Dial, Stream};

use std::sync::Arc;

use smallvec::SmallVec;

use crate::algorithm::Snapshot;
pub use crate::algorithm::{AlgorithmSpec, ChargeId, Verdict};
pub use crate::clock::Clock;
pub use crate::error::store::StoreError;
pub use crate::key::Key;
use crate::key::KeyForm;
use crate::source::Source;

/// What one policy is asked to give to one key.
#[derive(Clone, Debug)]
pub struct Charge {
    /// The key of the state.
    pub key: Key,
    /// The policy in numbers.
    pub spec: AlgorithmSpec,
    /// The permits. 0 only looks, and writes nothing.
    pub cost: u64,
    /// The microseconds that the call waits for them at the most. A window has no use for it.
    pub wait: u64,
    /// Whether it refuses nobody, as one that is not required: it is charged if the decision is admitted and its own spec
    /// admits it, else left as it is.
    pub shadow: bool,
}

impl Charge {
    /// Whether it is made by an admitted decision in which its spec said this.
    pub(crate) fn is_made(&self, verdict: &Verdict) -> bool {
        self.cost > 0 && verdict.admitted
    }
}

/// What was decided about a list of charges.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The store's time of the decision, in microseconds.
    pub now: u64,
    /// Whether the specs of all required charges admit, so that these are charged, and of the shadows those that are
    /// admitted too.
    pub admitted: bool,
    /// What each spec said, in the order of the charges.
    pub verdicts: Verdicts,
    /// The shadows that could not be decided, by their place, and why. Their verdicts say nothing.
    pub failed: Vec<(usize, String)>,
}

impl Outcome {
    /// How long the call has to wait, in microseconds: until the last of its slots has come.
    #[must_use]
    pub fn wait(&self) -> u64 {
        if self.admitted { self.verdicts.iter().map(|verdict| verdict.wait).max().unwrap_or(0) } else { 0 }
    }
}

/// So many charges are decided in this process without an allocation.
pub(crate) const INLINE: usize = 3;

/// What each spec said.
pub type Verdicts = SmallVec<[Verdict; INLINE]>;

type Snapshots = SmallVec<[Snapshot; INLINE]>;

/// One of the stores.
#[derive(Clone, Debug)]
pub enum Store {
    /// In this process.
    Memory(Arc<MemoryStore>),
    /// In Redis.
    #[cfg(feature = "redis")]
    Redis(Arc<RedisStore>),
}

impl Store {
    /// Decides every list of charges, all or nothing but for shadows, in order and at one time. The keys of one list are
    /// distinct.
    pub async fn decide(&self, decisions: &[&[Charge]]) -> Vec<Result<Outcome, StoreError>> {
        match self {
            Store::Memory(store) => decisions.iter().map(|charges| Ok(store.decide(charges))).collect(),
            #[cfg(feature = "redis")]
            Store::Redis(store) => store.decide_many(decisions).await,
        }
    }

    /// Gives back `cost` permits: of the charge so marked, or of whatever the key holds.
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
            #[cfg(feature = "redis")]
            Store::Redis(store) => store.refund(key, spec, cost, charge_id).await,
        }
    }

    /// Forgets what the key holds.
    pub async fn reset(&self, key: &Key) -> Result<(), StoreError> {
        match self {
            Store::Memory(store) => {
                store.reset(key);
                Ok(())
            }
            #[cfg(feature = "redis")]
            Store::Redis(store) => store.reset(key).await,
        }
    }

    pub(crate) fn key_form(&self) -> KeyForm {
        match self {
            Store::Memory(store) => store.key_form(),
            #[cfg(feature = "redis")]
            Store::Redis(_) => KeyForm::Text,
        }
    }

    #[cfg(feature = "redis")]
    pub(crate) fn is_cluster(&self) -> bool {
        matches!(self, Store::Redis(store) if store.is_cluster())
    }

    pub(crate) fn source(&self) -> Source {
        match self {
            Store::Memory(_) => Source::Memory,
            #[cfg(feature = "redis")]
            Store::Redis(_) => Source::Redis,
        }
    }
}

/// What each spec says, given what was read for it, and whether those of all required charges admit. Where one does not,
/// nothing is charged, and the others tell of the state as it is.
fn judge(charges: &[Charge], snapshots: &[Snapshot], now: u64) -> (bool, Verdicts) {
    let pairs = || charges.iter().zip(snapshots);
    let verdict = |(charge, snapshot): (&Charge, &Snapshot)| {
        let verdict = charge.spec.verdict(*snapshot, now, charge.cost, charge.wait);
        // Nobody waits for a shadow, whatever place it takes.
        Verdict { wait: if charge.shadow { 0 } else { verdict.wait }, ..verdict }
    };
    let mut verdicts: Verdicts = pairs().map(verdict).collect();
    let admitted = charges.iter().zip(&verdicts).all(|(charge, verdict)| verdict.admitted || charge.shadow);
    if !admitted {
        for ((charge, snapshot), verdict) in
            pairs().zip(&mut verdicts).filter(|(_, verdict)| verdict.admitted)
        {
            *verdict = charge.spec.verdict(*snapshot, now, 0, 0);
        }
    }
    (admitted, verdicts)
}

/// What it takes to give charges back. Consumed by it, so that nothing is given back twice.
#[derive(Debug)]
pub(crate) struct Receipt {
    store: Store,
    charges: Vec<(Charge, ChargeId)>,
}

impl Receipt {
    /// Of charges that were decided together and admitted, with what their specs said.
    pub(crate) fn new<'v>(store: Store, charges: impl IntoIterator<Item = (Charge, &'v Verdict)>) -> Self {
        let charged = charges.into_iter().filter(|(charge, verdict)| charge.is_made(verdict));
        Receipt { store, charges: charged.map(|(charge, verdict)| (charge, verdict.charge_id)).collect() }
    }

    /// What was charged, in the order of the list.
    pub(crate) fn charged(&self) -> &[(Charge, ChargeId)] {
        &self.charges
    }

    /// Gives them back where nobody waits for it, and tells of an error in the log.
    #[cfg(feature = "redis")]
    pub(crate) async fn give_back(self) {
        if let Err(error) = self.refund().await {
            let error = &error as &(dyn std::error::Error + 'static);
            tracing::warn!(error, "what a call took that was dropped could not be given back");
        }
    }

    /// Gives all of them back, as far as the store allows. Tells the first error after having tried each.
    pub(crate) async fn refund(self) -> Result<(), StoreError> {
        let mut result = Ok(());
        for (Charge { key, spec, cost, .. }, charge_id) in self.charges {
            result = result.and(self.store.refund(&key, &spec, cost, Some(charge_id)).await);
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::policy::{FixedWindow, Policy};

    #[tokio::test]
    async fn a_shadow_that_had_no_room_gets_nothing_back() {
        let store = Arc::new(MemoryStore::new(10, Clock::process()));
        let spec = Policy::from(FixedWindow::new(1, Duration::from_secs(60))).spec().unwrap();
        let charge = |key: &str, shadow| Charge { key: Key::raw(key), spec, cost: 1, wait: 0, shadow };
        assert!(store.decide(&[charge("full", false)]).admitted);

        let list = vec![charge("full", true), charge("required", false), charge("with room", true)];
        let outcome = store.decide(&list);
        let receipt =
            Receipt::new(Store::Memory(Arc::clone(&store)), list.into_iter().zip(&outcome.verdicts));
        receipt.refund().await.unwrap();
        let admits = |key| store.decide(&[charge(key, false)]).admitted;
        assert_eq!(["full", "required", "with room"].map(admits), [false, true, true]);
    }
}
