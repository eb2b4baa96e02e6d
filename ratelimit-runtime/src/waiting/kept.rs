//! A question to Redis that is answered even if nobody waits for the answer any more.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::runtime::Handle;

use super::{Answer, Answered, Asking, Unanswered};
use crate::backend::Backend;
use crate::question::Question;
use crate::store::Store;

/// Asks Redis. Dropped on the way, it goes on as a task of its own, which gives back what was charged.
pub(super) struct Kept {
    store: Store,
    asking: Option<Asking>,
    /// Some once it is under way.
    runtime: Option<Handle>,
}

impl Kept {
    pub(super) fn new(question: Question, backend: &Arc<Backend>, store: &Store) -> Self {
        let (asked, watched) = (store.clone(), Arc::clone(backend));
        let asking = Box::pin(async move {
            match question.ask(&asked).await {
                Ok(outcome) => {
                    watched.health_monitor.record_success();
                    Ok(Answer::at_once(question, outcome))
                }
                Err(error) if error.is_permanent() => Err(error.into()),
                Err(error) => {
                    watched.health_monitor.record_failure(&error);
                    Err(Unanswered::new(error, question))
                }
            }
        });
        Kept { store: store.clone(), asking: Some(asking), runtime: None }
    }
}

impl Future for Kept {
    type Output = Answered;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Answered> {
        if self.runtime.is_none() {
            self.runtime = Handle::try_current().ok();
        }
        let Some(mut asking) = self.asking.take() else { return Poll::Pending };
        let answered = asking.as_mut().poll(context);
        // One that has panicked is not gone on with.
        if answered.is_pending() {
            self.asking = Some(asking);
        }
        answered
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        if let (Some(asking), Some(runtime)) = (self.asking.take(), &self.runtime) {
            let store = self.store.clone();
            runtime.spawn(async move {
                if let Ok(answer) = asking.await {
                    answer.receipt(&store).give_back().await;
                }
            });
        }
    }
}
