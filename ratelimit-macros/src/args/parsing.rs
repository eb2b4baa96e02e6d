//! From the tokens of an attribute to its arguments, with hints in the errors.

use proc_macro2::Ident;
use ratelimit_syntax::{Arguments, AttributeKind, Problem, ProblemKind, closest, listed};
use syn::ext::IdentExt;

use super::{Args, hints};
use crate::errors::Errors;
use crate::number;
use crate::stack::LimitAttribute;

impl Args {
    /// Parses the tokens between the attribute's parentheses. `bindings` are the names of the function's arguments.
    pub(crate) fn parse(attribute: &LimitAttribute, bindings: &[Ident], errors: &mut Errors) -> Args {
        let LimitAttribute { kind, span, ref args } = *attribute;
        let (given, problems) =
            Arguments::parse(kind, args.clone(), &|word| bindings.contains(word) || is_value(word, kind));
        for problem in problems {
            errors.on(&problem.tokens, message(&problem, kind));
        }
        Args { kind, attribute: span, given, bindings: bindings.to_vec() }
    }
}

/// Returns whether a single word that is no argument is a value: a constant, or some other name that was hardly meant as an
/// argument.
fn is_value(word: &Ident, attribute: AttributeKind) -> bool {
    let text = word.unraw().to_string();
    text == text.to_uppercase()
        || (closest(&text, attribute.arguments()).is_none() && suggestion(&text).is_none())
}

/// Returns what is wrong. A word that is probably no misspelled argument gets a hint.
fn message(problem: &Problem, attribute: AttributeKind) -> String {
    let ProblemKind::Unknown { name, value } = &problem.kind else { return problem.to_string() };
    let is_spelling = |known| hints::normalized(known) == hints::normalized(name);
    let hint = if hints::is_cost(name) && number::is_fraction(value.clone()) {
        Some(number::SCALE.to_owned())
    } else if attribute.arguments().any(is_spelling) {
        None
    } else {
        suggestion(name)
    };
    hint.map_or_else(|| problem.to_string(), |hint| format!("unknown argument `{name}`; {hint}"))
}

/// Returns what to write instead of a word of another limiter or an argument of another attribute.
fn suggestion(written: &str) -> Option<String> {
    hints::find(written).map(str::to_owned).or_else(|| {
        let owners = AttributeKind::ALL.into_iter().filter(|owner| owner.argument(written).is_some());
        let owners: Vec<_> = owners.map(AttributeKind::name).collect();
        (!owners.is_empty()).then(|| format!("it belongs to {}", listed(owners)))
    })
}
