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
}

/// What a process holds in an epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Share {
    permits: u64,
    /// Until when this is believed.
    until: u64,
    /// The number of the last release.
    released: u64,
    /// Whether a report has begun this epoch, which may come twice.
    is_reported: bool,
}

/// Who says something about a key: a process in one of its epochs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// Whether its process has already said something in this epoch of which it has a share.
    pub has_share: bool,
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

impl HoldsState {
    /// Returns the permits that are held now.
    #[must_use]
    pub fn held(&self, now: u64) -> u64 {
        self.shares.values().filter(|share| share.until > now).map(|share| share.permits).sum()
    }

    /// Returns the permits that a process is believed to hold now.
    #[must_use]
    pub fn held_by(&self, process: u64, now: u64) -> u64 {
        let shares = self.shares.range((process, 0)..=(process, u64::MAX));
        shares.filter(|(_, share)| share.until > now).map(|(_, share)| share.permits).sum()
    }

    /// Takes permits if there are as many below `max`. Takes none of a process whose share is lost: what it releases later would be of
    /// a new one.
    pub fn take(&mut self, now: u64, ttl: u64, of: Speaker, take: Take, max: u64) -> Taken {
        self.expire(now);
        if self.held(now) + take.permits > max {
            return Taken::No;
        }
        if take.has_share && !self.shares.contains_key(&(of.process, of.epoch)) {
            return Taken::Forgotten;
        }
        let share = self.share(of);
        share.permits += take.permits;
        share.until = now + ttl;
        Taken::Yes
    }

    /// Releases permits of this epoch, unless a later release has been made: this one may have been made before, too.
    pub fn release(&mut self, now: u64, of: Speaker, permits: u64, number: u64) {
        self.expire(now);
        let Some(share) = self.shares.get_mut(&(of.process, of.epoch)) else { return };
        if number > share.released {
            share.released = number;
            share.permits = share.permits.saturating_sub(permits);
        }
    }

    /// Believes for longer what a process holds, and returns how much that is, if anything is known of this epoch.
    pub fn extend(&mut self, now: u64, ttl: u64, of: Speaker) -> Option<u64> {
        self.expire(now);
        self.forget_before(of);
        let share = self.shares.get_mut(&(of.process, of.epoch))?;
        share.until = now + ttl;
        Some(share.permits)
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
    }

    fn forget_before(&mut self, of: Speaker) {
        self.shares.retain(|&(process, epoch), _| process != of.process || epoch >= of.epoch);
    }
}
