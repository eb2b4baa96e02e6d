//! The scripts, and the arguments and replies they agree on with their Lua.

mod reply;

use std::borrow::Cow;
use std::{fmt, iter};

use redis::Cmd;

pub(super) use self::reply::outcomes;
use crate::algorithm::gcra::GcraKind;
use crate::algorithm::warming_up::MAX_COST;
use crate::algorithm::{AlgorithmSpec, ChargeId};
use crate::bounds::MOST;
use crate::error::store::StoreError;
use crate::key::{Key, Repr};
use crate::store::Charge;

/// The scripts of a store.
#[derive(Debug)]
pub(super) struct Scripts {
    decide: [Script; 5],
    decide_mixed: Script,
    refund: [Script; 5],
}

/// A script, and the hash by which Redis remembers it.
pub(super) struct Script {
    source: String,
    hash: String,
}

/// A script with its keys and arguments.
#[derive(Debug)]
pub(super) struct Invocation<'a> {
    script: &'a Script,
    keys: Vec<&'a str>,
    args: Vec<Argument>,
}

#[derive(Clone, Debug)]
enum Argument {
    Number(u64),
    Word(Cow<'static, str>),
}

/// The arguments of a check, and of a refund, where there are most.
const WIDEST: usize = 5;
const WIDEST_REFUND: usize = 7;

impl Argument {
    const NONE: Argument = Argument::Word(Cow::Borrowed(""));
}

impl From<u64> for Argument {
    fn from(number: u64) -> Self {
        Argument::Number(number)
    }
}

impl From<Option<u64>> for Argument {
    fn from(number: Option<u64>) -> Self {
        number.map_or(Argument::NONE, Argument::Number)
    }
}

impl From<f64> for Argument {
    /// As the shortest text that means this very number.
    fn from(number: f64) -> Self {
        Argument::Word(number.to_string().into())
    }
}

impl Scripts {
    /// All scripts, each as `finish` makes it.
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
            refund: names.map(|name| script(ratelimit_lua::refund(name))),
        }
    }

    /// The call that decides these lists of charges. One algorithm has a script of its own; several share one.
    pub(super) fn decide<'a>(&'a self, decisions: &[&'a [Charge]]) -> Result<Invocation<'a>, StoreError> {
        let mut names = decisions.iter().copied().flatten().map(|charge| charge.spec.name());
        let first = names.next();
        let mixed = names.any(|name| Some(name) != first);
        let script = match first {
            Some(name) if !mixed => &self.decide[position(name)?],
            _ => &self.decide_mixed,
        };
        let (mut keys, mut args) = (Vec::new(), Vec::new());
        for charges in decisions {
            args.push(kinds(charges));
            for charge in *charges {
                let Charge { key, spec, .. } = charge;
                keys.push(text(key)?);
                if mixed {
                    args.push(Argument::Word(spec.name().into()));
                }
                let arguments = decide_args(charge);
                let missing = if mixed { WIDEST - arguments.len() } else { 0 };
                args.extend(arguments.into_iter().chain(iter::repeat_n(Argument::NONE, missing)));
            }
        }
        Ok(Invocation { script, keys, args })
    }

    /// The call that gives back one charge.
    pub(super) fn refund<'a>(
        &'a self,
        key: &'a Key,
        spec: &AlgorithmSpec,
        cost: u64,
        charge_id: Option<ChargeId>,
    ) -> Result<Invocation<'a>, StoreError> {
        let script = &self.refund[position(spec.name())?];
        let mut args = refund_args(spec, cost, charge_id);
        args.resize(WIDEST_REFUND, Argument::NONE);
        Ok(Invocation { script, keys: vec![text(key)?], args })
    }
}

impl Invocation<'_> {
    pub(super) fn keys(&self) -> &[&str] {
        &self.keys
    }

    /// By hash, as the server has mostly seen the script before.
    pub(super) fn evalsha(&self) -> Cmd {
        self.command("EVALSHA", &self.script.hash)
    }

    /// With the text, which the server then remembers.
    pub(super) fn eval(&self) -> Cmd {
        self.command("EVAL", &self.script.source)
    }

    fn command(&self, name: &str, script: &str) -> Cmd {
        let mut command = Cmd::new();
        command.arg(name).arg(script).arg(self.keys.len());
        for key in &self.keys {
            command.arg(key);
        }
        for argument in &self.args {
            match argument {
                Argument::Number(number) => command.arg(number),
                Argument::Word(word) => command.arg(&**word),
            };
        }
        command
    }
}

