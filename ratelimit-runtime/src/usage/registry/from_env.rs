//! Registries on the store that the environment names.

use std::env::VarError;

use super::Registry;
use super::builder::{MEMORY, RegistryBuilder, answered};
use super::off::{check, is_off};
use crate::base::log::log;
use crate::decide::error::Error;
use crate::store::error::StoreError;

const VARIABLE: &str = "RATELIMITS_URL";

impl Registry {
    /// Creates a registry on the store at the URL in the environment variable `RATELIMITS_URL`, and waits until the store
    /// answers. If the variable is not set, the registry is in process, and a warning is logged: every process then counts alone.
    /// An empty variable is an error, like any other text that is no URL.
    ///
    /// # Errors
    ///
    /// As [`connect`](Self::connect).
    pub async fn from_env() -> Result<Self, Error> {
        Registry::builder().from_env().await
    }

    /// Creates the registry like [`from_env`](Self::from_env), without connecting yet: a Redis that is absent does not keep the
    /// process from starting.
    ///
    /// # Errors
    ///
    /// As [`connect_lazy`](Self::connect_lazy).
    pub fn from_env_lazy() -> Result<Self, Error> {
        Registry::builder().from_env_lazy()
    }
}

impl RegistryBuilder {
    /// Creates the registry like [`Registry::from_env`].
    ///
    /// # Errors
    ///
    /// As [`Registry::from_env`].
    ///
    /// ```
    /// use ratelimits::{Registry, TokenBucket};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), ratelimits::Error> {
    /// // In process, unless RATELIMITS_URL is set. `memory://` says so, and logs no warning.
    /// let registry = Registry::builder().namespace("shop").instances(8).from_env().await?;
    /// registry.limiter("reports", TokenBucket::per_second(2))?.try_acquire("tenant-7").await?;
    /// # Ok(()) }
    /// ```
    pub async fn from_env(self) -> Result<Registry, Error> {
        match self.at_env()? {
            EnvRegistry::AtUrl(registry) => answered(registry).await,
            EnvRegistry::InProcess(registry) => Ok(registry),
        }
    }

    /// Creates the registry like [`Registry::from_env_lazy`].
    ///
    /// # Errors
    ///
    /// As [`Registry::from_env_lazy`].
    pub fn from_env_lazy(self) -> Result<Registry, Error> {
        match self.at_env()? {
            EnvRegistry::AtUrl(registry) => {
                registry.backend().log_store(None);
                Ok(registry)
            }
            EnvRegistry::InProcess(registry) => Ok(registry),
        }
    }

    fn at_env(self) -> Result<EnvRegistry, Error> {
        match std::env::var(VARIABLE) {
            Ok(url) => {
                // The error of another variable names that one.
                check()?;
                let registry = self.at_url(&url).map_err(|error| {
                    // Without certificates, which are not from the environment, only the URL can be wrong.
                    Registry::builder()
                        .at_url(&url)
                        .err()
                        .map_or(error, |of_url| of_url.with_subject(VARIABLE))
                })?;
                Ok(EnvRegistry::AtUrl(registry))
            }
            Err(VarError::NotPresent) => {
                let registry = self.at_url(MEMORY)?;
                if !is_off() {
                    log!(WARN, "RATELIMITS_URL is not set: limits are decided in this process alone");
                }
                Ok(EnvRegistry::InProcess(registry))
            }
            // Its own message would contain the URL, and with it perhaps a password.
            Err(VarError::NotUnicode(_)) => {
                Err(StoreError::permanent("it is not valid UTF-8").with_subject(VARIABLE).into())
            }
        }
    }
}

/// A registry on the store of the variable, or without it.
enum EnvRegistry {
    AtUrl(Registry),
    InProcess(Registry),
}
