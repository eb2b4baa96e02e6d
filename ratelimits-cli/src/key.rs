//! A key and its state.

use std::time::Duration;

use ratelimit_runtime::inspect::{Holder, KeyPieces, KeyState, Parts};
use serde::{Serialize, Serializer};

use crate::duration::human;
use crate::scan::Kind;
use crate::summary::unknown_limits;
use crate::table::{grouped, grouped_unless_zero, printable};

/// A key of a policy, and its state.
#[derive(Debug, Serialize)]
pub(crate) struct KeyRow {
    pub(crate) policy: String,
    pub(crate) prefix: String,
    algorithm: &'static str,
    /// The parts. Where they are too long for a key, their digest.
    pub(crate) key: Vec<String>,
    /// What overrides put the policy or the key in.
    #[serde(rename = "override")]
    switch: Option<&'static str>,
    /// Whether the key has an override of its own.
    overridden_by_key: bool,
    /// Whether calls use the state: not that of a bucket from before its numbers were overridden.
    in_use: bool,
    #[serde(flatten, serialize_with = "serialize_state")]
    pub(crate) state: KeyState,
    /// Which processes hold the permits of a concurrency limit, if somebody has asked.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "serialize_holders")]
    pub(crate) holders: Option<Vec<Holder>>,
    /// The key as it is in Redis.
    pub(crate) redis_key: String,
}

/// What `peek` shows only if there is something to say.
const OPTIONAL: [&str; 6] = ["prefix", "override", "held by", "paused", "penalty step", "reset after"];

/// The most processes whose permits `peek` shows on a line.
const MOST_HOLDERS: usize = 8;

/// The states under a key.
#[derive(Debug, Serialize)]
pub(crate) struct States {
    /// Several if policies with other numbers or another prefix have the name.
    pub(crate) states: Vec<KeyRow>,
}

impl KeyRow {
    pub(crate) fn new(kind: &Kind, redis_key: &str, state: &KeyState) -> Self {
        let parts = KeyPieces::split(redis_key).map(|pieces| pieces.parts());
        KeyRow {
            policy: kind.name.clone(),
            prefix: kind.prefix.clone(),
            algorithm: kind.reading.map_or("unknown", |reading| reading.algorithm().name()),
            key: match parts {
                Some(Parts::Texts(parts)) => parts,
                Some(Parts::Digest(digest)) => vec![digest],
                None => Vec::new(),
            },
            switch: kind.switch,
            overridden_by_key: kind.is_overridden,
            in_use: kind.is_in_force,
            state: *state,
            holders: None,
            redis_key: redis_key.to_owned(),
        }
    }

    /// Whether calls hold its permits: only those have no time.
    pub(crate) fn is_held(&self) -> bool {
        self.state.reset_after.is_none()
    }

    /// Returns the time until a call is admitted, for people.
    pub(crate) fn retry_after(&self) -> String {
        match (self.state.limited, self.state.retry_after) {
            (None, _) => "?".to_owned(),
            (Some(true), None) => "unknown".to_owned(),
            (Some(true), Some(retry_after)) => human(retry_after),
            (Some(false), _) => "now".to_owned(),
        }
    }

    /// Returns what overrides have changed, for people.
    fn overridden(&self) -> String {
        match (self.overridden_by_key, self.switch) {
            (true, switch) => format!("{}, for this key", switch.unwrap_or("numbers")),
            (false, switch) => switch.unwrap_or_default().to_owned(),
        }
    }

    /// Returns a line for each number.
    pub(crate) fn lines(&self, has_inventory: bool) -> String {
        let KeyState { used, limit, remaining, paused, penalty_step, reset_after, .. } = self.state;
        let used_title = if self.is_held() { "held" } else { "used" };
        let number = |number: Option<u64>| number.map_or("?".to_owned(), grouped);
        let lines = [
            ("policy", self.policy.clone()),
            ("prefix", self.prefix.clone()),
            ("algorithm", self.algorithm.to_owned()),
            ("override", self.overridden()),
            ("key", quoted(&self.key)),
            (used_title, number(used)),
            ("held by", self.holders.as_deref().map(held_by).unwrap_or_default()),
            ("remaining", number(remaining)),
            ("limit", number(limit)),
            ("paused", paused.map(human).unwrap_or_default()),
            ("penalty step", grouped_unless_zero(penalty_step)),
            ("retry after", self.retry_after()),
            ("reset after", reset_after.map(human).unwrap_or_default()),
            ("redis key", self.redis_key.clone()),
        ];
        let lines = lines.iter().filter(|(title, text)| !(OPTIONAL.contains(title) && text.is_empty()));
        let mut text: String =
            lines.map(|(title, text)| format!("{title:<13}{}\n", printable(text))).collect();
        if !self.in_use {
            text += "not in use while the override is in force\n";
        }
        if limit.is_none() {
            text += &format!("?: {}\n", unknown_limits(has_inventory));
        }
        text
    }
}

