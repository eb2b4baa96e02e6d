//! Decisions on plain states, without the table's lock.

use std::array;

use super::MemoryStore;
use super::slot::{Content, Seen, Slot};
use crate::algorithm::{
    ChargeId, CommonSpec, KindOfPlain, PlainRefund, PlainSnapshot, PlainSpec, PlainState, PlainStep,
    PlainSteps,
};
use crate::base::all_some::all_some;
use crate::base::sync::spin_loop;
use crate::key::Fingerprint;
use crate::key::policy_id::PolicyId;
use crate::store::charge::{Charge, Outcome, is_peek};

/// How often the same charges are tried while others change their keys. Then they take the table's lock, which holds one key after
/// the other, so that a stack of busy keys gets its turn.
pub(super) const ATTEMPTS: u32 = 8;

/// A charge of a key that may be decided without a lock. It does not wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlainCharge<'a, S> {
    /// Not a copy, which would read together what was written apart a moment ago, and that is slow.
    pub(crate) key: &'a Fingerprint,
    pub(crate) spec: S,
    pub(crate) cost: u64,
}

/// What a call has seen of a key.
#[derive(Clone, Copy, Debug)]
struct Look<'a> {
    slot: Slot<'a>,
    seen: Seen,
}

/// A key was changed while the charges were decided.
#[derive(Debug)]
struct Changed;

/// The decision about plain charges. All are made if it is admitted, otherwise none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlainOutcome<const N: usize> {
    pub(crate) now: u64,
    pub(crate) admitted: bool,
    /// Whether each policy admits the call, whatever the others do.
    pub(crate) admits: [bool; N],
    /// What was read of each key, for its verdict.
    pub(crate) snapshots: [PlainSnapshot; N],
}

/// A loop over the charges of a call, written out, so that the compiler keeps what it makes for each in registers and not in an
/// array.
macro_rules! unrolled {
    (for $i:ident in 0..$n:ident $body:block) => {
        const { assert!(0 < $n && $n <= 3) };
        {
            let $i = 0;
            $body
        }
        if $n > 1 {
            let $i = 1;
            $body
        }
        if $n > 2 {
            let $i = 2;
            $body
        }
    };
}

impl MemoryStore {
    /// Decides a charge, as [`decide_all_plain`](Self::decide_all_plain) does several, by steps that are compiled for its kind.
    #[inline(always)]
    pub(crate) fn decide_plain(
        &self,
        key: Fingerprint,
        spec: &PlainSpec,
        cost: u64,
    ) -> Option<PlainOutcome<1>> {
        let now = self.now();
        match spec.kind() {
            KindOfPlain::Bucket(spec) => self.decide_by(now, key, spec, cost),
            KindOfPlain::Window(spec) => self.decide_by(now, key, spec, cost),
            KindOfPlain::AlignedWindow(spec) => self.decide_by(now, key, spec, cost),
            KindOfPlain::Adjustable(_) | KindOfPlain::Other => {
                self.decide_rare(now, key, spec, cost).map(copied)
            }
        }
    }

    /// Decides a charge by these steps.
    #[inline(always)]
    pub(crate) fn decide_by(
        &self,
        now: u64,
        key: Fingerprint,
        spec: impl PlainSteps,
        cost: u64,
    ) -> Option<PlainOutcome<1>> {
        self.decide_all(Some(now), [PlainCharge { key: &key, spec, cost }])
    }

    /// Decides a charge by the steps of a kind that few policies are of.
    #[cold]
    #[inline(never)]
    pub(crate) fn decide_rare(
        &self,
        now: u64,
        key: Fingerprint,
        spec: &PlainSpec,
        cost: u64,
    ) -> Option<PlainOutcome<1>> {
        let spec = Listed { spec: *spec, shadow: false };
        self.decide_by(now, key, spec, cost)
    }

    /// Gives a charge back, if the key is there and its state is plain, and remains so. Returns whether it has.
    pub(super) fn refund_plain(
        &self,
        key: Fingerprint,
        spec: &PlainSpec,
        cost: u64,
        charge_id: ChargeId,
    ) -> bool {
        // At a time no earlier than that of any charge it finds, because an emptied window keeps when it was emptied.
        self.decide_all(None, [PlainCharge { key: &key, spec: PlainRefund { spec, charge_id }, cost }])
            .is_some()
    }

    /// Reads a key for a call that only looks, if its state is plain or it has none.
    #[inline]
    pub(crate) fn peek_plain(
        &self,
        key: Fingerprint,
        policy: PolicyId,
        spec: PlainSpec,
    ) -> Option<(u64, PlainSnapshot)> {
        let charge = PlainCharge { key: &key, spec: Listed { spec, shadow: false }, cost: 0 };
        let peeked = match self.decide_listed(None, [charge]) {
            Some(peeked) => peeked,
            None => self.decide_new_plain((key, policy), &spec, 0)?,
        };
        Some((peeked.now, peeked.snapshots[0]))
    }

