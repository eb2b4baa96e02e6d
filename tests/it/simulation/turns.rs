//! Calls that wait, of many processes: each process gets its part of the permits, and a call that needs several its turn.

use std::collections::VecDeque;

use ratelimit_runtime::algorithm::believed_holds::HoldsState;
use ratelimit_runtime::store::account::{Account, Message, Reply, Sent};

use super::schedule::{MILLISECOND, Network, SECOND, Schedule};
use super::store::{TTL, reply_to};
use crate::support::budget::budget;
use crate::support::random::Random;

const END: u64 = 60 * SECOND;
/// For how long a process keeps its part after its turn.
const KEEPS: u64 = 200 * MILLISECOND;
/// How often a process asks whose turn it may be, and another one.
const LOOKS: [u64; 2] = [10 * MILLISECOND, 50 * MILLISECOND];

#[derive(Debug)]
enum Event {
    Arrives(usize, Sent),
    Hears(usize, Sent, Reply),
    /// The first call that waits in a process asks.
    Looks(usize),
    Ends(usize, u64),
    SaysReleased(usize),
    Tick(usize),
}

struct Process {
    account: Account,
    /// What the calls need that wait, and since when, of the first one.
    queue: VecDeque<(u64, u64)>,
    is_asking: bool,
    /// When it asks next.
    looks_at: u64,
    /// The permits of all calls that have started.
    started: u64,
    longest_wait: u64,
}

struct Simulation {
    schedule: Schedule<Event>,
    store: HoldsState,
    processes: Vec<Process>,
    max: u64,
    mean_call: u64,
    /// What the calls of the first process need.
    wide: u64,
    /// The permits of calls that run.
    running: u64,
    longest_call: u64,
}

#[test]
fn processes_get_their_parts_and_wide_calls_their_turns() {
    let seeded = Random::seeded();
    let mut longest = 0.0_f64;
    for run in 0..budget(200, 20_000) {
        let mut simulation = Simulation::new(seeded.run(run));
        simulation.run();
        let Simulation { max, mean_call, wide, processes, longest_call, .. } = &simulation;
        let context = format!("run {run}: calls of {mean_call} µs, the first of {wide} of {max}");
        let started: Vec<u64> = processes.iter().map(|process| process.started).collect();
        let part = started.iter().sum::<u64>() as f64 / started.len() as f64;
        // Where the first process needs several, it gets as many turns, and more permits.
        if *wide == 1 && part >= 100.0 {
            let is_fair = |started: &u64| (0.65..1.5).contains(&(*started as f64 / part));
            assert!(started.iter().all(is_fair), "{context}: {started:?}");
        }
        // Each process may keep what it has for a while.
        let turns = processes.len() as u64 * ((KEEPS + mean_call * 6) / max + LOOKS[1]);
        let bound = turns + 2 * longest_call + SECOND;
        let wait = processes.iter().map(|process| process.longest_wait).max().unwrap_or(0);
        longest = longest.max(wait as f64 / bound as f64);
        assert!(wait <= bound, "{context}: {} processes, {wait} µs", processes.len());
    }
    println!("the longest wait was {longest:.2} of its bound");
}

impl Simulation {
    fn new(mut random: Random) -> Self {
        let max: u64 = random.pick(&[1, 2, 5, 10]);
        let mean_call = random.pick(&[5, 20, 100, 500]) * MILLISECOND;
        let wide = random.pick(&[1, 1, max.div_ceil(2), max]);
        let (processes, tasks) = (random.between(2, 8), random.between(max, 3 * max));
        let schedule = Schedule::new(random);
        let mut simulation = Simulation {
            schedule,
            store: HoldsState::default(),
            processes: Vec::new(),
            max,
            mean_call,
            wide,
            running: 0,
            longest_call: 0,
        };
        for number in 0..processes {
            let permits = if number == 0 { wide } else { 1 };
            let account = Account::new(number, TTL, 0);
            let queue = (0..if permits > 1 { 1 } else { tasks }).map(|_| (permits, 0)).collect();
            let process =
                Process { account, queue, is_asking: false, looks_at: 0, started: 0, longest_wait: 0 };
            simulation.processes.push(process);
            let (looks, ticks) = (simulation.schedule.random.below(LOOKS[1]), SECOND / 2);
            simulation.look_in(number as usize, looks);
            simulation.schedule.after(ticks, Event::Tick(number as usize));
        }
        simulation
    }

