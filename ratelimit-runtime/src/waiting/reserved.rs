//! A call that has its permits, and waits until they are its own.

#[cfg(feature = "redis")]
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::Instant;

use super::{Answer, Answered, tell_waited, tell_waiting};
use crate::store::{MemoryStore, Receipt, Store, Waiter};
use crate::timer::until;

/// A call between its reservation and its start. Dropped, it gives back what it took.
pub(super) struct Reserved {
    answer: Answer,
    taken: Taken,
}

/// What gives it back.
struct Taken {
    /// None once the call has started.
    receipt: Option<Receipt>,
    place: Place,
    runtime: Handle,
}

enum Place {
    /// In a line of this process, in which it may move up.
    Here(Arc<MemoryStore>, Arc<Waiter>),
    /// In Redis, which knows nothing of it but that somebody comes then.
    #[cfg(feature = "redis")]
    There { start: Instant },
}

impl Reserved {
    pub(super) fn here(
        answer: Answer,
        memory: &Arc<MemoryStore>,
        waiter: Arc<Waiter>,
        runtime: Handle,
    ) -> Self {
        let store = Store::Memory(Arc::clone(memory));
        Reserved::new(answer, &store, Place::Here(Arc::clone(memory), waiter), runtime)
    }

    /// Its time begins now, after Redis has decided: it starts later by the way of the reply, and never too early.
    #[cfg(feature = "redis")]
    pub(super) fn there(answer: Answer, store: &Store, runtime: Handle) -> Self {
        let start = Instant::now() + Duration::from_micros(answer.outcome.wait());
        Reserved::new(answer, store, Place::There { start }, runtime)
    }

    fn new(answer: Answer, store: &Store, place: Place, runtime: Handle) -> Self {
        let receipt = Some(answer.receipt(store));
        Reserved { answer, taken: Taken { receipt, place, runtime } }
    }

    /// Waits until all slots of the call have come.
    pub(super) async fn start(self) -> Answered {
        let Reserved { mut answer, mut taken } = self;
        let wait = answer.outcome.wait();
        tell_waiting(answer.question.slowest(&answer.outcome), Some(Duration::from_micros(wait)));
        match &taken.place {
            Place::Here(memory, waiter) => {
                while let Some(wait) = waiter.start().checked_sub(memory.now()).filter(|wait| *wait > 0) {
                    let start = Instant::now() + Duration::from_micros(wait);
                    if until(&taken.runtime, start, waiter.moved()).await?.is_some() {
                        memory.move_up(answer.question.charges());
                    }
                }
                memory.start(answer.question.charges());
                answer.question.moved(&mut answer.outcome, waiter);
                answer.waited = Duration::from_micros(waiter.start().saturating_sub(answer.outcome.now));
            }
            #[cfg(feature = "redis")]
            Place::There { start } => {
                while *start > Instant::now() {
                    until(&taken.runtime, *start, pending::<()>()).await?;
                }
                answer.waited = Duration::from_micros(wait);
            }
        }
        taken.receipt = None;
        tell_waited(answer.question.slowest(&answer.outcome), answer.waited);
        Ok(answer)
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        let Some(receipt) = self.receipt.take() else { return };
        match &self.place {
            Place::Here(memory, waiter) => memory.leave(receipt.charged(), waiter),
            // A runtime that has ended lets it fall.
            #[cfg(feature = "redis")]
            Place::There { .. } => drop(self.runtime.spawn(receipt.give_back())),
        }
    }
}
