//! The holds of a key: permits that calls take from their admission until they end, over all processes.
//!
//! A process that dies says nothing, so what it holds is believed for a while, and it says it again in time. It says so in
//! *epochs*: whenever a process cannot know what the store counts, because a reply was lost or came too late, it begins the next
//! epoch with all that it holds, and what it has said before no longer counts. A message of an old epoch that comes late either
//! finds nothing, or leaves a share that counts too much, until the process speaks again.

use std::collections::BTreeMap;

/// What a key holds, by process and epoch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HoldsState {
    shares: BTreeMap<(u64, u64), Share>,
    /// Those of processes whose calls wait, in the order in which they get their permits.
    turns: Vec<Turn>,
}

/// What a process holds in an epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Share {
    permits: u64,
    /// Until when this is believed.
    until: u64,
    /// How many permits the process has released in the epoch.
    released: u64,
    /// Whether a report has begun this epoch, which may come twice.
    is_reported: bool,
}

/// The turn of a process whose calls wait: what they need is kept free. After its turn it needs 0, and keeps what it has for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Turn {
    process: u64,
    permits: u64,
    /// Until when it may ask again, or keeps what it has.
    until: u64,
}

/// How long a process keeps its turn that does not ask again, and how long after its turn its calls follow each other, in microseconds.
const TURN: u64 = 1_000_000;
const QUANTUM: u64 = 200_000;

/// Who says something about a key: a process in one of its epochs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Speaker {
    /// The number of the process, which no other process has.
    pub process: u64,
    /// Its epoch.
    pub epoch: u64,
}

/// What a call asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Take {
    /// How many permits.
    pub permits: u64,
    /// How many permits its process has released in this epoch.
    pub released: u64,
    /// Whether its process has already said something in this epoch of which it has a share.
    pub has_share: bool,
    /// Whether the call waits if it does not get them.
    pub waits: bool,
}

/// What is believed of a process in its epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Believed {
    /// The permits that it holds.
    pub permits: u64,
    /// Those that it has released.
    pub released: u64,
}

/// Whether a call has got what it asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It has.
    Yes,
    /// Too many are held.
    No,
    /// Nothing is known of its process in this epoch, which has to report what it holds before it asks again.
    Forgotten,
}

impl Turn {
    /// Whether it has asked lately. One from the future has not: its clock has stepped back.
    fn is_live(&self, now: u64) -> bool {
        now < self.until && self.until <= now + TURN
    }
}

impl HoldsState {
    /// Returns the permits that are held now.
    #[must_use]
    pub fn held(&self, now: u64) -> u64 {
        self.shares.values().filter(|share| share.until > now).map(|share| share.permits).sum()
    }

    /// Returns the permits that a call cannot have now: those that are held, and those that are kept free for other processes whose turn
    /// comes before its own, unless it follows a call of its process.
    #[must_use]
    pub fn occupied(&self, now: u64, of: Speaker, permits: u64, max: u64) -> u64 {
        let (held, turns) = (self.held(now), self.turns(now));
        let is_own = |turn: &&&Turn| turn.process == of.process && turn.permits > 0;
        let before = turns.iter().take_while(|turn| !is_own(turn));
        let kept: u64 = before.map(|turn| turn.permits).sum();
        let is_full = held + kept + permits > max;
        if is_full && self.follows(now, of, permits, max) { held } else { held + kept }
    }

    /// Whether a call follows one of its process that has ended, although others wait: for a while after its turn, a process keeps its part
    /// of the permits, because others only learn of free ones when they ask. A call that needs more than that is not kept waiting so.
    fn follows(&self, now: u64, of: Speaker, permits: u64, max: u64) -> bool {
        let (own, others): (Vec<&Turn>, Vec<&Turn>) =
            self.turns(now).into_iter().partition(|turn| turn.process == of.process);
        let has_had_turn = own.iter().any(|turn| turn.permits == 0);
        let next = others.iter().find(|turn| turn.permits > 0);
        let has = self.shares.get(&(of.process, of.epoch)).map_or(0, |share| share.permits);
        let part = max.div_ceil(others.len() as u64 + 1);
        has_had_turn
            && next.is_none_or(|next| next.permits <= permits)
            && has + permits <= part
            && self.held(now) + permits <= max
    }

