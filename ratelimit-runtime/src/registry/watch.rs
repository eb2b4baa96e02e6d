//! Overrides of a registry: where they come from, and the thread that looks for new ones.

use std::fmt;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};

use super::{Inner, Registry};
use crate::log::log;
use crate::overrides::{KnownPolicy, Override, read_settled, register};
use crate::policies::policies;
use crate::store::Store;

const POLL_INTERVAL: Duration = Duration::from_secs(2);

/// Where the overrides of a registry are.
#[derive(Clone, Debug)]
pub(super) enum Source {
    File(PathBuf),
    /// In the store.
    #[cfg_attr(not(feature = "redis"), expect(dead_code, reason = "there is no such store"))]
    Redis,
}

/// Looks for new overrides.
struct Watcher {
    registry: Weak<Inner>,
    source: Source,
    /// For calls to Redis.
    runtime: Option<Runtime>,
    /// The last text that was read, and the version of the one in Redis.
    text: Option<String>,
    version: Option<String>,
    /// Whether the text is in force.
    is_applied: bool,
    /// The problems that were logged last.
    logged: Vec<String>,
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
    /// let registry = Registry::builder().overrides(&limits).in_memory();
    /// # std::fs::remove_file(limits)?;
    /// let [search] = &registry.overrides()[..] else { panic!("one policy is overridden") };
    /// assert_eq!(search.policy, "search");
    /// assert_eq!(search.settings(), ["rate = \"100/min\"", "shadow = true"]);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn overrides(&self) -> Vec<Override> {
        self.backend().overrides().list().iter().map(|it| Override::clone(it)).collect()
    }

    /// Applies the overrides of a source, now and whenever they change, as long as the registry exists.
    pub(super) fn watch(&self, source: Source) {
        if let Some(alive) = spawn(self, source) {
            let _ = self.0.watcher.set(alive);
        }
    }
}

/// Starts a watcher. Returns what ends it when it is dropped.
fn spawn(registry: &Registry, source: Source) -> Option<Sender<()>> {
    if matches!(source, Source::Redis) && !matches!(registry.backend().store(), Some(Store::Redis(_))) {
        return None;
    }
    let overrides = registry.backend().overrides();
    register(overrides);
    let mut watcher = Watcher {
        registry: Arc::downgrade(&registry.0),
        source,
        runtime: None,
        text: None,
        version: None,
        is_applied: false,
        logged: Vec::new(),
    };
    // A file is in force before the first call. Redis may be absent, which must not keep a process from starting.
    if let Source::File(_) = watcher.source {
        watcher.poll(&registry.0);
    }
    let (alive, ended) = channel();
    let thread = thread::Builder::new().name("ratelimits-overrides".to_owned());
    if let Err(error) = thread.spawn(move || watcher.run(&ended)) {
        let problem = format!("could not start the thread that looks for changes: {error}");
        log!(ERROR, source = "thread", problem, "overrides could not be read and stay as they are");
        overrides.set_problems(vec![problem]);
        return None;
    }
    Some(alive)
}

impl Watcher {
    fn run(mut self, ended: &Receiver<()>) {
        if let Source::Redis = self.source {
            self.runtime = Builder::new_current_thread().enable_all().build().ok();
            self.poll_registry();
        }
        while ended.recv_timeout(POLL_INTERVAL) == Err(RecvTimeoutError::Timeout) {
            self.poll_registry();
        }
    }

    fn poll_registry(&mut self) {
        if let Some(registry) = self.registry.upgrade() {
            self.poll(&registry);
        }
    }

    /// Reads the source, and applies what is new.
    fn poll(&mut self, registry: &Inner) {
        let overrides = registry.backend.overrides();
        match self.read(registry) {
            Ok(text) if self.is_applied && self.text.as_ref() == Some(&text) => {
                overrides.set_problems(Vec::new());
                self.logged.clear();
            }
            // What was invalid may have become valid, as policies of limiters become known when they are created.
            Ok(text) => {
                let applied = overrides.apply(&text, &known(registry));
                (self.text, self.is_applied) = (Some(text), applied.is_ok());
                match applied {
                    Ok(()) => {
                        let policies = overrides.list().len();
                        log!(INFO, source = %self.source, policies, "overrides are in force");
                        self.logged.clear();
                    }
                    Err(problems) => self.report(problems, |source, problem| {
                        log!(ERROR, %source, problem, "overrides are invalid and change nothing");
                    }),
                }
            }
            Err(problem) => {
                overrides.set_problems(vec![problem.clone()]);
                self.report(vec![problem], |source, problem| {
                    log!(ERROR, %source, problem, "overrides could not be read and stay as they are");
                });
            }
        }
    }

    /// Reads the text. Fails with a problem for people.
    fn read(&mut self, registry: &Inner) -> Result<String, String> {
        match (&self.source, registry.backend.store()) {
            (Source::File(path), _) => {
                read_settled(path).map_err(|error| format!("could not read {}: {error}", path.display()))
            }
            (Source::Redis, Some(Store::Redis(store))) => {
                let key = registry.backend.overrides_key();
                let runtime = self.runtime.as_ref().ok_or("could not start a tokio runtime")?;
                let (version, text) = runtime
                    .block_on(store.overrides(&key, self.version.as_deref()))
                    .map_err(|error| format!("could not read the key `{key}`: {error}"))?;
                self.version = Some(version);
                text.or_else(|| self.text.clone()).ok_or_else(|| format!("the key `{key}` has no text"))
            }
            (Source::Redis, _) => Ok(String::new()),
        }
    }

    /// Logs the same problems once.
    fn report(&mut self, problems: Vec<String>, log: impl FnOnce(&Source, &str)) {
        if problems != self.logged {
            log(&self.source, &problems.join("; "));
            self.logged = problems;
        }
    }
}

/// Returns the policies that overrides may name: those of attributes, and those of the registry's limiters.
fn known(registry: &Inner) -> Vec<KnownPolicy> {
    let of_attributes = policies().into_iter().map(|info| KnownPolicy {
        name: info.name.into_owned(),
        prefix: info.prefix.to_owned(),
        policy: (info.site.policy)(),
        computed: info.site.computed.iter().map(ToString::to_string).collect(),
        shadow: info.site.options.shadow,
    });
    let of_limiters = registry.limiters.list().into_iter().map(|(name, policy)| KnownPolicy {
        name: name.to_string(),
        prefix: String::new(),
        policy,
        computed: Vec::new(),
        shadow: false,
    });
    of_attributes.chain(of_limiters).collect()
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::File(path) => path.display().fmt(f),
            Source::Redis => f.write_str("Redis"),
        }
    }
}
