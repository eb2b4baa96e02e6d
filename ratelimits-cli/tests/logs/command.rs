//! Runs a command on a log.

use std::io::{self, BufWriter, Write};
use std::process::{ChildStdin, Command, Stdio};

use serde_json::Value;

/// What the command has written, and its exit code.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Run {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// Runs a command on a log from standard input.
pub(crate) fn run(command: &str, arguments: &[&str], log: impl AsRef<[u8]>) -> Run {
    run_on(command, arguments, |input| input.write_all(log.as_ref()))
}

/// Runs a command on a log that is written while it runs.
pub(crate) fn run_on(
    command: &str,
    arguments: &[&str],
    write: impl FnOnce(&mut BufWriter<ChildStdin>) -> io::Result<()>,
) -> Run {
    let mut child = Command::new(env!("CARGO_BIN_EXE_ratelimits"))
        .arg(command)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = BufWriter::new(child.stdin.take().unwrap());
    // A command that refuses its arguments or a line may end before it has read the log.
    _ = write(&mut input).and_then(|()| input.flush());
    drop(input);
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Run { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}
