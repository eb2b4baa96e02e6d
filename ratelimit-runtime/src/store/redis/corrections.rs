//! Corrections on their way to Redis: refunds, debts, and pauses. Tasks of their own send them, so that none depends on a caller who
//! waits for it: at once if few are in flight, or else together with others. What calls have used can wait a little: a busy program
//! gathers it, and sends together what concerns one key, which costs Redis a fraction of a decision for each.

mod queue;

use std::borrow::Cow;
use std::collections::hash_map::{Entry, OccupiedEntry};
use std::future::pending;
use std::mem;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::join_all;
use tokio::runtime::{Handle, Id};
use tokio::time::Instant;

use self::queue::{CallCorrections, Queue, Task};
use super::client::Client;
use crate::base::number_map::NumberMap;
use crate::base::runtime::BACKGROUND;
use crate::base::timer::{has_ended, until};
use crate::store::correction::{Corrected, Correction, OnCorrected, Urgency};
use crate::store::denials::Denials;
use crate::store::error::StoreError;

/// How long what calls have used is gathered once some was sent.
const GATHERING: Duration = Duration::from_millis(100);

/// How many calls send at once what was gathered: few, so that decisions come between them, but not one if Redis is far away.
const GATHERED_AT_ONCE: usize = 4;

/// The corrections of a store that wait, and the tasks that send them.
#[derive(Clone, Debug, Default)]
pub(super) struct Corrections(Arc<Mutex<NumberMap<QueueId, Queue>>>);

/// What corrections have in common that share a call: a runtime, which has a connection of its own, and a slot in a Cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct QueueId {
    runtime: Id,
    slot: Option<u16>,
}

/// Sends corrections until there are none.
struct Sender {
    queues: Corrections,
    client: Arc<Client>,
    runtime: Handle,
    id: QueueId,
    task: Task,
    /// Whether the queue counts it.
    counted: bool,
}

impl Corrections {
    /// Corrects what one call was charged, by a task of this runtime or else the current one, and calls `done` with the result.
    pub(super) fn send(
        &self,
        client: &Arc<Client>,
        runtime: Option<&Handle>,
        (corrections, urgency): (Vec<Correction>, Urgency),
        denials: Option<Arc<Denials>>,
        done: OnCorrected,
    ) {
        let call = CallCorrections::new(corrections, urgency, denials, done);
        let runtime = match runtime {
            // A call that waited is dropped with it.
            Some(runtime) => Some(runtime.clone()).filter(|runtime| !has_ended(runtime)),
            None => Handle::try_current().ok(),
        };
        match runtime {
            Some(runtime) => self.push(client, &runtime, call),
            None => self.push_in_background(client, call),
        }
    }

    /// The same where there is no runtime, or no longer.
    fn push_in_background(&self, client: &Arc<Client>, mut call: CallCorrections) {
        // The program may be about to end.
        call.hurry();
        match BACKGROUND.handle() {
            Ok(runtime) => self.push(client, &runtime, call),
            Err(error) => call.end(Err(StoreError::permanent("no thread for a correction").caused_by(error))),
        }
    }

    fn push(&self, client: &Arc<Client>, runtime: &Handle, call: CallCorrections) {
        let slot = match call.slot(client) {
            Ok(slot) => slot,
            Err(error) => return call.end(Err(error)),
        };
        let (id, is_at_once) = (QueueId { runtime: runtime.id(), slot }, call.is_at_once());
        let Some(task) = self.lock().entry(id).or_default().push(call) else { return };
        let (queues, client) = (self.clone(), Arc::clone(client));
        let sender = Sender { queues, client, runtime: runtime.clone(), id, task, counted: true };
        let mut sending = Box::pin(sender.run());
        // The first poll sends, so that what this task asks Redis next mostly comes after it.
        let is_current = || Handle::try_current().is_ok_and(|current| current.id() == runtime.id());
        if !is_at_once || !is_current() || sending.as_mut().now_or_never().is_none() {
            runtime.spawn(sending);
        }
    }

    fn lock(&self) -> MutexGuard<'_, NumberMap<QueueId, Queue>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sender {
    async fn run(mut self) {
        loop {
            let batches = self.take();
            if batches.is_empty() {
                return;
            }
            join_all(batches.into_iter().map(|batch| self.correct(batch))).await;
            if self.task == Task::Gathered && !self.has_due() {
                // Without timers, none waits.
                let _ = until(&self.runtime, Instant::now() + GATHERING, pin!(pending::<()>())).await;
            }
        }
    }

    /// Takes the corrections of the next calls to Redis. If there are none, the queue counts this task no longer.
    fn take(&mut self) -> Vec<Vec<CallCorrections>> {
        let mut queues = self.queues.lock();
        let Entry::Occupied(mut entry) = queues.entry(self.id) else { return Vec::new() };
        let (queue, mut batches) = (entry.get_mut(), Vec::new());
        let most = if self.task == Task::Gathered { GATHERED_AT_ONCE } else { 1 };
        while batches.len() < most && (batches.is_empty() || queue.has_due()) {
            batches.push(queue.take(self.task));
        }
        batches.retain(|batch| !batch.is_empty());
        if batches.is_empty() {
            self.counted = false;
            let left = end(entry, self.task);
            drop(queues);
            self.hand_over(left);
        }
        batches
    }

