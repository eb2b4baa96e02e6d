//! Lines of JSON. Only the fields that are asked for are parsed.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The fields of an object, as they are written.
#[derive(Debug)]
pub(crate) struct Object<'l>(Vec<(Name<'l>, &'l RawValue)>);

/// The name of a field, which has to be copied if it has escapes.
#[derive(Debug, serde::Deserialize)]
#[serde(transparent)]
struct Name<'l>(#[serde(borrow)] Cow<'l, str>);

impl<'l> Object<'l> {
    pub(super) fn parse(text: &'l str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// Returns the value of the field with this name, unless it is a list, an object or null. If there is no such field, dots lead into
    /// objects. Of two fields with one name, it is unknown which one counts.
    pub(super) fn get(&self, name: &str) -> Option<Cow<'l, str>> {
        let value = |name: &str| {
            let mut values = self.0.iter().filter(|(field, _)| field.0 == name).map(|(_, value)| value.get());
            (values.next(), values.next())
        };
        match value(name) {
            (Some(value), None) => text(value),
            (Some(_), Some(_)) => None,
            (None, _) => {
                let (outer, inner) = name.split_once('.')?;
                let (Some(object), None) = value(outer) else { return None };
                Object::parse(object)?.get(inner)
            }
        }
    }
}

/// Returns a value other than a list, an object or null as text.
fn text(value: &str) -> Option<Cow<'_, str>> {
    match value.as_bytes()[0] {
        b'"' if value.contains('\\') => serde_json::from_str(value).ok().map(Cow::Owned),
        b'"' => Some(Cow::Borrowed(&value[1..value.len() - 1])),
        b'[' | b'{' | b'n' => None,
        _ => Some(Cow::Borrowed(value)),
    }
}

impl<'de: 'l, 'l> Deserialize<'de> for Object<'l> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;

        impl<'de> Visitor<'de> for Fields {
            type Value = Object<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object<'de>, A::Error> {
                let mut fields = Vec::with_capacity(8);
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Object(fields))
            }
        }

        deserializer.deserialize_map(Fields)
    }
}
