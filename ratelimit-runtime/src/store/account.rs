//! What a process knows of its holds of one key. It decides what to say, not how it is sent.

use std::mem;

use crate::algorithm::believed_holds::{Believed, Speaker, Take, Taken};

/// The permits of a key that the calls of this process hold, and what it has said about them to the store.
///
/// What the store believes is never less than what calls of a process hold that speaks in time, and more only until its next words:
/// a message of which no reply came in time may have been received or not, so all that is held is reported as the next epoch.
#[derive(Debug)]
pub struct Account {
    process: u64,
    epoch: u64,
    /// Whether the store has heard the report that this epoch began with. What is released before is not counted in it.
    is_begun: bool,
    /// Whether the store has a share of this epoch. What is said from then on may not create one: if it is lost, the store must not take
    /// that for all.
    has_share: bool,
    /// The permits of calls that run.
    running: u64,
    /// Those of them of which the store has not heard in this epoch.
    unknown: u64,
    /// The permits of takes without a reply.
    asked: u64,
    /// The permits of releases of this epoch without a reply, and those of them that no message has said yet.
    releasing: u64,
    unsaid: u64,
    /// What the store can believe when it hears the last words, as other messages are on their way.
    expected: Expected,
    /// The permits that were released in this epoch.
    released: u64,
    /// Whether the store may believe something else than what was said in this epoch.
    is_unsure: bool,
    /// Whether there is no reply yet to the last words.
    is_speaking: bool,
    /// The replies in a row that could not confirm what is believed.
    unconfirmed: u8,
    /// When the last message of this epoch was sent by which the store believes what is held.
    heard: u64,
    /// When the last message was sent by which it may.
    said: u64,
    /// When the last words were sent whose reply could confirm it: [`Message::Extend`] or [`Message::Report`].
    confirmed: u64,
    ttl: u64,
}

/// A message about holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// Takes permits for a call.
    Take(Take),
    /// Releases the permits of calls that have ended: so many in this epoch.
    Release(u64),
    /// Says that what is held still is.
    Extend,
    /// Begins an epoch in which so many are held.
    Report(u64),
}

/// A message on its way.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// Who says it.
    pub speaker: Speaker,
    /// What it says.
    pub message: Message,
    at: u64,
    ttl: u64,
    /// The permits that it is the first to release.
    releases: u64,
    /// Whether the store had heard the report that the epoch began with.
    was_begun: bool,
}

impl Sent {
    /// Returns when it was sent.
    #[must_use]
    pub fn sent_at(&self) -> u64 {
        self.at
    }

    /// Returns for how long it is believed, in microseconds.
    #[must_use]
    pub fn ttl(&self) -> u64 {
        self.ttl
    }
}

/// What a store can believe: the permits that were taken and released in the epoch at least, and how many more may have been.
#[derive(Clone, Copy, Debug, Default)]
struct Expected {
    taken: u64,
    may_take: u64,
    released: u64,
    may_release: u64,
}

/// What came of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// Whether permits were taken.
    Taken(Taken),
    /// The message was not received, or nothing was done about it.
    Undone,
    /// The message was received.
    Done,
    /// This is believed, if anything is known of this epoch.
    Believed(Option<Believed>),
    /// No reply came in time.
    Unknown,
}

/// What follows from a reply.
#[derive(Clone, Copy, Debug, Default)]
pub struct Heard {
    /// Whether the call starts that has asked for permits.
    pub starts: bool,
    /// Whether it has to ask once more, because the store has lost what it knew.
    pub asks_again: bool,
    /// Whether there is a release to send: see [`Account::say_released`].
    pub releases: bool,
}

/// Replies to [`Message::Extend`] in a row that confirm nothing, because others were on their way, before all is reported.
const MAX_UNCONFIRMED: u8 = 3;

impl Account {
    /// Returns the account of a process, which is believed for `ttl` after its last words.
    #[must_use]
    pub fn new(process: u64, ttl: u64, now: u64) -> Self {
        Account {
            process,
            // Of another account of the key, before this one, messages may still come.
            epoch: now + 1,
            is_begun: true,
            has_share: false,
            running: 0,
            unknown: 0,
            asked: 0,
            releasing: 0,
            unsaid: 0,
            expected: Expected::default(),
            released: 0,
            is_unsure: false,
            is_speaking: false,
            unconfirmed: 0,
            heard: now,
            said: 0,
            confirmed: now,
            ttl,
        }
    }

