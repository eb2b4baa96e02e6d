//! Failed calls to Redis, and what they reveal about the server.

use std::fmt::Display;

use redis::{ErrorKind, RedisError, ServerErrorKind, Value};

use super::connect::ConnectError;
use super::error_code::{is_permanent, message, without_user, words};
use crate::base::timer::NoTimers;
use crate::store::error::StoreError;

/// Why a call has no usable reply.
pub(super) enum CallError {
    /// Nothing was sent.
    NotSent(StoreError),
    /// Redis replied with an error, or with something unexpected.
    Replied(RedisError),
    /// The connection was lost before the reply.
    Lost(StoreError),
    /// No reply came before the deadline.
    TimedOut(StoreError),
}

/// What a reply reveals about the server.
pub(super) enum ServerState {
    /// It works.
    Healthy,
    /// The connection is gone.
    Disconnected(StoreError),
    /// It cannot work for now.
    Unavailable(StoreError),
    /// It is the wrong server, or no longer accepts our login: a new connection may reach the right one.
    NeedsReconnect(StoreError),
}

impl From<NoTimers> for CallError {
    fn from(error: NoTimers) -> Self {
        CallError::NotSent(error.into())
    }
}

impl CallError {
    /// Returns the error of a command that was sent to this server.
    pub(super) fn sent(error: RedisError, server: &impl Display) -> Self {
        if error.code().is_none() && (error.is_unrecoverable_error() || error.is_io_error()) {
            let lost = StoreError::transient(format!("the connection to {server} was lost: {error}"));
            return CallError::Lost(lost.caused_by(error));
        }
        CallError::Replied(error)
    }

    /// Whether the server is at fault, which may be the wrong one, and not the command.
    pub(super) fn is_server_fault(&self) -> bool {
        match self {
            CallError::NotSent(error) => !error.is_permanent(),
            CallError::Lost(_) | CallError::TimedOut(_) => true,
            CallError::Replied(error) => !matches!(ServerState::of_error(error), ServerState::Healthy),
        }
    }

    /// Whether the server accepted our login and denied the command.
    pub(super) fn is_no_permission(&self) -> bool {
        matches!(self, CallError::Replied(error) if error.code() == Some("NOPERM"))
    }

    /// Whether the server refused the command because of one of its keys or because of several, so that nothing ran.
    pub(super) fn may_concern_one_key(&self) -> bool {
        let try_again = ErrorKind::Server(ServerErrorKind::TryAgain);
        let is_try_again = matches!(self, CallError::Replied(error) if error.kind() == try_again);
        is_try_again || self.is_cross_slot() || self.is_no_permission()
    }

    /// Whether the keys of the command are in several slots of a Cluster.
    pub(super) fn is_cross_slot(&self) -> bool {
        let cross_slot = ErrorKind::Server(ServerErrorKind::CrossSlot);
        matches!(self, CallError::Replied(error) if error.kind() == cross_slot)
    }

    /// Whether the server did not know the script, so that nothing ran.
    pub(super) fn is_no_script(&self) -> bool {
        let no_script = ErrorKind::Server(ServerErrorKind::NoScript);
        matches!(self, CallError::Replied(error) if error.kind() == no_script)
    }
}

impl From<CallError> for StoreError {
    fn from(error: CallError) -> Self {
        match error {
            CallError::NotSent(error) | CallError::Lost(error) | CallError::TimedOut(error) => error,
            CallError::Replied(error) => command_failed(error),
        }
    }
}

impl ServerState {
    pub(super) fn of_error(error: &RedisError) -> Self {
        match error.code() {
            Some(code) => ServerState::of_text(&text(code, error), || command_failed(error.clone())),
            None => ServerState::Healthy,
        }
    }

    /// Looks for errors in a script's reply: a script catches the errors of its decisions and replies with their texts.
    pub(super) fn of_reply(reply: &Value) -> Self {
        match reply {
            Value::Array(values) => {
                let mut states = values.iter().map(ServerState::of_reply);
                states.find(|state| !matches!(state, ServerState::Healthy)).unwrap_or(ServerState::Healthy)
            }
            Value::BulkString(text) if matches!(text.first(), Some(b'A'..=b'Z' | b'@')) => {
                let text = String::from_utf8_lossy(text);
                ServerState::of_text(&text, || StoreError::transient(message(&text)))
            }
            _ => ServerState::Healthy,
        }
    }

    fn of_text(text: &str, reason: impl Fn() -> StoreError) -> Self {
        let state = words(text).take(12).find_map(|word| match word {
            "LOADING" | "BUSY" | "CLUSTERDOWN" => Some(ServerState::Unavailable(reason())),
            "READONLY" | "MASTERDOWN" | "NOAUTH" | "WRONGPASS" => Some(ServerState::NeedsReconnect(reason())),
            _ => None,
        });
        state.unwrap_or(ServerState::Healthy)
    }
}

