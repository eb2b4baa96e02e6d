//! Decisions and refunds under the locks of slots alone: on any states of keys that are there, and that no call waits for.

use std::mem;

use super::MemoryStore;
use super::plain::ATTEMPTS;
use super::slot::{Content, LockedSlot, Seen, Slot};
use crate::algorithm::{AlgorithmSpec, PlainSpec, PlainState, PlainSteps, Snapshot, State};
use crate::base::sync::{MutexGuard, spin_loop};
use crate::key::{Fingerprint, Key};
use crate::store::charge::{Charge, INLINE, Outcome, Snapshots};

/// The state of a key whose slot this thread holds. It is unlocked before the slot, so whoever locks the slot next does not wait for it.
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
    /// The same for plain states, if it is at hand.
    pub(crate) plain: Option<&'a PlainSpec>,
    pub(crate) cost: u64,
    pub(crate) wait: u64,
    pub(crate) shadow: bool,
}

/// An element of a list of charges. It is asked again for what a step needs, which is cheaper than to keep that.
pub(crate) trait InList {
    fn listed(&self) -> ListedCharge<'_>;
}

/// A charge of a list whose slot this thread holds, and what becomes of it.
struct Held<'a, 'c, C> {
    charge: &'c C,
    admits: bool,
    /// What the slot holds; once the charge is decided, what it holds if that is made.
    content: Content,
    /// A state that is kept elsewhere, and what was read of it. Above the lock, so that it is unlocked before the slot.
    kept: Option<(Snapshot, MutexGuard<'a, Option<State>>)>,
    lock: LockedSlot<'a>,
}

impl MemoryStore {
    /// Decides a charge of a call that does not wait, if the key is there and no call waits for it. Returns `None` if not, or if
    /// the state would have to move out of its slot or back, and has then charged nothing.
    pub(crate) fn decide_alone(
        &self,
        key: Fingerprint,
        spec: &AlgorithmSpec,
        cost: u64,
    ) -> Option<SingleOutcome> {
        let lock = self.hold_one(key)?;
        let state = self.state(&lock, spec)?;
        // Read while the key is held, so that time does not step back between decisions.
        let now = self.clock.now_in_order();
        let decide = |state: &mut Option<State>| spec.decide_unpaused(state, now, cost);
        let (snapshot, admitted) = change(lock, state, (spec, now), decide)?;
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
        let mut snapshots = Snapshots::new();
        (outcome.now, _) = self.decide_held(charges.iter(), |snapshot| snapshots.push(snapshot))?;
        outcome.judge(charges, &mut snapshots);
        Some(())
    }

    /// Makes all charges, none of which waits, if all are admitted at once and of distinct keys. Returns whether it has.
    #[inline(always)]
    pub(crate) fn admits_all<'c, C: InList + 'c>(
        &self,
        charges: impl Iterator<Item = &'c C> + Clone,
    ) -> bool {
        self.decide_held(charges, |_| ()).is_some_and(|(_, admitted)| admitted)
    }

    /// Returns when it has decided, and whether all are admitted. `read` gets what is read of each key.
    #[inline(always)]
    fn decide_held<'c, C: InList + 'c>(
        &self,
        charges: impl Iterator<Item = &'c C> + Clone,
        mut read: impl FnMut(Snapshot),
    ) -> Option<(u64, bool)> {
        let (mut few, mut many) = ([const { None }; INLINE], Vec::new());
        let all_held = match charges.clone().count() {
            count @ ..=INLINE => &mut few[..count],
            count => {
                many.resize_with(count, || None);
                &mut many[..]
            }
        };
        self.hold_all(charges, all_held)?;
        // Read while the keys are held, so that time does not step back between decisions.
        let now = self.clock.now_in_order();
        let mut admitted = true;
        for held in all_held.iter_mut().flatten() {
            self.look_into(held, now, &mut read)?;
            let ListedCharge { wait, shadow, .. } = held.charge.listed();
            if !held.admits && wait > 0 {
                return None;
            }
            admitted &= held.admits || shadow;
        }
        for held in all_held.iter_mut().flatten() {
            held.finish(now, admitted);
        }
        Some((now, admitted))
    }

    /// Looks what a charge of a list finds at its key. Returns `None` if the state would have to move out of its slot or back. Where the
    /// slot holds it, the steps are those without a lock.
    #[inline(always)]
    fn look_into<'a, C: InList>(
        &'a self,
        held: &mut Held<'a, '_, C>,
        now: u64,
        read: &mut impl FnMut(Snapshot),
    ) -> Option<()> {
        let ListedCharge { spec, plain, cost, .. } = held.charge.listed();
        if let Some(place) = held.content.as_other() {
            let state = self.kept(place, spec)?;
            let snapshot = spec.check(state.as_ref(), now, cost);
            read(snapshot);
            held.admits = spec.admits(snapshot, now, cost);
            held.kept = Some((snapshot, state));
            return Some(());
        }
        let plain = plain.copied().or_else(|| PlainSpec::of(spec))?;
        let step = plain.decide(held.content.plain()?, now, cost)?;
        if let Some(after) = step.after {
            held.content = Content::of(after, now)?;
        }
        held.admits = step.admitted || cost == 0;
        read(step.snapshot.full(spec, now, cost));
        Some(())
    }

    /// Changes the state of a key, if that is there and no call waits for it. Returns `None` if not, or if the state would have to
    /// move out of its slot or back, and has then changed nothing.
    pub(super) fn change_in_place(
        &self,
        key: &Key,
        spec: &AlgorithmSpec,
        change: impl FnOnce(&mut Option<State>, u64),
    ) -> Option<()> {
        let lock = self.hold_one(key.fingerprint())?;
        let state = self.state(&lock, spec)?;
        // Read while the key is held: charges made later would be cut to what a bucket could hold at this time.
        let now = self.clock.now_in_order();
        self::change(lock, state, (spec, now), |state| change(state, now))
    }

