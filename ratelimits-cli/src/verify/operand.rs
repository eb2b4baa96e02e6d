//! Policies, and the log after them.

use std::convert::Infallible;
use std::path::PathBuf;
use std::str::FromStr;

use ratelimit_syntax::AttributeKind;

use crate::policy_text::PolicyText;

/// A policy, or the path of a log.
#[derive(Clone, Debug)]
pub(super) struct Operand(String);

impl FromStr for Operand {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Operand(text.to_owned()))
    }
}

/// Returns the policies, and the path of the log, unless it is standard input.
pub(super) fn split(operands: Vec<Operand>) -> Result<(Vec<PolicyText>, Option<PathBuf>), String> {
    let mut texts: Vec<String> = operands.into_iter().map(|Operand(text)| text).collect();
    let path = texts.pop_if(|text| !looks_like_policy(text));
    if texts.is_empty() {
        return Err(
            "there is no policy; write one like 'rate_limit(rate = \"100/min\", burst = 20)' before the log"
                .to_owned(),
        );
    }
    let parse = |text: &String| text.parse().map_err(|error| format!("invalid policy '{text}': {error}"));
    let policies = texts.iter().map(parse).collect::<Result<_, _>>()?;
    Ok((policies, path.filter(|path| path != "-").map(PathBuf::from)))
}

/// Returns whether a text is meant to be a policy, even if it is misspelled.
fn looks_like_policy(text: &str) -> bool {
    let text = text.trim();
    let name = text
        .trim_start_matches(['#', '[', ' '])
        .split(|char: char| !char.is_alphanumeric() && char != '_')
        .next();
    text.ends_with([')', ']']) || name.is_some_and(|name| AttributeKind::named(name).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_operand_is_the_log_unless_it_looks_like_a_policy() {
        let of = |texts: &[&str]| {
            let (policies, path) = split(texts.iter().map(|text| text.parse().unwrap()).collect())?;
            Ok::<_, String>((policies.len(), path.map(|path| path.display().to_string())))
        };
        let path = |path: &str| Some(path.to_owned());
        assert_eq!(of(&["rate_limit(5)"]), Ok((1, None)));
        assert_eq!(of(&["rate_limit(5)", "-"]), Ok((1, None)));
        assert_eq!(
            of(&["#[rate_limit(5)]", "count_limit(5, 60)", "access (1).log"]),
            Ok((2, path("access (1).log")))
        );
        assert_eq!(of(&["rate_limit(5)", "rate_limits.log"]), Ok((1, path("rate_limits.log"))));
        for (texts, message) in [
            (&["access.log"][..], "there is no policy; write one like"),
            (&["-"], "there is no policy;"),
            (
                &["rate_limit(5)", "ratelimit(5)"],
                "invalid policy 'ratelimit(5)': unknown attribute `ratelimit`; did you mean",
            ),
            (&["access.log", "rate_limit(5)"], "invalid policy 'access.log': "),
            (&["rate_limit(5)", "a.log", "b.log"], "invalid policy 'a.log': "),
            (&["rate_limit("], "invalid policy 'rate_limit(': "),
        ] {
            let error = of(texts).unwrap_err();
            assert!(error.starts_with(message), "{error}");
        }
    }
}
