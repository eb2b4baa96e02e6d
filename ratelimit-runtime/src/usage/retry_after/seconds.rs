//! Seconds, as headers write them.

use std::time::Duration;

/// Reads digits, with or without a fraction, which is rounded up to whole milliseconds. What is too long is [`Duration::MAX`].
pub(super) fn seconds(text: &str) -> Option<Duration> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let is_number = |digits: &str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(whole) || !is_number(fraction) {
        return None;
    }
    let Ok(whole) = whole.parse() else { return Some(Duration::MAX) };
    let thousandths = fraction.bytes().chain(std::iter::repeat(b'0')).take(3);
    let millis = thousandths.fold(0, |millis, digit| 10 * millis + u64::from(digit - b'0'));
    let more = fraction.bytes().skip(3).any(|digit| digit != b'0');
    let part = Duration::from_millis(millis + u64::from(more));
    Some(Duration::from_secs(whole).checked_add(part).unwrap_or(Duration::MAX))
}
