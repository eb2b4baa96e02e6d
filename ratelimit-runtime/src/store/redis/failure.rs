//! What an error of Redis says: about the command, and about the server.

use redis::{ErrorKind, RedisError, ServerErrorKind, Value};

use super::scripts::{is_permanent, words};
use crate::error::store::StoreError;

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
        Failure::Late(StoreError::transient("Redis has not answered in time"))
    }

    /// Whether it is the server's, which may not be the one to ask, and not the command's.
    pub(super) fn is_of_server(&self) -> bool {
        match self {
            Failure::Unsent(error) => !error.is_permanent(),
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
            Some(code) => Sign::by_text(&text(code, error), told),
            None if error.is_unrecoverable_error() || error.is_io_error() => Sign::Lost(told()),
            None => Sign::Well,
        }
    }

    fn by_text(text: &str, told: impl Fn() -> StoreError) -> Self {
        let sign = words(text).take(12).find_map(|word| match word {
            "LOADING" | "BUSY" | "CLUSTERDOWN" => Some(Sign::Unable(told())),
            "READONLY" | "MASTERDOWN" | "NOAUTH" | "WRONGPASS" => Some(Sign::Elsewhere(told())),
            _ => None,
        });
        sign.unwrap_or(Sign::Well)
    }
}

/// What a reply says about the server. A script catches the errors of its decisions, and replies their texts.
pub(super) fn sign(reply: &Value) -> Sign {
    let Value::Array(values) = reply else { return Sign::Well };
    let text = |value: &Value| match value {
        Value::BulkString(text) if matches!(text.first(), Some(b'A'..=b'Z' | b'@')) => {
            Some(String::from_utf8_lossy(text).into_owned())
        }
        _ => None,
    };
    let Some(text) = values.iter().find_map(text) else { return Sign::Well };
    Sign::by_text(&text, || StoreError::transient(format!("Redis failed: {text}")))
}

/// Why a connection could not be opened.
pub(super) fn unreachable(error: RedisError) -> StoreError {
    match error.code() {
        Some(code) => StoreError::transient(format!("Redis cannot be reached: {}", text(code, &error))),
        None => StoreError::transient("Redis cannot be reached").caused_by(error),
    }
}

fn replied(error: RedisError) -> StoreError {
    let Some(code) = error.code() else { return StoreError::transient("Redis failed").caused_by(error) };
    let text = text(code, &error);
    match code {
        _ if is_permanent(&text) => StoreError::permanent(format!("Redis failed: {text}")),
        "MOVED" | "ASK" => StoreError::transient(format!(
            "Redis failed: {text}: this node of a Redis Cluster does not have the key; the URL of a Cluster begins with \
             redis+cluster://"
        )),
        _ => StoreError::transient(format!("Redis failed: {text}")),
    }
}

/// What the server has said, but for what an unknown command was called with: keys, or a password.
fn text(code: &str, error: &RedisError) -> String {
    let detail = error.detail().unwrap_or_default().split(", with args").next().unwrap_or_default();
    format!("{code} {detail}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_found_wherever_redis_puts_it() {
        let sign = |text: &str| Sign::by_text(text, || StoreError::transient(text));
        for text in [
            "READONLY You can't write against a read only replica.",
            "READONLY You can't write against a read only replica. script: 7a3, on @user_script:12.",
            "@user_script: 12: -READONLY You can't write against a read only replica.",
            "ERR Error running script (call to f_7a3): @user_script:12: @user_script: 12: -READONLY You can't write",
        ] {
            assert!(matches!(sign(text), Sign::Elsewhere(_)), "{text}");
        }
        assert!(matches!(sign("LOADING Redis is loading the dataset in memory"), Sign::Unable(_)));
        assert!(matches!(sign("OOM command not allowed when used memory > 'maxmemory'."), Sign::Well));
    }

    #[test]
    fn what_a_command_was_called_with_is_not_told() {
        let reply = b"-ERR unknown command 'HELLO', with args beginning with: '3' 'AUTH' 'ann' 'secret' \r\n";
        let error = redis::parse_redis_value(reply).unwrap().extract_error().unwrap_err();
        for told in [unreachable(error.clone()), replied(error)] {
            let told = format!("{told} {told:?}");
            assert!(told.contains("unknown command 'HELLO'") && !told.contains("secret"), "{told}");
        }
    }
}
