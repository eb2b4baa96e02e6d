//! What a decision in Redis costs: the second table of the design's budgets, in its order.

mod answered_locally;
pub(crate) mod bench;
pub(crate) mod calls;
mod library;
pub(crate) mod load;
mod script;
mod scripts;
mod server;
mod settling;

use crate::table::{self, Options};
use bench::Bench;

/// How often a round measures each line.
pub(crate) const TURNS: usize = 3;

pub(crate) fn run(options: &Options) -> Result<(), String> {
    let bench = Bench::new()?;
    let mut lines = scripts::one_decision(&bench);
    lines.extend(library::lines(&bench));
    lines.extend(scripts::windows(&bench));
    lines.extend(answered_locally::lines(&bench)?);
    lines.extend(settling::lines(&bench));
    let lines = lines.into_iter().map(|line| line.in_turns(TURNS)).collect();
    table::run("In Redis", lines, 5, options);
    Ok(())
}
