//! What a decision costs, beside other rate limiters. See `benches/README.md`.

mod functions;
mod instructions;
mod limiters;
mod machine;
mod memory;
#[cfg(feature = "overrides")]
mod overridden;
#[cfg(feature = "peers")]
mod peers;
#[cfg(feature = "redis")]
mod redis;
mod table;
mod workload;

use std::process::ExitCode;

use table::Options;

const USAGE: &str = "usage: ratelimit-bench memory | redis | peers [ROUNDS] [FILTER|FILTER …]";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match arguments.as_slice() {
        ["memory", options @ ..] => Options::parse(options).map(|options| memory::run(&options)),
        ["redis", options @ ..] => Options::parse(options).and_then(|options| run_redis(&options)),
        ["peers", options @ ..] => Options::parse(options).and_then(|options| run_peers(&options)),
        // For this program itself, which starts another process, and for `benches/instructions`.
        ["measure", name] => memory::measure(name),
        ["paths"] => {
            instructions::list();
            Ok(())
        }
        ["repeat", path, calls] => instructions::repeat(path, calls),
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

#[cfg(feature = "redis")]
fn run_redis(options: &Options) -> Result<(), String> {
    redis::run(options)
}

#[cfg(not(feature = "redis"))]
fn run_redis(_: &Options) -> Result<(), String> {
    Err("`redis` needs the feature `redis`".to_owned())
}

#[cfg(feature = "peers")]
fn run_peers(options: &Options) -> Result<(), String> {
    peers::run(options)
}

#[cfg(not(feature = "peers"))]
fn run_peers(_: &Options) -> Result<(), String> {
    Err("`peers` needs the feature `peers`: cargo run --release -p ratelimit-bench --features peers -- peers"
        .to_owned())
}
