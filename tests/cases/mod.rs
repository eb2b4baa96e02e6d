//! Functions under the attributes: the cases that broke other attribute macros, and where those broke.
//!
//! | | case | broke | tests |
//! | --- | --- | --- | --- |
//! | 1 | `?`, early returns, inference | tracing#1056, #2270 | `bodies::question_marks_…`, `bodies::the_return_type_…` |
//! | 2 | coercion to the return type | tracing#1056; fastrace#130 | `outputs::what_is_returned_is_coerced_…`, `closures::return_what_…` |
//! | 3 | `impl Trait` in the return type | tracing#1236, #1615 | `outputs::what_has_no_name_…` |
//! | 4 | units, bodies that never end | async-trait#265; fastrace#137; axum#2014 | `bodies::units_…`, `bodies::bodies_that_never_end_…` |
//! | 6 | `mut` arguments | cached#96; tracing#1167 | `arguments::mutable_ones_…` |
//! | 7 | patterns | utoipa#423; sycamore#410 | `arguments::patterns_…`, `arguments::nested_…`, `arguments::what_a_pattern_changes_…` |
//! | 8 | generics, where clauses, functions as arguments | cached#139, #217; bon#325 | `generics::*` |
//! | 9 | receivers | cached#16, #86, #140; bon#197 | `receivers::*` |
//! | 10 | `#[async_trait]` | tracing#711, #864, #977, #1228, #1297 | `trait_objects::*` |
//! | 12 | async functions of traits, functions that return futures | tracing#1831, #1866 | `traits::*` |
//! | 13 | `#[cfg]` on arguments and parameters | async-trait#226, #243, #288 | `conditional::*` |
//! | 14 | inner attributes | tracing#2294 | `attributes::attributes_inside_the_body` |
//! | 15 | names that meet those of the generated code | tracing#3306; async-trait#271 | `shadowing::*` |
//! | 16 | other attributes, keywords, raw names | tracing#2864; bon#175, #284, #288 | `attributes::documentation_…`, `attributes::unsafe_functions` |
//! | 17 | lints on the generated code | tracing#1613, #2090, #2503, #2609; Rocket#2586 | `bodies::one_expression_…`, and that all of this compiles |
//! | 18 | `_argument` in a key | tracing#2822 | `arguments::underscored_ones_…` |
//! | 19 | lints on the user's code | tracing#3108 | `attributes::lints_see_…` |
//! | 20 | `Send` | rust#64477, #64960, #101650 | `futures::*`, `prologue::a_future_is_send_…` |
//! | 21 | the size of the future | rust#62958, #108906; moka#212 | `prologue::limits_add_…`, `prologue::large_outputs_…` |
//! | 22 | arguments moved into body and fallback | | `fallbacks::arguments_are_moved_…` |
//! | 23 | every kind of fallback | | `fallbacks::*`, `closures::*` |
//! | 24 | arguments through `macro_rules!` | wasm-bindgen#2395; pyo3#832 | `generated::*` |
//! | 25 | several attributes on a function | reference#692; bon#263, #264, #297 | `stacking::*` |
//! | 26 | attributes of frameworks, their return types | axum#2014 | `frameworks::*`, `outputs::every_result_…` |
//! | 30 | the crate under another name | cached#157 | `tests/renamed` |
//! | 31 | keys that meet | cached, by its changelog | `keys::*` |
//! | 32 | functions of one name | | `names::*` |
//! | 35 | recursion, many layers | tracing#3209; lance#8416 | `recursion::*`, `prologue::a_prologue_adds_no_layer_…` |
//!
//! The other numbers are compile errors, in `tests/ui` (5, 11, 27 to 29), and what happens while a program runs.

mod arguments;
mod attributes;
mod bodies;
mod closures;
mod conditional;
mod fallbacks;
mod frameworks;
mod futures;
mod generated;
mod generics;
mod keys;
mod names;
mod options;
mod outputs;
mod receivers;
mod recursion;
mod shadowing;
mod stacking;
mod trait_objects;
mod traits;

use super::app::{AppError, AppResult, alone, assert_limited};
use super::limits;

/// Neither `Clone` nor `Copy`, so that moving it is all one can do.
#[derive(Debug, PartialEq)]
struct Text(String);

fn text(text: &str) -> Text {
    Text(text.to_owned())
}
