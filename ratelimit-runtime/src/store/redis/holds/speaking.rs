//! What a process says about its holds: at once when calls end, and in time what still runs.

use std::any::Any;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::yield_now;
use tokio::time::{sleep, timeout};

use super::{Accounts, Holds, KeyAccount, Shared, now};
use crate::algorithm::AlgorithmSpec;
use crate::key::Key;
use crate::store::account::{Message, Reply, Sent};
use crate::store::correction::{Corrected, Correction, CorrectionKind};
use crate::store::redis::scripts::key_text;

/// How often a process looks whether it has something to say, as a part of how long it is believed.
const LOOKS: u32 = 20;

/// How long it lets messages gather that have to be said soon.
const GATHERS: Duration = Duration::from_millis(2);

impl Holds {
    /// Speaks for the accounts until there are none, by a task of a runtime that no call of the program holds up.
    pub(super) fn start_speaking(&self) {
        let Ok(runtime) = self.speaker()() else {
            // The next take tries again. Without the thread, holds end with their time.
            self.lock().is_speaking = false;
            return;
        };
        runtime.spawn(speak(Arc::downgrade(&self.0)));
    }

    /// Sends a message about a key.
    pub(super) fn say(&self, key: &Key, spec: AlgorithmSpec, sent: Sent) {
        let Some(send) = self.0.send.get() else { return };
        let (holds, of) = (self.clone(), key.clone());
        let done = Box::new(move |result| {
            let reply = match result {
                Ok(Corrected::Believed(permits)) => Reply::Believed(permits),
                Ok(_) => Reply::Done,
                Err(_) => Reply::Unknown,
            };
            holds.hear(&of, sent, reply);
            if reply != Reply::Unknown && matches!(sent.message, Message::Release(_)) {
                // A call that has asked meanwhile was refused.
                holds.report_release(&of);
            }
        });
        let correction = Correction { key: key.clone(), spec, cost: 0, kind: CorrectionKind::Holds(sent) };
        let is_release = matches!(sent.message, Message::Release(_));
        let runtime = if is_release { None } else { self.speaker()().ok() };
        send(runtime.as_ref(), correction, done);
    }

    /// Sends what no decision about a key releases.
    pub(super) fn send_release_soon(&self, key: &Key) {
        // Dropped without having run, as by a runtime that has ended, the task sends it at once.
        let client = self.0.keep.get().and_then(|keep| keep());
        let unsent = UnsentRelease { holds: self.clone(), key: key.clone(), _client: client };
        if let Ok(runtime) = Handle::try_current().or_else(|_| self.speaker()()) {
            runtime.spawn(async move {
                // A call that waits in this process asks first.
                yield_now().await;
                drop(unsent);
            });
        }
    }

    pub(super) fn send_release(&self, key: &Key) {
        let release = {
            let mut accounts = self.lock();
            let account = key_text(key).ok().and_then(|text| accounts.by_key.get_mut(text));
            account.and_then(|KeyAccount { spec, account, has_sender, .. }| {
                *has_sender = false;
                Some((*spec, account.say_released(now())?))
            })
        };
        if let Some((spec, sent)) = release {
            self.say(key, spec, sent);
        }
    }

    /// Says what there is to say. Returns whether there are accounts left.
    fn speak(&self) -> bool {
        let (said, is_left) = {
            let mut accounts = self.lock();
            let Accounts { by_key, is_speaking } = &mut *accounts;
            let now = now();
            by_key.retain(|_, account| !account.account.is_idle(now));
            // Those of a runtime that is not driven.
            let releases = by_key.values_mut().filter_map(|of| {
                let sent = of.account.say_released(now)?;
                of.has_sender = false;
                Some((of.key.clone(), of.spec, sent))
            });
            let mut said: Vec<_> = releases.collect();
            said.extend(by_key.values_mut().filter_map(|KeyAccount { key, spec, account, .. }| {
                Some((key.clone(), *spec, account.speak(now)?))
            }));
            *is_speaking = !by_key.is_empty();
            (said, *is_speaking)
        };
        said.into_iter().for_each(|(key, spec, sent)| self.say(&key, spec, sent));
        is_left
    }
}

/// A release of a key, sent when this is dropped unless a decision has made it.
struct UnsentRelease {
    holds: Holds,
    key: Key,
    /// A registry may be dropped with its last decision.
    _client: Option<Arc<dyn Any + Send + Sync>>,
}

impl Drop for UnsentRelease {
    fn drop(&mut self) {
        self.holds.send_release(&self.key);
    }
}

async fn speak(holds: Weak<Shared>) {
    loop {
        let Some(shared) = holds.upgrade() else { return };
        let holds = Holds(shared);
        if !holds.speak() {
            return;
        }
        let looks_after = holds.ttl() / LOOKS;
        // A call that ends keeps it alive if it has to.
        if timeout(looks_after, holds.0.speaks.notified()).await.is_ok() {
            // Redis is not asked more often because calls fail.
            let is_silent = holds.0.is_silent.load(Ordering::Relaxed);
            sleep(if is_silent { looks_after } else { GATHERS }).await;
        }
    }
}
