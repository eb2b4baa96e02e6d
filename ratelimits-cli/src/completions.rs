//! Completions for shells.

use std::io::stdout;

use clap::{Args, CommandFactory};
use clap_complete::{Shell, generate};

/// Write the completions for a shell to standard output.
#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell.
    shell: Shell,
}

impl Completions {
    pub(crate) fn run<C: CommandFactory>(&self) {
        let mut command = C::command();
        let name = command.get_name().to_owned();
        generate(self.shell, &mut command, name, &mut stdout().lock());
    }
}
