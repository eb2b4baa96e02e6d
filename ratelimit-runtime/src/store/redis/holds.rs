//! The permits of semaphores in Redis that calls of this process hold, and what it says about them.

mod speaking;
mod takes;

use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::future::pending;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::marker;
use std::mem;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::scripts::key_text;
use crate::algorithm::AlgorithmSpec;
use crate::base::log::log;
use crate::base::timer::until;
use crate::key::Key;
use crate::store::account::{Account, Message, Reply, Sent};
use crate::store::charge::Charge;
use crate::store::correction::{Correction, OnCorrected};
use crate::store::error::StoreError;
use crate::store::hold::Hold;

/// How long Redis believes what a process says, unless it is set otherwise.
pub(super) const HOLD_TTL: Duration = Duration::from_secs(10);

/// How often a call looks whether Redis knows again what it has lost.
const REPORTS: Duration = Duration::from_millis(2);

const LOST: &str = "Redis has lost what this process holds";

/// What the calls of this process hold, by key.
#[derive(Clone)]
pub(super) struct Holds(Arc<Shared>);

struct Shared {
    ttl: Duration,
    speaker: Speaker,
    accounts: Mutex<Accounts>,
    /// The id of this process, and the number by which the store knows it, which no other process has.
    process: OnceLock<(u32, u64)>,
    /// What sends messages, by this runtime or else the current one.
    send: OnceLock<Send>,
    /// What keeps the client alive.
    keep: OnceLock<Keep>,
    /// Learns that permits were released in Redis.
    on_release: OnceLock<ReleaseListener>,
    /// Wakes the task that speaks.
    speaks: Notify,
    /// Whether Redis has not replied to its last words.
    is_silent: AtomicBool,
}

/// Returns the runtime of the task that speaks.
pub(super) type Speaker = fn() -> io::Result<Handle>;

type Send = Box<dyn Fn(Option<&Handle>, Correction, OnCorrected) + marker::Send + Sync>;

type Keep = Box<dyn Fn() -> Option<Arc<dyn Any + marker::Send + Sync>> + marker::Send + Sync>;

type ReleaseListener = Box<dyn Fn(&Key) + marker::Send + Sync>;

#[derive(Default)]
struct Accounts {
    by_key: HashMap<Box<str>, KeyAccount>,
    /// Whether a task speaks for them.
    is_speaking: bool,
}

struct KeyAccount {
    key: Key,
    spec: AlgorithmSpec,
    account: Account,
    /// Whether a task will send what has ended since the last take.
    has_sender: bool,
}

impl Holds {
    pub(super) fn new(ttl: Duration, speaker: Speaker) -> Self {
        Holds(Arc::new(Shared {
            ttl,
            speaker,
            accounts: Mutex::default(),
            process: OnceLock::new(),
            send: OnceLock::new(),
            keep: OnceLock::new(),
            on_release: OnceLock::new(),
            speaks: Notify::new(),
            is_silent: AtomicBool::new(false),
        }))
    }

    /// Sets what sends messages, and what keeps it alive. Only the first ones count.
    pub(super) fn send_by(
        &self,
        send: impl Fn(Option<&Handle>, Correction, OnCorrected) + marker::Send + Sync + 'static,
        keep: impl Fn() -> Option<Arc<dyn Any + marker::Send + Sync>> + marker::Send + Sync + 'static,
    ) {
        self.0.send.get_or_init(|| Box::new(send));
        self.0.keep.get_or_init(|| Box::new(keep));
    }

    /// Sets what learns that permits were released.
    pub(super) fn on_release(&self, listener: impl Fn(&Key) + marker::Send + Sync + 'static) {
        self.0.on_release.get_or_init(|| Box::new(listener));
    }

    pub(super) fn ttl(&self) -> Duration {
        self.0.ttl
    }

    pub(super) fn speaker(&self) -> Speaker {
        self.0.speaker
    }

    /// Waits until Redis knows what this process holds of these keys.
    ///
    /// # Errors
    ///
    /// If it does not by the deadline.
    pub(super) async fn until_reported(
        &self,
        charges: &[Charge],
        deadline: Instant,
    ) -> Result<(), StoreError> {
        while !self.may_ask_again(charges) {
            let at = (Instant::now() + REPORTS).min(deadline);
            let runtime = Handle::try_current().map_err(|_| StoreError::transient(LOST))?;
            until(&runtime, at, pin!(pending::<()>())).await?;
            if Instant::now() >= deadline {
                return Err(StoreError::transient(LOST));
            }
        }
        Ok(())
    }

    /// Whether calls that were refused because Redis has lost what it knew may ask again.
    fn may_ask_again(&self, charges: &[Charge]) -> bool {
        let accounts = self.lock();
        charges.iter().filter(|charge| charge.is_take()).all(|charge| {
            let account = key_text(&charge.key).ok().and_then(|key| accounts.by_key.get(key));
            account.is_none_or(|account| account.account.may_ask_again())
        })
    }

