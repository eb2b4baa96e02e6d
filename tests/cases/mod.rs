//! Annotated functions of every kind that broke other attribute macros. Cases that must not compile are in `tests/ui`.
//!
//! | case | broke | tests |
//! | --- | --- | --- |
//! | `?`, early returns, inference | tracing#1056, #2270 | `bodies` |
//! | coercion to the return type | tracing#1056; fastrace#130 | `outputs`, `closures` |
//! | `impl Trait` in the return type | tracing#1236, #1615 | `outputs::impl_trait_outputs` |
//! | units, bodies that never end | async-trait#265; fastrace#137; axum#2014 | `bodies::unit_return_types`, `bodies::diverging_bodies_…` |
//! | `mut` arguments | cached#96; tracing#1167 | `arguments::mut_arguments` |
//! | patterns | utoipa#423; sycamore#410 | `arguments` |
//! | generics, where clauses, functions as arguments | cached#139, #217; bon#325 | `generics` |
//! | receivers | cached#16, #86, #140; bon#197 | `receivers` |
//! | `#[async_trait]` | tracing#711, #864, #977, #1228, #1297 | `async_trait` |
//! | async functions in traits, functions that return futures | tracing#1831, #1866 | `traits`, `returned_futures` |
//! | `#[cfg]` on arguments and parameters | async-trait#226, #243, #288 | `conditional` |
//! | inner attributes | tracing#2294 | `attributes::inner_attributes_on_the_body` |
//! | names that also occur in the generated code | tracing#3306; async-trait#271 | `shadowing` |
//! | other attributes, keywords, raw identifiers | tracing#2864; bon#175, #284, #288 | `attributes` |
//! | lints on the generated code | tracing#1613, #2090, #2503, #2609; Rocket#2586 | that all of this compiles |
//! | time zones that are borrowed | | `calendars` |
//! | `_argument` in a key | tracing#2822 | `arguments::underscore_arguments_in_keys` |
//! | lints on the user's code | tracing#3108 | `attributes::lints_apply_to_user_code` |
//! | `Send` | rust#64477, #64960, #101650 | `futures`, `prologue::non_send_outputs_…` |
//! | size of the future | rust#62958, #108906; moka#212 | `prologue::limits_add_at_most_128_bytes` |
//! | fallbacks, with and without the arguments | | `fallbacks`, `closures`, `diverging_fallbacks` |
//! | arguments through `macro_rules!` | wasm-bindgen#2395; pyo3#832 | `declarative_macros` |
//! | several attributes on a function | reference#692; bon#263, #264, #297 | `stacking` |
//! | attributes and return types of frameworks | axum#2014 | `frameworks` |
//! | renamed crate | cached#157 | `tests/renamed` |
//! | keys that collide | cached, by its changelog | `keys` |
//! | functions of the same name | | `names`, `implementations` |
//! | recursion, deep call stacks | tracing#3209; lance#8416 | `recursion`, `prologue::prologue_adds_no_type_layers` |

mod arguments;
mod async_trait;
mod attributes;
mod bodies;
mod calendars;
mod closures;
mod conditional;
mod declarative_macros;
mod diverging_fallbacks;
mod fallbacks;
mod frameworks;
mod futures;
mod generics;
mod implementations;
mod keys;
mod names;
mod options;
mod outputs;
mod receivers;
mod recursion;
mod returned_futures;
mod shadowing;
mod stacking;
mod traits;

use super::app::{AppError, AppResult, assert_admits_one, assert_limited, assert_outputs, isolated};
use super::limits;

/// Neither `Clone` nor `Copy`: it can only be moved.
#[derive(Debug, PartialEq)]
struct Text(String);

fn text(text: &str) -> Text {
    Text(text.to_owned())
}
