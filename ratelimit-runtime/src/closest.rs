//! Suggestions for misspelled words.

/// Returns the word that `written` is probably a misspelling of.
#[doc(hidden)]
pub fn closest<'a>(written: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let written = written.to_lowercase();
    let distances = known.into_iter().map(|name| (edits(&written, &name.to_lowercase()), name));
    let (distance, best) = distances.min()?;
    let limit = if best.len() < 4 { 1 } else { 2 };
    (distance <= limit).then_some(best)
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
    }
}
