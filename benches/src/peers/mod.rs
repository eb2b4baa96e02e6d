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
        table::run("In Redis, 64 tasks", in_redis::lines()?, 5, options);
    }
    Ok(())
}