    fn turns(&self, now: u64) -> Vec<&Turn> {
        // Where nothing is held, nothing is waited for.
        let is_held = self.shares.values().any(|share| share.until > now);
        self.turns.iter().filter(|turn| is_held && turn.is_live(now)).collect()
    }

    /// Returns the permits that a process is believed to hold now.
    #[must_use]
    pub fn held_by(&self, process: u64, now: u64) -> u64 {
        let shares = self.shares.range((process, 0)..=(process, u64::MAX));
        shares.filter(|(_, share)| share.until > now).map(|(_, share)| share.permits).sum()
    }

    /// Takes permits if there are as many below `max`, once those are released that the process no longer needs. Takes none of a process
    /// whose share is lost: what it releases later would be of a new one.
    pub fn take(&mut self, now: u64, ttl: u64, of: Speaker, take: Take, max: u64) -> Taken {
        self.release(now, of, take.released);
        if self.occupied(now, of, take.permits, max) + take.permits > max {
            if take.waits && take.permits <= max && !self.shares.is_empty() {
                let has = self.shares.get(&(of.process, of.epoch)).map_or(0, |share| share.permits);
                if has == 0 {
                    // After its turn, a process waits for its own calls to end, but there are none.
                    self.turns.retain(|turn| turn.process != of.process || turn.permits > 0);
                }
                let turn = Turn { process: of.process, permits: take.permits, until: now + TURN };
                match self.turns.iter_mut().find(|turn| turn.process == of.process) {
                    Some(own) if own.permits == 0 => {}
                    Some(own) => *own = turn,
                    None => self.turns.push(turn),
                }
            }
            return Taken::No;
        }
        if take.has_share && !self.shares.contains_key(&(of.process, of.epoch)) {
            return Taken::Forgotten;
        }
        let after =
            self.turns.extract_if(.., |turn| turn.process == of.process).find(|turn| turn.permits == 0);
        let others_wait = self.turns.iter().any(|turn| turn.permits > 0);
        let quantum = Turn { process: of.process, permits: 0, until: now + QUANTUM };
        self.turns.extend(after.or(others_wait.then_some(quantum)));
        let is_new = !self.shares.contains_key(&(of.process, of.epoch));
        let share = self.share(of);
        share.permits += take.permits;
        share.until = now + ttl;
        if is_new {
            share.released = take.released;
        }
        Taken::Yes
    }

    /// Releases so many permits of this epoch in total. So messages that come twice or in another order make no difference, and the next
    /// one makes up for one that is lost.
    pub fn release(&mut self, now: u64, of: Speaker, released: u64) {
        self.expire(now);
        let Some(share) = self.shares.get_mut(&(of.process, of.epoch)) else { return };
        let more = released.saturating_sub(share.released);
        share.permits = share.permits.saturating_sub(more);
        share.released += more;
    }

    /// Believes for longer what a process holds, and returns it, if anything is known of this epoch.
    pub fn extend(&mut self, now: u64, ttl: u64, of: Speaker) -> Option<Believed> {
        self.expire(now);
        self.forget_before(of);
        let share = self.shares.get_mut(&(of.process, of.epoch))?;
        share.until = now + ttl;
        Some(Believed { permits: share.permits, released: share.released })
    }

    /// Begins an epoch of a process that holds so many permits, beside those that it has taken in this epoch already.
    pub fn report(&mut self, now: u64, ttl: u64, of: Speaker, permits: u64) {
        self.expire(now);
        self.forget_before(of);
        if permits == 0 && !self.shares.contains_key(&(of.process, of.epoch)) {
            return;
        }
        let share = self.share(of);
        if !share.is_reported {
            share.permits += permits;
        }
        (share.is_reported, share.until) = (true, now + ttl);
    }

    fn share(&mut self, of: Speaker) -> &mut Share {
        self.shares.entry((of.process, of.epoch)).or_default()
    }

    fn expire(&mut self, now: u64) {
        self.shares.retain(|_, share| share.until > now);
        let anything_is_held = !self.shares.is_empty();
        self.turns.retain(|turn| anything_is_held && turn.is_live(now));
    }

    fn forget_before(&mut self, of: Speaker) {
        self.shares.retain(|&(process, epoch), _| process != of.process || epoch >= of.epoch);
    }
}
