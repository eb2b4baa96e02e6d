//! What a call has used, which is known from its output.

use super::Checked;
use super::runtime_args::{Count, cost};

/// What a call that has ended used of a policy.
#[derive(Debug)]
pub enum Used {
    /// What it was charged.
    Cost,
    Nothing,
    /// So many permits, if they are valid.
    Permits(Checked<u64>),
}

/// Runs a body whose output is looked at.
#[inline(always)]
pub fn run<T>(body: impl FnOnce() -> T) -> T {
    body()
}

/// Returns what a call used that is charged if its output satisfies the condition. A function, so that the compiler infers the type
/// of the closure's argument.
pub fn charge_when<T: ?Sized>(output: &T, condition: impl FnOnce(&T) -> bool) -> Used {
    if condition(output) { Used::Cost } else { Used::Nothing }
}

/// Returns what a call used by its output, in the same way.
pub fn settle<T: ?Sized, C: Count>(output: &T, used: impl FnOnce(&T) -> C) -> Used {
    Used::Permits(cost("settle", used(output)))
}
