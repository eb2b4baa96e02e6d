//! The text of overrides.

use std::ops::Range;

use toml::de::{DeTable, DeValue};

use super::entry::{Entry, Value};

/// Overrides that were parsed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Parsed {
    /// Those that can be read.
    pub overrides: Vec<Entry>,
    /// What is wrong with the others, with their lines.
    pub problems: Vec<String>,
}

/// Parses overrides: TOML with a table for each policy, by its name. What is wrong in one table concerns no other.
///
/// # Errors
///
/// Returns the problem of a text that is no TOML or may be incomplete, with its line.
pub fn parse(text: &str) -> Result<Parsed, String> {
    if !text.is_empty() && !text.ends_with('\n') {
        return Err("the last line is not complete; end it with a line break".to_owned());
    }
    let table = match DeTable::parse(text) {
        Ok(table) => table.into_inner(),
        Err(error) => {
            let line = error.span().map_or(String::new(), |span| format!("line {}: ", line_of(text, span)));
            return Err(format!("{line}{}", error.message()));
        }
    };
    let mut sections: Vec<_> = table.into_iter().collect();
    sections.sort_by_key(|(name, _)| name.span().start);
    let Parsed { mut overrides, mut problems } = Parsed::default();
    for (name, value) in sections {
        let at = |span, problem| format!("line {}: {problem}", line_of(text, span));
        match value.into_inner() {
            DeValue::Table(settings) => match section(name.get_ref(), settings) {
                Ok(section) => overrides.push(section),
                Err(found) => problems.extend(
                    found.into_iter().map(|(span, problem)| at(span.unwrap_or(name.span()), problem)),
                ),
            },
            DeValue::Array(_) => {
                let problem = format!("`{0}` is a list; write `[\"{0}\"]` once", name.get_ref());
                problems.push(at(name.span(), problem));
            }
            _ => {
                let problem = format!(
                    "`{}` is outside of a policy; write `[\"name of the policy\"]` above it",
                    name.get_ref()
                );
                problems.push(at(name.span(), problem));
            }
        }
    }
    Ok(Parsed { overrides, problems })
}

type Problem = (Option<Range<usize>>, String);

fn section(name: &str, settings: DeTable<'_>) -> Result<Entry, Vec<Problem>> {
    let (mut section, mut problems) = (Entry { policy: name.to_owned(), ..Entry::default() }, Vec::new());
    let mut settings: Vec<_> = settings.into_iter().collect();
    settings.sort_by_key(|(name, _)| name.span().start);
    for (argument, value) in settings {
        let (argument, value, span) = (argument.get_ref(), value.get_ref(), value.span());
        match (&**argument, value) {
            ("shadow", DeValue::Boolean(shadow)) => section.shadow = Some(*shadow),
            ("off", DeValue::Boolean(off)) => section.off = *off,
            ("until", value) => match number(value) {
                Some(Value::Integer(until @ 0..)) => section.until = Some(until.unsigned_abs()),
                _ => problems.push((Some(span), "`until` is a time in seconds since 1970".to_owned())),
            },
            ("author", DeValue::String(author)) => section.author = Some(author.clone().into_owned()),
            ("reason", DeValue::String(reason)) => section.reason = Some(reason.clone().into_owned()),
            ("author" | "reason", _) => problems.push((Some(span), format!("`{argument}` is a text"))),
            ("shadow" | "off", _) => problems.push((Some(span), format!("`{argument}` is true or false"))),
            (_, DeValue::Table(_)) => {
                let problem = format!(
                    "`{argument}` is a table; if the policy is named `{name}.{argument}`, write `[\"{name}.{argument}\"]`"
                );
                problems.push((Some(span), problem));
            }
            (_, value) => match number(value) {
                Some(value) => section.numbers.push((argument.clone().into_owned(), value)),
                None => {
                    let problem = format!("`{argument}` is no number, rate or duration; write {EXAMPLES}");
                    problems.push((Some(span), problem));
                }
            },
        }
    }
    if problems.is_empty() && section.settings().is_empty() {
        let problem = format!("`{name}` has no settings; write a number, `shadow = true` or `off = true`");
        problems.push((None, problem));
    }
    if problems.is_empty() { Ok(section) } else { Err(problems) }
}

const EXAMPLES: &str = "10, \"100/min\" or \"5s\"";

fn number(value: &DeValue<'_>) -> Option<Value> {
    match value {
        DeValue::Integer(integer) => {
            i64::from_str_radix(integer.as_str(), integer.radix()).ok().map(Value::Integer)
        }
        DeValue::Float(float) => float.as_str().parse().ok().map(Value::Float),
        DeValue::String(text) => Some(Value::Text(text.clone().into_owned())),
        _ => None,
    }
}

/// Returns the line in which a span begins, from 1.
fn line_of(text: &str, span: Range<usize>) -> usize {
    1 + text.as_bytes()[..span.start.min(text.len())].iter().filter(|byte| **byte == b'\n').count()
}

#[cfg(test)]
mod tests;
