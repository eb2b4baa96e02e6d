//! What is wrong with arguments.

use std::fmt;

use proc_macro2::TokenStream;

use crate::attribute_kind::AttributeKind;
use crate::expr::shown;
use crate::words::{closest, listed};

/// What is wrong with the arguments of an attribute. It displays as a message that says what to write.
#[derive(Debug)]
pub struct Problem {
    /// What is wrong.
    pub kind: ProblemKind,
    /// The tokens that are wrong. None stand for the attribute.
    pub tokens: TokenStream,
    pub(super) attribute: AttributeKind,
}

/// What is wrong with the tokens of a [`Problem`].
#[derive(Debug)]
pub enum ProblemKind {
    /// They are no argument of the attribute.
    Unknown {
        /// The name as it is written, but not raw.
        name: String,
        /// The tokens of the value.
        value: TokenStream,
    },
    /// They are an argument that was given before.
    Repeated(&'static str),
    /// They are an argument that needs a value.
    NoValue(&'static str),
    /// They are an argument that takes no value.
    TakesNoValue(&'static str),
    /// They are a colon in place of `=`.
    Colon(&'static str, TokenStream),
    /// They are no expression, as the value of this argument. That of a positional value that is one too many is `…`.
    NoExpression(&'static str),
    /// They are a positional value after named arguments, or one too many.
    NotPositional,
    /// They come between commas, or first, and are no argument.
    NoArgument,
    /// They follow an argument without a comma.
    NoComma,
    /// They are no tokens of Rust.
    Syntax(syn::Error),
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            ProblemKind::Unknown { name, .. } => {
                write!(f, "unknown argument `{name}`; ")?;
                let arguments = self.attribute.arguments();
                match closest(name, arguments.clone()) {
                    Some(meant) => write!(f, "did you mean `{meant}`?"),
                    None => {
                        write!(f, "the arguments of `{}` are {}", self.attribute.name(), listed(arguments))
                    }
                }
            }
            ProblemKind::Repeated(name) => write!(f, "`{name}` is specified more than once"),
            ProblemKind::NoValue(name) => write!(f, "`{name}` needs a value; write `{name} = …`"),
            ProblemKind::TakesNoValue(name) => {
                write!(f, "`{name}` takes no value; write `{name}`, or leave it out")
            }
            ProblemKind::Colon(name, value) => write!(f, "unexpected `:`; write `{name} = {}`", shown(value)),
            ProblemKind::NoExpression("key") => f.write_str(
                "expected an expression or a string; write `key = user.id` or `key = \"<user.id>\"`",
            ),
            ProblemKind::NoExpression("slack") => {
                f.write_str("expected a percentage in quotes; write `slack = \"1%\"`")
            }
            ProblemKind::NoExpression(name) => write!(f, "expected an expression; write `{name} = …`"),
            ProblemKind::NotPositional => {
                let value = shown(&self.tokens);
                let positional = self.attribute.positional();
                let names =
                    positional.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" and ");
                write!(f, "only {names} may be positional, before all named arguments; write `… = {value}`")
            }
            ProblemKind::NoArgument => f.write_str("expected an argument"),
            ProblemKind::NoComma => f.write_str("expected `,`; arguments are written like `cost = 2`"),
            ProblemKind::Syntax(error) => error.fmt(f),
        }
    }
}
