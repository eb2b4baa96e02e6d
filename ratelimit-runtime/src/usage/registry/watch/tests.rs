use std::fmt;
use std::fs::{self, File};
use std::process;
use std::sync::MutexGuard;
use std::time::SystemTime;

use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::subscriber::{DefaultGuard, set_default};
use tracing::{Event, Metadata, Subscriber, span};

use super::poller::parsed;
use super::source::{Found, POLL_INTERVAL, Unread};
use super::*;
use crate::Registry;
use crate::policy::{FixedWindow, TokenBucket};

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

/// The fields of all events.
#[derive(Clone, Default)]
struct Messages(Arc<Mutex<Vec<(&'static str, String)>>>);

impl Messages {
    /// Takes the messages.
    fn take(&self) -> Vec<String> {
        let messages = self.of("message");
        self.lock().clear();
        messages
    }

    fn problems(&self) -> Vec<String> {
        self.of("problem")
    }

    fn of(&self, field: &str) -> Vec<String> {
        self.lock().iter().filter(|(name, _)| *name == field).map(|(_, text)| text.clone()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(&'static str, String)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Visit for Messages {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.lock().push((field.name(), value.to_owned()));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.lock().push((field.name(), format!("{value:?}")));
    }
}

impl Subscriber for Messages {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }
    // Without it, other tests of the process take the way of refusals that are logged.
    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::INFO)
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

/// A registry with one limiter, and a poller that polls when the test does.
struct Watched {
    file: TestFile,
    registry: Registry,
    watch: Arc<Watch>,
    poller: Poller,
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
        let watch = Arc::new(Watch::new());
        watch.join(Member::new(registry.backend().overrides(), &registry.0.limiters));
        let poller = Poller::new(&watch, Source::file(file.0.clone()));
        let messages = Messages::default();
        let subscriber = set_default(messages.clone());
        Watched { file, registry, watch, poller, messages, _subscriber: subscriber }
    }

    fn poll(&mut self) {
        assert_eq!(self.poller.poll_file(&self.watch), POLL_INTERVAL);
    }
}

#[test]
fn each_change_is_logged_once() {
    const UNREADABLE: &str = "overrides could not be read and stay as they are";
    const READABLE: &str = "overrides can be read again";
    const INVALID: &str = "overrides that are invalid are ignored";
    const IN_FORCE: &str = "overrides are in force";
    const ENDED: &str = "overrides have ended";
    let mut watched = Watched::new("watch.log");
    for (text, logged) in [
        (None, &[UNREADABLE][..]),
        (Some("# none\n"), &[READABLE]),
        (None, &[UNREADABLE]),
        (Some("[\"watch.lag\"]\noff = true\n"), &[READABLE, INVALID]),
        (Some("[\"watch.log\"]\nlimit = 0\n"), &[INVALID]),
        (Some("[\"watch.log\"]\nlimit = 1\n"), &[IN_FORCE]),
        (Some("[\"watch.log\"]\nlimit = 2\n"), &[IN_FORCE]),
        (Some("[\"watch.log\"\nlimit = 3\n"), &[UNREADABLE]),
        // Another problem is one of its own, and the same one is not.
        (None, &[UNREADABLE]),
        (Some("[\"watch.log\"\nlimit = 3\n"), &[]),
        (Some("[\"watch.log\"]\nlimit = 0\n"), &[READABLE, ENDED, INVALID]),
        (Some("[\"watch.log\"]\nlimit = 1\n[\"watch.lag\"]\noff = true\n"), &[IN_FORCE, INVALID]),
        (Some("# none\n"), &[ENDED]),
        (Some("# still none\n"), &[]),
    ] {
        watched.file.put(text, SystemTime::UNIX_EPOCH);
        (0..3).for_each(|_| watched.poll());
        assert_eq!(watched.messages.take(), logged, "{text:?}");
    }
}

#[test]
fn failures_of_the_store_are_logged_when_they_last() {
    const UNREAD: &str = "overrides have not been read for a while and stay as they are";
    const READABLE: &str = "overrides can be read again";
    let mut watched = Watched::new("watch.outage");
    let mut next = 0;
    let mut failed = || {
        next += 1;
        Err(Unread { problem: format!("no reply {next}"), is_outage: true })
    };
    for (failures, logged, problems) in
        [(2, &[][..], 0), (3, &[UNREAD, READABLE], 1), (9, &[UNREAD, READABLE], 1)]
    {
        (0..failures).for_each(|_| _ = watched.poller.take(&watched.watch, failed(), None));
        assert_eq!(watched.watch.problems().len(), problems, "{failures} failures");
        watched.poller.take(&watched.watch, Ok(parsed(Found::Same)), None);
        assert_eq!(watched.messages.take(), logged, "{failures} failures");
        assert_eq!(watched.watch.problems(), [""; 0]);
    }
}

#[test]
fn late_policies_are_checked() {
    let mut watched = Watched::new("watch.first");
    let text = "[\"watch.late\"]\nlimit = 1\n[\"watch.bucket\"]\nlimit = 1\n";
    watched.file.put(Some(text), SystemTime::UNIX_EPOCH);
    let problems = |watched: &Watched| watched.watch.problems();
    watched.poll();
    assert_eq!(problems(&watched).len(), 2);
    watched.registry.limiter("watch.late", FixedWindow::new(5, DAY)).unwrap();
    watched.registry.limiter("watch.bucket", TokenBucket::per_second(1)).unwrap();
    watched.poll();
    let [problem] = &problems(&watched)[..] else { panic!("{:?}", problems(&watched)) };
    assert!(problem.contains("`limit` is no argument of `rate_limit`"), "{problem}");
    let [in_force] = &watched.registry.overrides()[..] else { panic!("{:?}", watched.registry.overrides()) };
    assert_eq!(in_force.policy(), "watch.late");
    assert_eq!(watched.messages.of("names"), ["watch.late"]);
}

#[test]
fn overrides_end_by_themselves() {
    let mut watched = Watched::new("watch.until");
    let text = "[\"watch.until\"]\nlimit = 1\nuntil = 1000\n";
    let stored = |watched: &mut Watched, found, now| {
        assert_eq!(watched.poller.take(&watched.watch, Ok(parsed(found)), Some(now)), POLL_INTERVAL);
        watched.registry.overrides().len()
    };
    let text = || Found::Text(Ok(text.to_owned()));
    assert_eq!(stored(&mut watched, text(), 999), 1);
    assert_eq!(stored(&mut watched, Found::Same, 999), 1);
    assert_eq!(stored(&mut watched, Found::Same, 1000), 0);
    // As after a restart.
    assert_eq!(stored(&mut watched, text(), 1000), 0);
    assert_eq!(watched.watch.problems(), [""; 0]);
}

#[test]
fn times_in_the_future_are_no_time_of_writing() {
    let mut watched = Watched::new("watch.future");
    watched.file.put(Some("[\"watch.future\"]\nlimit = 1\n"), SystemTime::now() + DAY);
    watched.poll();
    assert_eq!(watched.registry.overrides().len(), 1);
}

#[test]
fn problems_of_many_policies_are_cut_off_in_the_log() {
    let mut watched = Watched::new("watch.many");
    let text: String = (0..12).map(|index| format!("[\"?{index}\"]\noff = true\n")).collect();
    watched.file.put(Some(&text), SystemTime::UNIX_EPOCH);
    watched.poll();
    assert_eq!(watched.watch.problems().len(), 12);
    let problem = watched.messages.problems().pop().unwrap();
    assert!(problem.contains("`?9`") && problem.ends_with("; and 2 more"), "{problem}");
}

#[tokio::test]
async fn poller_ends_with_its_registry() {
    let Watched { file: _file, registry, watch, poller, .. } = Watched::new("watch.end");
    drop((registry, watch));
    poller.run(Duration::ZERO).await;
}
