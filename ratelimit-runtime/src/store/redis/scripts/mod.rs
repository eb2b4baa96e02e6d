//! The scripts: which one to call with which keys and arguments, and how to read its reply.

mod arguments;
mod lists;
mod reply;

use std::fmt;

use redis::Cmd;
use smallvec::SmallVec;

use self::arguments::{Arguments, plain_bucket};
pub(super) use self::reply::{corrected, outcomes, time_asked_for};
use crate::algorithm::AlgorithmSpec;
use crate::key::{Key, Repr};
use crate::store::account::{Message, Sent};
use crate::store::charge::{Charge, INLINE};
use crate::store::correction::{Correction, CorrectionKind};
use crate::store::error::StoreError;

/// The scripts of a store.
#[derive(Clone, Debug)]
pub(super) struct Scripts {
    decide: Script,
    /// For lists of nothing but plain buckets. `None` if the other script decides about these too.
    decide_buckets: Option<Script>,
    correct: Script,
}

#[derive(Clone)]
struct Script {
    source: String,
    hash: String,
}

/// Which script decides a list of charges, and what it has in common with other lists that may share a call with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Form {
    /// The script for buckets alone, and the number of charges.
    Buckets(usize),
    /// The script for all lists, and the algorithms of the charges.
    Any(Sequence),
}

/// The algorithms of a list, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Sequence {
    /// The number of each algorithm in five bits, the first in the lowest, with [`MAY_WAIT`].
    Short(u64),
    /// Of more charges than that, or of different lists.
    Other,
}

/// The weight of the decisions or corrections of a call, in tenths of the decision about a plain bucket.
pub(super) const MAX_WEIGHT: usize = 1000;
/// That of a charge which no pass decides, or corrects. The script decides nine of these.
const IN_FULL: usize = MAX_WEIGHT / 9;
/// That of a correction by the pass, of a key of its own, counted twice, because the pass leaves as many as it likes to the functions.
const CORRECTION: usize = 40;
/// That of another one of the same key, which follows it.
const REPEATED: usize = 15;

/// How many corrections follow their key: one byte says how many more there are.
const MOST_OF_A_KEY: usize = 256;

/// No more decisions share a call, because those that a pass leaves to the functions take a call more for each nine of them.
const MOST_TOGETHER: usize = 50;

/// Marks the number of an algorithm if the call may wait, which is then a lane of its own.
const MAY_WAIT: u8 = 16;

/// A script with its keys and arguments.
#[derive(Debug)]
pub(super) struct Invocation<'a> {
    script: &'a Script,
    keys: SmallVec<[&'a str; INLINE]>,
    arguments: Arguments,
}

impl Scripts {
    /// Assembles all scripts, and applies `finish` to each.
    pub(super) fn new(finish: impl Fn(String) -> String) -> Self {
        let script = |source| Script::new(finish(source));
        Scripts {
            decide: script(ratelimit_lua::decide(None)),
            decide_buckets: Some(script(ratelimit_lua::decide(Some("gcra")))),
            correct: script(ratelimit_lua::correct()),
        }
    }

    /// Returns the same without the passes over plain states.
    pub(super) fn without_first_pass(&self) -> Self {
        let full = |script: &Script| Script::new(ratelimit_lua::without_first_pass(&script.source));
        Scripts { decide: full(&self.decide), decide_buckets: None, correct: full(&self.correct) }
    }

    /// Returns the form of a list of charges.
    pub(super) fn form(&self, charges: &[Charge]) -> Form {
        if self.decide_buckets.is_some() && charges.iter().all(|charge| plain_bucket(charge).is_some()) {
            return Form::Buckets(charges.len());
        }
        Form::Any(Sequence::of(charges))
    }

    /// Returns the form of several lists together.
    pub(super) fn common_form(&self, decisions: &[&[Charge]]) -> Form {
        let mut forms = decisions.iter().map(|charges| self.form(charges));
        let first = forms.next().unwrap_or(Form::Any(Sequence::Other));
        if forms.all(|form| form == first) { first } else { Form::Any(Sequence::Other) }
    }