    /// Returns the permits of calls that run.
    #[must_use]
    pub fn running(&self) -> u64 {
        self.running
    }

    /// Whether the store has to hear everything before it can be asked for more.
    #[must_use]
    pub fn is_unsure(&self) -> bool {
        self.is_unsure
    }

    /// Whether a call that was refused because the store has lost what it knew may ask again.
    #[must_use]
    pub fn may_ask_again(&self) -> bool {
        self.is_begun && !self.is_unsure
    }

    /// Whether nothing is held, nor believed to be.
    #[must_use]
    pub fn is_idle(&self, now: u64) -> bool {
        // What the store may believe expires by itself, even if a message comes late.
        let has_expired = now >= self.said.max(self.heard) + 2 * self.ttl;
        self.running + self.asked == 0 && !self.is_speaking && has_expired
    }

    /// Asks for the permits of a call, and releases those of calls that have ended. `waits` says whether it waits if it does not get
    /// them.
    pub fn take(&mut self, now: u64, permits: u64, waits: bool) -> Sent {
        self.wake(now);
        if self.running + self.asked == 0 {
            if now >= self.heard + self.ttl {
                // What it held before has expired, and there is nothing to report.
                self.begin_epoch();
                (self.is_begun, self.heard) = (true, now);
            }
            self.confirmed = now;
        }
        self.asked += permits;
        self.expected.may_take += permits;
        let take = Take { permits, released: self.released, has_share: self.has_share, waits };
        self.sent(now, Message::Take(take))
    }

    /// Notes a call that was admitted without asking the store, which has to hear of it.
    pub fn admit(&mut self, now: u64, permits: u64) {
        self.wake(now);
        if self.running + self.asked == 0 {
            (self.heard, self.confirmed) = (now, now);
        }
        self.running += permits;
        self.unknown += permits;
        self.is_unsure = true;
    }

    /// Ends a call. Returns whether a message has to say so: the next take, or a release. Otherwise a report will.
    pub fn release(&mut self, now: u64, permits: u64) -> bool {
        self.wake(now);
        self.running -= permits;
        self.release_counted(permits)
    }

    /// Returns a release of all that no message has said yet.
    pub fn say_released(&mut self, now: u64) -> Option<Sent> {
        (self.unsaid > 0).then(|| self.sent(now, Message::Release(self.released)))
    }

    /// Returns what to say now: what is held, if that was not said for a third of the time for which it is believed, or everything,
    /// if the store may believe something else.
    pub fn speak(&mut self, now: u64) -> Option<Sent> {
        self.wake(now);
        if self.is_speaking {
            return None;
        }
        // Where nothing runs, and the store cannot believe anything, there is nothing to say.
        let matters = self.running + self.asked > 0 || now < self.said.saturating_add(self.ttl);
        let message = if self.is_unsure && matters {
            (self.is_unsure, self.unconfirmed) = (false, 0);
            self.begin_epoch();
            let permits = self.running + self.asked;
            self.has_share = permits > 0;
            Message::Report(permits)
        } else if now >= self.confirmed + self.ttl / 3 && self.running + self.asked > 0 {
            self.expected = Expected {
                taken: self.running + self.released,
                may_take: self.asked,
                released: self.released - self.releasing,
                may_release: self.releasing,
            };
            Message::Extend
        } else {
            return None;
        };
        self.is_speaking = true;
        Some(self.sent(now, message))
    }

