//! Overrides of a registry: where they come from, and the thread that looks for new ones.

use std::fmt;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};

use super::override_file::read_settled;
use super::{Inner, Registry};
use crate::base::log::log;
use crate::decide::overrides::{KnownPolicy, Override, register};
use crate::store::Store;
use crate::usage::call_site::{Attribute, CallSite};
use crate::usage::policies::policies;

const POLL_INTERVAL: Duration = Duration::from_secs(2);

/// Where the overrides of a registry are.
#[derive(Clone, Debug)]
pub(super) enum OverridesFrom {
    File(PathBuf),
    /// In the store.
    #[cfg_attr(not(feature = "redis"), expect(dead_code, reason = "there is no such store"))]
    Redis,
}

/// Looks for new overrides.
struct Watcher {
    registry: Weak<Inner>,
    source: OverridesFrom,
    /// For calls to Redis.
    runtime: Option<Runtime>,
    /// The last text that was read, and the version of the one in Redis.
    text: Option<String>,
    version: Option<String>,
    /// What is wrong with the text, which is logged. If nothing is, the text is in force.
    logged: Vec<String>,
    /// Whether the source could not be read the last time.
    is_unreadable: bool,
}

impl Registry {
    /// Returns the overrides that are in force, by the names of their policies.
    ///
    /// ```standalone_crate
    /// # fn main() -> std::io::Result<()> {
    /// # use ratelimits::{Error, Registry, rate_limit};
    /// #[rate_limit(5.0, name = "search")]
    /// async fn search() -> Result<(), Error> {
    ///     Ok(())
    /// }
    ///
    /// # let limits = std::env::temp_dir().join(format!("search-{}.toml", std::process::id()));
    /// std::fs::write(&limits, "[search]\nrate = \"100/min\"\nshadow = true\n")?;
    /// # let written = std::fs::File::options().write(true).open(&limits)?;
    /// # written.set_modified(std::time::SystemTime::UNIX_EPOCH)?;
    /// let registry = Registry::builder().overrides(&limits).in_memory();
    /// # std::fs::remove_file(limits)?;
    /// let [search] = &registry.overrides()[..] else { panic!("one policy is overridden") };
    /// assert_eq!(search.policy, "search");
    /// assert_eq!(search.settings(), ["rate = \"100/min\"", "shadow = true"]);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn overrides(&self) -> Vec<Override> {
        self.backend().overrides().list()
    }

    /// Applies the overrides of a source, now and whenever they change, as long as the registry exists.
    pub(super) fn watch(&self, source: OverridesFrom) {
        let is_redis = matches!(self.backend().store(), Some(Store::Redis(_)));
        if matches!(source, OverridesFrom::Redis) && !is_redis {
            return;
        }
        let overrides = self.backend().overrides();
        register(overrides);
        let mut watcher = Watcher::new(self, source);
        // A file is in force before the first call. Redis may be absent, which must not keep a process from starting.
        let next = match watcher.source {
            OverridesFrom::File(_) => watcher.poll(&self.0),
            OverridesFrom::Redis => Duration::ZERO,
        };
        let (waker, woken) = channel();
        let thread = thread::Builder::new().name("ratelimits-overrides".to_owned());
        match thread.spawn(move || watcher.run(&woken, next)) {
            // The thread ends when this is dropped.
            Ok(_) => _ = self.0.watcher.set(waker),
            Err(error) => {
                let problem = format!("could not start the thread that looks for changes: {error}");
                log!(ERROR, source = "thread", problem, "overrides could not be read and stay as they are");
                overrides.set_problems(vec![problem]);
            }
        }
    }

    /// Notes that there is another limiter, which overrides may have named.
    pub(super) fn wake_watcher(&self) {
        if let Some(waker) = self.0.watcher.get()
            && !self.backend().overrides().problems().is_empty()
        {
            let _ = waker.send(());
        }
    }
}

impl Watcher {
    fn new(registry: &Registry, source: OverridesFrom) -> Self {
        Watcher {
            registry: Arc::downgrade(&registry.0),
            source,
            runtime: None,
            text: None,
            version: None,
            logged: Vec::new(),
            is_unreadable: false,
        }
    }

