//! Settings of overrides as arguments of the command.

use std::str::FromStr;

use ratelimit_runtime::overrides::{Entry, Value};

/// `name=value`.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Setting {
    Number(String, Value),
    Shadow(bool),
    Off(bool),
    Blocked(bool),
}

impl FromStr for Setting {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, value) = text.split_once('=').ok_or("write a name and a value: burst=20")?;
        let (name, value) = (name.trim(), value.trim());
        let switch = || value.parse().map_err(|_| format!("`{name}` is true or false"));
        match name {
            "shadow" => Ok(Setting::Shadow(switch()?)),
            "off" => Ok(Setting::Off(switch()?)),
            "blocked" => Ok(Setting::Blocked(switch()?)),
            "reason" | "why" => Err("write it as an option: --reason contract".to_owned()),
            "author" => Err("write it as an option: --author ann".to_owned()),
            "until" => {
                Err("write it as an option: --until '2027-03-01[America/New_York]', or --for 90d".to_owned())
            }
            name => Ok(Setting::Number(name.to_owned(), number(value))),
        }
    }
}

/// Returns the override of these settings, for a key if it has parts. Of two with the same name the last one counts.
pub(super) fn override_of(policy: &str, key: &[String], settings: &[Setting]) -> Entry {
    let mut change = Entry { policy: policy.to_owned(), key: key.to_vec(), ..Entry::default() };
    for setting in settings {
        match setting {
            Setting::Shadow(shadow) => change.shadow = Some(*shadow),
            Setting::Off(off) => change.off = *off,
            Setting::Blocked(blocked) => change.blocked = *blocked,
            Setting::Number(name, value) => {
                change.numbers.retain(|(other, _)| other != name);
                change.numbers.push((name.clone(), value.clone()));
            }
        }
    }
    change
}

/// Returns a number, whose digits may be grouped as in the attribute, or the text of a rate or a duration, which may be quoted as there.
fn number(text: &str) -> Value {
    if let Ok(integer) = ungrouped(text).parse() {
        return Value::Integer(integer);
    }
    match text.parse::<f64>() {
        Ok(float) if float.is_finite() => Value::Float(float),
        _ => Value::Text(text.trim_matches('"').to_owned()),
    }
}

/// Returns a number without the underscores between its digits.
fn ungrouped(text: &str) -> String {
    let is_grouped =
        text.split('_').all(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.is_empty());
    if is_grouped { text.replace('_', "") } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_parsed() {
        let number = |name: &str, value| Setting::Number(name.to_owned(), value);
        let text = |text: &str| Value::Text(text.to_owned());
        for (written, setting) in [
            ("burst=20", number("burst", Value::Integer(20))),
            ("limit=50_000", number("limit", Value::Integer(50_000))),
            ("limit=50_", number("limit", text("50_"))),
            ("rate=0.5", number("rate", Value::Float(0.5))),
            ("rate=100/min", number("rate", text("100/min"))),
            ("rate = \"100/min\"", number("rate", text("100/min"))),
            ("period=1h30m", number("period", text("1h30m"))),
            ("shadow=true", Setting::Shadow(true)),
            ("off=false", Setting::Off(false)),
            ("blocked=true", Setting::Blocked(true)),
        ] {
            assert_eq!(written.parse(), Ok(setting), "{written}");
        }
        for written in ["burst", "shadow=1", "off=yes", "why=contract", "until=1800000000"] {
            written.parse::<Setting>().unwrap_err();
        }
    }

    #[test]
    fn last_setting_counts() {
        let settings = ["burst=1", "rate=5/s", "burst=2"].map(|setting| setting.parse().unwrap());
        assert_eq!(override_of("a", &[], &settings).to_string(), "[\"a\"]\nrate = \"5/s\"\nburst = 2\n");
        let of_key = override_of("a", &["u1".to_owned(), "x y".to_owned()], &settings[..1]);
        assert_eq!(of_key.to_string(), "[\"a\".keys.\"u1\".\"x y\"]\nburst = 1\n");
    }
}
