//! The command `completions`.

use std::fs::File;
use std::process::{Command, Output};

fn completions(out: Option<File>) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ratelimits"));
    command.args(["completions", "bash"]);
    if let Some(out) = out {
        command.stdout(out);
    }
    command.output().unwrap()
}

#[test]
fn completions_are_written() {
    let written = completions(None);
    assert!(written.status.success() && written.stdout.starts_with(b"_ratelimits"), "{written:?}");
}

#[test]
#[cfg(target_os = "linux")]
fn full_disk_is_an_error() {
    let failed = completions(Some(File::options().write(true).open("/dev/full").unwrap()));
    assert_eq!(failed.status.code(), Some(3), "{failed:?}");
    assert!(failed.stderr.starts_with(b"error: cannot write the output: "), "{failed:?}");
}
