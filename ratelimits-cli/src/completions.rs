//! Completions for shells.

use clap::{Args, CommandFactory};
use clap_complete::{Shell, generate};

use crate::failure::Failure;
use crate::output::write;

/// Write the completions for a shell to standard output.
#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell.
    shell: Shell,
}

impl Completions {
    pub(crate) fn run<C: CommandFactory>(&self) -> Result<(), Failure> {
        let mut command = C::command();
        let name = command.get_name().to_owned();
        // `generate` panics where standard output fails.
        let mut script = Vec::new();
        generate(self.shell, &mut command, name, &mut script);
        write(&String::from_utf8_lossy(&script))
    }
}
