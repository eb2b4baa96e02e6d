//! The fields of a line.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use super::access::{self, network};
use super::json::Object;

/// The name of a field, or its number from 1.
#[derive(Clone, Debug)]
pub(crate) enum Field {
    Number(usize),
    Name(String),
}

/// What a line consists of.
#[derive(Debug)]
pub(crate) enum Fields<'l, 'f> {
    /// The common or combined log format.
    Access(&'l str),
    /// Words, of which the first is a time.
    Words(&'l str),
    /// Cells, and the names of their columns.
    Csv(&'f [String], Vec<Cow<'l, str>>),
    Json(Object<'l>),
}

impl<'l> Fields<'l, '_> {
    /// Returns the value of a field. An IP address is reduced to what the library counts by.
    pub(crate) fn get(&self, field: &Field) -> Option<Cow<'l, str>> {
        match (self, field) {
            (Fields::Access(line) | Fields::Words(line), Field::Number(number)) => {
                line.split_ascii_whitespace().nth(number - 1).map(Cow::Borrowed)
            }
            (Fields::Csv(_, cells), Field::Number(number)) => cells.get(number - 1).cloned(),
            (Fields::Json(object), Field::Number(number)) => object.get(&number.to_string()),
            (Fields::Csv(..) | Fields::Json(_), Field::Name(name)) if name == "ip" => {
                let address = self.named(name)?;
                Some(match network(&address) {
                    Cow::Owned(network) => network.into(),
                    Cow::Borrowed(_) => address,
                })
            }
            (_, Field::Name(name)) => self.named(name),
        }
    }

    /// Returns the value of the field with this name, as it is. Of two columns with one name, it is unknown which one counts.
    pub(super) fn named(&self, name: &str) -> Option<Cow<'l, str>> {
        match self {
            Fields::Access(line) => access::field(line, name),
            Fields::Words(_) => None,
            Fields::Csv(names, cells) => {
                let mut found = names.iter().zip(cells).filter(|(column, _)| *column == name);
                found.next().filter(|_| found.next().is_none()).map(|(_, cell)| cell.clone())
            }
            Fields::Json(object) => object.get(name),
        }
    }
}

impl FromStr for Field {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.parse() {
            Ok(0) => Err("fields are numbered from 1"),
            Ok(number) => Ok(Field::Number(number)),
            Err(_) if text.is_empty() => Err("a field has a name or a number"),
            Err(_) => Ok(Field::Name(text.to_owned())),
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