/// Whether an error of Redis, given by its code or its text, says that something is wrong for good: a key that holds what no
/// limiter wrote, or a script that stumbles over it. All others pass, or are the server's operator's to mend.
pub(super) fn is_permanent(code_or_text: &str) -> bool {
    let coded = words(code_or_text).take(10).any(|word| matches!(word, "WRONGTYPE" | "CORRUPT"));
    coded || [": attempt to ", ": bad argument "].iter().any(|lua| code_or_text.contains(lua))
}

/// The words of an error, of which one of the first is the code: Redis before 7 puts the place in the script in front of it.
pub(super) fn words(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split([' ', ':']).filter(|word| !word.is_empty());
    words.map(|word| word.trim_start_matches('-'))
}

/// How many charges a list has, or which of them are shadows.
fn kinds(charges: &[Charge]) -> Argument {
    if charges.iter().any(|charge| charge.shadow) {
        Argument::Word(charges.iter().map(|charge| if charge.shadow { 's' } else { 'r' }).collect())
    } else {
        Argument::Number(charges.len() as u64)
    }
}

/// The arguments of `check`. A cost that never fits is cut to one that just does not, so that it stays exact in Lua.
fn decide_args(charge: &Charge) -> Vec<Argument> {
    let Charge { spec, cost, wait, .. } = *charge;
    match spec {
        AlgorithmSpec::Gcra(spec) => {
            let charge = spec.charge(cost);
            let lead = spec.lead(charge).map_or(Argument::Word("-1".into()), Argument::Number);
            vec![charge.into(), spec.capacity.into(), lead, spec.max_wait(charge, wait).into()]
        }
        AlgorithmSpec::IntervalBucket(spec) => {
            [cost.min(spec.burst + 1), spec.burst, spec.refill, spec.period, wait]
                .map(Argument::from)
                .to_vec()
        }
        AlgorithmSpec::WarmingUp(spec) => {
            vec![cost.min(MAX_COST).into(), spec.interval().into(), spec.warmup.into(), wait.into()]
        }
        AlgorithmSpec::FixedWindow(spec) => {
            let aligned = u64::from(spec.aligned);
            [cost.min(spec.limit + 1), spec.limit, spec.period, aligned].map(Argument::from).to_vec()
        }
        AlgorithmSpec::SlidingWindow(spec) => {
            [cost.min(spec.limit + 1), spec.limit, spec.period, spec.precision].map(Argument::from).to_vec()
        }
    }
}

fn refund_args(spec: &AlgorithmSpec, cost: u64, charge_id: Option<ChargeId>) -> Vec<Argument> {
    let [at, level, credited] = [
        charge_id.map(|charge_id| charge_id.at),
        charge_id.map(|charge_id| charge_id.level),
        charge_id.map(|charge_id| charge_id.credited),
    ]
    .map(Argument::from);
    match *spec {
        AlgorithmSpec::Gcra(spec) => {
            let last_only = u64::from(spec.kind == GcraKind::Queue);
            let numbers = [spec.capacity, spec.interval, last_only].map(Argument::from);
            [spec.charge(cost).into(), at, credited].into_iter().chain(numbers).collect()
        }
        AlgorithmSpec::IntervalBucket(spec) => {
            let numbers = [spec.burst, spec.refill, spec.period].map(Argument::from);
            [cost.min(spec.burst).into(), at, level, credited].into_iter().chain(numbers).collect()
        }
        AlgorithmSpec::WarmingUp(spec) => {
            let stored = charge_id.map_or(Argument::NONE, |charge_id| f64::from_bits(charge_id.level).into());
            vec![cost.min(MAX_COST).into(), at, stored, spec.interval().into(), spec.warmup.into()]
        }
        AlgorithmSpec::FixedWindow(spec) => {
            vec![cost.min(MOST).into(), at, spec.period.into(), u64::from(spec.aligned).into()]
        }
        AlgorithmSpec::SlidingWindow(spec) => {
            vec![cost.min(MOST).into(), at, spec.period.into(), spec.precision.into()]
        }
    }
}

fn position(algorithm: &str) -> Result<usize, StoreError> {
    let position = ratelimit_lua::ALGORITHMS.iter().position(|(name, _)| *name == algorithm);
    position.ok_or_else(|| StoreError::permanent(format!("there is no script for {algorithm}")))
}

impl fmt::Debug for Script {
    /// Without the text, of which there is much.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Script").field(&self.hash).finish()
    }
}

/// The key as Redis has it.
pub(super) fn text(key: &Key) -> Result<&str, StoreError> {
    match &key.0 {
        Repr::Text(text) => Ok(text),
        Repr::Hash(_) => Err(StoreError::permanent("a key of the memory store means nothing in Redis")),
    }
}
