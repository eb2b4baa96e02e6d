//! A key that lacks something.

use std::error::Error as StdError;
use std::fmt;

/// The key asks for something that the call does not have. Such a call is refused: it never shares an "unknown" bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MissingKey {
    /// The client's address, which no surrounding [`RequestContext`](crate::RequestContext) has.
    Ip,
    /// The user, whom no surrounding [`RequestContext`](crate::RequestContext) has.
    User,
    /// A part of the key, which is `None`.
    Part,
}

impl fmt::Display for MissingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            MissingKey::Ip => {
                "no client address to count by; run the call inside `RequestContext::new().with_ip(address).scope(…)`"
            }
            MissingKey::User => {
                "no user to count by; run the call inside `RequestContext::new().with_user(user).scope(…)`"
            }
            MissingKey::Part => "a part of the key is `None`",
        })
    }
}

impl StdError for MissingKey {}
