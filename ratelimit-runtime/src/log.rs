//! The events of this library.

/// Logs an event with the target that all events of the library have, so that a filter can name it.
macro_rules! log {
    ($level:ident, $($event:tt)+) => {
        tracing::event!(target: "ratelimits", tracing::Level::$level, $($event)+)
    };
}

pub(crate) use log;
