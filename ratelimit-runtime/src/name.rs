//! The names of policies.

use std::fmt::{self, Display};
use std::sync::Arc;

/// The name of a policy.
#[derive(Clone, Debug)]
pub struct Name(NameOf);

#[derive(Clone, Debug)]
enum NameOf {
    Path(&'static str),
    Method { on: &'static str, function: &'static str },
    Given(Arc<str>),
}

impl Name {
    /// A function by its path, or a name as the user wrote it.
    #[must_use]
    pub const fn path(path: &'static str) -> Self {
        Name(NameOf::Path(path))
    }

    /// A method by the name of its type, whose generic arguments do not count.
    #[must_use]
    pub const fn method(on: &'static str, function: &'static str) -> Self {
        Name(NameOf::Method { on, function })
    }

    pub(crate) fn shared(name: Arc<str>) -> Self {
        Name(NameOf::Given(name))
    }

    pub(crate) fn to_shared(&self) -> Arc<str> {
        match &self.0 {
            NameOf::Given(name) => Arc::clone(name),
            _ => self.to_string().into(),
        }
    }
}

impl Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            NameOf::Path(path) => f.write_str(path),
            NameOf::Method { on, function } => {
                let end = on.find('<').filter(|at| *at > 0).unwrap_or(on.len());
                write!(f, "{}::{function}", &on[..end])
            }
            NameOf::Given(name) => f.write_str(name),
        }
    }
}
