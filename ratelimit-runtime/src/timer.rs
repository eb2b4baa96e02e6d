//! Tokio's timers, without its panics.

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;

use tokio::runtime::Handle;
use tokio::time::{Instant, sleep_until};

use crate::error::store::StoreError;

/// What comes of the future until then, if anything does: a future that is ready wins over a time that is over. It may be called
/// off before, and then whoever waits looks again: where the runtime has ended that the timer is of. It is of the one on which
/// this is polled first, else of the one on which the call began.
pub(crate) async fn until<F: Future>(
    began: &Handle,
    end: Instant,
    future: F,
) -> Result<Option<F::Output>, StoreError> {
    let runtime = Handle::try_current().unwrap_or_else(|_| began.clone());
    // Tokio tells of a runtime that has no timers, or no longer, by a panic alone.
    let timer = {
        let _entered = runtime.enter();
        catch_unwind(|| sleep_until(end))
    };
    let no_time = |_| StoreError::permanent("a call has to wait, and its tokio runtime has no time enabled");
    let (mut timer, mut future) = (pin!(timer.map_err(no_time)?), pin!(future));
    let mut is_set = false;
    poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(output) => Poll::Ready(Ok(Some(output))),
        Poll::Pending => match catch_unwind(AssertUnwindSafe(|| timer.as_mut().poll(context))) {
            Ok(over) => {
                is_set = true;
                over.map(|()| Ok(None))
            }
            Err(_) if is_set => Poll::Ready(Ok(None)),
            // One that cannot even be set would not be the next time.
            Err(panic) => Poll::Ready(Err(no_time(panic))),
        },
    })
    .await
}
