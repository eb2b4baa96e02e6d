//! What a line says of a call, for a check.

use std::fmt;

use ratelimit_runtime::inspect::parse_duration;

use super::refused::{Refused, is_refused};
use crate::log::{self, Field, Format, Keys, Line, NumberedCall, time};

/// Reads the events of a log.
#[derive(Debug)]
pub(super) struct Events {
    pub(super) format: Format,
    pub(super) refused: Vec<Refused>,
    pub(super) duration: Option<Field>,
}

/// A call of a line. Events are ordered by their times, and by their lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Event {
    pub(super) time: u64,
    pub(super) line: u64,
    /// The number of its key.
    pub(super) key: usize,
    /// The permits that the line says.
    pub(super) cost: Option<u64>,
    pub(super) is_refused: bool,
    /// When an admitted call has ended; its time if that does not matter.
    pub(super) end: u64,
}

/// Why a line cannot be read.
#[derive(Debug)]
pub(super) enum Problem {
    Log(log::Problem),
    /// The field that does not say whether the call was refused.
    Refused(String),
    /// The field that does not say how long the call has taken.
    Duration(String),
}

impl Events {
    /// Reads a line. Returns nothing if it is a header.
    pub(super) fn read(&mut self, line: &Line<'_>, keys: &mut Keys) -> Result<Option<Event>, Problem> {
        let Some((call, fields)) = self.format.read_numbered(line, keys)? else { return Ok(None) };
        let NumberedCall { time, key, cost } = call;
        let is_refused = is_refused(&self.refused, &fields).map_err(Problem::Refused)?;
        let end = match &self.duration {
            Some(field) if !is_refused => {
                let duration = fields.get(field).and_then(|duration| nanos(&duration));
                time.saturating_add(duration.ok_or_else(|| Problem::Duration(field.to_string()))?)
            }
            _ => time,
        };
        Ok(Some(Event { time, line: line.number, key, cost, is_refused, end }))
    }
}

/// Parses a duration in seconds, or with units.
fn nanos(text: &str) -> Option<u64> {
    time::seconds(text).or_else(|| parse_duration(text).ok()?.as_nanos().try_into().ok())
}

impl From<log::Problem> for Problem {
    fn from(problem: log::Problem) -> Self {
        Problem::Log(problem)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::Log(problem) => problem.fmt(f),
            Problem::Refused(field) => {
                write!(
                    f,
                    "no {field}, which says whether the call was refused; name another field with `--refused`"
                )
            }
            Problem::Duration(field) => {
                write!(f, "{field} is no duration; write seconds, or a unit, like 250ms")
            }
        }
    }
}