    /// Ends the state of a key, if that is there and no call waits for it. Returns whether it had not expired.
    pub(super) fn reset_in_place(&self, key: &Key) -> Option<bool> {
        let lock = self.hold_one(key.fingerprint())?;
        let (content, now) = (lock.content(), self.clock.now_in_order());
        if let Some(place) = content.as_other() {
            *self.slots.states.lock(place) = None;
        }
        lock.set(content.without_holds().unwrap_or_else(|| content.ended(now)));
        Some(content.is_live(now))
    }

    /// Locks the slot of a key, unless that is not there, or calls wait for it.
    #[inline(always)]
    fn hold_one(&self, key: Fingerprint) -> Option<LockedSlot<'_>> {
        for _ in 0..ATTEMPTS {
            let (slot, seen) = self.look(key)?;
            if let Some(lock) = slot.try_lock(seen, key) {
                return Some(lock);
            }
            spin_loop();
        }
        None
    }

    /// Locks the slots of all keys, if these are distinct, each in its charge's place. Waits for none while it has one.
    #[inline(always)]
    fn hold_all<'a, 'c, C: InList + 'c>(
        &'a self,
        charges: impl Iterator<Item = &'c C> + Clone,
        all_held: &mut [Option<Held<'a, 'c, C>>],
    ) -> Option<()> {
        'attempts: for _ in 0..ATTEMPTS {
            let mut places = all_held.iter_mut();
            for charge in charges.clone() {
                let key = charge.listed().key;
                let slot = self.slots.find(key).filter(|_| !self.is_locked)?;
                if let Some(seen) = slot.read_unlocked() {
                    let content = seen.content;
                    if content.is_of_table() {
                        return None;
                    }
                    if let Some(lock) = slot.try_lock(seen, key) {
                        let held = Some(Held { charge, admits: false, content, kept: None, lock });
                        let place = places.next()?;
                        debug_assert!(place.is_none(), "a place holds a slot already");
                        // Made in its place, without a look at what is there.
                        mem::forget(mem::replace(place, held));
                        continue;
                    }
                }
                if all_held.iter().flatten().any(|held| held.lock.is(slot)) {
                    return None;
                }
                all_held.iter_mut().for_each(|held| *held = None);
                // Waits until it is unlocked.
                slot.read();
                continue 'attempts;
            }
            return Some(());
        }
        None
    }

    /// Looks at the slot of a key, unless that is not there, or calls wait for it.
    #[inline(always)]
    fn look(&self, key: Fingerprint) -> Option<(Slot<'_>, Seen)> {
        let slot = self.slots.find(key).filter(|_| !self.is_locked)?;
        let seen = slot.read();
        (!seen.content.is_of_table()).then_some((slot, seen))
    }

    /// Returns the state of a locked slot, unless it belongs back into its slot.
    #[inline(always)]
    fn state<'a>(&'a self, lock: &LockedSlot<'a>, spec: &AlgorithmSpec) -> Option<HeldState<'a>> {
        let content = lock.content();
        match content.as_other() {
            None => Some(HeldState::Plain(content.plain().and_then(|plain| plain.state(spec)))),
            Some(place) => self.kept(place, spec).map(HeldState::Kept),
        }
    }

    /// Returns the state at this place, unless it belongs back into its slot.
    #[inline(always)]
    fn kept(&self, place: u32, spec: &AlgorithmSpec) -> Option<MutexGuard<'_, Option<State>>> {
        Some(self.slots.states.lock(place)).filter(|state| !fits_slot(state.as_ref(), spec))
    }
}

impl<C: InList> Held<'_, '_, C> {
    /// Changes the key, if the call is admitted and what is charged counts there.
    #[inline(always)]
    fn finish(&mut self, now: u64, admitted: bool) {
        let ListedCharge { spec, cost, .. } = self.charge.listed();
        let is_made = admitted && self.admits && cost > 0;
        if let Some((snapshot, state)) = &mut self.kept {
            if is_made {
                spec.commit(state, *snapshot, now, cost);
            } else if cost > 0 {
                spec.undo(state, now);
            }
            self.lock.write(self.content.ending(ends(state.as_ref(), spec)));
        } else if is_made {
            // What is only read is unlocked as it was.
            self.lock.write(self.content);
        }
    }
}

impl InList for Charge {
    #[inline]
    fn listed(&self) -> ListedCharge<'_> {
        let Charge { key, spec, cost, wait, shadow } = self;
        let (cost, wait, shadow) = (*cost, *wait, *shadow);
        ListedCharge { key: key.fingerprint(), spec, plain: None, cost, wait, shadow }
    }
}

/// Changes the state of a key and gives the key back, unless the state would no longer fit into its slot.
#[inline(always)]
fn change<T>(
    lock: LockedSlot<'_>,
    mut state: HeldState<'_>,
    (spec, now): (&AlgorithmSpec, u64),
    change: impl FnOnce(&mut Option<State>) -> T,
) -> Option<T> {
    let changed = change(match &mut state {
        HeldState::Plain(state) => state,
        HeldState::Kept(state) => state,
    });
    let content = match &state {
        HeldState::Plain(state) => plain_content(state.as_ref(), spec, lock.content(), now)?,
        HeldState::Kept(state) => lock.content().ending(ends(state.as_ref(), spec)),
    };
    drop(state);
    lock.set(content);
    Some(changed)
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
