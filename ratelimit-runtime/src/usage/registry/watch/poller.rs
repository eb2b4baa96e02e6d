//! The task that looks for new overrides.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use tokio::time::sleep;

#[cfg(feature = "redis")]
use super::inventory::Publisher;
use super::known::{known, known_version};
use super::source::{Found, POLL_INTERVAL, Source, Unread, system_time};
use super::watched::Watch;
use crate::base::log::log;
use crate::decide::overrides::{Entry, OverrideSet};

/// The maximum number of problems or names in an event. Further problems mostly have the same cause.
const MOST_LOGGED: usize = 10;

/// How many failures of the store in a row are a problem, as it has not been read for seconds then. Fewer are a busy machine or a
/// restart.
const MOST_FAILURES: u32 = 3;

/// Looks for new overrides.
pub(super) struct Poller {
    watch: Weak<Watch>,
    source: Source,
    /// Why the last text is not in force.
    unparsed: Option<String>,
    /// Why the source could not be read, as it was logged since it last could.
    unread: Vec<String>,
    /// How often the store has failed since it last did not.
    failures: u32,
    /// The time by which overrides end, and when the source last told it.
    clock: Option<(u64, Instant)>,
    /// Which overrides and policies were checked, the overrides that were found to be in force, and the problems of the others.
    checked: Option<(u64, u64)>,
    in_force: Vec<Entry>,
    ignored: Vec<String>,
    #[cfg(feature = "redis")]
    inventory: Publisher,
}

/// What a look at the source gives, with the overrides in place of their text.
pub(super) enum Parsed {
    Same,
    Set(OverrideSet),
    Invalid(String),
    Unsettled(Duration),
}

pub(super) fn parsed(found: Found) -> Parsed {
    match found {
        Found::Same => Parsed::Same,
        Found::Unsettled(rest) => Parsed::Unsettled(rest),
        Found::Text(text) => match text.and_then(|text| OverrideSet::parse(&text)) {
            Ok(set) => Parsed::Set(set),
            Err(problem) => Parsed::Invalid(problem),
        },
    }
}

impl Poller {
    pub(super) fn new(watch: &Arc<Watch>, source: Source) -> Self {
        Poller {
            watch: Arc::downgrade(watch),
            source,
            unparsed: None,
            unread: Vec::new(),
            failures: 0,
            clock: None,
            checked: None,
            in_force: Vec::new(),
            ignored: Vec::new(),
            #[cfg(feature = "redis")]
            inventory: Publisher::default(),
        }
    }

    /// Polls after `next`, and then again and again.
    pub(super) async fn run(mut self, mut next: Duration) {
        loop {
            sleep(next).await;
            let Some(watch) = self.watch.upgrade() else { return };
            let found = self.source.read(!watch.set().is_empty()).await.map(parsed);
            let has_ends =
                matches!(&found, Ok(Parsed::Set(set)) if set.have_ends()) || watch.set().have_ends();
            let now = if has_ends { self.now().await } else { None };
            #[cfg(feature = "redis")]
            let is_lost = matches!(&found, Err(unread) if !unread.is_outage) && self.unread.is_empty();
            next = self.take(&watch, found, now);
            #[cfg(feature = "redis")]
            if let Source::Redis { stored, version: Some(version) } = &self.source {
                let (limiters, is_in_force) = (|| watch.apply(), !watch.set().is_empty());
                let version = version.as_deref();
                self.inventory.publish(stored, limiters, version, is_in_force, is_lost).await;
            }
        }
    }

    /// Returns the time by which overrides end. While the source does not tell it, it goes on.
    async fn now(&mut self) -> Option<u64> {
        if let Some(now) = self.source.now().await {
            self.clock = Some((now, Instant::now()));
        }
        self.clock.map(|(now, read)| now + read.elapsed().as_secs())
    }

    /// Polls a file now. Returns how long to wait for the next time.
    pub(super) fn poll_file(&mut self, watch: &Watch) -> Duration {
        let found = self.source.read_file().map(parsed);
        self.take(watch, found, system_time())
    }

