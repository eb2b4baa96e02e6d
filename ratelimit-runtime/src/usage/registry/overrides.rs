//! The overrides of a registry.

use std::fmt;
use std::path::PathBuf;
#[cfg(feature = "test-util")]
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::Registry;
use super::watch::{Member, Watch, known};
use crate::decide::overrides::Entry;
#[cfg(feature = "test-util")]
use crate::decide::overrides::OverrideSet;
#[cfg(feature = "redis")]
use crate::store::Store;

/// What an operator changes of a policy, for all its keys or for one. [`Registry::overrides`] returns those in force.
///
/// Its text is a table in a file of overrides.
///
/// ```
/// let registry = ratelimits::Registry::in_memory();
/// for overridden in registry.overrides() {
///     println!("{}: {}", overridden.policy(), overridden.settings().join(", "));
/// }
/// ```
#[derive(Clone, PartialEq)]
pub struct Override(Entry);

/// Where the overrides of a registry are.
#[derive(Clone, Debug)]
pub(super) enum OverridesFrom {
    File(PathBuf),
    /// In the store.
    #[cfg(feature = "redis")]
    Redis,
}

impl Registry {
    /// Returns the overrides that are in force, by the names of their policies and by their keys.
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
    /// assert_eq!(search.policy(), "search");
    /// assert_eq!(search.settings(), ["rate = \"100/min\"", "shadow = true"]);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn overrides(&self) -> Vec<Override> {
        let set = self.backend().overrides().set();
        let entries = if set.is_empty() { Vec::new() } else { set.in_force(&known([&*self.0.limiters])) };
        entries.into_iter().map(Override).collect()
    }

    /// Has the registry decide by the overrides of a text from its next call on, in place of all others, for tests that know when.
    ///
    /// # Errors
    ///
    /// Returns the problems of the text.
    #[cfg(feature = "test-util")]
    #[doc(hidden)]
    pub fn override_now(&self, text: &str) -> Result<(), String> {
        let set = OverrideSet::parse(text)?;
        let problems = set.problems(&known([&*self.0.limiters]));
        self.backend().overrides().replace(&Arc::new(set));
        if problems.is_empty() { Ok(()) } else { Err(problems.join("; ")) }
    }

    /// Returns how many problems there are with the overrides.
    #[cfg(feature = "metrics")]
    pub(crate) fn override_problems(&self) -> usize {
        self.0.watch.get().map_or(0, |watch| watch.problems().len())
    }

    /// Applies the overrides of a source, now and whenever they change, as long as the registry exists.
    pub(super) fn watch(&self, from: OverridesFrom) {
        let member = Member::new(self.backend().overrides(), &self.0.limiters);
        let watch = match from {
            OverridesFrom::File(path) => Watch::file(path, member),
            #[cfg(feature = "redis")]
            OverridesFrom::Redis => match self.backend().store() {
                Some(Store::Redis(store)) => {
                    Watch::redis(store.overrides(self.backend().namespace_text()).patient(), member)
                }
                _ => return,
            },
        };
        let _ = self.0.watch.set(watch);
    }
}

impl Override {
    /// Returns the name of the policy, or `prefix:name`.
    #[must_use]
    pub fn policy(&self) -> &str {
        &self.0.policy
    }

    /// Returns the parts of the key that it is for; none if it is for all keys. They may be personal data.
    ///
    /// ```standalone_crate
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use ratelimits::{FixedWindow, Registry};
    /// # use std::time::Duration;
    /// # let limits = std::env::temp_dir().join(format!("by-key-{}.toml", std::process::id()));
    /// std::fs::write(&limits, "[reports.keys.tenant-7]\nlimit = 2\n")?;
    /// # let written = std::fs::File::options().write(true).open(&limits)?;
    /// # written.set_modified(std::time::SystemTime::UNIX_EPOCH)?;
    /// let registry = Registry::builder().overrides(&limits).in_memory();
    /// # std::fs::remove_file(limits)?;
    /// let reports = registry.limiter("reports", FixedWindow::new(1, Duration::from_secs(60)))?;
    /// assert_eq!(registry.overrides()[0].key(), ["tenant-7"]);
    /// assert_eq!(reports.peek("tenant-7").await?.limit, 2);
    /// assert_eq!(reports.peek("tenant-8").await?.limit, 1);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn key(&self) -> &[String] {
        &self.0.key
    }

    /// Returns what it sets, such as `rate = "100/min"` and `shadow = true`.
    #[must_use]
    pub fn settings(&self) -> Vec<String> {
        self.0.settings()
    }

    /// Returns when it ends, by the clock of the store, if it does by itself.
    #[must_use]
    pub fn until(&self) -> Option<SystemTime> {
        SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(self.0.until?))
    }

    /// Returns who has set it, if that is said.
    #[must_use]
    pub fn author(&self) -> Option<&str> {
        self.0.author.as_deref()
    }

    /// Returns why it was set, if that is said.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        self.0.reason.as_deref()
    }
}

impl fmt::Display for Override {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Without the key.
impl fmt::Debug for Override {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Entry { policy, .. } = &self.0;
        f.debug_struct("Override")
            .field("policy", policy)
            .field("settings", &self.settings())
            .finish_non_exhaustive()
    }
}