    fn run(&mut self) {
        while let Some(event) = self.schedule.next() {
            let now = self.schedule.now;
            if now > END {
                return;
            }
            match event {
                Event::Arrives(process, sent) => self.arrives(process, sent),
                Event::Hears(process, sent, reply) => self.hears(process, sent, reply),
                Event::Looks(process) if self.processes[process].looks_at == now => self.ask(process),
                Event::Looks(_) => {}
                Event::Ends(process, permits) => {
                    self.running -= permits;
                    let Process { account, queue, .. } = &mut self.processes[process];
                    account.release(now, permits);
                    // Its caller calls again.
                    queue.push_back((permits, now));
                    self.ask(process);
                    self.schedule.after(0, Event::SaysReleased(process));
                }
                Event::SaysReleased(process) => {
                    let sent = self.processes[process].account.say_released(now);
                    sent.into_iter().for_each(|sent| self.send(process, sent));
                }
                Event::Tick(process) => {
                    let sent = self.processes[process].account.speak(now);
                    sent.into_iter().for_each(|sent| self.send(process, sent));
                    self.schedule.after(SECOND / 2, Event::Tick(process));
                }
            }
        }
    }

    fn look_in(&mut self, process: usize, after: u64) {
        self.processes[process].looks_at = self.schedule.now + after;
        self.schedule.after(after, Event::Looks(process));
    }

    fn ask(&mut self, process: usize) {
        let Process { account, queue, is_asking, .. } = &mut self.processes[process];
        let Some((permits, _)) = queue.front().filter(|_| !*is_asking) else { return };
        *is_asking = true;
        let sent = account.take(self.schedule.now, *permits, true);
        self.send(process, sent);
    }

    fn send(&mut self, process: usize, sent: Sent) {
        let passage = self.schedule.passage(Network { lost: 0, late: 0, doubled: 0 });
        passage
            .arrives_after
            .iter()
            .for_each(|after| self.schedule.after(*after, Event::Arrives(process, sent)));
    }

    fn arrives(&mut self, process: usize, sent: Sent) {
        let reply = reply_to(sent, &mut self.store, self.schedule.now, self.max);
        let back = self.schedule.random.between(500, 2 * MILLISECOND);
        self.schedule.after(back, Event::Hears(process, sent, reply));
    }

    fn hears(&mut self, process: usize, sent: Sent, reply: Reply) {
        let now = self.schedule.now;
        let heard = self.processes[process].account.hear(now, sent, reply);
        let Message::Take(_) = sent.message else { return };
        let Process { queue, is_asking, started, longest_wait, .. } = &mut self.processes[process];
        *is_asking = false;
        if !heard.starts {
            let after = self.schedule.random.pick(&LOOKS);
            return self.look_in(process, after);
        }
        let (permits, since) = queue.pop_front().expect("it has asked");
        *started += permits;
        self.running += permits;
        assert!(self.running <= self.max, "{} run of {}", self.running, self.max);
        *longest_wait = now.saturating_sub(since).max(*longest_wait);
        if let Some((_, since)) = queue.front_mut() {
            *since = now.max(*since);
        }
        let length = self.schedule.around(self.mean_call);
        self.longest_call = length.max(self.longest_call);
        self.schedule.after(length, Event::Ends(process, permits));
        self.look_in(process, LOOKS[1]);
    }
}
