//! The scripts: which one to call with which keys and arguments, and how to read its reply.

mod arguments;
mod reply;

use std::fmt;

use redis::Cmd;

use self::arguments::Argument;
pub(super) use self::reply::{outcome, outcomes};
use crate::algorithm::{AlgorithmSpec, ChargeId};
use crate::key::{Key, Repr};
use crate::store::charge::Charge;
use crate::store::error::StoreError;

/// The scripts of a store, by algorithm.
#[derive(Clone, Debug)]
pub(super) struct Scripts {
    decide: [Script; ratelimit_lua::ALGORITHMS.len()],
    decide_mixed: Script,
    /// With a first pass over plain states, where the algorithm has one.
    decide_plain: [Option<Script>; ratelimit_lua::ALGORITHMS.len()],
    refund: [Script; ratelimit_lua::ALGORITHMS.len()],
}

#[derive(Clone)]
struct Script {
    source: String,
    hash: String,
}

/// Which script decides a list of charges, and how it gets them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Form {
    /// That of an algorithm, with a first pass over lists of this size.
    Plain { algorithm: usize, size: usize },
    /// That of an algorithm.
    Full { algorithm: usize },
    /// That of all algorithms.
    Mixed,
}

impl Form {
    /// Returns the form of lists of both forms together.
    fn and(self, other: Form) -> Form {
        match (self, other) {
            _ if self == other => self,
            (
                Form::Plain { algorithm, .. } | Form::Full { algorithm },
                Form::Plain { algorithm: same, .. } | Form::Full { algorithm: same },
            ) if algorithm == same => Form::Full { algorithm },
            _ => Form::Mixed,
        }
    }

    /// Returns the number of charges that may share a call, so that it blocks Redis for no longer than twenty calls of a usual
    /// script. A first pass leaves no more to its functions than the others may have.
    pub(super) fn max_charges(self) -> usize {
        match self {
            Form::Plain { algorithm, .. } if ratelimit_lua::ALGORITHMS[algorithm].0 == "gcra" => 36,
            Form::Plain { .. } => 20,
            Form::Full { .. } | Form::Mixed => 9,
        }
    }
}

/// A script with its keys and arguments.
#[derive(Debug)]
pub(super) struct Invocation<'a> {
    script: &'a Script,
    keys: Vec<&'a str>,
    arguments: Vec<Argument>,
}

impl Scripts {
    /// Assembles all scripts, and applies `finish` to each.
    pub(super) fn new(finish: impl Fn(String) -> String) -> Self {
        let script = |source| {
            let source = finish(source);
            let hash = redis::Script::new(&source).get_hash().to_owned();
            Script { source, hash }
        };
        let names = ratelimit_lua::ALGORITHMS.map(|(name, _)| name);
        Scripts {
            decide: names.map(|name| script(ratelimit_lua::decide(Some(name)))),
            decide_mixed: script(ratelimit_lua::decide(None)),
            decide_plain: names.map(|name| {
                let has_first_pass = ratelimit_lua::PLAIN.iter().any(|(plain, _)| *plain == name);
                has_first_pass.then(|| script(ratelimit_lua::decide_plain(name)))
            }),
            refund: names.map(|name| script(ratelimit_lua::refund(name))),
        }
    }

    pub(super) fn without_first_pass(&self) -> Self {
        Scripts { decide_plain: ratelimit_lua::ALGORITHMS.map(|_| None), ..self.clone() }
    }

    /// Returns the form of a list of charges.
    pub(super) fn form(&self, charges: &[Charge]) -> Result<Form, StoreError> {
        let Some(first) = charges.first() else { return Ok(Form::Mixed) };
        let name = first.spec.name();
        if charges.iter().any(|charge| charge.spec.name() != name) {
            return Ok(Form::Mixed);
        }
        let algorithm = index(name)?;
        let is_plain = self.decide_plain[algorithm].is_some() && charges.iter().all(arguments::is_plain);
        Ok(if is_plain { Form::Plain { algorithm, size: charges.len() } } else { Form::Full { algorithm } })
    }

