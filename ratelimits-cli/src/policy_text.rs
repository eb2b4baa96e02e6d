//! Policies as text, in the form of an attribute: `rate_limit(rate = "100/min", burst = 20)`.

mod invalid_text;
mod literal;
mod parsing;

use std::str::FromStr;

use ratelimit_runtime::{ArgumentValue, Policy};
use ratelimit_syntax::AttributeKind;

use crate::message::write_message;
pub(crate) use invalid_text::InvalidText;
use literal::Literal;
use parsing::{Argument, Value};

/// A policy, and what its text says besides.
#[derive(Clone, Debug)]
pub(crate) struct PolicyText {
    pub(crate) policy: Policy,
    /// The name that the text gives the policy, or the text itself.
    pub(crate) label: String,
    /// The permits of a call, unless the program computes them.
    pub(crate) cost: Option<u64>,
    /// The arguments that say something else than the numbers of the policy.
    pub(crate) ignored: Vec<&'static str>,
}

impl FromStr for PolicyText {
    type Err = InvalidText;

    /// Parses an attribute, also with `#[…]` around it. Its numbers are literals, or arithmetic on literals.
    fn from_str(text: &str) -> Result<Self, InvalidText> {
        let (attribute, arguments) = parsing::parse(text)?;
        let mut policy = base(attribute, &arguments)?;
        let mut parsed = PolicyText { policy, label: label(text), cost: Some(1), ignored: Vec::new() };
        for Argument { name, value } in &arguments {
            match (*name, value) {
                (name, Value::Literal(value)) if attribute.numbers().contains(&name) => {
                    policy = policy.with_argument(name, value.as_argument())?;
                }
                (name, _) if attribute.numbers().contains(&name) => return Err(computed(name)),
                ("zone", value) if !matches!(value, Value::Literal(_)) => return Err(computed("zone")),
                ("refill" | "borrow" | "aligned" | "queue" | "zone", _) => {}
                ("name", Value::Literal(Literal::Text(name))) => parsed.label.clone_from(name),
                ("cost", value) => parsed.cost = cost(value)?,
                (name, _) => parsed.ignored.push(name),
            }
        }
        check_required(attribute, &arguments)?;
        policy = in_zone(policy, &arguments)?;
        policy.check()?;
        Ok(PolicyText { policy, ..parsed })
    }
}

impl PolicyText {
    /// Writes what is ignored to standard error.
    pub(crate) fn note_ignored(&self) {
        if !self.ignored.is_empty() {
            write_message(format_args!("note: ignored `{}` of {}", self.ignored.join("`, `"), self.label));
        }
    }

    /// Returns the permits that a call of a log takes. A field of the log may say so instead.
    pub(crate) fn cost_in_log(&self, has_field: bool) -> Result<u64, String> {
        let computed =
            || format!("{}, or name a field of the log with `--cost`: {}", computed("cost"), self.label);
        self.cost.or(has_field.then_some(0)).ok_or_else(computed)
    }
}

/// Parses the attribute of a program, whose numbers may be computed for each call. Returns the policy, with any value for those,
/// and their names. A bucket has the state that the attribute gives it.
pub(crate) fn with_computed(text: &str) -> Result<(Policy, Vec<String>), InvalidText> {
    let (attribute, arguments) = parsing::parse(text)?;
    let (mut policy, mut computed) = (base(attribute, &arguments)?, Vec::new());
    let numbers = attribute.numbers();
    for Argument { name, value } in arguments.iter().filter(|argument| numbers.contains(&argument.name)) {
        match value {
            Value::Literal(value) => policy = policy.with_argument(name, value.as_argument())?,
            _ => computed.push((*name).to_owned()),
        }
    }
    let policy = in_zone(policy, &arguments)?;
    let policy = match has(&arguments, "settle") || has(&arguments, "bind") {
        true => policy.settled(),
        false if has(&arguments, "pause_when") || has(&arguments, "penalty") || !computed.is_empty() => {
            policy.computed()
        }
        false => policy,
    };
    Ok((policy, computed))
}

/// Returns the policy with the time zone of its calendar. Keys do not depend on one that is computed.
fn in_zone(policy: Policy, arguments: &[Argument]) -> Result<Policy, InvalidText> {
    match arguments.iter().find(|argument| argument.name == "zone") {
        Some(Argument { value: Value::Literal(zone), .. }) => Ok(policy.with_zone(zone.as_argument())?),
        _ => Ok(policy),
    }
}

/// Returns the permits of a call, unless they are computed.
fn cost(value: &Value) -> Result<Option<u64>, InvalidText> {
    let invalid = |problem| InvalidText::new(format!("`cost` {problem}; write `{}`", example("cost")));
    match value {
        Value::Literal(Literal::Integer(cost)) => match u64::try_from(*cost) {
            Ok(cost) => Ok(Some(cost)),
            Err(_) => Err(invalid("is negative or too large")),
        },
        Value::Literal(_) => Err(invalid("is not a whole number of permits")),
        _ => Ok(None),
    }
}

/// Returns a policy with the options of the text, whose numbers are still to be set.
fn base(attribute: AttributeKind, arguments: &[Argument]) -> Result<Policy, InvalidText> {
    let refill = arguments.iter().find(|argument| argument.name == "refill");
    if refill.is_some_and(|refill| !matches!(&refill.value, Value::Word(word) if word == "interval")) {
        return Err(InvalidText::new("`refill` is `interval`; leave it out for continuous refill"));
    }
    Ok(Policy::with_options(attribute, |name| has(arguments, name)))
}

fn has(arguments: &[Argument], name: &str) -> bool {
    arguments.iter().any(|argument| argument.name == name)
}

fn check_required(attribute: AttributeKind, arguments: &[Argument]) -> Result<(), InvalidText> {
    if has(arguments, "leak_rate") && has(arguments, "drain") {
        return Err(InvalidText::new("`drain` and `leak_rate` set the same number; leave out one of them"));
    }
    match Policy::missing(attribute, |name| has(arguments, name)) {
        Some(name) => Err(InvalidText::new(format!("missing argument `{name}`; write `{}`", example(name)))),
        None => Ok(()),
    }
}

/// The error for a number that has to be known.
pub(crate) fn computed(name: &str) -> InvalidText {
    InvalidText::new(format!(
        "`{name}` is computed, and only the program knows its value; write `{}`",
        example(name)
    ))
}

fn example(name: &str) -> String {
    let value = match name {
        "rate" | "leak_rate" => "\"100/min\"",
        "burst" | "capacity" => "10",
        "limit" => "100",
        "max" => "20",
        "cost" => "2",
        "zone" => "\"Europe/Berlin\"",
        "precision" | "warmup" => "\"1s\"",
        _ => "\"1m\"",
    };
    format!("{name} = {value}")
}

/// Returns the text without `#[…]` and line breaks.
fn label(text: &str) -> String {
    let text = text.trim();
    let inner = text.strip_prefix('#').map_or(text, |text| text.trim_start().trim_matches(['[', ']']));
    let words = inner.split_whitespace().collect::<Vec<_>>().join(" ");
    words.replace("( ", "(").replace(" )", ")").replace(",)", ")")
}

impl Literal {
    fn as_argument(&self) -> ArgumentValue<'_> {
        match self {
            Literal::Integer(value) => ArgumentValue::Integer(*value),
            Literal::Float(value) => ArgumentValue::Float(*value),
            Literal::Text(text) => ArgumentValue::Text(text),
        }
    }
}

#[cfg(test)]
mod tests;
