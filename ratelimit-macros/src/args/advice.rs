//! What is said to a word that is no argument of this attribute, but one elsewhere: of another attribute, of a later
//! version, of another limiter.

use syn::{Expr, Lit};

use super::Args;
use super::foreign::{Answer, LATER, Slot, rows};
use crate::errors::closest;
use crate::expr::{last_word, literal, peel, shown};
use crate::kind::{KEY_TYPES, Kind, ON_STORE_ERROR};

/// The problem and what to write, if the word tells what was meant.
pub(super) fn advice(args: &Args, written: &str, value: Option<&Expr>) -> Option<String> {
    not_yet(args.kind, written)
        .or_else(|| translated(args, written, value))
        .or_else(|| spelled_otherwise(args.kind, written, value))
        .or_else(|| elsewhere(args.kind, written))
}

fn not_yet(kind: Kind, written: &str) -> Option<String> {
    let (later, kinds) = LATER.iter().find(|(later, _)| same(later, written))?;
    Some(if kinds.contains(&kind) {
        format!("`{later}` is not in this version yet; leave it out")
    } else {
        let owners = joined(kinds.iter().copied(), named, " and ");
        format!("`{later}` belongs to {owners}, and is not in this version yet; leave it out")
    })
}

fn translated(args: &Args, written: &str, value: Option<&Expr>) -> Option<String> {
    let filled = |template, slot| filled(args, template, slot, value);
    Some(match answer(args.kind, written)? {
        Answer::Ours(name, ..) if LATER.iter().any(|(later, _)| later == name) => {
            format!("{}, and is not in this version yet; leave it out", is_written(written, name))
        }
        Answer::Ours(name, template, slot) => {
            format!("{}; write `{name} = {}`", is_written(written, name), filled(template, slot))
        }
        Answer::Flag(name) | Answer::Switch(name, _) if value.is_some_and(is_false) => {
            format!("{}; leave it out", is_written(written, name))
        }
        Answer::Switch(name, value) => format!("{}; write `{name} = {value}`", is_written(written, name)),
        Answer::Flag(flag) => format!("{}; write `{flag}`, without a value", is_written(written, flag)),
        Answer::Nothing(reason) => format!("{reason}; leave `{written}` out"),
        Answer::Instead(reason, name, template, slot) => {
            format!("{reason}; leave `{written}` out, and write `{name} = {}`", filled(template, slot))
        }
    })
}

fn spelled_otherwise(kind: Kind, written: &str, value: Option<&Expr>) -> Option<String> {
    let name = kind.legal().into_iter().find(|legal| same(legal, written))?;
    let problem = is_written(written, name);
    Some(if kind.flags().contains(&name) {
        format!("{problem}; write `{name}`, without a value")
    } else {
        format!("{problem}; write `{name} = {}`", value.map_or_else(|| "…".to_owned(), shown))
    })
}

/// What to say of a word that means something to other attributes only.
fn elsewhere(kind: Kind, written: &str) -> Option<String> {
    let owners = owners(written);
    if !owners.is_empty() {
        let problem = is_written(written, written);
        let evenly = match (kind, written) {
            (Kind::Rate, "queue") => ", or to space calls evenly `burst = 1, timeout = \"5s\"`",
            _ => "",
        };
        return Some(format!(
            "{problem}; leave it out, or write {}{evenly}",
            joined(owners.into_iter(), as_attribute, " or ")
        ));
    }
    let others = Kind::ALL.into_iter().filter(|other| *other != kind);
    let (other, name) = others.into_iter().find_map(|other| match answer(other, written)? {
        Answer::Ours(name, ..) | Answer::Flag(name) => Some((other, name)),
        _ => None,
    })?;
    Some(format!(
        "`{written}` is `{name}` of {0}; leave it out, or write {1}",
        named(other),
        as_attribute(other)
    ))
}

fn is_written(written: &str, name: &str) -> String {
    let owners = owners(written);
    if owners.is_empty() {
        format!("`{written}` is written `{name}` here")
    } else {
        format!("`{written}` belongs to {}", joined(owners.into_iter(), named, " and "))
    }
}

/// The attributes that have the argument.
fn owners(written: &str) -> Vec<Kind> {
    Kind::ALL.into_iter().filter(|kind| kind.legal().contains(&written)).collect()
}

fn named(kind: Kind) -> String {
    format!("`{}`", kind.name())
}

fn as_attribute(kind: Kind) -> String {
    format!("`#[{}(…)]`", kind.name())
}

fn joined(kinds: impl Iterator<Item = Kind>, shown: fn(Kind) -> String, between: &str) -> String {
    kinds.map(shown).collect::<Vec<_>>().join(between)
}

fn answer(kind: Kind, written: &str) -> Option<&'static Answer> {
    let (_, answer) = rows(kind).find(|(words, _)| words.split(' ').any(|word| same(word, written)))?;
    Some(answer)
}

/// Whether the words are the same but for their case and underscores.
fn same(one: &str, other: &str) -> bool {
    let plain = |word: &str| word.replace('_', "").to_lowercase();
    plain(one) == plain(other)
}

