//! Processes with the leases of the library, a Redis that decides by its steps, and the messages between them.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use tokio::time::advance;

use super::super::*;
use super::log::Log;
use super::random::Random;
use crate::algorithm::State;
use crate::policy::Slack;
use crate::store::correction::{Correction, CorrectionKind};
use crate::store::leases::Kept;

/// How long a process waits for a reply.
const DEADLINE: u64 = 50_000;

/// What happens to messages and processes: once in so many, or never.
#[derive(Clone, Copy, Default)]
pub(super) struct Faults {
    pub(super) late: u64,
    pub(super) lost: u64,
    pub(super) dropped_call: u64,
}

/// What was asked of Redis, and by how many calls.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) admitted: u64,
    pub(super) refused: u64,
    pub(super) failed: u64,
    pub(super) requests: u64,
    pub(super) given_back: u64,
}

pub(super) struct World {
    start: Instant,
    charges: Vec<Charge>,
    size: LeaseSize,
    latency: u64,
    faults: Faults,
    pub(super) random: Random,
    processes: Vec<Process>,
    states: Vec<Option<State>>,
    pub(super) logs: Vec<Log>,
    pub(super) counts: Counts,
    due: BinaryHeap<Reverse<(u64, usize)>>,
    events: Vec<Option<Event>>,
    flights: Vec<Option<Flight>>,
}

#[derive(Default)]
struct Process {
    leases: Arc<Leases>,
    waiting: HashMap<usize, Vec<WaitingCall>>,
    /// Until when calls of a key are refused without asking.
    denied: HashMap<usize, Instant>,
    /// How often it was killed and started again.
    starts: u64,
}

struct WaitingCall {
    reply: oneshot::Receiver<Reply>,
    cost: u64,
    is_asked_for: bool,
}

/// A request for leases, and which of its messages is under way.
struct Flight {
    process: usize,
    key: usize,
    starts: u64,
    fetch: Fetch,
    message: u64,
}

enum Event {
    /// A call reaches Redis by itself.
    Asks {
        process: usize,
        key: usize,
        cost: u64,
        sent: Instant,
    },
    /// A request for a lease reaches Redis, which charges it.
    Arrives {
        flight: usize,
        message: u64,
        permits: u64,
    },
    Replies {
        flight: usize,
        message: u64,
        permits: u64,
        charged: u64,
        verdict: Verdict,
    },
    Expires {
        flight: usize,
        message: u64,
    },
    /// Leases end.
    Ends(Kept),
    /// What was left of them reaches Redis.
    Returns(Correction),
}

impl World {
    pub(super) fn new(
        policy: impl Into<Policy>,
        slack: &str,
        [processes, keys]: [usize; 2],
        (latency, faults): (u64, Faults),
        seed: u64,
    ) -> Self {
        let charge = charge("", policy, 1);
        let key = |key: usize| Charge { key: Key::raw(key.to_string()), ..charge.clone() };
        World {
            start: Instant::now(),
            charges: (0..keys).map(key).collect(),
            size: LeaseSize::Slack(Slack::parse(slack).unwrap()),
            latency,
            faults,
            random: Random(seed),
            processes: (0..processes).map(|_| Process::default()).collect(),
            states: vec![None; keys],
            logs: vec![Log::default(); keys],
            counts: Counts::default(),
            due: BinaryHeap::new(),
            events: Vec::new(),
            flights: Vec::new(),
        }
    }

    pub(super) fn now(&self) -> u64 {
        micros(self.start.elapsed())
    }

    pub(super) fn spec(&self) -> AlgorithmSpec {
        self.charges[0].spec
    }

    /// Lets everything happen that is due until then.
    pub(super) async fn run_until(&mut self, time: u64) {
        while let Some(Reverse((at, event))) = self.due.peek().copied().filter(|Reverse((at, _))| *at <= time)
        {
            self.due.pop();
            self.advance_to(at).await;
            if let Some(event) = self.events[event].take() {
                self.happen(event);
            }
        }
        self.advance_to(time).await;
    }

    /// Calls with a key in a process, as the library does.
    pub(super) fn call(&mut self, process: usize, key: usize, cost: u64) {
        let (charge, now) = (Charge { cost, ..self.charges[key].clone() }, Instant::now());
        let leases = Arc::clone(&self.processes[process].leases);
        if leases.spend_spare(charge.key.fingerprint(), &charge.spec, cost).is_some() {
            return self.admit(key, cost, self.now());
        }
        if self.processes[process].denied.get(&key).is_some_and(|until| now < *until)
            && !leases.suffice(charge.key.fingerprint(), &charge.spec, cost)
        {
            self.counts.refused += 1;
        } else if let Some((_, fetch)) = leases.spend(&charge) {
            self.admit(key, cost, self.now());
            self.fetch(process, key, fetch);
        } else if let Some((reply, fetch)) = leases.join(&charge, self.size) {
            let waiting = WaitingCall { reply, cost, is_asked_for: false };
            if !self.random.once_in(self.faults.dropped_call) {
                self.processes[process].waiting.entry(key).or_default().push(waiting);
            }
            self.fetch(process, key, fetch);
        } else {
            self.ask(process, key, cost);
        }
    }

