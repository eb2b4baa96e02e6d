//! Logs of calls: access logs, JSON lines, CSV with a header, and lines that begin with a time.

mod access;
mod csv;
mod fields;
mod json;
mod lines;
mod numbered;
mod selection;
mod source;
pub(crate) mod time;

use std::borrow::Cow;
use std::fmt;

pub(crate) use fields::{Field, Fields};
pub(crate) use lines::{Line, Lines};
pub(crate) use numbered::{Keys, NumberedCall};
pub(crate) use selection::Selection;
pub(crate) use source::Source;

/// How lines are read.
#[derive(Debug)]
pub(crate) struct Format {
    fields: Selection,
    /// The names of the columns, if the log is CSV.
    header: Option<Vec<String>>,
}

/// A call that a line is about.
#[derive(Debug, PartialEq)]
pub(crate) struct LoggedCall<'l> {
    /// In nanoseconds since the Unix epoch.
    pub(crate) time: u64,
    pub(crate) key: Cow<'l, str>,
    pub(crate) cost: Option<u64>,
}

/// What cannot be read of a line.
#[derive(Debug, PartialEq)]
pub(crate) enum Problem {
    Time,
    Json,
    /// How many columns the line has, and how many the header.
    Columns(usize, usize),
    /// The quotes of the line do not match.
    Quotes,
    /// The field that the line lacks.
    Key(String),
    /// The field that is not a number.
    Cost(String),
    CostTooLarge,
    /// The key is no UTF-8, so that others may look the same.
    UnclearKey,
    TooLong,
}

/// The most permits of a log, up to which all numbers are exact.
pub(crate) const MOST_PERMITS: u64 = 1 << 53;

/// The JSON fields that usually have the time.
const TIME_FIELDS: [&str; 4] = ["time", "timestamp", "ts", "@timestamp"];

impl Format {
    pub(crate) fn new(fields: Selection) -> Self {
        Format { fields, header: None }
    }

    /// Reads the first line as the header of a CSV log, if it names the column with the time. Returns whether it does.
    pub(crate) fn read_header(&mut self, line: &str) -> bool {
        let names = csv::cells(line.trim_start_matches('\u{feff}')).unwrap_or_default();
        let is_time = |name: &str| match &self.fields.time {
            Some(time) => time == name,
            None => TIME_FIELDS.contains(&name),
        };
        let is_header = names.len() > 1 && names.iter().any(|name| is_time(name));
        self.header = is_header.then(|| names.into_iter().map(Cow::into_owned).collect());
        is_header
    }

    /// Reads a line in any of the formats.
    pub(crate) fn parse<'l>(&self, line: &'l str) -> Result<LoggedCall<'l>, Problem> {
        let (time, fields) = self.split(line)?;
        self.call(time, &fields)
    }

    /// Returns what a line says of a call.
    pub(crate) fn call<'l>(&self, time: u64, fields: &Fields<'l, '_>) -> Result<LoggedCall<'l>, Problem> {
        let key = fields.get(&self.fields.key).filter(|key| !key.is_empty());
        let key = key.ok_or_else(|| Problem::Key(self.fields.key.to_string()))?;
        let cost = self.fields.cost.as_ref().map(|field| {
            let cost = fields.get(field).and_then(|cost| cost.parse().ok());
            cost.ok_or_else(|| Problem::Cost(field.to_string()))
        });
        Ok(LoggedCall { time, key, cost: cost.transpose()? })
    }

    /// Returns the time and the fields of a line.
    pub(crate) fn split<'l>(&self, line: &'l str) -> Result<(u64, Fields<'l, '_>), Problem> {
        if let Some(names) = &self.header {
            let cells = csv::cells(line).ok_or(Problem::Quotes)?;
            if cells.len() != names.len() {
                return Err(Problem::Columns(cells.len(), names.len()));
            }
            return self.timed(Fields::Csv(names, cells));
        }
        if line.starts_with('{') {
            return self.timed(Fields::Json(json::Object::parse(line).ok_or(Problem::Json)?));
        }
        if let Some(time) = leading_time(line) {
            return Ok((time, Fields::Words(line)));
        }
        let time = access::time(line).and_then(time::parse_common).ok_or(Problem::Time)?;
        Ok((time, Fields::Access(line)))
    }

    /// Returns the time of fields that have names.
    fn timed<'l, 'f>(&self, fields: Fields<'l, 'f>) -> Result<(u64, Fields<'l, 'f>), Problem> {
        let written = match &self.fields.time {
            Some(name) => fields.named(name),
            None => TIME_FIELDS.iter().find_map(|name| fields.named(name)),
        };
        let time = written.and_then(|written| time::parse(&written).or_else(|| time::parse_common(&written)));
        Ok((time.ok_or(Problem::Time)?, fields))
    }
}

/// Returns the time that the line begins with, in one word or in two, a date and a time of day.
fn leading_time(line: &str) -> Option<u64> {
    if !line.starts_with(|first: char| first.is_ascii_digit()) {
        return None;
    }
    let mut spaces = line.match_indices(' ').map(|(at, _)| at).chain([line.len()]);
    let (first, second) = (spaces.next()?, spaces.next());
    time::parse(&line[..first]).or_else(|| time::parse(&line[..second?]))
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::Time => f.write_str("no readable time"),
            Problem::Json => f.write_str("no JSON object"),
            Problem::Columns(columns, named) => {
                let columns_of_line = if *columns == 1 { "column" } else { "columns" };
                write!(f, "{columns} {columns_of_line}, where the header has {named}")
            }
            Problem::Quotes => f.write_str("quotes that do not match"),
            Problem::Key(field) => write!(f, "no {field} to count by; name another field with `--key`"),
            Problem::Cost(field) => write!(f, "{field} is not a whole number of permits"),
            Problem::CostTooLarge => write!(f, "the cost is more than {MOST_PERMITS}"),
            Problem::UnclearKey => f.write_str("the key is no UTF-8, so that other keys may look the same"),
            Problem::TooLong => f.write_str("longer than 1 MiB"),
        }
    }
}

#[cfg(test)]
mod tests;
