//! The server program, its arguments, and whether it replies.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

/// The default arguments: no persistence, no delay before a full sync, and `DEBUG` enabled.
pub(super) fn plain(port: u16, dir: &Path) -> Vec<String> {
    let mut plain = format!("--port {port} --bind 127.0.0.1 --appendonly no --repl-diskless-sync-delay 0");
    if program().version >= 7 {
        plain.push_str(" --enable-debug-command yes");
    }
    let rest = ["--save".to_owned(), String::new(), "--dir".to_owned(), dir.display().to_string()];
    plain.split(' ').map(str::to_owned).chain(rest).collect()
}

pub(super) fn spawn(arguments: &[String], dir: &Path) -> Child {
    let log = File::create(dir.join("log")).expect("the directory is writable");
    Command::new(&program().path)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(log)
        .stderr(Stdio::null())
        .spawn()
        .expect("the program ran with --version")
}

/// Whether a server replies, if only to ask for a password.
pub(super) fn answers(port: u16) -> bool {
    let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) else { return false };
    let mut answer = [0; 5];
    stream.set_read_timeout(Some(Duration::from_millis(500))).is_ok()
        && stream.write_all(b"PING\r\n").is_ok()
        && stream.read_exact(&mut answer).is_ok()
        && matches!(&answer, b"+PONG" | b"-NOAU")
}

pub(super) fn name() -> &'static str {
    &program().path
}

struct Program {
    path: String,
    version: u32,
}

fn program() -> &'static Program {
    static PROGRAM: OnceLock<Program> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let path = std::env::var("REDIS_SERVER_BIN").unwrap_or_else(|_| "redis-server".into());
        let version = version(&path);
        Program { path, version }
    })
}

/// The major version, from a line like `Redis server v=7.0.15 sha=…`.
fn version(binary: &str) -> u32 {
    let output = match Command::new(binary).arg("--version").output() {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            panic!("redis-server is not installed: run ./test.sh, which installs it, or set REDIS_SERVER_BIN")
        }
        output => output.expect("redis-server runs"),
    };
    let text = String::from_utf8_lossy(&output.stdout);
    text.split("v=").nth(1).and_then(|rest| rest.split('.').next()?.parse().ok()).unwrap_or(0)
}
