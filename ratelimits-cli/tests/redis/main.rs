//! The commands that work on a Redis, run against servers that the tests start.

mod command;
mod deployments;
mod holds;
mod inventory;
mod list;
mod many_keys;
mod overridden;
mod override_keys;
mod override_set;
mod overrides;
mod pause;
mod peek;
mod permissions;
mod published;
mod reset;
mod top;
mod watch;

/// Those of the library's tests.
#[path = "../../../tests/it/support"]
#[allow(dead_code, reason = "each package uses some of what they share")]
mod support {
    pub(crate) mod budget;
    pub(crate) mod server;
    pub(crate) mod until;
}