    /// Returns the invocation of the script for decisions of this form. `takes` are of the charges to semaphores, in order,
    /// and `time` is about that of the server.
    pub(super) fn decide<'a>(
        &'a self,
        form: Form,
        decisions: &[&'a [Charge]],
        takes: impl Iterator<Item = Option<Sent>>,
        time: u64,
    ) -> Result<Invocation<'a>, StoreError> {
        let mut keys = SmallVec::with_capacity(decisions.iter().map(|charges| charges.len()).sum());
        for charge in decisions.iter().copied().flatten() {
            keys.push(key_text(&charge.key)?);
        }
        let (script, arguments) = match (form, &self.decide_buckets) {
            (Form::Buckets(size), Some(script)) => (script, arguments::buckets(decisions, size)),
            _ => (&self.decide, lists::lists(decisions, takes, time)),
        };
        Ok(Invocation { script, keys, arguments })
    }

    /// Returns the invocation of the script that makes these corrections.
    pub(super) fn correct<'a>(
        &'a self,
        corrections: &[&'a Correction],
        time: u64,
    ) -> Result<Invocation<'a>, StoreError> {
        let of_keys = corrections.chunk_by(|one, next| one.key == next.key);
        let of_keys: Vec<&[&Correction]> = of_keys.flat_map(|of_key| of_key.chunks(MOST_OF_A_KEY)).collect();
        let keys: Result<_, _> = of_keys.iter().map(|of_key| key_text(&of_key[0].key)).collect();
        let arguments = arguments::corrections(&of_keys, time);
        Ok(Invocation { script: &self.correct, keys: keys?, arguments })
    }
}

impl Form {
    /// Returns the number of decisions that may share a call, so that it blocks Redis for some 0.2 ms. Those that a pass leaves to the
    /// functions are limited by the script.
    pub(super) fn max_decisions(self) -> usize {
        let weight = match self {
            Form::Buckets(size) => 10 * size,
            Form::Any(sequence) => sequence.weight().unwrap_or(MAX_WEIGHT),
        };
        (MAX_WEIGHT / weight.max(1)).clamp(1, MOST_TOGETHER)
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

impl Sequence {
    fn of(charges: &[Charge]) -> Self {
        if charges.len() > 12 {
            return Sequence::Other;
        }
        Sequence::Short(charges.iter().rev().fold(0, |sequence, charge| {
            let may_wait = charge.wait > 0 && charge.spec.reserves();
            sequence << 5 | u64::from(charge.spec.kind() | if may_wait { MAY_WAIT } else { 0 })
        }))
    }

    /// Returns what the charges of a list take together, in tenths of what a plain bucket takes in a call of sixteen. `None` if it
    /// shares a call with no other list.
    fn weight(self) -> Option<usize> {
        const BY_KIND: [usize; 12] = [0, 10, 14, 26, 15, 15, IN_FULL, IN_FULL, IN_FULL, 22, 20, 18];
        let Sequence::Short(sequence) = self else { return None };
        let kinds = (0..60).step_by(5).map(|shift| sequence >> shift & 31).take_while(|kind| *kind > 0);
        // Calls that wait take their slots in the order of the calls, so the script must not leave the rest of them undecided.
        let may_wait = kinds.clone().any(|kind| kind >= u64::from(MAY_WAIT));
        Some(kinds.map(|kind| if may_wait { IN_FULL } else { BY_KIND[kind as usize] }).sum())
    }
}

impl Script {
    fn new(source: String) -> Self {
        let hash = redis::Script::new(&source).get_hash().to_owned();
        Script { source, hash }
    }
}

impl fmt::Debug for Script {
    /// Omits the long source.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Script").field(&self.hash).finish()
    }
}

/// Returns what a correction takes, as [`MAX_WEIGHT`] counts it. One that the pass leaves to the functions, because of its state, takes
/// twice as long. `is_repeated` if another one of the same key comes before it, which has read that key.
pub(super) fn weight(correction: &Correction, is_repeated: bool) -> usize {
    let in_pass = if is_repeated { REPEATED } else { CORRECTION };
    match (&correction.kind, &correction.spec) {
        (CorrectionKind::Holds(Sent { message: Message::Release(_), .. }), _) => in_pass,
        (CorrectionKind::Holds(_) | CorrectionKind::Pause | CorrectionKind::Penalty(_), _) => IN_FULL,
        (
            _,
            AlgorithmSpec::Gcra(_)
            | AlgorithmSpec::AdjustableGcra(_)
            | AlgorithmSpec::SettledGcra(_)
            | AlgorithmSpec::FixedWindow(_)
            | AlgorithmSpec::CalendarWindow(_),
        ) => in_pass,
        (_, AlgorithmSpec::IntervalBucket(spec)) if spec.adjustable => in_pass,
        // All entries after the earliest one of receipts change, and a log has many of them.
        (CorrectionKind::Refund(_), AlgorithmSpec::SlidingWindow(spec))
            if spec.precision == 0 && !is_repeated =>
        {
            IN_FULL
        }
        (_, AlgorithmSpec::SlidingWindow(_)) => 2 * in_pass,
        (_, AlgorithmSpec::IntervalBucket(_) | AlgorithmSpec::WarmingUp(_) | AlgorithmSpec::Holds(_)) => {
            IN_FULL
        }
    }
}

/// Returns the key as it is in Redis.
pub(super) fn key_text(key: &Key) -> Result<&str, StoreError> {
    match &key.0 {
        Repr::Text(text, _) => Ok(text),
        Repr::Hash(_) => Err(StoreError::permanent("a key of the memory store cannot be used in Redis")),
    }
}
