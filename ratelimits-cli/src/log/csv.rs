//! Lines of CSV, as in RFC 4180, in which no cell has a line break.

use std::borrow::Cow;

/// Returns the cells of a line, or `None` if its quotes do not match.
pub(super) fn cells(line: &str) -> Option<Vec<Cow<'_, str>>> {
    let mut cells = Vec::with_capacity(8);
    let mut rest = line;
    loop {
        let (cell, after) = cell(rest)?;
        cells.push(cell);
        match after {
            Some(after) => rest = after,
            None => return Some(cells),
        }
    }
}

/// Returns the first cell, and what follows its comma, if there is one.
fn cell(text: &str) -> Option<(Cow<'_, str>, Option<&str>)> {
    let Some(quoted) = text.strip_prefix('"') else {
        return Some(match text.split_once(',') {
            Some((cell, rest)) => (cell.into(), Some(rest)),
            None => (text.into(), None),
        });
    };
    let mut end = 0;
    loop {
        end += quoted[end..].find('"')?;
        match quoted.as_bytes().get(end + 1) {
            Some(b'"') => end += 2,
            Some(b',') | None => break,
            Some(_) => return None,
        }
    }
    let cell = &quoted[..end];
    let cell = if cell.contains('"') { cell.replace("\"\"", "\"").into() } else { cell.into() };
    Some((cell, quoted[end + 1..].strip_prefix(',')))
}

#[cfg(test)]
mod tests {
    use super::cells;

    #[test]
    fn cells_are_split() {
        for (line, expected) in [
            ("", &[""][..]),
            ("a", &["a"]),
            ("a,,b,", &["a", "", "b", ""]),
            (r#""a,b",c"#, &["a,b", "c"]),
            (r#"a,"say ""hi""","""""#, &["a", r#"say "hi""#, "\""]),
            (r#""","""#, &["", ""]),
            (r#""","#, &["", ""]),
            (r#"a"b,c"#, &[r#"a"b"#, "c"]),
        ] {
            assert_eq!(cells(line).unwrap(), expected, "{line}");
        }
        for line in ["\"", "\"a", "a,\"b", "\"a\"b,c", "\"\"\""] {
            assert_eq!(cells(line), None, "{line}");
        }
    }
}
