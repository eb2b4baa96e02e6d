use std::fs::{self, File};
use std::process;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use tracing::field::{Field, Visit};
use tracing::subscriber::{DefaultGuard, set_default};
use tracing::{Event, Metadata, Subscriber, span};

use super::*;
use crate::policy::FixedWindow;

const DAY: Duration = Duration::from_secs(86_400);

/// A file that is removed in the end.
struct TestFile(PathBuf);

impl TestFile {
    fn new(test: &str) -> Self {
        TestFile(std::env::temp_dir().join(format!("ratelimits-watch-{test}-{}.toml", process::id())))
    }

    /// Writes the text, as if at this time. Without a text there is no file.
    fn put(&self, text: Option<&str>, at: SystemTime) {
        let Some(text) = text else { return drop(fs::remove_file(&self.0)) };
        fs::write(&self.0, text).unwrap();
        File::options().write(true).open(&self.0).unwrap().set_modified(at).unwrap();
    }
}

impl Drop for TestFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// The messages of all events.
#[derive(Clone, Default)]
struct Messages(Arc<Mutex<Vec<String>>>);

impl Messages {
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Visit for Messages {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(format!("{value:?}"));
        }
    }
}

impl Subscriber for Messages {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }
    fn event(&self, event: &Event<'_>) {
        event.record(&mut self.clone());
    }
    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

/// A registry with one limiter, and a watcher that polls when the test does.
struct Watched {
    file: TestFile,
    registry: Registry,
    watcher: Watcher,
    messages: Messages,
    /// Each of these tests has one: a thread without would disable the events for the others.
    _subscriber: DefaultGuard,
}

impl Watched {
    /// `test` is the name of the limiter.
    fn new(test: &str) -> Self {
        let file = TestFile::new(test);
        let registry = Registry::in_memory();
        registry.limiter(test, FixedWindow::new(5, DAY)).unwrap();
        let watcher = Watcher::new(&registry, OverridesFrom::File(file.0.clone()));
        let messages = Messages::default();
        let subscriber = set_default(messages.clone());
        Watched { file, registry, watcher, messages, _subscriber: subscriber }
    }

    fn poll(&mut self) {
        assert_eq!(self.watcher.poll(&self.registry.0), POLL_INTERVAL);
    }
}

#[test]
fn each_change_is_logged_once() {
    const UNREADABLE: &str = "overrides could not be read and stay as they are";
    const INVALID: &str = "overrides are invalid and change nothing";
    const IN_FORCE: &str = "overrides are in force";
    let mut watched = Watched::new("watch.log");
    for (text, logged) in [
        (None, Some(UNREADABLE)),
        (Some("# none\n"), None),
        (None, Some(UNREADABLE)),
        (Some("[\"watch.lag\"]\noff = true\n"), Some(INVALID)),
        (Some("[\"watch.log\"]\nlimit = 0\n"), Some(INVALID)),
        (Some("[\"watch.log\"]\nlimit = 1\n"), Some(IN_FORCE)),
        (Some("[\"watch.log\"]\nlimit = 2\n"), Some(IN_FORCE)),
        (Some("[\"watch.log\"]\nlimit = 0\n"), Some(INVALID)),
        (None, Some(UNREADABLE)),
        (Some("# none\n"), Some("overrides have ended")),
        (Some("# still none\n"), None),
    ] {
        watched.file.put(text, SystemTime::UNIX_EPOCH);
        (0..3).for_each(|_| watched.poll());
        assert_eq!(watched.messages.take(), Vec::from_iter(logged), "{text:?}");
    }
}

#[test]
fn times_in_the_future_are_no_time_of_writing() {
    let mut watched = Watched::new("watch.future");
    watched.file.put(Some("[\"watch.future\"]\nlimit = 1\n"), SystemTime::now() + DAY);
    watched.poll();
    assert_eq!(watched.registry.overrides().len(), 1);
}

#[test]
fn problems_of_many_policies_are_cut_off() {
    let mut watched = Watched::new("watch.many");
    let text: String = (0..12).map(|index| format!("[\"?{index}\"]\noff = true\n")).collect();
    watched.file.put(Some(&text), SystemTime::UNIX_EPOCH);
    watched.poll();
    let problems = watched.registry.backend().overrides().problems();
    assert_eq!(problems.len(), 11);
    assert!(problems[10].ends_with("and 2 more"), "{problems:?}");
}

#[test]
fn watcher_ends_with_its_registry() {
    for wakes in [true, false] {
        let Watched { file: _file, registry, watcher, .. } = Watched::new("watch.end");
        let ((waker, woken), (ended, end)) = (channel(), channel::<()>());
        thread::spawn(move || {
            watcher.run(&woken, DAY);
            drop(ended);
        });
        assert_eq!(end.recv_timeout(Duration::ZERO), Err(RecvTimeoutError::Timeout));
        drop(registry);
        if wakes {
            waker.send(()).unwrap();
        } else {
            drop(waker);
        }
        let result = end.recv_timeout(Duration::from_secs(60));
        assert_eq!(result, Err(RecvTimeoutError::Disconnected), "wakes: {wakes}");
    }
}