    /// Kills a process, and starts another.
    pub(super) fn kill(&mut self, process: usize) {
        let starts = self.processes[process].starts + 1;
        self.processes[process] = Process { starts, ..Process::default() };
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Asks { process, key, cost, sent } => {
                let (now, verdict) = self.decide(key, cost);
                if self.random.once_in(self.faults.lost) {
                    self.counts.failed += 1;
                } else if verdict.admitted {
                    self.admit(key, cost, now);
                } else {
                    let retry_after = Duration::from_micros(verdict.retry_after.unwrap_or(0)).min(ms(1000));
                    self.processes[process].denied.insert(key, sent + retry_after);
                    self.counts.refused += 1;
                }
            }
            Event::Arrives { flight, message, permits } => {
                let Some(key) = self.flights[flight].as_ref().map(|flight| flight.key) else { return };
                let (charged, verdict) = self.decide(key, permits);
                if !self.random.once_in(self.faults.lost) {
                    let reply = Event::Replies { flight, message, permits, charged, verdict };
                    self.send(reply);
                }
            }
            Event::Replies { flight, message, permits, charged, verdict } => {
                let Some(under_way) = self.under_way(flight, message) else { return };
                if verdict.admitted {
                    under_way.fetch.granted(permits, &verdict);
                } else {
                    under_way.fetch.refused(&verdict);
                }
                self.go_on(flight, Some(charged).filter(|_| verdict.admitted));
            }
            Event::Expires { flight, message } => {
                let Some(under_way) = self.under_way(flight, message) else { return };
                under_way.fetch.failed(&StoreError::transient("late"));
                self.go_on(flight, None);
            }
            Event::Ends(mut kept) => {
                let (refunds, next) = kept.end();
                refunds.into_iter().for_each(|refund| self.send(Event::Returns(refund)));
                if let Some(next) = next {
                    self.at(micros(next - self.start), Event::Ends(kept));
                }
            }
            Event::Returns(Correction { key, spec, cost, kind }) => {
                self.counts.given_back += 1;
                let (now, key) = (self.now(), self.charges.iter().position(|charge| charge.key == key));
                let (Some(key), CorrectionKind::Refund(charge_id)) = (key, kind) else { unreachable!() };
                spec.refund(&mut self.states[key], now, cost, charge_id);
            }
        }
    }

    /// Returns a request that waits for the reply to this message, unless its process is gone.
    fn under_way(&mut self, flight: usize, message: u64) -> Option<&mut Flight> {
        let under_way = self.flights[flight].as_mut()?;
        (under_way.message == message && under_way.starts == self.processes[under_way.process].starts)
            .then_some(under_way)
    }

    fn decide(&mut self, key: usize, cost: u64) -> (u64, Verdict) {
        self.counts.requests += 1;
        let (now, spec, state) = (self.now(), self.spec(), &mut self.states[key]);
        let snapshot = spec.check(state.as_ref(), now, cost);
        let verdict = spec.verdict(snapshot, now, cost, 0);
        match verdict.admitted {
            true => spec.commit(state, snapshot, now, cost),
            false => spec.undo(state, now),
        }
        (now, verdict)
    }

    fn admit(&mut self, key: usize, cost: u64, at: u64) {
        self.counts.admitted += 1;
        self.logs[key].add(at, cost);
    }

    fn ask(&mut self, process: usize, key: usize, cost: u64) {
        self.send(Event::Asks { process, key, cost, sent: Instant::now() });
    }

    fn fetch(&mut self, process: usize, key: usize, fetch: Option<Fetch>) {
        let Some(fetch) = fetch else { return };
        let starts = self.processes[process].starts;
        self.flights.push(Some(Flight { process, key, starts, fetch, message: 0 }));
        self.go_on(self.flights.len() - 1, None);
    }

    /// Goes on with a request, given when Redis has charged the last lease, as the task that takes leases does.
    fn go_on(&mut self, flight: usize, charged: Option<u64>) {
        let Some(mut under_way) = self.flights[flight].take() else { return };
        let (process, key) = (under_way.process, under_way.key);
        self.serve(process, key, charged);
        under_way.message += 1;
        let (next, message) = (under_way.fetch.next(), under_way.message);
        if let Some(permits) = next {
            let waiting = self.processes[process].waiting.get_mut(&key);
            waiting.into_iter().flatten().for_each(|call| call.is_asked_for = true);
            self.flights[flight] = Some(under_way);
            self.at(self.now() + DEADLINE, Event::Expires { flight, message });
            return self.send(Event::Arrives { flight, message, permits });
        }
        drop(under_way);
        self.serve(process, key, None);
        let leases = &self.processes[process].leases;
        if let Some(kept) = leases.keep(self.charges[key].key.fingerprint(), Handle::current().id()) {
            self.happen(Event::Ends(kept));
        }
    }

    /// Tells the calls that wait what they got.
    fn serve(&mut self, process: usize, key: usize, charged: Option<u64>) {
        let waiting = self.processes[process].waiting.remove(&key).unwrap_or_default();
        for mut call in waiting {
            match call.reply.try_recv() {
                Ok(Ok(grant)) => {
                    grant.spend();
                    let at = charged.filter(|_| call.is_asked_for).unwrap_or_else(|| self.now());
                    self.admit(key, call.cost, at);
                }
                Ok(Err(_)) => self.counts.failed += 1,
                Err(oneshot::error::TryRecvError::Closed) => self.ask(process, key, call.cost),
                Err(oneshot::error::TryRecvError::Empty) => {
                    self.processes[process].waiting.entry(key).or_default().push(call);
                }
            }
        }
    }

    fn send(&mut self, event: Event) {
        if self.random.once_in(self.faults.lost) {
            return;
        }
        let late = if self.random.once_in(self.faults.late) { 100 * self.latency } else { 0 };
        let latency = self.latency / 2 + self.random.gap(self.latency as f64 / 2.0) + late;
        self.at(self.now() + latency, event);
    }

    fn at(&mut self, time: u64, event: Event) {
        self.due.push(Reverse((time, self.events.len())));
        self.events.push(Some(event));
    }

    async fn advance_to(&self, time: u64) {
        let now = self.now();
        if time > now {
            advance(Duration::from_micros(time - now)).await;
        }
    }
}
