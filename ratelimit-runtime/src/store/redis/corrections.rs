//! Corrections on their way to Redis: refunds, and debts. Tasks of their own send them, so that none depends on a caller who waits for
//! it: at once if few are in flight, or else together with others.

use std::collections::VecDeque;
use std::collections::hash_map::Entry;
use std::fmt;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::FutureExt;
use tokio::runtime::{Handle, Id};

use super::client::Client;
use super::cluster::common_slot;
use super::scripts::{MAX_WEIGHT, key_text, weight};
use crate::base::number_map::NumberMap;
use crate::base::runtime::BACKGROUND;
use crate::base::timer::has_ended;
use crate::store::correction::{Corrected, Correction, CorrectionKind, OnCorrected, Urgency};
use crate::store::denials::Denials;
use crate::store::error::StoreError;

/// The tasks that send the corrections of a queue, unless many wait. Few of these are sent together, but each at once.
const USUAL_SENDERS: usize = 8;

/// The same for those that are sent soon: what comes while one is under way is sent together.
const SENDERS_SOON: usize = 1;

/// The corrections of a store that wait, and the tasks that send them.
#[derive(Clone, Debug, Default)]
pub(super) struct Corrections(Arc<Mutex<NumberMap<QueueId, Queue>>>);

/// What corrections have in common that share a call: a runtime, which has a connection of its own, and a slot in a Cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct QueueId {
    runtime: Id,
    slot: Option<u16>,
}

#[derive(Debug, Default)]
struct Queue {
    senders: usize,
    waiting: VecDeque<CallCorrections>,
    /// That of all that wait.
    weight: usize,
}

/// Those of one call, which have failed if this is dropped before Redis responds.
struct CallCorrections {
    corrections: Vec<Correction>,
    denials: Option<Arc<Denials>>,
    /// `None` once it has been called.
    done: Option<OnCorrected>,
}

