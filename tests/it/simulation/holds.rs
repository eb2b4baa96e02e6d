//! Holds, which processes account for each on its own: never too many while all speak in time, and none is lost for ever.

use std::collections::HashMap;

use ratelimit_runtime::algorithm::believed_holds::{HoldsState, Take, Taken};
use ratelimit_runtime::store::account::{Account, Heard, Message, Reply, Sent};

use super::process::{Call, Faults, Process};
use super::schedule::{LATEST, MILLISECOND, Network, SECOND, Schedule};
use super::store::{TTL, reply_to};
use crate::support::budget::budget;
use crate::support::random::Random;

/// How long a process waits for a reply.
const DEADLINE: u64 = 250 * MILLISECOND;
/// How often a process looks whether it has something to say.
const TICK: u64 = 500 * MILLISECOND;
/// When no call comes any more, and nothing fails.
const CALM: u64 = 60 * SECOND;
/// When all calls end.
const END: u64 = CALM + 4 * TTL;

#[derive(Debug)]
enum Event {
    /// A call comes to a process.
    Comes(usize),
    /// A call ends.
    Ends(usize, usize),
    /// A message arrives at the store, and the reply comes after this time, if it does.
    Arrives(usize, usize, Sent, Option<u64>),
    /// A process hears a reply, or nothing until the deadline.
    Hears(usize, usize, Sent, Reply),
    Tick(usize),
    SaysReleased(usize),
    Stalls,
    Dies,
    LosesData,
    FailsOver,
    Snapshot,
    /// All that was forgotten must be back.
    Returned(u64),
    Calm,
    End,
}

struct Simulation {
    schedule: Schedule<Event>,
    faults: Faults,
    max: u64,
    mean_call: u64,
    mean_gap: u64,
    widest: u64,
    store: HoldsState,
    snapshots: Vec<HoldsState>,
    processes: Vec<Process>,
    messages: usize,
    calls: usize,
    admitted: u64,
    lost_data: Option<u64>,
    /// When the store last became one that may believe less than processes hold.
    misjudges_since: u64,
}

#[test]
fn holds_are_never_too_many_and_none_is_lost() {
    let seeded = Random::seeded();
    let mut admitted = 0;
    for run in 0..budget(500, 1_000_000) {
        let mut simulation = Simulation::new(seeded.run(run));
        admitted += simulation.run(false).unwrap_or_else(|problem| {
            let replayed = Simulation::new(seeded.run(run)).run(true);
            panic!("run {run}: {problem}, and once more {replayed:?}; {:?}", simulation.faults)
        });
    }
    println!("{admitted} calls admitted");
}

impl Simulation {
    fn new(mut random: Random) -> Self {
        let faults = Faults::random(&mut random);
        let (max, widest) = (random.pick(&[1, 2, 5, 10]), random.pick(&[1, 1, 3]));
        let mean_call = random.pick(&[50 * MILLISECOND, 2 * SECOND, 15 * SECOND]);
        // About as many calls as there is room for, or three times as many.
        let mean_gap = mean_call * random.pick(&[1, 3]) / max;
        let processes = random.between(1, 6);
        let mut schedule = Schedule::new(random);
        let rare = [(faults.stalls, Event::Stalls), (faults.deaths, Event::Dies)];
        let rarer = [(faults.losses, Event::LosesData), (faults.failovers, Event::FailsOver)];
        for (mean, event) in rare.into_iter().chain(rarer) {
            let Some(mean) = mean else { continue };
            let first = schedule.around(mean);
            schedule.after(first, event);
        }
        schedule.after(SECOND, Event::Snapshot);
        schedule.after(CALM, Event::Calm);
        schedule.after(END, Event::End);
        let mut simulation = Simulation {
            schedule,
            faults,
            max,
            mean_call,
            mean_gap: (mean_gap * processes).max(10 * MILLISECOND),
            widest: widest.min(max),
            store: HoldsState::default(),
            snapshots: Vec::new(),
            processes: Vec::new(),
            messages: 0,
            calls: 0,
            admitted: 0,
            lost_data: None,
            misjudges_since: 0,
        };
        (0..processes).for_each(|_| simulation.start_process());
        simulation
    }

