//! The text of overrides.

use std::ops::Range;

use toml::de::{DeTable, DeValue};

use super::entry::{Entry, Value};

/// Overrides that were parsed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Parsed {
    /// Those that can be read, in the order of the text, policy by policy.
    pub overrides: Vec<Entry>,
    /// What is wrong with the others, with their lines.
    pub problems: Vec<String>,
}

/// Parses overrides: TOML with a table for each policy, by its name, and in that, under `keys`, one for each key, whose parts are names
/// of tables. What is wrong in one table concerns no other.
///
/// # Errors
///
/// Returns the problem of a text that is no TOML or may be incomplete, with its line.
pub fn parse(text: &str) -> Result<Parsed, String> {
    if !text.is_empty() && !text.ends_with('\n') {
        return Err("the last line is not complete; end it with a line break".to_owned());
    }
    let lines = Lines::of(text);
    let table = match DeTable::parse(text) {
        Ok(table) => table.into_inner(),
        Err(error) => {
            let line = error.span().map_or(String::new(), |span| format!("line {}: ", lines.of_span(&span)));
            return Err(format!("{line}{}", error.message()));
        }
    };
    let mut found = Found::default();
    for (name, at, value) in in_order(table) {
        let problem = match value {
            DeValue::Table(settings) => {
                found.table(Entry { policy: name, ..Entry::default() }, &at, settings);
                continue;
            }
            DeValue::Array(_) => format!("`{name}` is a list; write `[\"{name}\"]` once"),
            _ => format!("`{name}` is outside of a policy; write `[\"name of the policy\"]` above it"),
        };
        found.problems.push((at, problem));
    }
    let problem = |(at, problem)| format!("line {}: {problem}", lines.of_span(&at));
    Ok(Parsed { overrides: found.overrides, problems: found.problems.into_iter().map(problem).collect() })
}

#[derive(Default)]
struct Found {
    overrides: Vec<Entry>,
    problems: Vec<(Range<usize>, String)>,
}

impl Found {
    /// Reads the table of a policy, or of a key.
    fn table(&mut self, mut entry: Entry, at: &Range<usize>, settings: DeTable<'_>) {
        let (mut is_valid, mut keys, unset) = (true, Vec::new(), entry.clone());
        for (argument, at, value) in in_order(settings) {
            match value {
                DeValue::Table(of_policy) if entry.key.is_empty() && argument == "keys" => {
                    keys = self.keys(&entry.policy, of_policy);
                }
                DeValue::Table(settings) if !entry.key.is_empty() => keys.push((argument, at, settings)),
                value => {
                    if let Err(problem) = set(&mut entry, &argument, &value) {
                        self.problems.push((at, problem));
                        is_valid = false;
                    }
                }
            }
        }
        let has_only_keys = !keys.is_empty() && entry == unset;
        if is_valid && !has_only_keys {
            match problem(&entry) {
                Some(problem) => self.problems.push((at.clone(), problem)),
                None => self.overrides.push(entry),
            }
        }
        for (part, at, settings) in keys {
            let mut entry = unset.clone();
            entry.key.push(part);
            self.table(entry, &at, settings);
        }
    }

    /// Returns the tables of the keys of a policy.
    fn keys<'t>(&mut self, policy: &str, keys: DeTable<'t>) -> Vec<(String, Range<usize>, DeTable<'t>)> {
        let mut tables = Vec::new();
        for (part, at, value) in in_order(keys) {
            match value {
                DeValue::Table(settings) => tables.push((part, at, settings)),
                _ => {
                    let problem = format!(
                        "`{part}` is outside of a key; write `[\"{policy}\".keys.\"a key\"]` above it"
                    );
                    self.problems.push((at, problem));
                }
            }
        }
        tables
    }
}

/// Returns what is wrong with the settings of an entry together.
fn problem(entry: &Entry) -> Option<String> {
    let (of, settings) = (of(entry), entry.settings());
    if entry.blocked && settings.len() > 1 {
        return Some(format!("{of}: `blocked` refuses every call; write no other setting beside it"));
    }
    let blocked = if entry.key.is_empty() { "" } else { " `blocked = true`," };
    settings
        .is_empty()
        .then(|| format!("{of} has no settings; write a number,{blocked} `shadow = true` or `off = true`"))
}

/// Sets what an entry says.
fn set(entry: &mut Entry, argument: &str, value: &DeValue<'_>) -> Result<(), String> {
    match (argument, value) {
        ("shadow", DeValue::Boolean(shadow)) => entry.shadow = Some(*shadow),
        ("off", DeValue::Boolean(off)) => entry.off = *off,
        ("blocked", DeValue::Boolean(blocked)) if !entry.key.is_empty() => entry.blocked = *blocked,
        ("blocked", DeValue::Boolean(_)) => {
            let policy = &entry.policy;
            return Err(format!("`blocked` is for a key; write it under `[\"{policy}\".keys.\"a key\"]`"));
        }
        ("until", value) => match number(value) {
            Some(Value::Integer(until @ 0..)) => entry.until = Some(until.unsigned_abs()),
            _ => {
                let until = "`until` is a time in seconds since 1970, as `date -d 2027-03-01 +%s` prints it";
                return Err(until.to_owned());
            }
        },
        ("author", DeValue::String(author)) => entry.author = Some(author.clone().into_owned()),
        ("reason", DeValue::String(reason)) => entry.reason = Some(reason.clone().into_owned()),
        ("why", _) => return Err("`why` is an option of the command; write `reason`".to_owned()),
        ("author" | "reason", _) => return Err(format!("`{argument}` is a text")),
        ("shadow" | "off" | "blocked", _) => return Err(format!("`{argument}` is true or false")),
        (_, DeValue::Table(_)) => {
            let name = &entry.policy;
            return Err(format!(
                "`{argument}` is a table; if the policy is named `{name}.{argument}`, write `[\"{name}.{argument}\"]`"
            ));
        }
        (_, value) => match number(value) {
            Some(value) => entry.numbers.push((argument.to_owned(), value)),
            None => return Err(format!("`{argument}` is no number, rate or duration; write {EXAMPLES}")),
        },
    }
    Ok(())
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

/// Returns what an entry is about, for a problem.
pub(super) fn of(entry: &Entry) -> String {
    let Entry { policy, key, .. } = entry;
    if key.is_empty() { format!("`{policy}`") } else { format!("`{policy}`, key `{}`", key.join("`, `")) }
}

/// Returns the names and values of a table in the order of the text, with where the names are.
fn in_order(table: DeTable<'_>) -> Vec<(String, Range<usize>, DeValue<'_>)> {
    let mut values: Vec<_> = table
        .into_iter()
        .map(|(name, value)| (name.get_ref().to_string(), name.span(), value.into_inner()))
        .collect();
    values.sort_by_key(|(_, at, _)| at.start);
    values
}

/// Where the lines of a text end.
struct Lines(Vec<usize>);

impl Lines {
    fn of(text: &str) -> Self {
        Lines(text.bytes().enumerate().filter_map(|(at, byte)| (byte == b'\n').then_some(at)).collect())
    }

    /// Returns the line in which a span begins, from 1.
    fn of_span(&self, span: &Range<usize>) -> usize {
        1 + self.0.partition_point(|end| *end < span.start)
    }
}

#[cfg(test)]
mod tests;
