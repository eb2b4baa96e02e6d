//! The fields of a line.

use std::borrow::Cow;
use std::net::IpAddr;
use std::str::FromStr;

use ratelimit_runtime::RequestContext;
use serde_json::{Map, Value};

/// The name of a field, or its number from 1.
#[derive(Clone, Debug)]
pub(super) enum Field {
    Number(usize),
    Name(String),
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

/// What a line consists of.
#[derive(Debug)]
pub(super) enum Fields<'l> {
    /// The common or combined log format.
    Access(&'l str),
    /// Words, of which the first is a time.
    Words(&'l str),
    Json(Map<String, Value>),
}

impl Fields<'_> {
    /// Returns the value of a field. An IP address is reduced to what the library counts by.
    pub(super) fn get(&self, field: &Field) -> Option<Cow<'_, str>> {
        match (self, field) {
            (Fields::Access(line) | Fields::Words(line), Field::Number(number)) => {
                line.split_ascii_whitespace().nth(number - 1).map(Cow::Borrowed)
            }
            (Fields::Words(_), Field::Name(_)) => None,
            (Fields::Access(line), Field::Name(name)) => match name.as_str() {
                "ip" => Some(network(line.split_ascii_whitespace().next()?)),
                "user" => line.split_ascii_whitespace().nth(2).filter(|user| *user != "-").map(Cow::Borrowed),
                "method" => request(line)?.split_ascii_whitespace().next().map(Cow::Borrowed),
                "path" => {
                    let target = request(line)?.split_ascii_whitespace().nth(1)?;
                    Some(Cow::Borrowed(target.split(['?', '#']).next().unwrap_or(target)))
                }
                _ => None,
            },
            (Fields::Json(object), Field::Number(number)) => text(object.get(&number.to_string())?),
            (Fields::Json(object), Field::Name(name)) => {
                let value = text(find(object, name)?)?;
                Some(if name == "ip" { network(&value).into_owned().into() } else { value })
            }
        }
    }
}

/// Returns the field of this name. If there is none, dots lead into objects.
pub(super) fn find<'v>(object: &'v Map<String, Value>, name: &str) -> Option<&'v Value> {
    object.get(name).or_else(|| {
        let (outer, inner) = name.split_once('.')?;
        find(object.get(outer)?.as_object()?, inner)
    })
}

/// Returns a value other than a list, an object or null as text.
pub(super) fn text(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::String(text) => Some(Cow::Borrowed(text)),
        Value::Number(_) | Value::Bool(_) => Some(Cow::Owned(value.to_string())),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Returns the first text in quotes, which is the request line.
fn request(line: &str) -> Option<&str> {
    line.split('"').nth(1)
}

/// Returns what the library counts an address by. Other text, like a host name, stays as it is.
fn network(address: &str) -> Cow<'_, str> {
    let network = address.parse::<IpAddr>().ok().and_then(|ip| RequestContext::new().with_ip(ip).ip());
    network.map_or(Cow::Borrowed(address), |ip| Cow::Owned(ip.to_string()))
}