    /// Returns the number of calls admitted.
    fn run(&mut self, prints: bool) -> Result<u64, String> {
        while let Some(event) = self.schedule.next() {
            if prints && !matches!(event, Event::Tick(_) | Event::Snapshot | Event::Hears(.., Reply::Unknown))
            {
                let numbered = self.processes.iter().enumerate();
                let of = |(number, process): (usize, &Process)| {
                    (process.account.running(), self.store.held_by(number as u64, self.now()))
                };
                let held: Vec<(u64, u64)> = numbered.map(of).collect();
                println!("{:>10} running and believed {held:?} of {}, {event:?}", self.now(), self.max);
            }
            self.step(event)?;
        }
        Ok(self.admitted)
    }

    fn now(&self) -> u64 {
        self.schedule.now
    }

    fn is_calm(&self) -> bool {
        self.now() >= CALM
    }

    fn start_process(&mut self) {
        let (process, now) = (self.processes.len(), self.now());
        self.processes.push(Process {
            account: Account::new(process as u64, TTL, now),
            is_dead: false,
            stalled_until: 0,
            calls: HashMap::new(),
            open: HashMap::new(),
            contact: now,
            epoch: 0,
            ended: 0,
            is_misjudged: false,
            held_nothing: false,
        });
        let (comes, tick) = (self.schedule.around(self.mean_gap), self.schedule.random.below(TICK));
        self.schedule.after(comes, Event::Comes(process));
        self.schedule.after(tick, Event::Tick(process));
    }

    fn step(&mut self, event: Event) -> Result<(), String> {
        if let Event::Comes(process)
        | Event::Ends(process, _)
        | Event::Hears(process, ..)
        | Event::SaysReleased(process)
        | Event::Tick(process) = event
        {
            let Process { is_dead, stalled_until, .. } = self.processes[process];
            if is_dead {
                return Ok(());
            }
            if stalled_until > self.now() {
                self.schedule.after(stalled_until - self.now(), event);
                return Ok(());
            }
        }
        match event {
            Event::Comes(process) => self.comes(process),
            Event::Ends(process, call) => self.ends(process, call),
            Event::Arrives(process, message, sent, reply_after) => {
                self.arrives(process, message, sent, reply_after);
            }
            Event::Hears(process, message, sent, reply) => self.hears(process, message, sent, reply)?,
            Event::SaysReleased(process) => self.say_released(process),
            Event::Tick(process) => {
                self.speak(process);
                if self.now() < END + 2 * TTL {
                    self.schedule.after(TICK, Event::Tick(process));
                }
            }
            Event::Stalls if !self.is_calm() => {
                let process = self.schedule.random.below(self.processes.len() as u64) as usize;
                let length = self.schedule.random.between(TTL / 10, 2 * TTL);
                let until = self.now() + length;
                let Process { stalled_until, .. } = &mut self.processes[process];
                *stalled_until = until.max(*stalled_until);
                self.again(self.faults.stalls, Event::Stalls);
            }
            Event::Dies if !self.is_calm() => {
                let process = self.schedule.random.below(self.processes.len() as u64) as usize;
                if !self.processes[process].is_dead {
                    self.processes[process].is_dead = true;
                    self.start_process();
                }
                self.again(self.faults.deaths, Event::Dies);
            }
            Event::LosesData if !self.is_calm() => {
                self.store = HoldsState::default();
                // The message that has created a share may come once more.
                let Network { late, doubled, .. } = self.faults.network;
                if late + doubled > 0 {
                    self.misjudge();
                }
                self.lose();
                self.again(self.faults.losses, Event::LosesData);
            }
            Event::FailsOver if !self.is_calm() => {
                self.store = self.snapshots.last().cloned().unwrap_or_default();
                self.lose();
                self.misjudge();
                self.again(self.faults.failovers, Event::FailsOver);
            }
            Event::Stalls | Event::Dies | Event::LosesData | Event::FailsOver => {}
            Event::Snapshot => {
                self.snapshots.push(self.store.clone());
                if !self.is_calm() {
                    self.schedule.after(SECOND, Event::Snapshot);
                }
            }
            Event::Returned(since) => self.check_returned(since)?,
            Event::Calm => {
                self.faults.network = Network { lost: 0, late: 0, doubled: 0 };
                let longest = self.processes.iter().map(|process| process.stalled_until).max();
                // What was sent before may come late.
                let settled = longest.unwrap_or(0).max(self.now() + LATEST) + TTL + SECOND;
                self.schedule.after(settled - self.now(), Event::Returned(u64::MAX));
            }
            Event::End => {
                for process in 0..self.processes.len() {
                    let calls: Vec<usize> = self.processes[process].calls.keys().copied().collect();
                    calls.into_iter().for_each(|call| self.schedule.after(0, Event::Ends(process, call)));
                }
                self.schedule.after(TTL + SECOND, Event::Returned(u64::MAX));
            }
        }
        Ok(())
    }

