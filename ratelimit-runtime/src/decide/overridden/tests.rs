//! Calls while other threads replace the overrides, against a plain map.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crate::algorithm::AlgorithmSpec;
use crate::base::random_numbers::random_numbers;
use crate::decide::charges::{CallNumbers, Charges};
use crate::decide::definition::{Definition, DefinitionRef};
use crate::decide::overrides::{OverrideSet, Overrides};
use crate::key::KeyParts;
use crate::policy::{FixedWindow, Policy};

const KEYS: u64 = 12;
const READERS: usize = 2;

/// What one override says.
#[derive(Clone, Copy, Debug, Default)]
struct Says {
    limit: Option<u64>,
    period: Option<u64>,
    shadow: bool,
    off: bool,
    blocked: bool,
}

/// What becomes of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Became {
    Charged { limit: u64, period: u64, shadow: bool },
    Off,
    Blocked,
    Failed,
}

/// The overrides of a policy: that of all keys, and those of some.
#[derive(Debug, Default)]
struct Model {
    all: Option<Says>,
    keys: HashMap<u64, Says>,
}

impl Says {
    fn random(random: &mut impl FnMut(u64) -> u64, is_of_key: bool) -> Self {
        let nothing = Says::default();
        match random(8) {
            0 => Says { off: true, ..nothing },
            1 if is_of_key => Says { blocked: true, ..nothing },
            // Invalid, so that it says nothing.
            2 => Says { limit: Some(0), shadow: true, ..nothing },
            3 => Says { period: Some(1000 + random(3)), ..nothing },
            4 => Says { limit: Some(10 + random(1000)), shadow: true, ..nothing },
            5 => Says { limit: Some(10 + random(1000)), period: Some(1000 + random(3)), ..nothing },
            _ => Says { limit: Some(10 + random(1000)), ..nothing },
        }
    }

    fn text(self) -> String {
        let mut text = String::new();
        self.limit.iter().for_each(|limit| text += &format!("limit = {limit}\n"));
        self.period.iter().for_each(|period| text += &format!("period = {period}\n"));
        for (is_set, name) in [(self.shadow, "shadow"), (self.off, "off"), (self.blocked, "blocked")] {
            text += &if is_set { format!("{name} = true\n") } else { String::new() };
        }
        text
    }

    fn over(self, all: Says) -> Says {
        let (limit, period) = (self.limit.or(all.limit), self.period.or(all.period));
        if self.blocked {
            return Says { limit, period, ..self };
        }
        Says { limit, period, shadow: self.shadow || all.shadow, off: self.off || all.off, blocked: false }
    }

    fn of_call(self, limit: u64) -> Became {
        let (limit, period) = (self.limit.unwrap_or(limit), self.period.unwrap_or(60));
        match self {
            Says { off: true, .. } => Became::Off,
            _ if limit == 0 => Became::Failed,
            Says { blocked: true, .. } => Became::Blocked,
            Says { shadow, .. } => Became::Charged { limit, period, shadow },
        }
    }
}

impl Model {
    fn random(random: &mut impl FnMut(u64) -> u64) -> Self {
        let all = (random(3) == 0).then(|| Says::random(random, false));
        let mut keys = HashMap::new();
        for key in 0..KEYS {
            if random(3) == 0 {
                keys.insert(key, Says::random(random, true));
            }
        }
        Model { all, keys }
    }

    fn text(&self) -> String {
        let all = self.all.iter().map(|says| format!("[w]\n{}", says.text()));
        let keys = self.keys.iter().map(|(key, says)| format!("[w.keys.{key}]\n{}", says.text()));
        all.chain(keys).collect()
    }

    fn became(&self, key: u64, limit: u64) -> Became {
        let valid = self.all.filter(|all| all.of_call(limit) != Became::Failed);
        let all = valid.unwrap_or_default();
        let of_all = all.of_call(limit);
        match self.keys.get(&key).map(|says| says.over(all).of_call(limit)) {
            Some(of_key) if of_all != Became::Failed && of_key != Became::Failed => of_key,
            _ => of_all,
        }
    }
}

