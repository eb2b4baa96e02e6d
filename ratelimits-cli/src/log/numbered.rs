//! Calls of which none may be missed, with numbers for their keys.

use std::collections::HashMap;

use super::{Fields, Format, Line, MOST_PERMITS, Problem};

/// A call of a line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NumberedCall {
    /// In nanoseconds since the Unix epoch.
    pub(crate) time: u64,
    /// The number of its key.
    pub(crate) key: usize,
    /// The permits that the line says.
    pub(crate) cost: Option<u64>,
}

/// The keys of a log, numbered from 0.
pub(crate) type Keys = HashMap<Box<str>, usize>;

impl Format {
    /// Reads a line all of which must be known. Returns the call and what else the line has, or nothing if it is a header.
    pub(crate) fn read_numbered<'l>(
        &mut self,
        line: &'l Line<'_>,
        keys: &mut Keys,
    ) -> Result<Option<(NumberedCall, Fields<'l, '_>)>, Problem> {
        if line.is_cut {
            return Err(Problem::TooLong);
        }
        if line.is_first && self.read_header(&line.text) {
            return Ok(None);
        }
        let (time, fields) = self.split(&line.text)?;
        let call = self.call(time, &fields)?;
        if line.is_mended && call.key.contains(char::REPLACEMENT_CHARACTER) {
            return Err(Problem::UnclearKey);
        }
        if call.cost.is_some_and(|cost| cost > MOST_PERMITS) {
            return Err(Problem::CostTooLarge);
        }
        let key = match keys.get(&*call.key) {
            Some(key) => *key,
            None => {
                let number = keys.len();
                keys.insert(call.key.into(), number);
                number
            }
        };
        Ok(Some((NumberedCall { time, key, cost: call.cost }, fields)))
    }
}
