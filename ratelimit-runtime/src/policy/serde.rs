//! Policies and rates in configuration files.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};
use serde::ser::{Error as _, Serialize, SerializeMap, Serializer};

use super::numbers::rate_of;
use super::written::Written;
use super::{Algorithm, ArgumentValue, Policy};
use crate::base::rate::Rate;

/// What no configuration can express.
const TOO_FINE: &str = "a time is no whole number of microseconds";

/// A value as a format has it.
#[derive(Clone, Debug)]
enum Value {
    Bool(bool),
    Integer(i128),
    Float(f64),
    Text(String),
}

/// An argument, or the algorithm.
type Entry = (String, Value);

impl Serialize for Policy {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let arguments = self.written().ok_or_else(|| S::Error::custom(TOO_FINE))?;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("algorithm", self.algorithm().name())?;
        for (name, value) in arguments {
            match value {
                Written::Count(count) => map.serialize_entry(name, &count)?,
                Written::Text(text) => map.serialize_entry(name, &text)?,
                Written::Word(word) => map.serialize_entry(name, word)?,
                Written::Flag => map.serialize_entry(name, &true)?,
            }
        }
        match self.of_buckets() {
            (_, true) => map.serialize_entry("settled", &true)?,
            (true, _) => map.serialize_entry("adjustable", &true)?,
            _ => {}
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Policy {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let entries = deserializer.deserialize_map(Entries)?;
        Policy::read(&entries).map_err(D::Error::custom)
    }
}

impl Policy {
    /// Returns whether it is a bucket that is adjustable, and whether its calls are settled.
    fn of_buckets(&self) -> (bool, bool) {
        match self {
            Policy::TokenBucket(bucket) => (bucket.adjustable, bucket.settled),
            Policy::LeakyBucket(bucket) => (bucket.adjustable, bucket.settled),
            Policy::FixedWindow(_) | Policy::SlidingWindow(_) | Policy::ConcurrencyLimit(_) => (false, false),
        }
    }

    fn read(entries: &[Entry]) -> Result<Self, String> {
        let name = entries.iter().find_map(|(name, value)| match value {
            Value::Text(text) if name == "algorithm" => Some(text.as_str()),
            _ => None,
        });
        let algorithm = Algorithm::ALL.into_iter().find(|algorithm| Some(algorithm.name()) == name);
        let attribute = algorithm.ok_or_else(no_algorithm)?.attribute();
        let is_set = |name: &str| entries.iter().any(|(other, value)| other == name && value.is_set());
        let mut policy = Policy::with_options(attribute, is_set);
        let (zone, others): (Vec<_>, Vec<_>) =
            entries.iter().filter(|(name, _)| name != "algorithm").partition(|(name, _)| name == "zone");
        // Windows get a zone once they are those of a calendar.
        for (name, value) in others.into_iter().chain(zone) {
            match (name.as_str(), value) {
                ("adjustable", Value::Bool(true))
                    if matches!(policy, Policy::TokenBucket(_) | Policy::LeakyBucket(_)) =>
                {
                    policy = policy.computed();
                }
                ("settled", Value::Bool(true))
                    if matches!(policy, Policy::TokenBucket(_) | Policy::LeakyBucket(_)) =>
                {
                    policy = policy.settled();
                }
                (_, Value::Bool(false)) => {}
                ("refill", Value::Text(refill)) if refill == "interval" => {}
                ("borrow" | "aligned" | "queue", Value::Bool(true)) if attribute.argument(name).is_some() => {
                }
                ("refill" | "borrow" | "aligned" | "queue" | "adjustable" | "settled", _) => {
                    return Err(format!("`{name}` of a {} has no such value", attribute.name()));
                }
                (_, value) => policy = value.apply(policy, name)?,
            }
        }
        if is_set("leak_rate") && is_set("drain") {
            return Err("`drain` and `leak_rate` set the same number; leave out one of them".to_owned());
        }
        if let Some(missing) = Policy::missing(attribute, is_set) {
            return Err(format!("`{missing}` is missing"));
        }
        policy.check().map_err(|invalid| invalid.to_string())?;
        Ok(policy)
    }
}

fn no_algorithm() -> String {
    let names = Algorithm::ALL.map(|algorithm| format!("\"{algorithm}\"")).join(", ");
    format!("`algorithm` is missing or not known; write one of {names}")
}

impl Value {
    fn is_set(&self) -> bool {
        !matches!(self, Value::Bool(false))
    }

    /// Returns the policy with this value of a number.
    fn apply(&self, policy: Policy, argument: &str) -> Result<Policy, String> {
        let value = match self {
            Value::Bool(_) => return Err(format!("`{argument}` is a number, and neither true nor false")),
            Value::Integer(integer) => ArgumentValue::Integer(*integer),
            Value::Float(float) => ArgumentValue::Float(*float),
            Value::Text(text) => ArgumentValue::Text(text),
        };
        let changed = match argument {
            "zone" => policy.with_zone(value),
            _ => policy.with_argument(argument, value),
        };
        changed.map_err(|invalid| invalid.to_string())
    }
}

/// Reads the entries of a table.
struct Entries;

impl<'de> Visitor<'de> for Entries {
    type Value = Vec<Entry>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the algorithm and the arguments of a policy")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Vec<Entry>, A::Error> {
        let mut entries: Vec<Entry> = Vec::new();
        while let Some((name, value)) = map.next_entry::<String, Value>()? {
            if entries.iter().any(|(other, _)| *other == name) {
                return Err(A::Error::custom(format!("`{name}` is there twice")));
            }
            entries.push((name, value));
        }
        Ok(entries)
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AnyValue;

        impl Visitor<'_> for AnyValue {
            type Value = Value;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number, a text such as \"100/min\", or true")
            }

            fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
                Ok(Value::Bool(value))
            }

            fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
                Ok(Value::Integer(value.into()))
            }

            fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
                Ok(Value::Integer(value.into()))
            }

            fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
                Ok(Value::Float(value))
            }

            fn visit_str<E>(self, text: &str) -> Result<Value, E> {
                Ok(Value::Text(text.to_owned()))
            }
        }

        deserializer.deserialize_any(AnyValue)
    }
}

/// As text, such as `"100/min"`.
impl Serialize for Rate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let rate = *self;
        match crate::base::units::write_rate(rate.permits, rate.period) {
            Some(text) => serializer.serialize_str(&text),
            None => Err(S::Error::custom(TOO_FINE)),
        }
    }
}

/// From text such as `"100/min"`, or from a number of permits per second.
impl<'de> Deserialize<'de> for Rate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let rate = match Value::deserialize(deserializer)? {
            Value::Text(text) => Rate::parse(&text),
            Value::Integer(per_second) => rate_of("rate", per_second),
            Value::Float(per_second) => Rate::from_per_second(per_second),
            Value::Bool(_) => return Err(D::Error::custom("a rate is neither true nor false")),
        };
        rate.map_err(D::Error::custom)
    }
}

#[cfg(all(test, feature = "overrides"))]
mod tests;
