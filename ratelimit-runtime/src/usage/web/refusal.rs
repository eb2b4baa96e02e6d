//! What a response says about a call that did not go ahead.

use std::time::Duration;

use crate::decide::decision::PolicyDecision;
use crate::decide::error::{Error, Limited};
use crate::key::missing_key::MissingKey;
use crate::usage::context;

/// A response, in terms that all frameworks share.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) status: u16,
    /// In seconds, as clients are told.
    pub(super) retry_after: Option<u64>,
    /// The body, as `application/problem+json`.
    pub(super) problem: String,
}

pub(super) const PROBLEM_JSON: &str = "application/problem+json";

/// Where the problem types of the draft are registered.
const TYPES: &str = "https://iana.org/assignments/http-problem-types#";

impl Refusal {
    pub(super) fn of(error: &Error) -> Self {
        let (status, kind, title) = summary(error);
        let mut problem = String::from("{");
        if !kind.is_empty() {
            problem += &format!("\"type\":\"{TYPES}{kind}\",");
        }
        problem += &format!("\"title\":\"{title}\",\"status\":{status}");
        if let Error::Limited(limited) = error {
            problem += &format!(",\"violated-policies\":[{}]", violated(limited).join(","));
        }
        problem.push('}');
        Refusal { status, retry_after: error.retry_after().map(told_seconds), problem }
    }
}

/// Returns what the problem says, as text, for protocols that have no documents.
#[cfg(feature = "tonic")]
pub(super) fn message(error: &Error) -> String {
    let (_, _, title) = summary(error);
    match error {
        Error::Limited(limited) => format!("{title}: {}", violated(limited).join(", ")),
        _ => title.into(),
    }
}

/// Returns whole seconds, rounded up, and at least 1: a client that retries at once would be refused again.
pub(super) fn whole_seconds(time: Duration) -> u64 {
    (time.as_secs() + u64::from(time.subsec_nanos() > 0)).max(1)
}

/// The policies that refuse.
pub(super) fn refusing(limited: &Limited) -> impl Iterator<Item = &PolicyDecision> {
    limited.decision().policies().iter().filter(|policy| !policy.admitted && !policy.shadow)
}

/// Returns a policy's name as clients may know it. The one that a function has by default contains the path of its module, which is
/// not for them to know. Structured fields have only ASCII.
pub(super) fn shown(name: &str) -> &str {
    let is_shown = !name.contains("::") && name.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    if is_shown { name } else { "default" }
}

/// Returns that name as a quoted string of JSON and of structured fields.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", shown(name).replace('\\', "\\\\").replace('"', "\\\""))
}

/// Returns after how many seconds a refused client is told to come back. What spreads retries is rounded down: where it is less than a
/// second, rounded up it would make everybody wait for one more, and come back together all the same.
fn told_seconds(wait: Duration) -> u64 {
    whole_seconds(wait) + context::spread_of(wait).as_secs()
}

/// Returns the status, the type of the problem, and its title.
fn summary(error: &Error) -> (u16, &'static str, &'static str) {
    match error {
        Error::Limited(_) if error.is_unsatisfiable() => {
            (413, "", "The request costs more than its limit ever admits")
        }
        Error::Limited(_) => {
            (429, "quota-exceeded", "Request cannot be satisfied as assigned quota has been exceeded")
        }
        Error::Store(_) => (
            503,
            "temporary-reduced-capacity",
            "Request cannot be satisfied due to temporary server capacity constraints",
        ),
        Error::MissingKey(MissingKey::Part) => (400, "", "The request lacks what its limit is counted by"),
        Error::MissingKey(MissingKey::User) => (403, "", "The request needs a user"),
        Error::MissingKey(MissingKey::Ip) | Error::Invalid(_) => (500, "", "Internal Server Error"),
    }
}

/// The names of the policies that refuse, each once.
fn violated(limited: &Limited) -> Vec<String> {
    let mut names = Vec::new();
    for policy in refusing(limited) {
        let name = quoted(&policy.policy);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_functions_are_not_shown() {
        for (name, shown) in [
            ("login", r#""login""#),
            ("per user, daily", r#""per user, daily""#),
            ("app::search#2", r#""default""#),
            ("auth::wrong-passwords", r#""default""#),
            ("größe", r#""default""#),
            ("line\nbreak", r#""default""#),
            (r#"a "quoted" \ name"#, r#""a \"quoted\" \\ name""#),
        ] {
            assert_eq!(quoted(name), shown);
        }
    }

    #[test]
    fn seconds_are_rounded_up() {
        for (millis, seconds) in [(0, 1), (1, 1), (1_000, 1), (1_001, 2), (59_999, 60)] {
            assert_eq!(whole_seconds(Duration::from_millis(millis)), seconds);
        }
        assert_eq!(whole_seconds(Duration::from_nanos(2_000_000_001)), 3);
    }
}
