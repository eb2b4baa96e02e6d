//! The command `ratelimits`.
#![forbid(unsafe_code)]

mod completions;
mod pictures;
mod policy_text;
mod simulate;
mod simulation;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Lists, inspects, resets and changes rate limits.
#[derive(Debug, Parser)]
#[command(name = "ratelimits", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Completions(completions::Completions),
    Pictures(pictures::Pictures),
    Simulate(simulate::Simulate),
}

fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Completions(completions) => completions.run::<Cli>(),
        Command::Pictures(pictures) => return pictures.run(),
        Command::Simulate(simulate) => return simulate.run(),
    }
    ExitCode::SUCCESS
}