fn filled(args: &Args, template: &str, slot: &Slot, value: Option<&Expr>) -> String {
    let bare = template == "{}";
    let fits = value.and_then(|value| match slot {
        Slot::Any(_) => Some(shown(value)),
        Slot::Code(_) => (!is_literal(value)).then(|| shown(value)),
        Slot::Whole(_) => whole(value).or_else(|| (bare && !is_literal(value)).then(|| shown(value))),
        Slot::Time(_) => time(value, "s"),
        Slot::Millis(_) => time(value, "ms"),
        Slot::Unit => unit(value),
        Slot::KeyType => closest(&last_word(value)?, &KEY_TYPES).map(str::to_owned),
        Slot::OnStoreError(_, no) => {
            if is_false(value) { Some(*no) } else { closest_on_store_error(value) }.map(str::to_owned)
        }
        Slot::Apart => apart(value),
    });
    let example = match slot {
        Slot::Any(example)
        | Slot::Code(example)
        | Slot::Whole(example)
        | Slot::Time(example)
        | Slot::Millis(example) => example,
        Slot::Unit => "1m",
        Slot::KeyType => "IP",
        Slot::OnStoreError(yes, _) => yes,
        Slot::Apart => "100, period = \"1m\"",
    };
    let permits = permits(args).unwrap_or_else(|| "100".to_owned());
    template.replace("{permits}", &permits).replace("{}", fits.as_deref().unwrap_or(example))
}

/// The permits of the rate that was given, be it in words of another limiter.
fn permits(args: &Args) -> Option<String> {
    let given = args.value("rate").or_else(|| args.value("leak_rate"));
    let foreign = args.foreign.iter().find_map(|(word, value)| match answer(args.kind, word)? {
        Answer::Ours("rate" | "leak_rate", _, Slot::Any(_) | Slot::Whole(_)) => Some(value),
        _ => None,
    });
    whole(given.or(foreign)?)
}

fn is_literal(value: &Expr) -> bool {
    matches!(peel(value), Expr::Lit(_))
}

pub(super) fn is_false(value: &Expr) -> bool {
    matches!(peel(value), Expr::Lit(lit) if matches!(&lit.lit, Lit::Bool(lit) if !lit.value))
}

/// The digits of a number without a fraction: `5`, `5.0`.
fn whole(value: &Expr) -> Option<String> {
    let Expr::Lit(lit) = peel(value) else { return None };
    match &lit.lit {
        Lit::Int(int) => Some(int.base10_digits().to_owned()),
        Lit::Float(float) => {
            let (digits, fraction) = float.base10_digits().split_once('.')?;
            fraction.bytes().all(|byte| byte == b'0').then(|| digits.to_owned())
        }
        _ => None,
    }
}

fn time(value: &Expr, unit: &str) -> Option<String> {
    let text = match literal(value) {
        Some(text) => text.value(),
        None => whole(value)?,
    };
    match text.as_bytes() {
        [b'0'..=b'9', .., b'0'..=b'9'] | [b'0'..=b'9'] => Some(text + unit),
        [b'0'..=b'9', ..] => Some(text),
        _ => None,
    }
}

fn unit(value: &Expr) -> Option<String> {
    const UNITS: [(&str, &str); 6] =
        [("MILLI", "1ms"), ("MICRO", "1us"), ("SEC", "1s"), ("MIN", "1m"), ("HOUR", "1h"), ("DAY", "1d")];
    let word = last_word(value)?.to_uppercase();
    UNITS.into_iter().find(|(start, _)| word.starts_with(start)).map(|(_, unit)| unit.to_owned())
}

/// `"100/min"` as `100, period = "1min"`, and `5` as five a second.
fn apart(value: &Expr) -> Option<String> {
    let (permits, period) = match literal(value) {
        Some(text) => {
            let text = text.value();
            let (permits, period) = text.split_once('/')?;
            (permits.trim().to_owned(), period.trim().to_owned())
        }
        None => (whole(value)?, "s".to_owned()),
    };
    let one = if period.starts_with(|char: char| char.is_ascii_digit()) { "" } else { "1" };
    Some(format!("{permits}, period = \"{one}{period}\""))
}

/// What of [`ON_STORE_ERROR`] the value means, be it in other words.
pub(crate) fn closest_on_store_error(expr: &Expr) -> Option<&'static str> {
    const OTHERS: [(&str, &[&str]); 3] = [
        ("local", &["memory", "in_memory", "inmemory", "in_process", "process", "fallback"]),
        ("allow", &["open", "fail_open", "pass", "permit", "ignore", "skip"]),
        ("deny", &["closed", "close", "fail_closed", "refuse", "reject", "block", "fail", "error", "throw"]),
    ];
    let written = last_word(expr)?.to_lowercase();
    let other = || OTHERS.into_iter().find(|(_, words)| words.contains(&&*written)).map(|(meant, _)| meant);
    closest(&written, &ON_STORE_ERROR).or_else(other)
}
