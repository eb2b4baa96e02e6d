//! Errors of `install`.

use std::error::Error as StdError;
use std::fmt;

/// A registry could not be installed.
///
/// ```
/// use ratelimits::{Registry, install};
/// use ratelimits::error::InstallError;
///
/// install(Registry::in_memory()).unwrap();
/// assert_eq!(install(Registry::in_memory()), Err(InstallError::AlreadyInstalled));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InstallError {
    /// Another registry is installed.
    AlreadyInstalled,
    /// A decision was made before a registry was installed. A process that has started to count in one place does not continue
    /// in another.
    AlreadyInUse,
}

impl fmt::Display for InstallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            InstallError::AlreadyInstalled => "a registry is already installed",
            InstallError::AlreadyInUse => {
                "a decision was made before a registry was installed; call `install` first in main"
            }
        })
    }
}

impl StdError for InstallError {}
