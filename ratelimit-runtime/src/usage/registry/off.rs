//! The switches that turn limits off.

use std::env;
use std::fmt::Display;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::base::log::log;
use crate::store::error::StoreError;

/// The value of `RATELIMITS_OFF`. Read once, so that it holds for the whole process.
static SWITCH: LazyLock<Switch> = LazyLock::new(|| match env::var("RATELIMITS_OFF") {
    Ok(value) => Switch::parse(value),
    Err(env::VarError::NotPresent) => Switch::On,
    Err(env::VarError::NotUnicode(value)) => Switch::Invalid(value.to_string_lossy().into_owned()),
});

/// Whether limits are on.
enum Switch {
    On,
    Off(String),
    /// Neither, so that limits stay on.
    Invalid(String),
}

/// Whether `RATELIMITS_OFF` is set.
pub(super) fn is_off() -> bool {
    matches!(*SWITCH, Switch::Off(_))
}

/// Fails if `RATELIMITS_OFF` is neither yes nor no.
pub(super) fn check() -> Result<(), StoreError> {
    match &*SWITCH {
        Switch::Invalid(value) => Err(StoreError::permanent(invalid(value))),
        _ => Ok(()),
    }
}

/// Logs once if limits are off, or would be but for the spelling. Must not be called under a lock, because a subscriber may
/// itself be rate limited.
pub(super) fn warn_if_off() {
    static WARNED: AtomicBool = AtomicBool::new(false);
    if matches!(*SWITCH, Switch::On) || WARNED.swap(true, Ordering::Relaxed) {
        return;
    }
    match &*SWITCH {
        Switch::On => {}
        Switch::Off(value) => warn(&format!("RATELIMITS_OFF={value} is set")),
        Switch::Invalid(value) => {
            let problem = invalid(value);
            log!(ERROR, "{problem}; limits stay on");
            print_without_subscriber(format_args!("{problem}; limits stay on"));
        }
    }
}

pub(super) fn warn(reason: &str) {
    log!(WARN, "{reason}: all limits are off");
    print_without_subscriber(format_args!("{reason}: all limits are off"));
}

fn print_without_subscriber(message: impl Display) {
    if !tracing::dispatcher::has_been_set() {
        eprintln!("ratelimits: {message}");
    }
}

fn invalid(value: &str) -> String {
    format!("RATELIMITS_OFF={value} is neither yes nor no; write 1, true, yes or on, or 0, false, no or off")
}

impl Switch {
    fn parse(value: String) -> Self {
        match &*value.to_ascii_lowercase() {
            "1" | "true" | "yes" | "on" => Switch::Off(value),
            "" | "0" | "false" | "no" | "off" => Switch::On,
            _ => Switch::Invalid(value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Switch;

    #[test]
    fn yes_and_no_have_several_spellings() {
        for yes in ["1", "true", "TRUE", "Yes", "on"] {
            assert!(matches!(Switch::parse(yes.to_owned()), Switch::Off(_)), "{yes}");
        }
        for no in ["", "0", "false", "False", "no", "OFF"] {
            assert!(matches!(Switch::parse(no.to_owned()), Switch::On), "{no}");
        }
        for invalid in ["2", "maybe", " 1", "tru", "disabled"] {
            assert!(matches!(Switch::parse(invalid.to_owned()), Switch::Invalid(_)), "{invalid}");
        }
    }
}