    /// Counts a call that was admitted without asking Redis, as long as it holds its permits.
    pub(super) fn admit(&self, index: usize, charge: &Charge) -> Option<Arc<Hold>> {
        if self.is_of_parent() {
            return None;
        }
        self.with_account(charge, |of| of.account.admit(now(), charge.cost))?;
        Some(self.hold(index, charge.key.clone(), charge.cost))
    }

    /// Asks for permits.
    fn take(&self, charge: &Charge) -> Option<Sent> {
        self.with_account(charge, |of| {
            of.has_sender = false;
            of.account.take(now(), permits(charge), charge.wait > 0)
        })
    }

    fn hold(&self, index: usize, key: Key, permits: u64) -> Arc<Hold> {
        let holds = self.clone();
        Arc::new(Hold::new(index, move || holds.release(&key, permits)))
    }

    /// Calls a function with the account of a key, for which a task speaks from now on.
    fn with_account<T>(&self, charge: &Charge, then: impl FnOnce(&mut KeyAccount) -> T) -> Option<T> {
        let (key, now) = (key_text(&charge.key).ok()?, now());
        let mut accounts = self.lock();
        let is_first = self.0.process.get().is_none();
        if !accounts.by_key.contains_key(key) {
            let account = Account::new(self.process(), self.0.ttl.as_micros() as u64, now);
            let account =
                KeyAccount { key: charge.key.clone(), spec: charge.spec, account, has_sender: false };
            accounts.by_key.insert(key.into(), account);
        }
        let account = accounts.by_key.get_mut(key)?;
        let result = then(account);
        let starts_speaking = !mem::replace(&mut accounts.is_speaking, true);
        drop(accounts);
        if is_first {
            self.log_process();
        }
        if starts_speaking {
            self.start_speaking();
        }
        Some(result)
    }

    /// Takes note of a reply about a key. Returns whether the call starts that it is about.
    fn hear(&self, key: &Key, sent: Sent, reply: Reply) -> bool {
        let Ok(text) = key_text(key) else { return false };
        let (heard, is_unsure) = {
            let mut accounts = self.lock();
            let Some(KeyAccount { account, .. }) = accounts.by_key.get_mut(text) else { return false };
            (account.hear(now(), sent, reply), account.is_unsure())
        };
        if heard.releases {
            self.send_release(key);
        }
        let is_word = matches!(sent.message, Message::Extend | Message::Report(_));
        if is_word {
            self.0.is_silent.store(reply == Reply::Unknown, Ordering::Relaxed);
        }
        if is_unsure {
            self.0.speaks.notify_one();
        }
        heard.starts
    }

    /// Releases what a call has held: with the next decision about the key, or else soon.
    fn release(&self, key: &Key, permits: u64) {
        if self.is_of_parent() {
            return;
        }
        let Ok(text) = key_text(key) else { return };
        let (needs_sender, is_unsure) = {
            let mut accounts = self.lock();
            let Some(KeyAccount { account, has_sender, .. }) = accounts.by_key.get_mut(text) else { return };
            let needs_sender = account.release(now(), permits) && !mem::replace(has_sender, true);
            (needs_sender, account.is_unsure())
        };
        if is_unsure {
            self.0.speaks.notify_one();
        }
        if needs_sender {
            self.send_release_soon(key);
            self.report_release(key);
        }
    }

    /// Lets a call know that waits in this process.
    fn report_release(&self, key: &Key) {
        if let Some(listener) = self.0.on_release.get() {
            listener(key);
        }
    }

    fn process(&self) -> u64 {
        self.0
            .process
            .get_or_init(|| {
                let id = std::process::id();
                // Less than 2^53, up to which scripts have exact numbers, and never 0.
                (id, RandomState::new().hash_one(id) >> 12 | 1)
            })
            .1
    }

    /// Tells operators which process a number in Redis means.
    fn log_process(&self) {
        let process = self.process();
        log!(DEBUG, process = format_args!("{process:x}"), "calls hold permits in Redis");
    }

    /// Whether this process was forked while its parent had accounts. What it has is a copy of them, and it ends no call of its parent.
    fn is_of_parent(&self) -> bool {
        self.0.process.get().is_some_and(|(id, _)| *id != std::process::id())
    }

    fn lock(&self) -> MutexGuard<'_, Accounts> {
        self.0.accounts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the permits that a charge asks for. Of those that are never admitted, the script gets as many too.
fn permits(charge: &Charge) -> u64 {
    charge.spec.max_cost().map_or(charge.cost, |most| charge.cost.min(most + 1))
}

/// Returns the microseconds since this process has begun to count them.
fn now() -> u64 {
    // Not one of tokio's, as the paused clock of a test may be ahead of that of the next one.
    static START: LazyLock<std::time::Instant> = LazyLock::new(std::time::Instant::now);
    let elapsed = Instant::now().into_std().duration_since(*START);
    // An account begins later than it has heard anything.
    elapsed.as_micros() as u64 + 1
}

/// Without keys.
impl fmt::Debug for Holds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Holds").field("ttl", &self.0.ttl).finish_non_exhaustive()
    }
}
