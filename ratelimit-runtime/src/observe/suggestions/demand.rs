//! The calls of a policy, of which those of some keys are decided by other numbers as well.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::ladder::Ladder;
use super::sketch::{Estimate, Sketch};
use super::suggestion::{NoSuggestion, SmallestNumbers, Suggestion};
use crate::algorithm::AlgorithmSpec;
use crate::base::clock::Clock;
use crate::decide::observation::{CallOutcome, Observation};
use crate::store::decided_by::DecidedBy;

/// The share of all calls that may be refused.
pub(crate) const REFUSED_AT_MOST: f64 = 0.001;

/// Of fewer refusals, chance adds or takes more than a quarter.
const FEWEST_CALLS: u64 = 20_000;

/// How many windows tell the numbers of one. Of fewer, too many are incomplete.
const FEWEST_WINDOWS: u64 = 10;

/// How many policies are followed.
const MAX_POLICIES: usize = 50;

/// What is known of a policy.
#[derive(Debug)]
pub(crate) struct Demand {
    is_followed: bool,
    /// So that nobody can choose keys that are followed.
    seed: RandomState,
    /// The largest hash of the followed keys, besides some with many calls.
    threshold: AtomicU64,
    /// Twelve bits of the hashes of those, as a filter.
    above_threshold: [AtomicU64; 64],
    /// How many calls there were of keys that are not followed.
    others: AtomicU64,
    clock: Clock,
    followed: Mutex<Followed>,
}

#[derive(Debug, Default)]
enum Followed {
    #[default]
    Nothing,
    Never(NoSuggestion),
    Calls {
        numbers: AlgorithmSpec,
        /// Whether other processes may count their calls by the same keys.
        is_shared: bool,
        sketch: Box<Sketch>,
    },
}

/// Room for the policies that are followed.
#[derive(Debug, Default)]
pub(crate) struct Room(AtomicUsize);

impl Room {
    /// Creates what is known of a new policy.
    pub(crate) fn demand(&self) -> Demand {
        Demand {
            is_followed: self.0.fetch_add(1, Ordering::Relaxed) < MAX_POLICIES,
            seed: RandomState::new(),
            threshold: AtomicU64::new(u64::MAX),
            above_threshold: [const { AtomicU64::new(0) }; 64],
            others: AtomicU64::new(0),
            clock: Clock::process(),
            followed: Mutex::default(),
        }
    }
}