    fn again(&mut self, mean: Option<u64>, event: Event) {
        let delay = self.schedule.around(mean.unwrap_or(SECOND));
        self.schedule.after(delay, event);
    }

    fn comes(&mut self, process: usize) {
        if self.is_calm() {
            return;
        }
        let next = self.schedule.around(self.mean_gap);
        self.schedule.after(next, Event::Comes(process));
        let permits = self.schedule.random.between(1, self.widest);
        self.ask(process, permits);
        self.speak(process);
    }

    fn ask(&mut self, process: usize, permits: u64) {
        let now = self.now();
        let sent = self.processes[process].account.take(now, permits, false);
        self.send(process, sent);
    }

    fn ends(&mut self, process: usize, call: usize) {
        let now = self.now();
        let Some(Call { permits, .. }) = self.processes[process].calls.remove(&call) else { return };
        self.processes[process].ended = now;
        self.processes[process].account.release(now, permits);
        self.speak(process);
        // The next take may say it, too, if it comes soon.
        let delay = self.schedule.random.pick(&[0, 0, 2 * MILLISECOND]);
        self.schedule.after(delay, Event::SaysReleased(process));
    }

    fn speak(&mut self, process: usize) {
        let now = self.now();
        if let Some(sent) = self.processes[process].account.speak(now) {
            self.send(process, sent);
        }
    }

    fn say_released(&mut self, process: usize) {
        let now = self.now();
        if let Some(sent) = self.processes[process].account.say_released(now) {
            self.send(process, sent);
        }
    }

    fn send(&mut self, process: usize, sent: Sent) {
        let message = self.messages;
        self.messages += 1;
        self.processes[process].open.insert(message, None);
        let passage = self.schedule.passage(self.faults.network);
        for (i, after) in passage.arrives_after.into_iter().enumerate() {
            let reply = passage.reply_after.filter(|_| i == 0);
            self.schedule.after(after, Event::Arrives(process, message, sent, reply));
        }
        self.schedule.after(DEADLINE, Event::Hears(process, message, sent, Reply::Unknown));
    }

    fn arrives(&mut self, process: usize, message: usize, sent: Sent, reply_after: Option<u64>) {
        let (now, of) = (self.now(), sent.speaker);
        let reply = reply_to(sent, &mut self.store, now, self.max);
        let sender = &mut self.processes[process];
        sender.is_misjudged &= !matches!(sent.message, Message::Report(_)) || of.epoch <= sender.epoch;
        let is_believed = match reply {
            Reply::Taken(taken) => taken == Taken::Yes,
            Reply::Believed(believed) => believed.is_some(),
            _ => matches!(sent.message, Message::Report(_)),
        };
        if is_believed && of.epoch >= sender.epoch {
            sender.epoch = of.epoch;
            sender.forget_if_silent(now);
            sender.contact = now;
        }
        if let Some(executed) = sender.open.get_mut(&message) {
            executed.get_or_insert(now);
        }
        if let Some(after) = reply_after {
            self.schedule.after(after, Event::Hears(process, message, sent, reply));
        }
    }