/// Decides a call up to the store, and checks that its key is that of its numbers.
fn call(definition: &Arc<Definition>, overrides: &Overrides, key: u64, computed: Option<u64>) -> Became {
    let policy = computed.map(|limit| Ok(window(limit)));
    let numbers = CallNumbers { policy: policy.as_ref(), cost: &Ok(1), wait: Ok(0) };
    let mut charges = Charges::new(false);
    let counted = DefinitionRef::Counted(definition);
    let literal = definition.literal().filter(|_| policy.is_none());
    if !literal.is_some_and(|literal| charges.begin_literal(counted, literal, (1, 0), false, overrides)) {
        charges.begin(counted, &numbers, false, overrides);
    }
    charges.key(&key);
    charges.close();
    charges.look_up(overrides);
    if charges.take_blocked().is_some() {
        return Became::Blocked;
    }
    if charges.have_failed() {
        return Became::Failed;
    }
    let Some(charge) = charges.iter().next() else { return Became::Off };
    let AlgorithmSpec::FixedWindow(spec) = charge.spec() else { panic!("{charge:?}") };
    let parts = KeyParts::of(&key).unwrap();
    assert_eq!(charge.key, definition.with_heads(charge.spec(), |heads| heads.hash.of_parts(parts.all())));
    Became::Charged { limit: spec.limit, period: spec.period / 1_000_000, shadow: charge.shadow }
}

fn window(limit: u64) -> Policy {
    FixedWindow::new(limit, Duration::from_secs(60)).into()
}

/// Readers call while the overrides are replaced, but not twice within a call. `limits` are those that are computed for calls, if any.
fn check(definition: Definition, limits: Option<[u64; 3]>) {
    let (definition, overrides) = (&Arc::new(definition), &Overrides::default());
    // Those of each version, of which the last may not be in force yet.
    let (models, in_force) = (&Mutex::new(vec![Arc::new(Model::default())]), &AtomicUsize::new(0));
    let (calls, done) = (&[const { AtomicU64::new(0) }; READERS], &AtomicBool::new(false));
    let failed = &AtomicBool::new(false);
    thread::scope(|scope| {
        for (seed, calls) in calls.iter().enumerate() {
            scope.spawn(move || {
                let mut random = random_numbers(seed as u64);
                while !done.load(Ordering::Acquire) {
                    let key = random(KEYS);
                    let limit = limits.map(|limits| limits[random(3) as usize]);
                    let first = in_force.load(Ordering::Acquire);
                    let became = call(definition, overrides, key, limit);
                    let models = models.lock().unwrap()[first..].to_vec();
                    let expected = models.iter().map(|model| model.became(key, limit.unwrap_or(5)));
                    let expected: Vec<_> = expected.collect();
                    if !expected.contains(&became) {
                        failed.store(true, Ordering::Release);
                        panic!("{became:?}, not {expected:?}: {key}, {limit:?}, {models:#?}");
                    }
                    calls.fetch_add(1, Ordering::Release);
                }
            });
        }
        let mut random = random_numbers(9);
        for step in 1..=150 {
            let model = if step % 20 == 0 { Model::default() } else { Model::random(&mut random) };
            let set = Arc::new(OverrideSet::parse(&model.text()).unwrap());
            models.lock().unwrap().push(Arc::new(model));
            overrides.replace(&set);
            in_force.store(step, Ordering::Release);
            // Every call that runs ends, and some know what is in force from an earlier one.
            let before = calls.each_ref().map(|calls| calls.load(Ordering::Acquire));
            while calls.iter().zip(before).any(|(calls, before)| calls.load(Ordering::Acquire) < before + 30)
            {
                if failed.load(Ordering::Acquire) {
                    return done.store(true, Ordering::Release);
                }
                thread::yield_now();
            }
        }
        done.store(true, Ordering::Release);
    });
}

#[test]
fn calls_see_old_or_new_overrides_of_literal_numbers() {
    let policy = window(5);
    check(Definition::of_limiter("w".into(), policy, policy.spec().unwrap()), None);
}

#[test]
fn calls_see_old_or_new_overrides_of_computed_numbers() {
    let policy = window(5);
    let literal = Definition::of_limiter("w".into(), policy, policy.spec().unwrap());
    check(literal.with_keys("", None), Some([5, 6, 0]));
}
