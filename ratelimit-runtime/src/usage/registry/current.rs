//! Which registry decides a call: that of the scope, else the installed one, else one in process.

use std::future::Future;
use std::ops::Deref;
use std::sync::Arc;

use super::Registry;
use super::install_error::InstallError;
use super::off::is_off;
use crate::base::log::log;
use crate::decide::backend::Backend;
use crate::usage::check::log_problems;

tokio::task_local! {
    static SCOPE: Registry;
}

/// Installs the registry of the process, which decides every limited function outside a [`Registry::scope`].
///
/// A registry is cheap to clone: keep a clone for what needs one, such as limiters and [`Registry::policy`].
///
/// Logs names that clash, and time zones that do not exist, at error level, as [`check_policies`](crate::check_policies) finds them.
///
/// # Errors
///
/// [`InstallError`] if a registry is installed already, or a decision was made without one: a process never counts in two
/// places.
///
/// ```no_run
/// # async fn main_of_a_service() -> Result<(), Box<dyn std::error::Error>> {
/// ratelimits::install(ratelimits::Registry::connect("redis://127.0.0.1:6379").await?)?;
/// # Ok(()) }
/// ```
pub fn install(registry: Registry) -> Result<(), InstallError> {
    process::install(registry)?;
    log_problems();
    Ok(())
}

impl Registry {
    /// Runs the future with this registry in place of the installed one, for tests or tenants. It applies to everything awaited
    /// in the future, not to tasks spawned there.
    ///
    /// ```
    /// # use ratelimits::{Error, Registry, count_limit};
    /// #[count_limit(1, "1h")]
    /// async fn report() -> Result<(), Error> {
    ///     Ok(())
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// for _ in 0..2 {
    ///     Registry::in_memory().scope(report()).await.unwrap();
    /// }
    /// # }
    /// ```
    pub async fn scope<F: Future>(&self, future: F) -> F::Output {
        SCOPE.scope(self.clone(), future).await
    }

    /// Runs code that is not async with this registry, like [`scope`](Self::scope). It applies to the thread of the caller only.
    ///
    /// ```
    /// # use ratelimits::{Error, Registry, count_limit};
    /// #[count_limit(1, "1h")]
    /// fn report() -> Result<(), Error> {
    ///     Ok(())
    /// }
    ///
    /// Registry::in_memory().sync_scope(|| {
    ///     assert!(report().is_ok());
    ///     assert!(report().unwrap_err().is_limited());
    /// });
    /// ```
    pub fn sync_scope<T>(&self, code: impl FnOnce() -> T) -> T {
        SCOPE.sync_scope(self.clone(), code)
    }
}

/// Where the registry that decides a call does so.
#[derive(Debug)]
pub(crate) enum CurrentBackend {
    /// That of the whole process. All threads use it, so they count no references.
    #[cfg(not(feature = "test-util"))]
    Process(&'static Arc<Backend>),
    Own(Arc<Backend>),
}

/// Returns where the current call is decided.
#[inline]
pub(crate) fn current() -> CurrentBackend {
    SCOPE.try_with(CurrentBackend::own).unwrap_or_else(|_| process::backend())
}

impl CurrentBackend {
    /// That of a registry which may be dropped before the call is decided.
    pub(crate) fn own(registry: &Registry) -> Self {
        CurrentBackend::Own(Arc::clone(registry.backend()))
    }
}

impl Deref for CurrentBackend {
    type Target = Arc<Backend>;

    #[inline]
    fn deref(&self) -> &Arc<Backend> {
        match self {
            #[cfg(not(feature = "test-util"))]
            CurrentBackend::Process(backend) => backend,
            CurrentBackend::Own(backend) => backend,
        }
    }
}

/// The registry of processes that install none.
fn default() -> Registry {
    Registry::builder().in_memory_unlogged()
}

/// Logs the first use of a default registry. Must not be called under a lock, because a subscriber may itself be rate limited.
#[cold]
fn log_default() {
    if !is_off() {
        log!(INFO, reason = "no registry is installed", "limits are decided in this process");
    }
}

/// One registry for the process: the installed or the default one, whichever is used first.
#[cfg(not(feature = "test-util"))]
mod process {
    use std::sync::OnceLock;

    use super::{CurrentBackend, InstallError, Registry, default, log_default};
    use crate::usage::registry::off::warn_if_off;

    /// The registry, and why no other can be installed.
    static REGISTRY: OnceLock<(Registry, InstallError)> = OnceLock::new();

    pub(super) fn install(registry: Registry) -> Result<(), InstallError> {
        let installed = REGISTRY.set((registry, InstallError::AlreadyInstalled));
        installed.map_err(|_| REGISTRY.get().map_or(InstallError::AlreadyInstalled, |(_, error)| *error))
    }

    #[inline]
    pub(super) fn backend() -> CurrentBackend {
        let registry = REGISTRY.get().map_or_else(first_use, |(registry, _)| registry);
        CurrentBackend::Process(registry.backend())
    }

    #[cold]
    fn first_use() -> &'static Registry {
        let mut is_new = false;
        let (registry, _) = REGISTRY.get_or_init(|| {
            is_new = true;
            (default(), InstallError::AlreadyInUse)
        });
        warn_if_off();
        if is_new {
            log_default();
        }
        registry
    }
}

/// By default one registry for each runtime, so that tests do not share limits.
#[cfg(feature = "test-util")]
mod process {
    use std::collections::HashMap;
    use std::collections::hash_map::Entry;
    use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

    use tokio::runtime::{Handle, Id};

    use super::{CurrentBackend, InstallError, Registry, default, log_default};
    use crate::usage::registry::off::warn_if_off;

    #[derive(Default)]
    struct Registries {
        installed: Option<Registry>,
        by_runtime: HashMap<Option<Id>, Registry>,
    }

    pub(super) fn install(registry: Registry) -> Result<(), InstallError> {
        let mut registries = registries();
        if registries.installed.is_some() {
            return Err(InstallError::AlreadyInstalled);
        } else if !registries.by_runtime.is_empty() {
            return Err(InstallError::AlreadyInUse);
        }
        registries.installed = Some(registry);
        Ok(())
    }

    pub(super) fn backend() -> CurrentBackend {
        let (registry, is_new) = registry_of_runtime();
        warn_if_off();
        if is_new {
            log_default();
        }
        CurrentBackend::own(&registry)
    }

    /// Returns the registry, and whether it was created now.
    fn registry_of_runtime() -> (Registry, bool) {
        let Registries { installed, by_runtime } = &mut *registries();
        if let Some(installed) = installed {
            return (installed.clone(), false);
        }
        let runtime = Handle::try_current().ok().map(|handle| handle.id());
        match by_runtime.entry(runtime) {
            Entry::Occupied(registry) => (registry.get().clone(), false),
            Entry::Vacant(place) => (place.insert(default()).clone(), true),
        }
    }

    fn registries() -> MutexGuard<'static, Registries> {
        static REGISTRIES: LazyLock<Mutex<Registries>> = LazyLock::new(Mutex::default);
        REGISTRIES.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