    /// Applies what was found at this time, and what is wrong with it. Returns how long to wait for the next time.
    pub(super) fn take(
        &mut self,
        watch: &Watch,
        found: Result<Parsed, Unread>,
        now: Option<u64>,
    ) -> Duration {
        let in_time = |set: &OverrideSet| now.and_then(|now| set.at(now));
        let is_outage = matches!(&found, Err(unread) if unread.is_outage);
        self.failures = if is_outage { self.failures + 1 } else { 0 };
        let problem = match found {
            Ok(Parsed::Unsettled(rest)) => return rest,
            Ok(Parsed::Same) => self.unparsed.clone(),
            Ok(Parsed::Set(set)) => {
                watch.replace(in_time(&set).unwrap_or(set));
                self.unparsed = None;
                None
            }
            Ok(Parsed::Invalid(problem)) => {
                self.unparsed = Some(problem);
                self.unparsed.clone()
            }
            Err(unread) => Some(unread.problem),
        };
        if let Some(set) = in_time(&watch.set()) {
            watch.replace(set);
        }
        if is_outage && self.failures < MOST_FAILURES {
            self.check(watch);
            return POLL_INTERVAL;
        }
        self.log_reading(problem.as_deref());
        self.check(watch);
        let (unread, about) = ("overrides stay as they are", "overrides that are invalid are ignored");
        let unread = problem.into_iter().map(|problem| format!("{unread}: {problem}"));
        let ignored = self.ignored.iter().map(|problem| format!("{about}: {problem}"));
        let of_source = |problem| format!("{}: {problem}", self.source);
        let problems = unread.chain(ignored).map(of_source);
        #[cfg(feature = "redis")]
        let problems = problems.chain(self.inventory.lost().map(str::to_owned));
        watch.set_problems(problems.collect());
        POLL_INTERVAL
    }

    /// Has the registries decide by what was read last, and checks it if it or the policies are new.
    fn check(&mut self, watch: &Watch) {
        let (set, limiters) = (watch.set(), watch.apply());
        let checked = Some((set.id(), known_version(limiters.iter().map(|it| &**it))));
        if checked != self.checked {
            let known = known(limiters);
            let (in_force, ignored) = (set.in_force(&known), set.problems(&known));
            let is_new = checked.map(|it| it.0) != self.checked.map(|it| it.0);
            self.checked = checked;
            self.log_check(in_force, ignored, is_new);
        }
    }

    /// Logs each problem of reading once, until the source can be read again, and of an outage only the first.
    fn log_reading(&mut self, problem: Option<&str>) {
        let source = &self.source;
        let Some(problem) = problem else {
            if !self.unread.is_empty() {
                log!(INFO, %source, "overrides can be read again");
                self.unread.clear();
            }
            return;
        };
        let is_known = self.unread.len() == MOST_LOGGED || self.unread.iter().any(|it| it == problem);
        if is_known || self.failures > MOST_FAILURES {
            return;
        }
        if self.failures > 0 {
            log!(WARN, %source, problem, "overrides have not been read for a while and stay as they are");
        } else {
            log!(ERROR, %source, problem, "overrides could not be read and stay as they are");
        }
        self.unread.push(problem.to_owned());
    }

    /// Logs what became of overrides, of which some may be new.
    fn log_check(&mut self, in_force: Vec<Entry>, ignored: Vec<String>, is_new: bool) {
        let source = &self.source;
        if !in_force.is_empty() && (is_new || in_force != self.in_force) {
            let keys = in_force.iter().filter(|entry| !entry.key.is_empty()).count();
            let mut policies: Vec<_> = in_force.iter().map(|entry| &*entry.policy).collect();
            policies.dedup();
            let names = listed(policies.iter().copied(), ", ");
            log!(INFO, %source, policies = policies.len(), keys, names, "overrides are in force");
        } else if in_force.is_empty() && !self.in_force.is_empty() {
            log!(INFO, %source, "overrides have ended");
        }
        if !ignored.is_empty() && ignored != self.ignored {
            let problem = listed(ignored.iter().map(String::as_str), "; ");
            log!(ERROR, %source, problem, "overrides that are invalid are ignored");
        }
        (self.in_force, self.ignored) = (in_force, ignored);
    }
}

/// Returns a list for an event, which is cut off.
fn listed<'a>(mut items: impl ExactSizeIterator<Item = &'a str>, separator: &str) -> String {
    let mut list = items.by_ref().take(MOST_LOGGED).collect::<Vec<_>>().join(separator);
    if items.len() > 0 {
        list += &format!("{separator}and {} more", items.len());
    }
    list
}
