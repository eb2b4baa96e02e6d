//! Words in messages: suggestions for those that are misspelled, and lists.

/// Returns the word that `written` is probably a misspelling of.
pub fn closest<'a>(written: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Any two short words are close.
    if written.len() < 3 {
        return None;
    }
    let written = written.to_lowercase();
    let distances = known.into_iter().map(|name| (edits(&written, &name.to_lowercase()), name));
    let (distance, best) = distances.min()?;
    let limit = if best.len() < 4 { 1 } else { 2 };
    (distance <= limit).then_some(best)
}

/// Returns the path that `written` is probably a misspelling or the last part of.
pub fn closest_path<'a>(written: &str, known: impl IntoIterator<Item = &'a str> + Clone) -> Option<&'a str> {
    let ends_so = |path: &&str| path.strip_suffix(written).is_some_and(|start| start.ends_with("::"));
    closest(written, known.clone()).or_else(|| known.into_iter().find(ends_so))
}

/// Formats a list for a message: `a`, `b`, `c`.
pub fn listed<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let quoted: Vec<_> = names.into_iter().map(|name| format!("`{name}`")).collect();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelled_words_have_suggestions() {
        let known = ["rate", "burst", "key"];
        for (written, suggestion) in [
            ("rates", Some("rate")),
            ("brust", Some("burst")),
            ("Rate", Some("rate")),
            ("kay", Some("key")),
            ("period", None),
            ("", None),
        ] {
            assert_eq!(closest(written, known), suggestion, "{written}");
        }
        assert_eq!(closest("rate", []), None);
        assert_eq!(closest("k", ["key"]), None);
    }

    #[test]
    fn paths_may_be_given_by_their_last_part() {
        assert_eq!(closest_path("send", ["a::b::send", "a::resend"]), Some("a::b::send"));
        assert_eq!(closest_path("a::b::sent", ["a::b::send"]), Some("a::b::send"));
        assert_eq!(closest_path("", ["a::b"]), None);
    }

    #[test]
    fn lists_are_quoted() {
        assert_eq!(listed(["a", "b"]), "`a`, `b`");
    }
}