impl Demand {
    pub(crate) fn count(&self, seen: &Observation<'_>) {
        let is_call =
            matches!(seen.outcome, CallOutcome::Admitted | CallOutcome::Limited | CallOutcome::ShadowLimited);
        // Without a source, the call was refused before it had a key.
        if !is_call || !self.is_followed || seen.source.is_none() || seen.cost == 0 {
            return;
        }
        let hash = self.seed.hash_one(seen.parts());
        if hash > self.threshold.load(Ordering::Relaxed) && !self.may_be_above_threshold(hash) {
            self.others.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let Some(numbers) = seen.numbers() else { return };
        let mut followed = self.lock();
        if let Followed::Nothing = *followed {
            *followed = Followed::new(seen, numbers);
        }
        let Followed::Calls { numbers: first, is_shared, sketch } = &mut *followed else {
            // The next calls take no lock.
            return self.threshold.store(0, Ordering::Relaxed);
        };
        if first != numbers {
            *followed = Followed::Never(NoSuggestion::NumbersDiffer);
            return;
        }
        *is_shared |= matches!(seen.source, Some(DecidedBy::Redis | DecidedBy::Local | DecidedBy::Allowed));
        let came = self.clock.now().saturating_sub(seen.waited.as_micros() as u64);
        self.count_in(sketch, (hash, came), seen.cost);
    }

    fn count_in(&self, sketch: &mut Sketch, (hash, came): (u64, u64), cost: u64) {
        if sketch.make_room_for(hash, came) {
            self.threshold.store(sketch.threshold(), Ordering::Relaxed);
            let mut above_threshold = [0; 64];
            for (word, bit) in sketch.above_threshold().map(bit_of) {
                above_threshold[word] |= bit;
            }
            self.above_threshold
                .iter()
                .zip(above_threshold)
                .for_each(|(bits, new)| bits.store(new, Ordering::Relaxed));
        }
        if !sketch.count(hash, came, cost) {
            self.others.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn may_be_above_threshold(&self, hash: u64) -> bool {
        let (word, bit) = bit_of(hash);
        self.above_threshold[word].load(Ordering::Relaxed) & bit != 0
    }

    pub(crate) fn suggestion(&self, policy: &str) -> Suggestion {
        let nothing = |reason| Suggestion {
            policy: policy.into(),
            smallest: Err(reason),
            calls: 0,
            keys: 0,
            one_in: 1,
        };
        match &*self.lock() {
            _ if !self.is_followed => nothing(NoSuggestion::TooManyPolicies),
            Followed::Nothing => nothing(NoSuggestion::TooFewCalls { missing: FEWEST_CALLS }),
            Followed::Never(reason) => nothing(*reason),
            Followed::Calls { sketch, is_shared, .. } => Suggestion {
                policy: policy.into(),
                smallest: self.smallest(sketch, *is_shared),
                calls: sketch.calls,
                keys: sketch.keys(),
                one_in: u64::MAX / sketch.threshold(),
            },
        }
    }

    fn smallest(&self, sketch: &Sketch, is_shared: bool) -> Result<SmallestNumbers, NoSuggestion> {
        if let Some(missing) = FEWEST_CALLS.checked_sub(sketch.calls).filter(|missing| *missing > 0) {
            return Err(NoSuggestion::TooFewCalls { missing });
        }
        let needed = sketch.ladder.window.saturating_mul(FEWEST_WINDOWS);
        if let Some(missing) = needed.checked_sub(sketch.lasts()).filter(|missing| *missing > 0) {
            return Err(NoSuggestion::TooShort { missing: Duration::from_micros(missing) });
        }
        let rungs = sketch.ladder.rungs();
        let Some(place) = sketch.smallest(REFUSED_AT_MOST) else {
            let largest = rungs.len().checked_sub(1).ok_or(NoSuggestion::Unsupported)?;
            let Estimate { share, error } = sketch.refused(largest);
            let is_certain = self.sees_all(sketch) && share - 2.0 * error > REFUSED_AT_MOST;
            return Err(match is_certain {
                true => NoSuggestion::More(rungs[largest].policy),
                false => NoSuggestion::Uncertain,
            });
        };
        let (policy, Estimate { share, error }) = (rungs[place].policy, sketch.refused(place));
        let is_less = place == 0 && !rungs[place].is_smallest();
        match () {
            () if !self.sees_all(sketch) => Err(NoSuggestion::Uncertain),
            () if is_shared => Err(NoSuggestion::OtherProcesses { at_least: (!is_less).then_some(policy) }),
            () if is_less => Err(NoSuggestion::Less(policy)),
            () => Ok(SmallestNumbers { policy, refused: share, error }),
        }
    }

    /// Whether the followed keys stand for as many calls as there were, to a tenth. Otherwise some with many calls are missing.
    fn sees_all(&self, sketch: &Sketch) -> bool {
        let calls = sketch.calls + self.others.load(Ordering::Relaxed);
        calls.abs_diff(sketch.all_calls()) <= calls / 10
    }

    /// Forgets all calls.
    pub(crate) fn clear(&self) {
        let mut followed = self.lock();
        *followed = Followed::Nothing;
        self.threshold.store(u64::MAX, Ordering::Relaxed);
        self.others.store(0, Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, Followed> {
        self.followed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Followed {
    /// What becomes of a policy, given its first call.
    fn new(seen: &Observation<'_>, numbers: &AlgorithmSpec) -> Self {
        if seen.is_corrected() {
            return Followed::Never(NoSuggestion::Corrected);
        }
        match Ladder::around(numbers) {
            Some(ladder) => {
                Followed::Calls { numbers: *numbers, is_shared: false, sketch: Box::new(Sketch::new(ladder)) }
            }
            None => Followed::Never(NoSuggestion::Unsupported),
        }
    }
}

/// Returns the word and the bit that a hash has in a filter.
fn bit_of(hash: u64) -> (usize, u64) {
    ((hash >> 6) as usize % 64, 1 << (hash % 64))
}
