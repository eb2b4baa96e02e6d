//! What an error of Redis says: about the command, and about the server.

use redis::{ErrorKind, RedisError, ServerErrorKind, Value};

use super::scripts::is_defect;
use crate::error::StoreError;

/// Why there is no reply to use.
pub(super) enum Failure {
    /// Nothing was sent.
    Unsent(StoreError),
    /// Redis answered with an error, or its answer was lost.
    Replied(RedisError),
    /// There was no answer in time.
    Late(StoreError),
}

/// What an answer says about the server.
pub(super) enum Sign {
    /// It does its work.
    Well,
    /// The connection is gone.
    Lost(StoreError),
    /// It cannot do its work for now.
    Unable(StoreError),
    /// It is not the one to ask, or does not know us any more: a new connection may lead to the one that is.
    Elsewhere(StoreError),
}

impl Failure {
    pub(super) fn late() -> Self {
        Failure::Late(StoreError::new("Redis has not answered in time"))
    }

    /// Whether it is the server's, which may not be the one to ask, and not the command's.
    pub(super) fn is_of_server(&self) -> bool {
        match self {
            Failure::Unsent(error) => !error.is_defect(),
            Failure::Late(_) => true,
            Failure::Replied(error) => !matches!(Sign::of(error), Sign::Well),
        }
    }

    /// Whether the server knows us, and does not let us do this.
    pub(super) fn is_no_permission(&self) -> bool {
        matches!(self, Failure::Replied(error) if error.code() == Some("NOPERM"))
    }

    /// Whether it says that the server has never seen the script, so that nothing ran.
    pub(super) fn is_no_script(&self) -> bool {
        let no_script = ErrorKind::Server(ServerErrorKind::NoScript);
        matches!(self, Failure::Replied(error) if error.kind() == no_script)
    }
}

impl From<Failure> for StoreError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Unsent(error) | Failure::Late(error) => error,
            Failure::Replied(error) => replied(error),
        }
    }
}

impl Sign {
    pub(super) fn of(error: &RedisError) -> Self {
        let told = || replied(error.clone());
        match error.code() {
            Some(code) => Sign::by_code(code, told),
            None if error.is_unrecoverable_error() || error.is_io_error() => Sign::Lost(told()),
            None => Sign::Well,
        }
    }

    fn by_code(code: &str, told: impl Fn() -> StoreError) -> Self {
        match code {
            "LOADING" | "BUSY" | "CLUSTERDOWN" => Sign::Unable(told()),
            "READONLY" | "MASTERDOWN" | "NOAUTH" | "WRONGPASS" => Sign::Elsewhere(told()),
            _ => Sign::Well,
        }
    }
}

/// What a reply says about the server. A script catches the errors of its decisions, and replies their texts.
pub(super) fn sign(reply: &Value) -> Sign {
    let Value::Array(values) = reply else { return Sign::Well };
    let text = |value: &Value| match value {
        Value::BulkString(text) if text.first().is_some_and(u8::is_ascii_uppercase) => {
            Some(String::from_utf8_lossy(text).into_owned())
        }
        _ => None,
    };
    let Some(text) = values.iter().find_map(text) else { return Sign::Well };
    let code = text.split(' ').next().unwrap_or_default();
    Sign::by_code(code, || StoreError::new(format!("Redis failed: {text}")))
}

fn replied(error: RedisError) -> StoreError {
    let Some(code) = error.code() else { return StoreError::new("Redis failed").caused_by(error) };
    // What an unknown command was called with has keys in it.
    let detail = error.detail().unwrap_or_default().split(", with args").next().unwrap_or_default();
    let problem = format!("{code} {detail}");
    let told = format!("Redis failed: {problem}");
    if is_defect(&problem) { StoreError::defect(told) } else { StoreError::new(told) }
}
