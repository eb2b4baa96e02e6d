//! Runs the command, and makes the state that it works on.

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Duration;

use ratelimits::{Rate, Registry, TokenBucket};
use serde_json::Value;

pub(crate) const HOUR: Duration = Duration::from_secs(3600);

/// What the command has written, and its exit code.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Run {
    /// Returns the output of a command that succeeded.
    #[track_caller]
    pub(crate) fn success(self) -> String {
        assert_eq!(self.code, 0, "{self:?}");
        self.out
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.out.lines().count(), 1, "{self:?}");
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// Returns the command, which works on the Redis at this URL.
pub(crate) fn command(url: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ratelimits"));
    command.env("RATELIMITS_URL", url).env_remove("USER").args(arguments);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

pub(crate) fn run(url: &str, arguments: &[&str]) -> Run {
    run_with_input(url, arguments, "")
}

/// Runs the command with this on standard input.
pub(crate) fn run_with_input(url: &str, arguments: &[&str], input: &str) -> Run {
    let mut child = command(url, arguments).stdin(Stdio::piped()).spawn().unwrap();
    // A command that refuses its arguments may end before it has read them all.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Run { code: output.status.code().unwrap_or(-1), out: text(output.stdout), err: text(output.stderr) }
}

/// A registry whose keys no other test has.
pub(crate) async fn registry(url: &str, namespace: &str) -> Registry {
    let builder = Registry::builder().namespace(namespace).deadline(Duration::from_secs(10));
    builder.connect(url).await.unwrap()
}

/// A bucket that refills so slowly that no test notices.
pub(crate) fn slow_bucket(burst: u64) -> TokenBucket {
    TokenBucket::new(Rate::new(1, HOUR)).burst(burst)
}
