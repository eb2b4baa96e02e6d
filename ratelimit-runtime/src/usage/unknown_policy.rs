//! A name that no policy has.

use std::error::Error as StdError;
use std::fmt;

/// No attribute of the program declares a policy of this name. [`Registry::policy`](crate::Registry::policy) returns it.
///
/// ```standalone_crate
/// # use ratelimits::{Error, Registry, rate_limit};
/// #[rate_limit(5.0, name = "search")]
/// async fn search() -> Result<(), Error> {
///     Ok(())
/// }
///
/// let unknown = Registry::in_memory().policy("serach").unwrap_err();
/// assert_eq!(unknown.to_string(), "no policy is named `serach`; did you mean `search`?");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownPolicy {
    name: String,
    /// What the caller may have meant.
    meant: Vec<String>,
}

impl UnknownPolicy {
    /// Creates an error about a name that several policies have, or none.
    pub(crate) fn new(name: &str, meant: Vec<String>) -> Self {
        UnknownPolicy { name: name.to_owned(), meant }
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Display for UnknownPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.name;
        match &self.meant[..] {
            [] => write!(f, "no policy is named `{name}`; `ratelimits::policies()` lists the names"),
            [meant] => write!(f, "no policy is named `{name}`; did you mean `{meant}`?"),
            several => {
                write!(f, "several policies are named `{name}`; write one of `{}`", several.join("`, `"))
            }
        }
    }
}

impl StdError for UnknownPolicy {}
