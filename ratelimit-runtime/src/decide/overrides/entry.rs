//! The entry of one policy, or of one of its keys, in a file of overrides.

use std::fmt::{self, Display};

use crate::base::invalid_policy::InvalidPolicy;
use crate::policy::{ArgumentValue, Policy};

/// What an operator changes of a policy, or for one of its keys. Its text is a table in a file of overrides.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Entry {
    /// The name of the policy, or `prefix:name`.
    pub policy: String,
    /// The parts of the key that it is for. Empty if it is for all keys.
    pub key: Vec<String>,
    /// The numbers that replace those of the policy, by their arguments.
    pub numbers: Vec<(String, Value)>,
    /// Whether the policy is in shadow, if it sets that.
    pub shadow: Option<bool>,
    /// Whether the policy limits nothing.
    pub off: bool,
    /// Whether the policy refuses every call of the key.
    pub blocked: bool,
    /// When it ends, in seconds since the Unix epoch, by the clock of the store.
    pub until: Option<u64>,
    /// Who has set it.
    pub author: Option<String>,
    /// Why.
    pub reason: Option<String>,
}

/// The value of a number.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A whole number.
    Integer(i64),
    /// A number with a fraction.
    Float(f64),
    /// A rate or a duration in words.
    Text(String),
}

impl Entry {
    /// Returns the policy with these numbers in place of its own.
    ///
    /// # Errors
    ///
    /// If a number is not one of the policy, or its value is invalid by itself.
    pub fn numbers_on(&self, policy: Policy) -> Result<Policy, InvalidPolicy> {
        let mut numbers = self.numbers.iter();
        numbers
            .try_fold(policy, |policy, (argument, value)| policy.with_argument(argument, value.as_argument()))
    }

    /// Returns what it sets, such as `rate = "100/min"` and `shadow = true`.
    #[must_use]
    pub fn settings(&self) -> Vec<String> {
        let numbers = self.numbers.iter().map(|(argument, value)| format!("{argument} = {value}"));
        let shadow = self.shadow.map(|shadow| format!("shadow = {shadow}"));
        let switches = [(self.off, "off = true"), (self.blocked, "blocked = true")];
        let switches = switches.into_iter().filter(|(is_set, _)| *is_set).map(|(_, text)| text.to_owned());
        numbers.chain(shadow).chain(switches).collect()
    }

    /// Whether it is about the same policy and key.
    #[must_use]
    pub fn replaces(&self, other: &Entry) -> bool {
        (&self.policy, &self.key) == (&other.policy, &other.key)
    }

    /// Returns what is in force for a key with this override, given that of all keys: whatever this one does not set.
    #[must_use]
    pub fn over(&self, all: Option<&Entry>) -> Entry {
        let Some(all) = all else { return self.clone() };
        let is_set = |number: &str| self.numbers.iter().any(|(own, _)| own == number);
        let mut numbers = all.numbers.clone();
        numbers.retain(|(number, _)| !is_set(number));
        numbers.extend(self.numbers.iter().cloned());
        let (shadow, off) = (self.shadow.or(all.shadow), self.off || all.off);
        match self.blocked {
            true => Entry { numbers, ..self.clone() },
            false => Entry { numbers, shadow, off, ..self.clone() },
        }
    }

    /// Whether it leaves a policy as it has to be, which may be a shadow in its attribute: that never refuses.
    pub(super) fn fits(&self, is_shadow: bool) -> bool {
        !is_shadow || self.shadow != Some(false) && !self.blocked
    }

    /// Whether it has ended at this time, in seconds since the Unix epoch.
    #[must_use]
    pub fn has_ended(&self, now: u64) -> bool {
        self.until.is_some_and(|until| until <= now)
    }
}

impl Value {
    pub(super) fn as_argument(&self) -> ArgumentValue<'_> {
        match self {
            Value::Integer(integer) => ArgumentValue::Integer((*integer).into()),
            Value::Float(float) => ArgumentValue::Float(*float),
            Value::Text(text) => ArgumentValue::Text(text),
        }
    }
}

impl Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}", Quoted(&self.policy))?;
        if !self.key.is_empty() {
            f.write_str(".keys")?;
            self.key.iter().try_for_each(|part| write!(f, ".{}", Quoted(part)))?;
        }
        f.write_str("]\n")?;
        self.settings().iter().try_for_each(|setting| writeln!(f, "{setting}"))?;
        if let Some(until) = self.until {
            writeln!(f, "until = {until}")?;
        }
        for (name, text) in [("author", &self.author), ("reason", &self.reason)] {
            if let Some(text) = text {
                writeln!(f, "{name} = {}", Quoted(text))?;
            }
        }
        Ok(())
    }
}

impl Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Integer(integer) => write!(f, "{integer}"),
            // With a fraction or an exponent, as TOML wants.
            Value::Float(float) => write!(f, "{float:?}"),
            Value::Text(text) => Quoted(text).fmt(f),
        }
    }
}

/// A basic string of TOML.
struct Quoted<'a>(&'a str);

impl Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"")?;
        for char in self.0.chars() {
            match char {
                '"' | '\\' => write!(f, "\\{char}")?,
                char if char.is_control() => write!(f, "\\u{:04X}", u32::from(char))?,
                char => write!(f, "{char}")?,
            }
        }
        f.write_str("\"")
    }
}
