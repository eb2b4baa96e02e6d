//! The overrides of a registry.

use std::path::PathBuf;

use super::Registry;
use super::watch::{Member, Watch, known};
use crate::decide::overrides::Override;
#[cfg(feature = "redis")]
use crate::store::Store;

/// Where the overrides of a registry are.
#[derive(Clone, Debug)]
pub(super) enum OverridesFrom {
    File(PathBuf),
    /// In the store.
    #[cfg(feature = "redis")]
    Redis,
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
        let set = self.backend().overrides().set();
        if set.is_empty() { Vec::new() } else { set.in_force(&known([&*self.0.limiters])) }
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
                    Watch::redis(store.overrides(self.backend().namespace_text()), member)
                }
                _ => return,
            },
        };
        let _ = self.0.watch.set(watch);
    }
}