    /// Decides charges of distinct keys, all or nothing, if the keys are there and the states are plain. Returns `None` if not,
    /// and has then charged nothing.
    #[inline]
    pub(crate) fn decide_all_plain<const N: usize>(
        &self,
        charges: [PlainCharge<'_, &PlainSpec>; N],
    ) -> Option<PlainOutcome<N>> {
        if charges.iter().all(|charge| charge.spec.is_common()) {
            self.decide_all(None, each(charges, CommonSpec))
        } else {
            self.decide_listed(None, each(charges, |spec| Listed { spec: *spec, shadow: false }))
        }
    }

    #[inline(never)]
    fn decide_listed<const N: usize>(
        &self,
        now: Option<u64>,
        charges: [PlainCharge<'_, Listed>; N],
    ) -> Option<PlainOutcome<N>> {
        self.decide_all(now, charges)
    }

    /// The decision is that of its time: no key has changed between the first look and the last, nor was written at a later time. If
    /// the caller has read the time, which it may for a single charge, a window may have been charged or refunded later, but not
    /// opened or emptied (an aligned one may have been opened): until it ends, it decides the same at any time.
    ///
    /// Otherwise time is read before the slots if these say when they were written. Earlier is better: most processors read their
    /// counter only when they have done what comes before, and go on with what follows meanwhile. A refusal writes nothing.
    ///
    /// An admission locks all slots for a moment, and waits for none while it has one, so calls with the same keys in another
    /// order cannot block each other.
    #[inline(always)]
    fn decide_all<S: PlainSteps, const N: usize>(
        &self,
        now: Option<u64>,
        charges: [PlainCharge<'_, S>; N],
    ) -> Option<PlainOutcome<N>> {
        if self.is_locked {
            return None;
        }
        if N > 1 {
            return self.attempts(&charges, ATTEMPTS);
        }
        match self.attempt(now, &charges)? {
            Ok(outcome) => Some(outcome),
            Err(Changed) => {
                let keys = charges.map(|charge| *charge.key);
                let charges = array::from_fn(|i| PlainCharge { key: &keys[i], ..charges[i] });
                self.try_again(charges).map(copied)
            }
        }
    }

    /// Not compiled into each call: a loop there keeps in memory what one attempt at a single charge has in registers.
    #[cold]
    #[inline(never)]
    fn try_again<S: PlainSteps, const N: usize>(
        &self,
        charges: [PlainCharge<'_, S>; N],
    ) -> Option<PlainOutcome<N>> {
        spin_loop();
        self.attempts(&charges, ATTEMPTS - 1)
    }

    #[inline(always)]
    fn attempts<S: PlainSteps, const N: usize>(
        &self,
        charges: &[PlainCharge<'_, S>; N],
        most: u32,
    ) -> Option<PlainOutcome<N>> {
        for _ in 0..most {
            if let Ok(outcome) = self.attempt(None, charges)? {
                return Some(outcome);
            }
            spin_loop();
        }
        None
    }

    #[inline(always)]
    fn attempt<S: PlainSteps, const N: usize>(
        &self,
        now: Option<u64>,
        charges: &[PlainCharge<'_, S>; N],
    ) -> Option<Result<PlainOutcome<N>, Changed>> {
        let mut is_dated = true;
        unrolled!(for i in 0..N {
            is_dated &= charges[i].spec.is_dated();
        });
        let early = now.or_else(|| is_dated.then(|| self.now()));
        let mut looks = [None; N];
        unrolled!(for i in 0..N {
            let slot = self.slots.find(*charges[i].key)?;
            looks[i] = Some(Look { slot, seen: slot.read() });
        });
        let looks = all_some(looks)?;
        let now = early.unwrap_or_else(|| self.now());
        let mut steps = [None; N];
        unrolled!(for i in 0..N {
            if looks[i].seen.content.is_later_than(now) {
                return Some(Err(Changed));
            }
            let PlainCharge { spec, cost, .. } = charges[i];
            steps[i] = spec.decide(looks[i].seen.content.plain()?, now, cost);
        });
        let steps = all_some(steps)?;
        let (mut admitted, mut charges_some) = (true, !S::MAY_READ);
        unrolled!(for i in 0..N {
            admitted &= steps[i].admitted;
            charges_some |= steps[i].after.is_some();
        });
        if admitted && charges_some {
            if !commit(charges, &looks, &steps, now)? {
                return Some(Err(Changed));
            }
        } else {
            unrolled!(for i in 0..N {
                if !looks[i].slot.is_unchanged(looks[i].seen, *charges[i].key) {
                    return Some(Err(Changed));
                }
            });
        }
        // Not by `map`, of which the compiler makes calls.
        let (mut admits, mut snapshots) = ([false; N], [steps[0].snapshot; N]);
        unrolled!(for i in 0..N {
            (admits[i], snapshots[i]) = (steps[i].admitted, steps[i].snapshot);
        });
        Some(Ok(PlainOutcome { now, admitted, admits, snapshots }))
    }

    /// Decides a list of charges by the same lock-free steps.
    pub(super) fn decide_plain_list(&self, charges: &[Charge], outcome: &mut Outcome) -> Option<()> {
        match charges.len() {
            1 => self.decide_list::<1>(charges, outcome),
            2 => self.decide_list::<2>(charges, outcome),
            3 => self.decide_list::<3>(charges, outcome),
            _ => None,
        }
    }

    fn decide_list<const N: usize>(&self, list: &[Charge], outcome: &mut Outcome) -> Option<()> {
        let charges: &[Charge; N] = list.try_into().ok()?;
        let keys = charges.each_ref().map(|charge| charge.key.fingerprint());
        let mut keys = keys.iter();
        let charges = all_some(charges.each_ref().map(|charge| {
            let Charge { spec, cost, wait, shadow, .. } = charge;
            let key = keys.next()?;
            // A shadow takes a later slot beside others that are charged at once.
            let is_plain = *wait == 0 || !shadow;
            let spec = PlainSpec::of(spec).filter(|_| is_plain)?;
            Some(PlainCharge { key, spec: Listed { spec, shadow: *shadow }, cost: *cost })
        }))?;
        let now = (N == 1).then(|| self.now());
        let PlainOutcome { now, admitted, snapshots, .. } = self.decide_listed(now, charges)?;
        outcome.now = now;
        let of = |i: usize| snapshots[i].full(&list[i].spec, now, list[i].cost);
        outcome.judge(list, &mut array::from_fn::<_, N, _>(of));
        // A call that is refused at once may be one that waits.
        (outcome.admitted == admitted || is_peek(list)).then_some(())
    }
}

/// The policy of a charge in a list, which may be a shadow, or cost nothing.
#[derive(Clone, Copy, Debug)]
struct Listed {
    spec: PlainSpec,
    shadow: bool,
}

impl PlainSteps for Listed {
    const MAY_READ: bool = true;

    #[inline]
    fn is_dated(self) -> bool {
        self.spec.is_dated()
    }

    #[inline]
    fn decide(self, state: PlainState, now: u64, cost: u64) -> Option<PlainStep> {
        let step = self.spec.decide(state, now, cost)?;
        let after = step.after.filter(|_| cost > 0);
        Some(PlainStep { admitted: step.admitted || self.shadow || cost == 0, after, ..step })
    }
}

/// Returns the same charges, with their policies in another form. The compiler makes a call of the `map` of an array.
#[inline(always)]
fn each<'a, S: Copy, const N: usize>(
    charges: [PlainCharge<'a, &'a PlainSpec>; N],
    form: impl Fn(&'a PlainSpec) -> S,
) -> [PlainCharge<'a, S>; N] {
    let of = |PlainCharge { key, spec, cost }| PlainCharge { key, spec: form(spec), cost };
    let mut formed = [of(charges[0]); N];
    unrolled!(for i in 0..N {
        formed[i] = of(charges[i]);
    });
    formed
}

/// Returns a copy: an outcome whose address a function gets, even if few calls come there, is kept in memory by all.
#[inline(always)]
fn copied<const N: usize>(outcome: PlainOutcome<N>) -> PlainOutcome<N> {
    let PlainOutcome { now, admitted, admits, snapshots } = outcome;
    PlainOutcome { now, admitted, admits, snapshots }
}

/// Makes the charges, unless a slot has changed since it was read. Returns `None` if a state does not fit into its slot.
#[inline(always)]
fn commit<S: PlainSteps, const N: usize>(
    charges: &[PlainCharge<'_, S>; N],
    looks: &[Look<'_>; N],
    steps: &[PlainStep; N],
    now: u64,
) -> Option<bool> {
    let (mut contents, mut locks) = ([None; N], [const { None }; N]);
    unrolled!(for i in 0..N {
        contents[i] = match steps[i].after {
            Some(after) => Some(Content::of(after, now)?),
            None if S::MAY_READ => None,
            None => return None,
        };
    });
    unrolled!(for i in 0..N {
        let Look { slot, seen } = looks[i];
        let Some(lock) = slot.try_lock(seen, *charges[i].key) else { return Some(false) };
        locks[i] = Some(lock);
    });
    unrolled!(for i in 0..N {
        // What is only read is unlocked as it was.
        if let Some(content) = contents[i] {
            locks[i].take()?.set(content);
        }
    });
    Some(true)
}
