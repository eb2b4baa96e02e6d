//! Other limiters beside ours: a line for each.

mod in_process;
#[cfg(feature = "redis")]
mod in_redis;
#[cfg(feature = "redis")]
mod programs;

use crate::table::{self, Options};

pub(crate) fn run(options: &Options) -> Result<(), String> {
    table::run("In process", in_process::lines(), 9, options);
    #[cfg(feature = "redis")]
    {
        println!();
        let lines = in_redis::lines()?.into_iter().map(|line| line.in_turns(crate::redis::TURNS)).collect();
        table::run("In Redis, 64 tasks", lines, 5, options);
    }
    Ok(())
}
