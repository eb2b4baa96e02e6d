//! What a process knows of its holds of one key. It decides what to say, not how it is sent. No policy uses it yet.

use std::mem;

use crate::algorithm::holds::{Speaker, Take, Taken};

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
    /// Whether something was said in this epoch of which the store has a share. Only the first such message may create it: if it is
    /// lost later, the store must not take what is said then for all.
    has_share: bool,
    /// The permits of calls that run.
    running: u64,
    /// The permits of takes without a reply.
    asked: u64,
    /// The permits of releases of this epoch without a reply.
    releasing: u64,
    /// Whether nothing was on its way since the last words, so that the reply can confirm what is believed.
    is_quiet: bool,
    /// The number of the last release.
    releases: u64,
    /// Whether the store may believe something else than what was said in this epoch.
    is_unsure: bool,
    /// Whether there is no reply yet to the last words.
    is_speaking: bool,
    /// The replies in a row that could not confirm what is believed.
    unconfirmed: u8,
    /// When the last message of this epoch was sent that has a reply.
    heard: u64,
    /// When the last words were sent whose reply could confirm it: [`Message::Extend`] or [`Message::Report`].
    confirmed: u64,
    ttl: u64,
}

/// A message about holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// Takes permits for a call.
    Take(Take),
    /// Releases the permits of a call that has ended: how many, and the number of the release.
    Release(u64, u64),
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
}

impl Sent {
    /// Returns when it was sent.
    #[must_use]
    pub fn sent_at(&self) -> u64 {
        self.at
    }
}

/// What came of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// Whether permits were taken.
    Taken(Taken),
    /// The message was received.
    Done,
    /// So many are believed to be held, if anything is known of this epoch.
    Believed(Option<u64>),
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
    /// What to say about it.
    pub says: Option<Sent>,
}

/// Replies to [`Message::Extend`] in a row that confirm nothing, because others were on their way, before all is reported.
const MAX_UNCONFIRMED: u8 = 3;

impl Account {
    /// Returns the account of a process, which is believed for `ttl` after its last words.
    #[must_use]
    pub fn new(process: u64, ttl: u64, now: u64) -> Self {
        Account {
            process,
            epoch: 1,
            is_begun: true,
            has_share: false,
            running: 0,
            asked: 0,
            releasing: 0,
            is_quiet: false,
            releases: 0,
            is_unsure: false,
            is_speaking: false,
            unconfirmed: 0,
            heard: now,
            confirmed: now,
            ttl,
        }
    }

    /// Returns the permits of calls that run.
    #[must_use]
    pub fn running(&self) -> u64 {
        self.running
    }

    /// Asks for the permits of a call.
    pub fn take(&mut self, now: u64, permits: u64) -> Sent {
        self.wake(now);
        if self.running + self.asked == 0 {
            if now >= self.heard + self.ttl {
                // What it held before has expired, and there is nothing to report.
                self.begin_epoch();
                self.is_begun = true;
            }
            (self.heard, self.confirmed) = (now, now);
        }
        self.asked += permits;
        self.is_quiet = false;
        let has_share = mem::replace(&mut self.has_share, true);
        self.sent(now, Message::Take(Take { permits, has_share }))
    }

    /// Returns the message for a call that has ended, unless a report will say it.
    pub fn release(&mut self, now: u64, permits: u64) -> Option<Sent> {
        self.wake(now);
        self.running -= permits;
        self.release_counted(now, permits)
    }

    /// Returns what to say now: what is held, if that was not said for a third of the time for which it is believed, or everything,
    /// if the store may believe something else.
    pub fn speak(&mut self, now: u64) -> Option<Sent> {
        self.wake(now);
        if self.is_speaking {
            return None;
        }
        let message = if self.is_unsure {
            (self.is_unsure, self.unconfirmed) = (false, 0);
            self.begin_epoch();
            let permits = self.running + self.asked;
            self.has_share = permits > 0;
            Message::Report(permits)
        } else if now >= self.confirmed + self.ttl / 3 && self.running + self.asked > 0 {
            self.is_quiet = self.asked + self.releasing == 0;
            Message::Extend
        } else {
            return None;
        };
        self.is_speaking = true;
        Some(self.sent(now, message))
    }

    /// Takes note of a reply. One that comes too late to be used is none: [`Reply::Unknown`].
    pub fn hear(&mut self, now: u64, sent: Sent, reply: Reply) -> Heard {
        let is_known = reply != Reply::Unknown;
        if is_known && sent.speaker.epoch == self.epoch {
            self.heard = self.heard.max(sent.at);
        }
        self.wake(now);
        let is_of_epoch = sent.speaker.epoch == self.epoch;
        self.is_unsure |= !is_known && is_of_epoch;
        match sent.message {
            Message::Take(Take { permits, has_share }) => {
                self.asked -= permits;
                let starts = reply == Reply::Taken(Taken::Yes);
                let asks_again = reply == Reply::Taken(Taken::Forgotten);
                self.running += if starts { permits } else { 0 };
                if reply == Reply::Taken(Taken::No) && is_of_epoch && !has_share {
                    self.has_share = false;
                }
                self.is_unsure |= asks_again && is_of_epoch;
                // What was asked for before has been reported as if it were held.
                let says = if starts || is_of_epoch { None } else { self.release_counted(now, permits) };
                return Heard { starts, asks_again, says };
            }
            Message::Release(permits, _) => self.releasing -= if is_of_epoch { permits } else { 0 },
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

    /// Compares what is believed with what runs, unless something is under way that may be counted or not.
    fn compare(&mut self, at: u64, believed: Option<u64>) {
        if self.is_quiet {
            (self.confirmed, self.unconfirmed) = (at, 0);
            self.is_unsure |= believed.unwrap_or(0) != self.running;
        } else {
            self.unconfirmed += 1;
            self.is_unsure |= believed.is_none() && self.has_share || self.unconfirmed > MAX_UNCONFIRMED;
        }
    }

    /// Nobody believes what has not been said for so long.
    fn wake(&mut self, now: u64) {
        if now >= self.heard + self.ttl && self.running + self.asked > 0 {
            (self.is_unsure, self.heard) = (true, now);
            // What is released from here on must not free what others count.
            self.begin_epoch();
        }
    }

    fn begin_epoch(&mut self) {
        self.epoch += 1;
        (self.is_begun, self.has_share, self.releasing) = (false, false, 0);
    }

    /// Releases what this epoch counts.
    fn release_counted(&mut self, now: u64, permits: u64) -> Option<Sent> {
        if !self.is_begun {
            self.is_unsure = true;
            return None;
        }
        self.releasing += permits;
        self.releases += 1;
        self.is_quiet = false;
        Some(self.sent(now, Message::Release(permits, self.releases)))
    }

    fn sent(&self, at: u64, message: Message) -> Sent {
        Sent { speaker: Speaker { process: self.process, epoch: self.epoch }, message, at }
    }
}
