//! Decisions and refunds under the locks of slots alone: on any states of keys that are there, and that no call waits for.

use smallvec::SmallVec;

use super::MemoryStore;
use super::plain::ATTEMPTS;
use super::slot::{Content, LockedSlot, Seen, Slot};
use crate::algorithm::{AlgorithmSpec, PlainSpec, PlainState, State};
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

/// The keys of a list.
type AllHeld<'a> = SmallVec<[Held<'a>; INLINE]>;

impl MemoryStore {
    /// Decides a list of charges, if all keys are there and no call waits for any. Returns `None` if not, if the call would have to
    /// wait, or if a state would have to move out of its slot or back, and has then charged nothing.
    #[inline(never)]
    pub(super) fn decide_in_place(&self, charges: &[Charge], outcome: &mut Outcome) -> Option<()> {
        let mut all = AllHeld::new();
        self.lock_slots(charges.iter().map(|charge| charge.key.fingerprint()), &mut all)?;
        self.hold(charges.iter().map(|charge| &charge.spec), &mut all)?;
        // Read while the keys are held, so that time does not step back between decisions.
        let now = self.clock.now_in_order();
        let pairs = charges.iter().zip(&all);
        let snapshots: Snapshots =
            pairs.map(|(charge, held)| charge.spec.check(held.state(), now, charge.cost)).collect();
        outcome.now = now;
        outcome.judge(charges, &snapshots);
        if outcome.wait() > 0 {
            return None;
        }
        let change = |i: usize, state: &mut Option<State>| {
            let charge = &charges[i];
            if outcome.admitted && charge.is_made(&outcome.verdicts[i]) {
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
        Some(())
    }

    /// Changes the state of a key, if that is there and no call waits for it. Returns `None` if not, or if the state would have to
    /// move out of its slot or back, and has then changed nothing.
    pub(super) fn change_in_place(
        &self,
        key: &Key,
        spec: &AlgorithmSpec,
        change: impl Fn(&mut Option<State>, u64),
    ) -> Option<()> {
        let mut all = AllHeld::new();
        self.lock_slots([key.fingerprint()].into_iter(), &mut all)?;
        self.hold([spec].into_iter(), &mut all)?;
        let held = all.first_mut()?;
        // Read while the key is held: charges made later would be cut to what a bucket could hold at this time.
        let now = self.clock.now_in_order();
        held.seen.content = match &mut held.state {
            HeldState::Plain(state) => {
                change(state, now);
                plain_content(state.as_ref(), spec, held.seen.content, now)?
            }
            HeldState::Kept(state) => {
                change(state, now);
                held.seen.content.ending(ends(state.as_ref(), spec))
            }
        };
        held.set();
        Some(())
    }

    /// Ends the state of a key, if that is there and no call waits for it. Returns whether it had not expired.
    pub(super) fn reset_in_place(&self, key: &Key) -> Option<bool> {
        let mut all = AllHeld::new();
        self.lock_slots([key.fingerprint()].into_iter(), &mut all)?;
        let held = all.first_mut()?;
        let (content, now) = (held.seen.content, self.clock.now_in_order());
        if let Some(place) = content.as_other() {
            *self.slots.states.lock(place) = None;
        }
        held.seen.content = content.ended(now);
        held.set();
        Some(content.ends > now)
    }

    /// Locks the slots of all keys, unless one is not there, or calls wait for it. Waits for none while it has one.
    fn lock_slots<'a>(
        &'a self,
        keys: impl Iterator<Item = Fingerprint> + Clone,
        all: &mut AllHeld<'a>,
    ) -> Option<()> {
        if self.is_locked {
            return None;
        }
        for _ in 0..ATTEMPTS {
            for key in keys.clone() {
                let slot = self.slots.find(key)?;
                let seen = slot.read();
                if seen.content.is_of_table() {
                    return None;
                }
                all.push(Held { slot, seen, state: HeldState::Plain(None), lock: None });
            }
            let mut pairs = all.iter_mut().zip(keys.clone());
            let locks_all = pairs.all(|(held, key)| {
                held.lock = held.slot.try_lock(held.seen, key);
                held.lock.is_some()
            });
            if locks_all {
                return Some(());
            }
            all.clear();
            spin_loop();
        }
        None
    }

    /// Takes the states of locked slots, unless one belongs back into its slot.
    fn hold<'a, 's>(
        &'a self,
        specs: impl Iterator<Item = &'s AlgorithmSpec>,
        all: &mut AllHeld<'a>,
    ) -> Option<()> {
        for (held, spec) in all.iter_mut().zip(specs) {
            let content = held.seen.content;
            held.state = match content.as_other() {
                None => HeldState::Plain(content.plain().and_then(|plain| plain.state(spec))),
                Some(place) => HeldState::Kept(self.slots.states.lock(place)),
            };
            if matches!(&held.state, HeldState::Kept(state) if fits_slot(state.as_ref(), spec)) {
                return None;
            }
        }
        Some(())
    }
}

impl Held<'_> {
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
