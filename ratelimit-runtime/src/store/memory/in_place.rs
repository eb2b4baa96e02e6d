//! Decisions and refunds under the locks of slots alone: on any states of keys that are there, and that no call waits for.

use smallvec::SmallVec;

use super::MemoryStore;
use super::plain::ATTEMPTS;
use super::slot::{Content, LockedSlot, Seen, Slot};
use crate::algorithm::{AlgorithmSpec, PlainSpec, PlainState, PlainSteps, Snapshot, State};
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

/// A charge of a list, by reference: a copy of its policy takes longer than to decide it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ListedCharge<'a> {
    pub(crate) key: Fingerprint,
    pub(crate) spec: &'a AlgorithmSpec,
    pub(crate) cost: u64,
    pub(crate) wait: u64,
    pub(crate) shadow: bool,
}

/// What a list finds at one of its keys.
struct Found {
    /// What was read of the key, for the verdict.
    snapshot: Snapshot,
    admits: bool,
    /// What the slot holds after the charge, if it holds the state.
    after: Option<Content>,
}

/// The keys of a list.
type AllHeld<'a> = SmallVec<[Held<'a>; INLINE]>;

type AllFound = SmallVec<[Found; INLINE]>;

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
        let mut found = AllFound::new();
        (outcome.now, _) = self.decide_held(charges.iter().map(ListedCharge::of), &mut found)?;
        let mut snapshots: Snapshots = found.iter().map(|found| found.snapshot).collect();
        outcome.judge(charges, &mut snapshots);
        Some(())
    }

    /// Makes all charges of distinct keys, none of which waits, if all are admitted at once. Returns whether it has.
    pub(crate) fn admits_all(&self, charges: &[ListedCharge<'_>]) -> bool {
        self.decide_held(charges.iter().copied(), &mut AllFound::new()).is_some_and(|(_, admitted)| admitted)
    }

    /// Returns when it has decided, and whether all are admitted. `found` starts empty.
    fn decide_held<'c>(
        &self,
        charges: impl Iterator<Item = ListedCharge<'c>> + Clone,
        found: &mut AllFound,
    ) -> Option<(u64, bool)> {
        let mut all = AllHeld::new();
        self.hold_all(charges.clone(), &mut all)?;
        // Read while the keys are held, so that time does not step back between decisions.
        let now = self.clock.now_in_order();
        let mut admitted = true;
        for (charge, held) in charges.clone().zip(&mut all) {
            let one = self.find(charge, held, now)?;
            if !one.admits && charge.wait > 0 {
                return None;
            }
            admitted &= one.admits || charge.shadow;
            found.push(one);
        }
        for ((charge, held), Found { snapshot, admits, after }) in charges.zip(&mut all).zip(&*found) {
            let (spec, is_made) = (charge.spec, admitted && *admits && charge.cost > 0);
            match &mut held.state {
                HeldState::Plain(_) => match after.filter(|_| is_made) {
                    Some(after) => held.seen.content = after,
                    // What is only read is unlocked as it was.
                    None => continue,
                },
                HeldState::Kept(state) => {
                    if is_made {
                        spec.commit(state, *snapshot, now, charge.cost);
                    } else if charge.cost > 0 {
                        spec.undo(state, now);
                    }
                    held.seen.content = held.seen.content.ending(ends(state.as_ref(), spec));
                }
            }
            held.set();
        }
        Some((now, admitted))
    }

    /// Looks what a charge of a list finds at its key, which is held. Returns `None` if the state would have to move out of its slot or
    /// back. Where the slot holds it, the steps are those without a lock.
    #[inline(always)]
    fn find<'a>(&'a self, charge: ListedCharge<'_>, held: &mut Held<'a>, now: u64) -> Option<Found> {
        let ListedCharge { spec, cost, .. } = charge;
        if held.seen.content.as_other().is_none() {
            let step = PlainSpec::of(spec)?.decide(held.seen.content.plain()?, now, cost)?;
            let after = match step.after {
                Some(after) => Some(Content::of(after, now)?),
                None => None,
            };
            let snapshot = step.snapshot.full(spec, now, cost);
            return Some(Found { snapshot, admits: step.admitted || cost == 0, after });
        }
        self.take_state(held, spec)?;
        let snapshot = spec.check(held.state(), now, cost);
        Some(Found { snapshot, admits: spec.admits(snapshot, now, cost), after: None })
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
        held.seen.content = content.without_holds().unwrap_or_else(|| content.ended(now));
        held.set();
        Some(content.is_live(now))
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

    /// Locks the slots of all keys. Waits for none while it has one.
    #[inline(always)]
    fn hold_all<'a, 'c>(
        &'a self,
        charges: impl Iterator<Item = ListedCharge<'c>> + Clone,
        all: &mut AllHeld<'a>,
    ) -> Option<()> {
        for _ in 0..ATTEMPTS {
            for charge in charges.clone() {
                all.push(self.look(charge.key)?);
            }
            if all.iter_mut().zip(charges.clone()).all(|(held, charge)| held.lock(charge.key)) {
                return Some(());
            }
            all.clear();
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

impl<'a> ListedCharge<'a> {
    #[inline]
    fn of(charge: &'a Charge) -> Self {
        let Charge { key, spec, cost, wait, shadow } = charge;
        ListedCharge { key: key.fingerprint(), spec, cost: *cost, wait: *wait, shadow: *shadow }
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
