//! The cases with a `concurrency_limit` beside every attribute, which is never reached: the body is an arm around which the call
//! keeps its hold, and must behave the same.

use super::app;

mod limits {
    pub(super) use charging::{
        held_count_limit as count_limit, held_funnel_limit as funnel_limit, held_rate_limit as rate_limit,
        held_window_limit as window_limit,
    };
}

#[path = "mod.rs"]
mod cases;