    fn hears(&mut self, process: usize, message: usize, sent: Sent, reply: Reply) -> Result<(), String> {
        let now = self.now();
        let Some(executed) = self.processes[process].open.remove(&message) else { return Ok(()) };
        // A process that was stalled may find both.
        let reply = if now > sent.sent_at() + DEADLINE { Reply::Unknown } else { reply };
        // A reply from before then says nothing.
        if executed.is_some_and(|at| at > self.misjudges_since) {
            self.judge(process, reply);
        }
        let Heard { starts, asks_again, releases } = self.processes[process].account.hear(now, sent, reply);
        if let (true, Message::Take(Take { permits, .. })) = (starts, sent.message) {
            let is_forgotten = executed.is_none_or(|at| self.lost_data.is_some_and(|lost| lost >= at));
            let is_forgotten = is_forgotten || self.may_believe_less();
            let call = self.calls;
            self.calls += 1;
            self.admitted += 1;
            self.processes[process].calls.insert(call, Call { permits, is_forgotten });
            self.check_held()?;
            let length = self.schedule.around(self.mean_call);
            self.schedule.after(length, Event::Ends(process, call));
        }
        self.speak(process);
        if releases {
            self.say_released(process);
        }
        if let (true, Message::Take(Take { permits, .. })) = (asks_again, sent.message) {
            self.ask(process, permits);
        }
        Ok(())
    }

    /// The store has lost what it knew.
    fn lose(&mut self) {
        for process in &mut self.processes {
            process.calls.values_mut().for_each(|call| call.is_forgotten = true);
            process.held_nothing = process.account.running() == 0;
        }
        self.lost_data = Some(self.now());
        // A release that comes twice, and late, may lower what is back again.
        let Network { lost, late, doubled } = self.faults.network;
        if lost + late + doubled == 0 {
            self.schedule.after(TTL / 3 + TICK + SECOND / 2, Event::Returned(self.now()));
        }
    }

    fn misjudge(&mut self) {
        self.misjudges_since = self.now();
        self.processes.iter_mut().for_each(|process| process.is_misjudged = true);
    }

    /// Takes note that the store knows how much a process holds. To a store that has failed over, a release that comes late or twice may
    /// be a new one, until there is a new epoch.
    fn judge(&mut self, process: usize, reply: Reply) {
        if self.faults.network.late + self.faults.network.doubled > 0 {
            return;
        }
        let process = &mut self.processes[process];
        let is_quiet = matches!(reply, Reply::Believed(Some(_))) && process.open.is_empty();
        process.is_misjudged &= !is_quiet || process.account.is_unsure();
    }

    /// After a failover, what is released may not have been taken by what the store knows.
    fn may_believe_less(&self) -> bool {
        self.processes.iter().any(|process| process.is_misjudged && !process.is_dead)
    }

    /// At most the maximum runs, but for calls that the store had to forget.
    fn check_held(&mut self) -> Result<(), String> {
        let now = self.now();
        let mut held = 0;
        for process in &mut self.processes {
            process.forget_if_silent(now);
            if !process.is_dead {
                let counted = process.calls.values().filter(|call| !call.is_forgotten);
                held += counted.map(|call| call.permits).sum::<u64>();
            }
        }
        if held > self.max { Err(format!("{held} held")) } else { Ok(()) }
    }

    /// The store believes what is held: at least what it has forgotten at this time, or exactly what runs once all is calm.
    fn check_returned(&self, since: u64) -> Result<(), String> {
        let now = self.now();
        let is_disturbed = |process: &Process| {
            process.stalled_until > since || self.lost_data != Some(since) || process.held_nothing
        };
        for (number, process) in self.processes.iter().enumerate() {
            let (running, believed) = (process.account.running(), self.store.held_by(number as u64, now));
            let is_right = match since {
                u64::MAX if process.is_dead => believed == 0,
                // One that holds nothing has nothing to say, and of another something may be on its way.
                u64::MAX if running == 0 => believed == 0 || now < process.contact + TTL,
                // A release that another one has overtaken is not made, until the next comparison.
                u64::MAX => believed == running || !process.open.is_empty() || now < process.ended + TTL / 2,
                _ => process.is_dead || is_disturbed(process) || believed >= running,
            };
            if !is_right {
                return Err(format!("of process {number} {believed} are believed, and {running} run"));
            }
        }
        Ok(())
    }
}