    /// Leaves to another runtime what has no task here.
    fn hand_over(&self, left: Option<Queue>) {
        for call in left.into_iter().flat_map(Queue::into_calls) {
            if BACKGROUND.handle().is_ok_and(|background| background.id() != self.runtime.id()) {
                self.queues.push_in_background(&self.client, call);
            }
        }
    }

    fn has_due(&self) -> bool {
        self.queues.lock().get(&self.id).is_some_and(Queue::has_due)
    }

    /// Makes the corrections of some calls.
    async fn correct(&self, batch: Vec<CallCorrections>) {
        let mut numbered: Vec<(usize, &Correction)> = Vec::with_capacity(batch.len());
        for (call, CallCorrections { corrections, .. }) in batch.iter().enumerate() {
            numbered.extend(corrections.iter().map(|correction| (call, correction)));
        }
        order(&mut numbered);
        let groups: Vec<&[(usize, &Correction)]> =
            numbered.chunk_by(|(_, one), (_, next)| next.adds_to(one)).collect();
        let sums: Vec<Cow<'_, Correction>> = groups.iter().copied().map(sum).collect();
        let results = self.send(&sums.iter().map(Cow::as_ref).collect::<Vec<_>>()).await;
        let mut of_calls = vec![Ok(Corrected::Whole); batch.len()];
        for (group, result) in groups.into_iter().zip(results) {
            for (call, _) in group {
                let all = mem::replace(&mut of_calls[*call], Ok(Corrected::Whole));
                of_calls[*call] = common([all, result.clone()]);
            }
        }
        for (call, result) in batch.into_iter().zip(of_calls) {
            call.end(result);
        }
    }

    /// Sends corrections together, or those of each key alone if Redis refuses these keys together.
    async fn send(&self, corrections: &[&Correction]) -> Vec<Result<Corrected, StoreError>> {
        let error = match self.client.correct(corrections).await {
            Ok(results) => return results,
            Err(error) => error,
        };
        let of_keys: Vec<&[&Correction]> = corrections.chunk_by(|one, next| one.key == next.key).collect();
        if of_keys.len() == 1 || !self.client.concerns_some_keys(&error) {
            return vec![Err(error.into()); corrections.len()];
        }
        let mut results = Vec::with_capacity(corrections.len());
        for of_key in of_keys {
            match self.client.correct(of_key).await {
                Ok(of_key) => results.extend(of_key),
                Err(error) => results.resize(results.len() + of_key.len(), Err(error.into())),
            }
        }
        results
    }
}

/// Lets those of one key follow each other, in their order, because the script reads and writes it once for all of them. Receipts of a
/// log are in the order of its entries, in which the script looks for them.
fn order(numbered: &mut [(usize, &Correction)]) {
    numbered.sort_by_key(|(_, correction)| correction.key.fingerprint());
    let are_of_one_log = |(_, one): &(usize, &Correction), (_, next): &(usize, &Correction)| {
        one.key == next.key && one.time_in_log().is_some() && next.time_in_log().is_some()
    };
    for receipts in numbered.chunk_by_mut(are_of_one_log) {
        receipts.sort_by_key(|(_, receipt)| receipt.time_in_log());
    }
}

/// Returns one correction in place of several that add to each other.
fn sum<'a>(corrections: &[(usize, &'a Correction)]) -> Cow<'a, Correction> {
    let (_, first) = corrections[0];
    if corrections.len() == 1 {
        return Cow::Borrowed(first);
    }
    let cost = corrections.iter().fold(0, |sum: u64, (_, each)| sum.saturating_add(each.cost));
    Cow::Owned(Correction { cost, ..first.clone() })
}

/// Returns what came of all corrections of a call, or the first error.
fn common(results: impl IntoIterator<Item = Result<Corrected, StoreError>>) -> Result<Corrected, StoreError> {
    results.into_iter().try_fold(Corrected::Whole, |all, result| result.map(|one| all.and(one)))
}

/// Counts a task no longer. Returns what has none then.
fn end(mut entry: OccupiedEntry<'_, QueueId, Queue>, task: Task) -> Option<Queue> {
    entry.get_mut().end(task).then(|| entry.remove())
}

/// A runtime that ends leaves what has not been sent to another.
impl Drop for Sender {
    fn drop(&mut self) {
        if self.counted {
            let mut queues = self.queues.lock();
            let Entry::Occupied(entry) = queues.entry(self.id) else { return };
            let left = end(entry, self.task);
            drop(queues);
            self.hand_over(left);
        }
    }
}

#[cfg(test)]
mod tests;