    /// Takes note of a reply. One that comes too late to be used is none: [`Reply::Unknown`].
    pub fn hear(&mut self, now: u64, sent: Sent, reply: Reply) -> Heard {
        let is_known = !matches!(reply, Reply::Unknown | Reply::Undone);
        let extends = match reply {
            Reply::Taken(taken) => taken == Taken::Yes,
            Reply::Believed(believed) => believed.is_some(),
            Reply::Done => matches!(sent.message, Message::Report(_)),
            Reply::Unknown | Reply::Undone => false,
        };
        if extends && sent.speaker.epoch == self.epoch {
            self.heard = self.heard.max(sent.at);
        }
        self.wake(now);
        let is_of_epoch = sent.speaker.epoch == self.epoch;
        self.is_unsure |= reply == Reply::Unknown && is_of_epoch;
        if is_of_epoch {
            match reply {
                Reply::Undone => self.unsaid += sent.releases,
                _ => self.releasing = self.releasing.saturating_sub(sent.releases),
            }
        }
        match sent.message {
            Message::Take(Take { permits, .. }) => {
                self.asked -= permits;
                let starts = reply == Reply::Taken(Taken::Yes);
                let asks_again = reply == Reply::Taken(Taken::Forgotten);
                self.running += if starts { permits } else { 0 };
                self.has_share |= starts && is_of_epoch;
                // A report that is on its way will say it.
                self.is_unsure |= asks_again && is_of_epoch && sent.was_begun;
                // What was asked for before has been reported as if it were held.
                let was_reported = !starts && !is_of_epoch && self.release_counted(permits);
                return Heard {
                    starts,
                    asks_again,
                    releases: was_reported || reply == Reply::Undone && self.unsaid > 0,
                };
            }
            Message::Release(_) => {}
            Message::Extend | Message::Report(_) => {
                self.is_speaking = false;
                if is_known && is_of_epoch {
                    self.is_begun = true;
                    match reply {
                        Reply::Believed(believed) => self.compare(sent.at, believed),
                        _ => self.confirmed = sent.at,
                    }
                }
            }
        }
        Heard::default()
    }

    /// Compares what is believed with what runs, as far as what is under way may be counted or not.
    fn compare(&mut self, at: u64, believed: Option<Believed>) {
        let Expected { taken, may_take, released, may_release } = self.expected;
        let is_quiet = may_take + may_release == 0;
        self.is_unsure |= match believed {
            Some(believed) => {
                let has_taken = believed.permits + believed.released;
                !(taken..=taken + may_take).contains(&has_taken)
                    || !(released..=released + may_release).contains(&believed.released)
            }
            None => self.has_share && (!is_quiet || taken > released),
        };
        if is_quiet {
            (self.confirmed, self.unconfirmed) = (at, 0);
        } else {
            self.unconfirmed += 1;
            self.is_unsure |= self.unconfirmed > MAX_UNCONFIRMED;
        }
    }

    /// What has not been said for so long is not believed.
    fn wake(&mut self, now: u64) {
        if now >= self.heard + self.ttl && self.running + self.asked > 0 {
            (self.is_unsure, self.heard) = (true, now);
            // What is released from here on must not free what others count.
            self.begin_epoch();
        }
    }

    fn begin_epoch(&mut self) {
        self.epoch += 1;
        (self.is_begun, self.has_share) = (false, false);
        (self.unknown, self.releasing, self.unsaid, self.released) = (0, 0, 0, 0);
    }

    /// Releases what this epoch counts. Returns whether it does.
    fn release_counted(&mut self, permits: u64) -> bool {
        if !self.is_begun {
            self.is_unsure = true;
            return false;
        }
        // To release what the store does not count would free what other calls hold.
        let unknown = self.unknown.min(permits);
        self.unknown -= unknown;
        let permits = permits - unknown;
        if permits == 0 {
            return false;
        }
        self.releasing += permits;
        self.unsaid += permits;
        self.released += permits;
        self.expected.may_release += permits;
        true
    }

    fn sent(&mut self, at: u64, message: Message) -> Sent {
        // By these nothing is believed for longer.
        if !matches!(message, Message::Release(_) | Message::Report(0)) {
            self.said = at;
        }
        let releases = match message {
            Message::Take(_) | Message::Release(_) => mem::take(&mut self.unsaid),
            Message::Extend | Message::Report(_) => 0,
        };
        Sent {
            releases,
            was_begun: self.is_begun,
            speaker: Speaker { process: self.process, epoch: self.epoch },
            message,
            at,
            ttl: self.ttl,
        }
    }
}

#[cfg(test)]
mod tests;
