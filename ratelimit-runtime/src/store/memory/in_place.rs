//! Decisions and refunds under the locks of slots alone: on any states of keys that are there, and that no call waits for.

use smallvec::SmallVec;

use super::MemoryStore;
use super::plain::ATTEMPTS;
use super::slot::{Content, LockedSlot, Seen, Slot};
use crate::algorithm::{AlgorithmSpec, PlainSpec, PlainState, Snapshot, State};
use crate::base::sync::{MutexGuard, spin_loop};
use crate::key::{Fingerprint, Key};
use crate::store::charge::{Charge, INLINE, Outcome, Snapshots};

/// A key whose slot this thread looks at and then holds, with its state. The state is given back first, so that nobody who holds
/// the slot waits for it.
struct Held<'a> {
    slot: Slot<'a>,
    seen: Seen,
    state: HeldState<'a>,
    lock: Option<LockedSlot<'a>>,
}

enum HeldState<'a> {
    /// What the slot says.
    Plain(Option<State>),
    Kept(MutexGuard<'a, Option<State>>),
}

/// The decision about a single charge.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SingleOutcome {
    pub(crate) now: u64,
    pub(crate) admitted: bool,
    /// What was read of the key, for the verdict.
    pub(crate) snapshot: Snapshot,
}

/// The decision about a list of charges.
struct ListOutcome {
    now: u64,
    admitted: bool,
    snapshots: Snapshots,
}

/// The keys of a list.
type AllHeld<'a> = SmallVec<[Held<'a>; INLINE]>;

impl MemoryStore {
    /// Decides a charge of a call that does not wait, if the key is there and no call waits for it. Returns `None` if not, or if
    /// the state would have to move out of its slot or back, and has then charged nothing.
    pub(crate) fn decide_alone(
        &self,
        key: Fingerprint,
        spec: &AlgorithmSpec,
        cost: u64,
    ) -> Option<SingleOutcome> {
        let mut held = self.hold_one(key)?;
        self.take_state(&mut held, spec)?;
        // Read while the key is held, so that time does not step back between decisions.
        let now = self.clock.now_in_order();
        let (snapshot, admitted) = held.change(spec, now, |state| spec.decide_unpaused(state, now, cost))?;
        Some(SingleOutcome { now, admitted, snapshot })
    }

    /// Decides a list of charges, if all keys are there and no call waits for any. Returns `None` if not, if the call would have to
    /// wait, or if a state would have to move out of its slot or back, and has then charged nothing.
    #[inline(never)]
    pub(super) fn decide_in_place(&self, charges: &[Charge], outcome: &mut Outcome) -> Option<()> {
        if let [Charge { key, spec, cost: cost @ 1.., wait: 0, shadow }] = charges {
            let SingleOutcome { now, admitted, snapshot } =
                self.decide_alone(key.fingerprint(), spec, *cost)?;
            (outcome.now, outcome.admitted) = (now, admitted || *shadow);
            outcome.verdicts.clear();
            outcome.verdicts.push(spec.verdict(snapshot, now, *cost, 0));
            return Some(());
        }
        let ListOutcome { now, mut snapshots, .. } = self.decide_held(charges)?;
        outcome.now = now;
        outcome.judge(charges, &mut snapshots);
        Some(())
    }

    /// Makes all charges of distinct keys, none of which waits, if all are admitted at once. Returns whether it has.
    pub(crate) fn admits_all(&self, charges: &[Charge]) -> bool {
        self.decide_held(charges).is_some_and(|outcome| outcome.admitted)
    }

    fn decide_held(&self, charges: &[Charge]) -> Option<ListOutcome> {
        let mut all = self.hold_all(charges)?;
        // Read while the keys are held, so that time does not step back between decisions.
        let now = self.clock.now_in_order();
        let (mut snapshots, mut admits) = (Snapshots::new(), SmallVec::<[bool; INLINE]>::new());
        let mut admitted = true;
        for (charge, held) in charges.iter().zip(&all) {
            let snapshot = charge.spec.check(held.state(), now, charge.cost);
            let admits_one = charge.spec.admits(snapshot, now, charge.cost);
            if !admits_one && charge.wait > 0 {
                return None;
            }
            admitted &= admits_one || charge.shadow;
            snapshots.push(snapshot);
            admits.push(admits_one);
        }
        let change = |i: usize, state: &mut Option<State>| {
            let charge = &charges[i];
            if admitted && admits[i] && charge.cost > 0 {
                charge.spec.commit(state, snapshots[i], now, charge.cost);
            } else if charge.cost > 0 {
                charge.spec.undo(state, now);
            }
        };
        // First what may not fit, then what cannot be taken back.
        for (i, held) in all.iter_mut().enumerate() {
            if let HeldState::Plain(state) = &mut held.state {
                change(i, state);
                held.seen.content = plain_content(state.as_ref(), &charges[i].spec, held.seen.content, now)?;
            }
        }
        for (i, held) in all.iter_mut().enumerate() {
            if let HeldState::Kept(state) = &mut held.state {
                change(i, state);
                held.seen.content = held.seen.content.ending(ends(state.as_ref(), &charges[i].spec));
            }
            held.set();
        }
        Some(ListOutcome { now, admitted, snapshots })
    }

