//! The command `ratelimits`.
#![forbid(unsafe_code)]

mod completions;
mod connection;
mod duration;
mod failure;
mod in_force;
mod inventory;
mod key;
mod list;
mod log;
mod message;
mod output;
mod overrides;
mod pause;
mod peek;
mod policy_text;
mod progress;
mod reset;
mod scan;
mod simulate;
mod suggest;
mod summary;
mod table;
mod target;
mod top;
mod verify;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use self::connection::Connection;
use self::failure::Failure;

/// Lists, inspects, resets and changes rate limits, and checks logs of them.
#[derive(Debug, Parser)]
#[command(name = "ratelimits", version)]
struct Cli {
    #[command(flatten)]
    connection: Connection,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    List(list::List),
    Watch(list::Watch),
    Top(top::Top),
    Peek(peek::Peek),
    Pause(pause::Pause),
    Reset(reset::Reset),
    #[command(subcommand)]
    Override(overrides::Overrides),
    Simulate(simulate::Simulate),
    Verify(verify::Verify),
    Suggest(suggest::Suggest),
    Completions(completions::Completions),
}

impl Command {
    fn connection(&mut self) -> Option<&mut Connection> {
        Some(match self {
            Command::List(list) => &mut list.connection,
            Command::Watch(watch) => &mut watch.connection,
            Command::Top(top) => &mut top.connection,
            Command::Peek(peek) => &mut peek.connection,
            Command::Pause(pause) => &mut pause.connection,
            Command::Reset(reset) => &mut reset.connection,
            Command::Override(overrides) => overrides.connection(),
            Command::Simulate(_) | Command::Verify(_) | Command::Suggest(_) | Command::Completions(_) => {
                return None;
            }
        })
    }
}

fn main() -> ExitCode {
    let Cli { connection, mut command } = Cli::parse();
    if let Some(of_command) = command.connection() {
        of_command.or(connection);
    }
    match command {
        Command::List(list) => wait_for(list.run()),
        Command::Watch(watch) => wait_for(watch.run()),
        Command::Top(top) => wait_for(top.run()),
        Command::Peek(peek) => wait_for(peek.run()),
        Command::Pause(pause) => wait_for(pause.run()),
        Command::Reset(reset) => wait_for(reset.run()),
        Command::Override(overrides) => wait_for(overrides.run()),
        Command::Simulate(simulate) => simulate.run(),
        Command::Verify(verify) => verify.run(),
        Command::Suggest(suggest) => code(suggest.run()),
        Command::Completions(completions) => code(completions.run::<Cli>()),
    }
}

/// Runs a command that works on a Redis.
fn wait_for(command: impl Future<Output = Result<(), Failure>>) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    code(runtime.map_err(Failure::from).and_then(|runtime| runtime.block_on(command)))
}

fn code(done: Result<(), Failure>) -> ExitCode {
    done.map_or_else(|failure| failure.report(), |()| ExitCode::SUCCESS)
}
