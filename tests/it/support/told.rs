//! The former name of [`log_capture`], for tests that still use it.

#[path = "log_capture.rs"]
pub(crate) mod log_capture;

pub(crate) use self::log_capture::LogCapture as Told;