/// Returns the error of a connection that could not be opened.
pub(super) fn cannot_connect(ConnectError { server, error }: ConnectError) -> StoreError {
    match error.code() {
        Some(code) => StoreError::transient(format!("could not connect to {server}: {}", text(code, &error))),
        None => {
            // A server of HTTP replies, but with something else.
            let question = if error.kind() == ErrorKind::Parse { "; is this a Redis server?" } else { "" };
            StoreError::transient(format!("could not connect to {server}: {error}{question}"))
                .caused_by(error)
        }
    }
}

/// Returns the error of a command that was sent.
fn command_failed(error: RedisError) -> StoreError {
    let Some(code) = error.code() else {
        return StoreError::transient(format!("the call to Redis failed: {error}")).caused_by(error);
    };
    let text = text(code, &error);
    let message = message(&text);
    match code {
        _ if is_permanent(&text) => StoreError::permanent(message),
        "MOVED" | "ASK" => StoreError::transient(format!(
            "{message}; the server belongs to a Redis Cluster, whose URL starts with redis+cluster://"
        )),
        _ if text.contains("cluster support disabled") => StoreError::transient(format!(
            "{message}; the server belongs to no Redis Cluster, so its URL starts with redis://"
        )),
        _ => StoreError::transient(message),
    }
}

/// Returns the server's error, without the arguments of an unknown command, which may hold keys or a password, and without the
/// user.
fn text(code: &str, error: &RedisError) -> String {
    let detail = error.detail().unwrap_or_default().split(", with args").next().unwrap_or_default();
    without_user(&format!("{code} {detail}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_found_wherever_redis_puts_them() {
        let state = |text: &str| ServerState::of_text(text, || StoreError::transient(text));
        for text in [
            "READONLY You can't write against a read only replica.",
            "READONLY You can't write against a read only replica. script: 7a3, on @user_script:12.",
            "@user_script: 12: -READONLY You can't write against a read only replica.",
            "ERR Error running script (call to f_7a3): @user_script:12: @user_script: 12: -READONLY You can't write",
        ] {
            assert!(matches!(state(text), ServerState::NeedsReconnect(_)), "{text}");
        }
        let loading = "LOADING Redis is loading the dataset in memory";
        assert!(matches!(state(loading), ServerState::Unavailable(_)));
        let out_of_memory = "OOM command not allowed when used memory > 'maxmemory'.";
        assert!(matches!(state(out_of_memory), ServerState::Healthy));
    }

    #[test]
    fn errors_are_found_wherever_a_reply_has_them() {
        let readonly =
            || Value::BulkString(b"READONLY You can't write against a read only replica.".to_vec());
        let list = |values: Vec<Value>| Value::Array(values);
        let nested = list(vec![Value::Int(1), list(vec![Value::Int(0), readonly()])]);
        let second = list(vec![Value::Int(1), Value::BulkString(b"WRONGTYPE".to_vec()), readonly()]);
        for reply in [list(vec![readonly()]), nested, second] {
            let state = ServerState::of_reply(&reply);
            assert!(matches!(state, ServerState::NeedsReconnect(_)), "{reply:?}");
        }
        let stored = list(vec![Value::Int(1), list(vec![Value::Int(1), Value::BulkString(b"0.5".to_vec())])]);
        assert!(matches!(ServerState::of_reply(&stored), ServerState::Healthy));
    }

    #[test]
    fn arguments_of_unknown_commands_are_left_out() {
        let reply = b"-ERR unknown command 'HELLO', with args beginning with: '3' 'AUTH' 'ann' 'secret' \r\n";
        let error = redis::parse_redis_value(reply).unwrap().extract_error().unwrap_err();
        let failed = ConnectError { server: String::from("Redis at host:6379"), error: error.clone() };
        for error in [cannot_connect(failed), command_failed(error)] {
            let text = format!("{error} {error:?}");
            assert!(text.contains("unknown command 'HELLO'") && !text.contains("secret"), "{text}");
        }
    }

    /// Redis after 7.0 names the user in its errors.
    #[test]
    fn users_are_left_out() {
        let reply = b"-NOPERM User ann has no permissions to run the 'evalsha' command\r\n";
        let error = redis::parse_redis_value(reply).unwrap().extract_error().unwrap_err();
        let failed = ConnectError { server: String::from("Redis at host:6379"), error: error.clone() };
        let in_script =
            message("ERR ACL failure in script: User ann has no permissions to run the 'set' command");
        for text in [cannot_connect(failed).to_string(), command_failed(error).to_string(), in_script] {
            assert!(text.contains("this user has no permissions to run") && !text.contains("ann"), "{text}");
        }
    }
}
