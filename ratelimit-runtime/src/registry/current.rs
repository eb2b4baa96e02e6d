//! Which registry decides a call: that of the scope, else the installed one, else one in this process.

use std::future::Future;

use super::Registry;
use crate::error::Error;
use crate::error::store::StoreError;

tokio::task_local! {
    static SCOPE: Registry;
}

/// Makes this the registry of the process: every function counts there that is not in the scope of another.
///
/// # Errors
///
/// [`Error::Store`] if one is installed already, or a decision has been made without one: a process that has begun to
/// count in one place does not go on in another.
///
/// ```no_run
/// # async fn main_of_a_service() -> Result<(), ratelimits::Error> {
/// ratelimits::install(ratelimits::Registry::connect("redis://127.0.0.1:6379").await?)?;
/// # Ok(()) }
/// ```
pub fn install(registry: Registry) -> Result<(), Error> {
    process::install(registry).map_err(|problem| StoreError::permanent(problem).into())
}

/// The registry of this call.
pub(crate) fn current() -> Registry {
    SCOPE.try_with(Registry::clone).unwrap_or_else(|_| {
        let registry = process::registry();
        if registry.backend().store.is_none() {
            super::warn_if_off();
        }
        registry
    })
}

/// The registry of those who have none.
fn default() -> Registry {
    Registry::builder().in_memory_silently()
}

pub(super) async fn scope<F: Future>(registry: Registry, future: F) -> F::Output {
    SCOPE.scope(registry, future).await
}

const INSTALLED: &str = "a registry is installed already";
const DECIDED: &str = "a decision was made before a registry was installed; install it first thing in main";

/// One registry for the process, installed or by default, whichever comes first.
#[cfg(not(feature = "test-util"))]
mod process {
    use std::sync::OnceLock;

    use super::{DECIDED, INSTALLED, Registry, default};

    static REGISTRY: OnceLock<(Registry, &str)> = OnceLock::new();

    pub(super) fn install(registry: Registry) -> Result<(), &'static str> {
        REGISTRY
            .set((registry, INSTALLED))
            .map_err(|_| REGISTRY.get().map_or(INSTALLED, |(_, problem)| problem))
    }

    pub(super) fn registry() -> Registry {
        REGISTRY.get_or_init(|| (default(), DECIDED)).0.clone()
    }
}

/// By default one registry for each runtime, so that tests do not meet.
#[cfg(feature = "test-util")]
mod process {
    use std::collections::HashMap;
    use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

    use tokio::runtime::{Handle, Id};

    use super::{DECIDED, INSTALLED, Registry, default};

    #[derive(Default)]
    struct Registries {
        installed: Option<Registry>,
        by_runtime: HashMap<Option<Id>, Registry>,
    }

    pub(super) fn install(registry: Registry) -> Result<(), &'static str> {
        let mut registries = registries();
        if registries.installed.is_some() {
            return Err(INSTALLED);
        } else if !registries.by_runtime.is_empty() {
            return Err(DECIDED);
        }
        registries.installed = Some(registry);
        Ok(())
    }

    pub(super) fn registry() -> Registry {
        let Registries { installed, by_runtime } = &mut *registries();
        if let Some(installed) = installed {
            return installed.clone();
        }
        let runtime = Handle::try_current().ok().map(|handle| handle.id());
        by_runtime.entry(runtime).or_insert_with(default).clone()
    }

    fn registries() -> MutexGuard<'static, Registries> {
        static REGISTRIES: LazyLock<Mutex<Registries>> = LazyLock::new(Mutex::default);
        REGISTRIES.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