    /// Returns the form of several lists together.
    pub(super) fn common_form(&self, decisions: &[&[Charge]]) -> Result<Form, StoreError> {
        let mut forms = decisions.iter().map(|charges| self.form(charges));
        let first = forms.next().unwrap_or(Ok(Form::Mixed))?;
        forms.try_fold(first, |common, form| Ok(common.and(form?)))
    }

    /// Returns the invocation of the script for decisions of this form.
    pub(super) fn decide<'a>(
        &'a self,
        form: Form,
        decisions: impl Iterator<Item = &'a [Charge]> + Clone,
    ) -> Result<Invocation<'a>, StoreError> {
        let mut keys = Vec::with_capacity(decisions.clone().map(<[Charge]>::len).sum());
        for charge in decisions.clone().flatten() {
            keys.push(key_text(&charge.key)?);
        }
        if let Form::Plain { algorithm, size } = form
            && let Some(script) = &self.decide_plain[algorithm]
        {
            return Ok(Invocation { script, keys, arguments: arguments::plain_checks(decisions, size) });
        }
        let (script, is_mixed) = match form {
            Form::Full { algorithm } | Form::Plain { algorithm, .. } => (&self.decide[algorithm], false),
            Form::Mixed => (&self.decide_mixed, true),
        };
        let mut arguments = Vec::new();
        for charges in decisions {
            arguments.push(arguments::kinds(charges));
            for charge in charges {
                if is_mixed {
                    arguments.extend(arguments::mixed_check(charge));
                } else {
                    arguments.extend(arguments::check(charge));
                }
            }
        }
        Ok(Invocation { script, keys, arguments })
    }

    /// Returns the invocation that refunds a charge.
    pub(super) fn refund<'a>(
        &'a self,
        key: &'a Key,
        spec: &AlgorithmSpec,
        cost: u64,
        charge_id: Option<ChargeId>,
    ) -> Result<Invocation<'a>, StoreError> {
        let script = &self.refund[index(spec.name())?];
        let arguments = arguments::refund(spec, cost, charge_id);
        Ok(Invocation { script, keys: vec![key_text(key)?], arguments })
    }
}

impl Invocation<'_> {
    pub(super) fn keys(&self) -> &[&str] {
        &self.keys
    }

    /// Calls the script by its hash, under which the server mostly knows it.
    pub(super) fn evalsha(&self) -> Cmd {
        self.command("EVALSHA", &self.script.hash)
    }

    /// Calls the script by its source, which the server then remembers.
    pub(super) fn eval(&self) -> Cmd {
        self.command("EVAL", &self.script.source)
    }

    fn command(&self, name: &str, script: &str) -> Cmd {
        // Most arguments are numbers.
        let length = self.keys.iter().map(|key| key.len()).sum::<usize>() + 20 * self.arguments.len();
        let count = 3 + self.keys.len() + self.arguments.len();
        let mut command = Cmd::with_capacity(count, 64 + length);
        command.arg(name).arg(script).arg(self.keys.len());
        for key in &self.keys {
            command.arg(key);
        }
        for argument in &self.arguments {
            argument.write(&mut command);
        }
        command
    }
}

impl fmt::Debug for Script {
    /// Omits the long source.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Script").field(&self.hash).finish()
    }
}

fn index(algorithm: &str) -> Result<usize, StoreError> {
    let index = ratelimit_lua::ALGORITHMS.iter().position(|(name, _)| *name == algorithm);
    index.ok_or_else(|| StoreError::permanent(format!("no script for the algorithm `{algorithm}`")))
}

/// Returns the key as it is in Redis.
pub(super) fn key_text(key: &Key) -> Result<&str, StoreError> {
    match &key.0 {
        Repr::Text(text, _) => Ok(text),
        Repr::Hash(_) => Err(StoreError::permanent("a key of the memory store cannot be used in Redis")),
    }
}