/// Returns how many processes hold permits, and how many those hold that have the most, for people.
fn held_by(holders: &[Holder]) -> String {
    if holders.is_empty() {
        return String::new();
    }
    let processes = if holders.len() == 1 { "process" } else { "processes" };
    let permits: Vec<_> = holders.iter().take(MOST_HOLDERS).map(|holder| grouped(holder.permits)).collect();
    let more = match holders.len().saturating_sub(MOST_HOLDERS) {
        0 => String::new(),
        more => format!(" and {} more", grouped(more as u64)),
    };
    format!("{} {processes}: {}{more}", grouped(holders.len() as u64), permits.join(", "))
}

/// Writes the numbers of processes as their logs have them.
fn serialize_holders<S: Serializer>(holders: &Option<Vec<Holder>>, serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Process {
        process: String,
        permits: u64,
    }
    let holders = holders.iter().flatten();
    serializer.collect_seq(
        holders.map(|holder| Process { process: format!("{:x}", holder.process), permits: holder.permits }),
    )
}

/// Writes the numbers, with times in seconds.
fn serialize_state<S: Serializer>(state: &KeyState, serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct State {
        limited: Option<bool>,
        used: Option<u64>,
        remaining: Option<u64>,
        limit: Option<u64>,
        paused_seconds: Option<f64>,
        penalty_step: u64,
        retry_after_seconds: Option<f64>,
        reset_after_seconds: Option<f64>,
    }
    let KeyState { used, limit, remaining, limited, retry_after, paused, penalty_step, reset_after } = *state;
    let seconds = |time: Option<Duration>| time.map(|time| time.as_secs_f64());
    let (paused_seconds, retry_after_seconds) = (seconds(paused), seconds(retry_after));
    let reset_after_seconds = seconds(reset_after);
    State {
        limited,
        used,
        remaining,
        limit,
        paused_seconds,
        penalty_step,
        retry_after_seconds,
        reset_after_seconds,
    }
    .serialize(serializer)
}

/// Returns the parts of a key in the form in which a shell takes them as arguments.
pub(crate) fn quoted(parts: &[String]) -> String {
    // What begins with `-` would be an option.
    let end_of_options = parts.iter().any(|part| part.starts_with('-')).then(|| "--".to_owned());
    let words = end_of_options.into_iter().chain(parts.iter().map(|part| shell_word(part)));
    words.collect::<Vec<_>>().join(" ")
}

fn shell_word(part: &str) -> String {
    let is_plain = |char: char| char.is_ascii_alphanumeric() || "_./:@%+,-".contains(char);
    if part.chars().any(char::is_control) {
        return format!("$'{}'", part.chars().map(ansi_c).collect::<String>());
    }
    if !part.is_empty() && part.chars().all(is_plain) {
        part.to_owned()
    } else {
        format!("'{}'", part.replace('\'', r"'\''"))
    }
}

/// Escapes a character between `$'` and `'`. A terminal would obey control characters.
fn ansi_c(char: char) -> String {
    match char {
        '\'' | '\\' => format!("\\{char}"),
        '\n' => r"\n".to_owned(),
        '\t' => r"\t".to_owned(),
        char if char.is_control() => {
            let bytes = char.to_string().into_bytes();
            bytes.iter().map(|byte| format!("\\x{byte:02x}")).collect()
        }
        char => char.into(),
    }
}

#[cfg(test)]
mod tests {
    use ratelimit_runtime::inspect::Holder;

    use super::{held_by, quoted};

    #[test]
    fn processes_that_hold_the_most_are_shown() {
        let holders = |count: u64| {
            (0..count).map(|i| Holder { process: i, permits: 1020 - 10 * i }).collect::<Vec<_>>()
        };
        for (count, expected) in [
            (0, ""),
            (1, "1 process: 1,020"),
            (3, "3 processes: 1,020, 1,010, 1,000"),
            (8, "8 processes: 1,020, 1,010, 1,000, 990, 980, 970, 960, 950"),
            (20, "20 processes: 1,020, 1,010, 1,000, 990, 980, 970, 960, 950 and 12 more"),
        ] {
            assert_eq!(held_by(&holders(count)), expected);
        }
    }

    #[test]
    fn parts_are_quoted_for_a_shell() {
        let parts = ["u1", "", "a b", "it's", "$HOME", "10.0.0.1", "größe", "~", "a=b"].map(str::to_owned);
        assert_eq!(quoted(&parts), r"u1 '' 'a b' 'it'\''s' '$HOME' 10.0.0.1 'größe' '~' 'a=b'");
        let parts = ["a\nit's\\\u{1b}[2J", "ü\u{85}"].map(str::to_owned);
        assert_eq!(quoted(&parts), r"$'a\nit\'s\\\x1b[2J' $'ü\xc2\x85'");
        assert_eq!(quoted(&["u1", "-5"].map(str::to_owned)), "-- u1 -5");
    }
}
