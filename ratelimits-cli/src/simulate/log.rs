//! The lines of logs.

use std::borrow::Cow;
use std::fmt;

use super::fields::{Field, Fields, find, text};
use super::time;

/// How lines are read.
#[derive(Debug)]
pub(super) struct Format {
    pub(super) key: Field,
    pub(super) cost: Option<Field>,
    /// The JSON field with the time.
    pub(super) time: Option<String>,
}

/// A call that a line is about.
#[derive(Debug, PartialEq)]
pub(super) struct LoggedCall<'l> {
    /// In microseconds since the Unix epoch.
    pub(super) time: u64,
    pub(super) key: Cow<'l, str>,
    pub(super) cost: Option<u64>,
}

/// What cannot be read of a line.
#[derive(Debug, PartialEq)]
pub(super) enum Problem {
    Time,
    /// The field that the line lacks.
    Key(String),
    /// The field that is not a number.
    Cost(String),
}

/// The JSON fields that usually have the time.
const TIME_FIELDS: [&str; 4] = ["time", "timestamp", "ts", "@timestamp"];

impl Format {
    /// Reads a line in any of the formats.
    pub(super) fn parse<'l>(&self, line: &'l str) -> Result<LoggedCall<'l>, Problem> {
        let (time, fields) = self.split(line).ok_or(Problem::Time)?;
        let key = fields.get(&self.key).filter(|key| !key.is_empty());
        let key = key.ok_or_else(|| Problem::Key(self.key.to_string()))?.into_owned();
        let cost = self.cost.as_ref().map(|field| {
            let cost = fields.get(field).and_then(|cost| cost.parse().ok());
            cost.ok_or_else(|| Problem::Cost(field.to_string()))
        });
        Ok(LoggedCall { time, key: key.into(), cost: cost.transpose()? })
    }

    fn split<'l>(&self, line: &'l str) -> Option<(u64, Fields<'l>)> {
        if line.starts_with('{') {
            let object = serde_json::from_str(line).ok()?;
            let value = match &self.time {
                Some(name) => find(&object, name),
                None => TIME_FIELDS.iter().find_map(|name| object.get(*name)),
            };
            let written = text(value?)?;
            let time = time::parse(&written).or_else(|| time::parse_common(&written))?;
            return Some((time, Fields::Json(object)));
        }
        leading_time(line)
            .map(|time| (time, Fields::Words(line)))
            .or_else(|| Some((time::parse_common(bracketed(line)?)?, Fields::Access(line))))
    }
}

/// Returns the time that the line begins with, in one word or in two, a date and a time of day.
fn leading_time(line: &str) -> Option<u64> {
    let mut spaces = line.match_indices(' ').map(|(at, _)| at).chain([line.len()]);
    let (first, second) = (spaces.next()?, spaces.next());
    time::parse(&line[..first]).or_else(|| time::parse(&line[..second?]))
}

/// Returns the first text in brackets.
fn bracketed(line: &str) -> Option<&str> {
    Some(line.split_once('[')?.1.split_once(']')?.0)
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::Time => f.write_str("no readable time"),
            Problem::Key(field) => write!(f, "no {field} to count by; name another field with `--key`"),
            Problem::Cost(field) => write!(f, "{field} is not a whole number of permits"),
        }
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Field::Number(number) => write!(f, "field {number}"),
            Field::Name(name) => write!(f, "`{name}`"),
        }
    }
}

#[cfg(test)]
mod tests;