    /// Polls after `next`, and then again and again.
    fn run(mut self, woken: &Receiver<()>, mut next: Duration) {
        if let OverridesFrom::Redis = self.source {
            self.runtime = Builder::new_current_thread().enable_all().build().ok();
        }
        while woken.recv_timeout(next) != Err(RecvTimeoutError::Disconnected) {
            // However often it was woken.
            while woken.try_recv().is_ok() {}
            let Some(registry) = self.registry.upgrade() else { return };
            next = self.poll(&registry);
        }
    }

    /// Reads the source, and applies what is new. Returns how long to wait for the next time.
    fn poll(&mut self, registry: &Inner) -> Duration {
        let overrides = registry.backend.overrides();
        let text = match self.read(registry) {
            Ok(Ok(text)) => text,
            Ok(Err(soon)) => return soon,
            Err(problem) => {
                if !self.is_unreadable {
                    let source = &self.source;
                    log!(ERROR, %source, problem, "overrides could not be read and stay as they are");
                }
                self.is_unreadable = true;
                overrides.set_problems(vec![format!("overrides stay as they are: {problem}")]);
                return POLL_INTERVAL;
            }
        };
        self.is_unreadable = false;
        // What was invalid may have become valid, as policies of limiters become known when they are created.
        if self.text.as_ref() != Some(&text) || !self.logged.is_empty() {
            let had = overrides.is_active();
            let problems = overrides.apply(&text, &known(registry)).err().unwrap_or_default();
            self.text = Some(text);
            self.log(problems, had, overrides.list().len());
        }
        let about = |problem| format!("overrides in {} change nothing: {problem}", self.source);
        overrides.set_problems(self.logged.iter().map(about).collect());
        POLL_INTERVAL
    }

    /// Reads the text. Returns instead how long to wait, if it is being written, and fails with a problem for people.
    fn read(&mut self, registry: &Inner) -> Result<Result<String, Duration>, String> {
        match (&self.source, registry.backend.store()) {
            (OverridesFrom::File(path), _) => {
                read_settled(path).map_err(|error| format!("could not read {}: {error}", path.display()))
            }
            (OverridesFrom::Redis, Some(Store::Redis(store))) => {
                let key = registry.backend.overrides_key();
                let runtime = self.runtime.as_ref().ok_or("could not start a tokio runtime")?;
                let (version, text) = runtime
                    .block_on(store.overrides(&key, self.version.as_deref()))
                    .map_err(|error| format!("could not read the key `{key}`: {error}"))?;
                self.version = Some(version);
                Ok(Ok(text.or_else(|| self.text.clone()).unwrap_or_default()))
            }
            (OverridesFrom::Redis, _) => Ok(Ok(String::new())),
        }
    }

    /// Logs what became of a text, and the same problems once.
    fn log(&mut self, problems: Vec<String>, had: bool, policies: usize) {
        let source = &self.source;
        if problems.is_empty() && policies > 0 {
            log!(INFO, %source, policies, "overrides are in force");
        } else if problems.is_empty() && had {
            log!(INFO, %source, "overrides have ended");
        } else if !problems.is_empty() && problems != self.logged {
            let problem = problems.join("; ");
            log!(ERROR, %source, problem, "overrides are invalid and change nothing");
        }
        self.logged = problems;
    }
}

/// Returns the policies that overrides may name: those of attributes, and those of the registry's limiters.
fn known(registry: &Inner) -> Vec<KnownPolicy> {
    let known = |attribute: &'static Attribute, name: String| KnownPolicy {
        name,
        prefix: Some(attribute.options.prefix.to_owned()),
        policy: (attribute.policy)(),
        computed: attribute.computed.iter().map(ToString::to_string).collect(),
        shadow: attribute.options.shadow,
    };
    let of_attributes = policies().into_iter().map(|info| known(info.site, info.name.into_owned()));
    // One name for all types of a function.
    let declared =
        CallSite::all().into_iter().map(|site| known(&site.attribute, site.names_without_call().1));
    let of_limiters = registry.limiters.list().into_iter().map(|(name, policy)| KnownPolicy {
        name: name.to_string(),
        prefix: None,
        policy,
        computed: Vec::new(),
        shadow: false,
    });
    of_attributes.chain(declared).chain(of_limiters).collect()
}

impl fmt::Display for OverridesFrom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OverridesFrom::File(path) => path.display().fmt(f),
            OverridesFrom::Redis => f.write_str("Redis"),
        }
    }
}

#[cfg(test)]
mod tests;
