//! Where overrides come from.
//!
//! A task for each source reads it every two seconds. All of them share a thread, and registries of one namespace in one Redis share
//! the task, so that a registry for each tenant costs neither a thread nor a connection.

mod file;
#[cfg(feature = "redis")]
mod inventory;
mod known;
mod poller;
mod source;
mod watched;

use std::path::PathBuf;
use std::sync::Arc;
#[cfg(feature = "redis")]
use std::sync::{Mutex, PoisonError, Weak};
use std::time::Duration;

pub(super) use self::known::known;
use self::poller::Poller;
use self::source::Source;
pub(super) use self::watched::{Member, Watch};
use crate::base::log::log;
use crate::base::runtime::OwnRuntime;
#[cfg(feature = "redis")]
use crate::store::StoredOverrides;

static THREAD: OwnRuntime = OwnRuntime::new("ratelimits-overrides");

impl Watch {
    /// Watches a file for a registry, which decides by it from its first call.
    pub(super) fn file(path: PathBuf, member: Member) -> Arc<Self> {
        let watch = Arc::new(Watch::new());
        watch.join(member);
        let mut poller = Poller::new(&watch, Source::file(path));
        let next = poller.poll_file(&watch);
        watch.start(poller, next);
        watch
    }

    /// Watches overrides in Redis for a registry, together with others. Redis may be absent, which must not keep a process from
    /// starting.
    #[cfg(feature = "redis")]
    pub(super) fn redis(stored: StoredOverrides, member: Member) -> Arc<Self> {
        static SHARED: Mutex<Vec<Weak<Watch>>> = Mutex::new(Vec::new());
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        shared.retain(|watch| watch.strong_count() > 0);
        if let Some(watch) = shared.iter().filter_map(Weak::upgrade).find(|watch| watch.is_of(&stored)) {
            watch.join(member);
            return watch;
        }
        let watch = Arc::new(Watch::shared(stored.clone()));
        watch.join(member);
        shared.push(Arc::downgrade(&watch));
        // A subscriber of events may create registries.
        drop(shared);
        watch.start(Poller::new(&watch, Source::redis(stored)), Duration::ZERO);
        watch
    }

    /// Polls after `next`, and then again and again.
    fn start(&self, poller: Poller, next: Duration) {
        match THREAD.handle() {
            Ok(thread) => drop(thread.spawn(poller.run(next))),
            Err(error) => {
                let problem = format!("could not start the thread that looks for changes: {error}");
                log!(ERROR, source = "thread", problem, "overrides could not be read and stay as they are");
                self.set_problems(vec![problem]);
            }
        }
    }
}

#[cfg(test)]
mod tests;
