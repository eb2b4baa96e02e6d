//! The field `RateLimit` of draft-ietf-httpapi-ratelimit-headers.

use std::time::Duration;

use http::header::{HeaderMap, HeaderValue};

use super::seconds::seconds;

/// Returns the longest time until a quota that is used up is restored.
pub(super) fn wait(headers: &HeaderMap) -> Option<Duration> {
    let lines: Result<Vec<_>, _> = headers.get_all("ratelimit").iter().map(HeaderValue::to_str).collect();
    let field = lines.ok()?.join(",");
    let members = split(&field, ',')?;
    let items = members.iter().filter_map(|item| until_restored(&split(item, ';')?, "r", "t"));
    // In draft 7 the field is a dictionary of one quota. No item of a list looks like its members.
    items.max().max(until_restored(&members, "remaining", "reset"))
}

/// Returns the value of `time`, if that of `left` is 0.
fn until_restored(parameters: &[&str], left: &str, time: &str) -> Option<Duration> {
    // Of several with one name, the last one counts.
    let value =
        |name| parameters.iter().rev().find_map(|text| text.trim().strip_prefix(name)?.strip_prefix('='));
    if value(left)?.parse() == Ok(0_u64) { seconds(value(time)?) } else { None }
}

/// Splits at separators outside of quoted strings. `None` if a string does not end, and the field is malformed.
fn split(text: &str, separator: char) -> Option<Vec<&str>> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    let is_end = |character| {
        let was_escaped = std::mem::replace(&mut is_escaped, false);
        match character {
            '"' if !was_escaped => is_quoted = !is_quoted,
            '\\' if !was_escaped => is_escaped = is_quoted,
            _ => {}
        }
        character == separator && !is_quoted
    };
    let parts = text.split(is_end).collect();
    (!is_quoted).then_some(parts)
}