/// Sends corrections until none waits.
struct Sender {
    queues: Corrections,
    client: Arc<Client>,
    runtime: Handle,
    id: QueueId,
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
        let call = CallCorrections { corrections, denials, done: Some(done) };
        // What is refused from now on may be out of date, and what was.
        call.forget_denials();
        let runtime = match runtime {
            // A call that waited is dropped with it.
            Some(runtime) => Some(runtime.clone()).filter(|runtime| !has_ended(runtime)),
            None => Handle::try_current().ok(),
        };
        match runtime {
            Some(runtime) => self.push(client, &runtime, call, urgency),
            None => self.push_in_background(client, call),
        }
    }

    /// The same where there is no runtime, or no longer.
    fn push_in_background(&self, client: &Arc<Client>, call: CallCorrections) {
        match BACKGROUND.handle() {
            Ok(runtime) => self.push(client, &runtime, call, Urgency::Soon),
            Err(error) => call.end(Err(StoreError::permanent("no thread for a correction").caused_by(error))),
        }
    }

    fn push(&self, client: &Arc<Client>, runtime: &Handle, call: CallCorrections, urgency: Urgency) {
        let slot = match call.slot(client) {
            Ok(slot) => slot,
            Err(error) => return call.end(Err(error)),
        };
        let id = QueueId { runtime: runtime.id(), slot };
        let starts = {
            let mut queues = self.lock();
            let queue = queues.entry(id).or_default();
            queue.weight += call.weight();
            queue.waiting.push_back(call);
            let usual = if urgency == Urgency::AtOnce { USUAL_SENDERS } else { SENDERS_SOON };
            let starts = queue.senders < usual || queue.weight >= MAX_WEIGHT;
            queue.senders += usize::from(starts);
            starts
        };
        if starts {
            let sender = Sender {
                queues: self.clone(),
                client: Arc::clone(client),
                runtime: runtime.clone(),
                id,
                counted: true,
            };
            let mut sending = Box::pin(sender.run());
            // The first poll sends, so that what this task asks Redis next mostly comes after it.
            let is_current = || Handle::try_current().is_ok_and(|current| current.id() == runtime.id());
            if urgency == Urgency::Soon || !is_current() || sending.as_mut().now_or_never().is_none() {
                runtime.spawn(sending);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, NumberMap<QueueId, Queue>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CallCorrections {
    /// Returns the slot of the keys, if it matters.
    fn slot(&self, client: &Client) -> Result<Option<u16>, StoreError> {
        let keys = self
            .corrections
            .iter()
            .map(|correction| key_text(&correction.key))
            .collect::<Result<Vec<_>, _>>()?;
        client.has_slots().then(|| common_slot(&keys)).transpose()
    }

    fn weight(&self) -> usize {
        self.corrections.iter().map(weight).sum()
    }

    fn end(mut self, result: Result<Corrected, StoreError>) {
        self.finish(result);
    }

    fn finish(&mut self, result: Result<Corrected, StoreError>) {
        let Some(done) = self.done.take() else { return };
        self.forget_denials();
        done(result);
    }

    fn forget_denials(&self) {
        if let Some(denials) = &self.denials {
            // A debt lets no call through, and a denial is not remembered for long.
            let changes = self.corrections.iter().filter(|it| !matches!(it.kind, CorrectionKind::Debit));
            changes.for_each(|change| drop(denials.forget_after(&change.key)));
        }
    }
}

impl Drop for CallCorrections {
    fn drop(&mut self) {
        self.finish(Err(StoreError::transient("the tokio runtime shut down before Redis responded")));
    }
}

impl Sender {
    async fn run(mut self) {
        loop {
            let batch = self.take();
            if batch.is_empty() {
                return;
            }
            self.correct(batch).await;
        }
    }

    /// Takes the corrections of the next call. If there are none, the queue counts this sender no longer.
    fn take(&mut self) -> Vec<CallCorrections> {
        let mut queues = self.queues.lock();
        let Entry::Occupied(mut entry) = queues.entry(self.id) else { return Vec::new() };
        let queue = entry.get_mut();
        let (mut batch, mut weight) = (Vec::new(), 0);
        while let Some(call) = queue.waiting.front()
            && (batch.is_empty() || weight + call.weight() <= MAX_WEIGHT)
        {
            weight += call.weight();
            batch.extend(queue.waiting.pop_front());
        }
        queue.weight -= weight;
        if batch.is_empty() {
            self.counted = false;
            queue.senders -= 1;
            if queue.senders == 0 {
                entry.remove();
            }
        }
        batch
    }

    /// Sends corrections together, or those of each call alone if Redis refuses these keys together.
    async fn correct(&self, batch: Vec<CallCorrections>) {
        let mut numbered: Vec<(usize, &Correction)> = Vec::with_capacity(batch.len());
        for (call, CallCorrections { corrections, .. }) in batch.iter().enumerate() {
            numbered.extend(corrections.iter().map(|correction| (call, correction)));
        }
        // Those of one key follow each other, in their order: the script reads and writes it once for all of them.
        numbered.sort_by(|(_, one), (_, other)| key_text(&one.key).ok().cmp(&key_text(&other.key).ok()));
        let corrections: Vec<&Correction> = numbered.iter().map(|(_, correction)| *correction).collect();
        let results = match self.client.correct(&corrections).await {
            Ok(results) => results,
            Err(error) if batch.len() > 1 && self.client.concerns_some_keys(&error) => {
                for call in batch {
                    let corrections: Vec<&Correction> = call.corrections.iter().collect();
                    let results = self.client.correct(&corrections).await;
                    call.end(results.map_err(StoreError::from).and_then(common));
                }
                return;
            }
            Err(error) => vec![Err(error.into()); corrections.len()],
        };
        let mut of_calls = vec![Ok(Corrected::Whole); batch.len()];
        for ((call, _), result) in numbered.into_iter().zip(results) {
            let all = mem::replace(&mut of_calls[call], Ok(Corrected::Whole));
            of_calls[call] = common([all, result]);
        }
        for (call, result) in batch.into_iter().zip(of_calls) {
            call.end(result);
        }
    }
}

/// Returns what came of all corrections of a call, or the first error.
fn common(results: impl IntoIterator<Item = Result<Corrected, StoreError>>) -> Result<Corrected, StoreError> {
    results.into_iter().try_fold(Corrected::Whole, |all, result| result.map(|one| all.and(one)))
}

/// A runtime that ends leaves what has not been sent to another.
impl Drop for Sender {
    fn drop(&mut self) {
        if !self.counted {
            return;
        }
        let left = {
            let mut queues = self.queues.lock();
            let Entry::Occupied(mut entry) = queues.entry(self.id) else { return };
            entry.get_mut().senders -= 1;
            if entry.get().senders > 0 {
                return;
            }
            mem::take(&mut entry.remove().waiting)
        };
        for call in left {
            if BACKGROUND.handle().is_ok_and(|background| background.id() != self.runtime.id()) {
                self.queues.push_in_background(&self.client, call);
            }
        }
    }
}

/// Without keys.
impl fmt::Debug for CallCorrections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallCorrections")
            .field("corrections", &self.corrections.len())
            .finish_non_exhaustive()
    }
}
