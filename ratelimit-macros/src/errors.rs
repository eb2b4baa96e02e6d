//! The errors of all attributes of a function, reported together.

use proc_macro2::Span;
use quote::ToTokens;

/// Collects errors, so that one does not hide another.
#[derive(Default)]
pub(crate) struct Errors(Option<syn::Error>);

impl Errors {
    /// Adds an error that spans `tokens`.
    pub(crate) fn on(&mut self, tokens: impl ToTokens, message: impl std::fmt::Display) {
        self.push(syn::Error::new_spanned(tokens, message));
    }

    /// Adds an error at `span`.
    pub(crate) fn at(&mut self, span: Span, message: impl std::fmt::Display) {
        self.push(syn::Error::new(span, message));
    }

    /// Adds an error.
    pub(crate) fn push(&mut self, error: syn::Error) {
        match &mut self.0 {
            Some(errors) => errors.combine(error),
            None => self.0 = Some(error),
        }
    }

    /// Returns the value if there were no errors.
    pub(crate) fn finish<T>(self, value: Option<T>) -> syn::Result<T> {
        match (self.0, value) {
            (Some(errors), _) => Err(errors),
            (None, Some(value)) => Ok(value),
            (None, None) => Err(syn::Error::new(Span::call_site(), "invalid attribute")),
        }
    }
}

/// Returns the word that `written` is probably a misspelling of.
pub(crate) fn closest<'a>(written: &str, known: &[&'a str]) -> Option<&'a str> {
    let written = written.to_lowercase();
    let (distance, best) = known.iter().map(|name| (edits(&written, &name.to_lowercase()), *name)).min()?;
    let limit = if best.len() < 4 { 1 } else { 2 };
    (distance <= limit).then_some(best)
}

/// Formats a list for a message: `a`, `b`, `c`.
pub(crate) fn listed(names: &[&str]) -> String {
    let quoted: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    quoted.join(", ")
}

/// Returns the Levenshtein distance of two words.
fn edits(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, b) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[to.len()]
}