    /// Changes the state of a key, if that is there and no call waits for it. Returns `None` if not, or if the state would have to
    /// move out of its slot or back, and has then changed nothing.
    pub(super) fn change_in_place(
        &self,
        key: &Key,
        spec: &AlgorithmSpec,
        change: impl FnOnce(&mut Option<State>, u64),
    ) -> Option<()> {
        let mut held = self.hold_one(key.fingerprint())?;
        self.take_state(&mut held, spec)?;
        // Read while the key is held: charges made later would be cut to what a bucket could hold at this time.
        let now = self.clock.now_in_order();
        held.change(spec, now, |state| change(state, now))
    }

    /// Ends the state of a key, if that is there and no call waits for it. Returns whether it had not expired.
    pub(super) fn reset_in_place(&self, key: &Key) -> Option<bool> {
        let mut held = self.hold_one(key.fingerprint())?;
        let (content, now) = (held.seen.content, self.clock.now_in_order());
        if let Some(place) = content.as_other() {
            *self.slots.states.lock(place) = None;
        }
        held.seen.content = content.ended(now);
        held.set();
        Some(content.ends > now)
    }

    /// Locks the slot of a key, unless that is not there, or calls wait for it.
    #[inline(always)]
    fn hold_one(&self, key: Fingerprint) -> Option<Held<'_>> {
        for _ in 0..ATTEMPTS {
            let mut held = self.look(key)?;
            if held.lock(key) {
                return Some(held);
            }
            spin_loop();
        }
        None
    }

    /// Locks the slots of all keys, and takes their states. Waits for none while it has one.
    fn hold_all(&self, charges: &[Charge]) -> Option<AllHeld<'_>> {
        for _ in 0..ATTEMPTS {
            let mut all = AllHeld::new();
            for charge in charges {
                all.push(self.look(charge.key.fingerprint())?);
            }
            let mut pairs = all.iter_mut().zip(charges);
            if pairs.all(|(held, charge)| held.lock(charge.key.fingerprint())) {
                let mut pairs = all.iter_mut().zip(charges);
                pairs.try_for_each(|(held, charge)| self.take_state(held, &charge.spec))?;
                return Some(all);
            }
            spin_loop();
        }
        None
    }

    /// Looks at the slot of a key, unless that is not there, or calls wait for it.
    #[inline(always)]
    fn look(&self, key: Fingerprint) -> Option<Held<'_>> {
        let slot = self.slots.find(key).filter(|_| !self.is_locked)?;
        let seen = slot.read();
        let held = || Held { slot, seen, state: HeldState::Plain(None), lock: None };
        (!seen.content.is_of_table()).then(held)
    }

    /// Takes the state of a locked slot, unless it belongs back into its slot.
    #[inline(always)]
    fn take_state<'a>(&'a self, held: &mut Held<'a>, spec: &AlgorithmSpec) -> Option<()> {
        let content = held.seen.content;
        held.state = match content.as_other() {
            None => HeldState::Plain(content.plain().and_then(|plain| plain.state(spec))),
            Some(place) => HeldState::Kept(self.slots.states.lock(place)),
        };
        let belongs_back = matches!(&held.state, HeldState::Kept(state) if fits_slot(state.as_ref(), spec));
        (!belongs_back).then_some(())
    }
}

impl Held<'_> {
    /// Locks the slot, unless it has changed.
    #[inline(always)]
    fn lock(&mut self, key: Fingerprint) -> bool {
        self.lock = self.slot.try_lock(self.seen, key);
        self.lock.is_some()
    }

    /// Changes the state and gives the key back, unless the state would no longer fit into its slot.
    #[inline(always)]
    fn change<T>(
        &mut self,
        spec: &AlgorithmSpec,
        now: u64,
        change: impl FnOnce(&mut Option<State>) -> T,
    ) -> Option<T> {
        let changed = change(match &mut self.state {
            HeldState::Plain(state) => state,
            HeldState::Kept(state) => state,
        });
        self.seen.content = match &self.state {
            HeldState::Plain(state) => plain_content(state.as_ref(), spec, self.seen.content, now)?,
            HeldState::Kept(state) => self.seen.content.ending(ends(state.as_ref(), spec)),
        };
        self.set();
        Some(changed)
    }

    fn state(&self) -> Option<&State> {
        match &self.state {
            HeldState::Plain(state) => state.as_ref(),
            HeldState::Kept(state) => state.as_ref(),
        }
    }

    /// Gives the key back.
    fn set(&mut self) {
        self.state = HeldState::Plain(None);
        if let Some(lock) = self.lock.take() {
            lock.set(self.seen.content);
        }
    }
}

/// Returns what a slot holds for a state, which it has held so far, unless that is no longer plain.
fn plain_content(state: Option<&State>, spec: &AlgorithmSpec, before: Content, now: u64) -> Option<Content> {
    match state {
        Some(state) => Content::of(PlainState::of(state, spec)?, now),
        None => Some(before.ended(now)),
    }
}

/// Whether a state has no reason any more to be kept elsewhere.
fn fits_slot(state: Option<&State>, spec: &AlgorithmSpec) -> bool {
    let fits = |state| PlainState::of(state, spec).is_some_and(|plain| Content::of(plain, 0).is_some());
    PlainSpec::of(spec).is_some() && state.is_none_or(fits)
}

fn ends(state: Option<&State>, spec: &AlgorithmSpec) -> u64 {
    state.map_or(0, |state| spec.ends(state))
}
