//! Measures what rate limiters admit beyond their policies, and writes `guide/over-admission.md`. See `README.md`.
#![forbid(unsafe_code)]

mod functions;
mod lines;
mod log;
mod memory;
mod peers;
mod report;
mod results;
mod traffic;
mod verify;
mod worker;

/// Servers and faults of the library's tests.
#[path = "../../../tests/it/support"]
#[allow(dead_code, reason = "each package uses some of what they share")]
mod support {
    pub(crate) mod proxy;
    pub(crate) mod server;
    pub(crate) mod until;
}

use std::process::ExitCode;

const USAGE: &str =
    "usage: over-admission list | line NAME… | memory [MILLIONS [ALGORITHM]] | peers [NAME…] | report";

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match arguments.as_slice() {
        ["list"] => {
            lines::list();
            Ok(())
        }
        ["line", names @ ..] if !names.is_empty() => lines::run(names).await,
        ["memory"] => memory::run(1_000, None),
        ["memory", millions] => number(millions).and_then(|millions| memory::run(millions, None)),
        ["memory", millions, algorithm] => {
            number(millions).and_then(|millions| memory::run(millions, Some(algorithm)))
        }
        ["peers", names @ ..] => peers::run(names).await,
        ["report"] => report::write(),
        // For this program itself, which starts it.
        ["worker", arguments @ ..] => worker::run(arguments).await,
        _ => Err(USAGE.to_owned()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("not a number: {text}\n{USAGE}"))
}
