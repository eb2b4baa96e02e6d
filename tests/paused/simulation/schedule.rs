//! One schedule: its plan, its run, and the shortest one that fails.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use ratelimits::OnStoreError;
use tokio::task::yield_now;
use tokio::time::{Instant, advance, sleep_until};

use super::log::Log;
use super::network::{Link, Network};
use super::notices::Notices;
use super::overridden::Overrides;
use super::process::Process;
use super::server::Server;
use super::steps::{Action, Chances, Step};
use super::target::Target;
use crate::random::Random;

pub(super) const KEYS: u64 = 2;
const STEPS: Range<u64> = 15..60;
/// More turns of the runtime than anything takes that needs no time.
const TURNS: usize = 25;

#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) targets: Vec<Target>,
    pub(super) processes: usize,
    pub(super) network: Network,
    pub(super) chances: Chances,
    /// Whether some calls wait.
    pub(super) waits: bool,
    /// What happens without the server, if there is one.
    pub(super) mode: Option<OnStoreError>,
    pub(super) steps: Vec<Step>,
    random: Random,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stats {
    pub(super) schedules: u64,
    pub(super) admitted: u64,
    pub(super) local: u64,
    pub(super) overridden: u64,
    pub(super) penalties: u64,
    pub(super) notices: u64,
    pub(super) refused: u64,
    pub(super) failed: u64,
}

/// A run of a plan.
pub(super) struct Run {
    pub(super) plan: Plan,
    pub(super) log: Mutex<Log>,
    /// Those that are in force in all processes some time.
    pub(super) overrides: Mutex<Overrides>,
    pub(super) notices: Arc<Notices>,
    server: Arc<Mutex<Server>>,
    pub(super) begun: Instant,
    pub(super) prints: bool,
}

impl Plan {
    pub(super) fn random(mut random: Random) -> Self {
        let mut targets: Vec<Target> =
            (0..random.between(1, 3)).map(|_| Target::random(&mut random)).collect();
        // Attributes of one name have one state.
        let mut kinds = Vec::new();
        targets.retain(|target| {
            !kinds.contains(&target.kind) && {
                kinds.push(target.kind);
                true
            }
        });
        let (is_clean, is_alone) = (random.percent(35), random.percent(15));
        let overrides = random.percent(40);
        let steps_clock = if targets.iter().any(|target| target.calendar().is_some()) { 60 } else { 15 };
        let mut sometimes = |percent| !is_clean && random.percent(percent);
        let chances = Chances {
            corrections: sometimes(50),
            overrides,
            losses: sometimes(30),
            clock_steps: sometimes(steps_clock),
            cuts: sometimes(35),
            deaths: sometimes(30),
            stalls: sometimes(30),
        };
        let mut percent = || if is_clean { 0 } else { random.pick(&[0, 0, 2, 6]) };
        let (lost, late, doubled) = (percent(), percent(), percent());
        let latency = if is_clean { 0 } else { random.pick(&[0, 0, 3, 40]) };
        let network = Network { lost, late, doubled, latency };
        let mode = Some(random.pick(&[OnStoreError::Local, OnStoreError::Local, OnStoreError::Deny]));
        let processes = random.between(1, 4) as usize;
        let (mode, processes, network, chances) = match is_alone {
            true => (None, 1, Network::default(), chances.without_server()),
            false => (mode, processes, network, chances),
        };
        let (waits, mut steps) = (random.percent(60), Vec::new());
        for number in 0..random.between(STEPS.start, STEPS.end) {
            steps.push(Step::random(random.run(number + 1), &targets, chances));
        }
        Plan { targets, processes, network, chances, waits, mode, steps, random }
    }

    /// Whether messages take no time and nothing fails, so that the times of calls are exact.
    pub(super) fn is_clean(&self) -> bool {
        let Network { lost, late, doubled, latency } = self.network;
        lost + late + doubled + latency == 0 && !self.chances.any()
    }

    /// Whether all that is sent is executed at once, and once.
    pub(super) fn is_orderly(&self) -> bool {
        self.is_prompt() && self.network.doubled == 0
    }

    /// Whether all that is sent is executed at once.
    pub(super) fn is_prompt(&self) -> bool {
        let Network { lost, late, latency, .. } = self.network;
        lost + late + latency == 0 && !self.chances.cuts && !self.chances.stalls
    }

    pub(super) fn run(&self, server: &Arc<Mutex<Server>>, prints: bool) -> Result<Stats, String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        let runtime = runtime.expect("a runtime starts");
        runtime.block_on(async {
            let mut random = self.random.clone();
            server.lock().unwrap().clear(random.percent(20), random.percent(30));
            let (server, begun, plan) = (Arc::clone(server), Instant::now(), self.clone());
            let (log, overrides) = (Mutex::default(), Mutex::default());
            let notices = Arc::new(Notices::new(begun, &plan.targets));
            let run = Arc::new(Run { plan, log, overrides, notices, server, begun, prints });
            run.run().await
        })
    }

    /// Leaves out steps, one after the other, as long as it fails.
    pub(super) fn shrink(&self, server: &Arc<Mutex<Server>>) -> Self {
        let (mut shortest, mut size) = (self.clone(), self.steps.len() / 2);
        while size > 0 {
            let mut at = 0;
            while at < shortest.steps.len() {
                let mut shorter = shortest.clone();
                let end = (at + size).min(shorter.steps.len());
                // Times stay the same.
                let gap: u64 = shorter.steps.drain(at..end).map(|step| step.gap).sum();
                if let Some(next) = shorter.steps.get_mut(at) {
                    next.gap += gap;
                }
                match shorter.run(server, false) {
                    Ok(_) => at += size,
                    Err(_) => shortest = shorter,
                }
            }
            size /= 2;
        }
        shortest
    }
}

impl Run {
    pub(super) fn now(&self) -> u64 {
        self.begun.elapsed().as_micros() as u64
    }

    pub(super) fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap()
    }

    pub(super) fn server(&self) -> MutexGuard<'_, Server> {
        self.server.lock().unwrap()
    }

    async fn run(self: Arc<Self>) -> Result<Stats, String> {
        let plan = &self.plan;
        let mut random = plan.random.clone();
        let mut processes: Vec<_> = (0..plan.processes).map(|id| self.start(id, &mut random)).collect();
        let (mut started, mut calls) = (plan.processes, Vec::new());
        let epoch = self.server().now();
        for step in &plan.steps {
            self.pass(step.gap, step.is_stall).await;
            if self.prints {
                println!("{:>10} {:?}", self.now(), step.action);
            }
            let mut random = step.random.clone();
            let at = random.below(processes.len() as u64) as usize;
            if step.action == Action::Die {
                processes[at].die();
                self.log().holds.retain(|held| held.process != processes[at].id);
                processes[at] = self.start(started, &mut random);
                started += 1;
            } else {
                self.act(step.action, &processes, at, &mut random, &mut calls).await;
            }
            settle().await;
        }
        self.end(&processes, calls).await;
        let stats = self.stats();
        self.check(epoch).map(|()| stats)
    }

    fn start(&self, id: usize, random: &mut Random) -> Arc<Process> {
        let link = Link::new(Arc::clone(&self.server), self.plan.network, random.run(id as u64 + 1));
        let instances = self.plan.processes as u32;
        let process =
            Process::start(id, link, &self.plan.targets, (instances, self.plan.mode), &self.notices);
        process.override_now(self.now(), &self.overrides.lock().unwrap());
        process
    }

    pub(super) async fn pass(&self, gap: u64, is_stall: bool) {
        let target = self.begun + Duration::from_micros(self.now() + gap);
        if !is_stall {
            // Timers are in whole milliseconds.
            let whole = self.begun + Duration::from_millis((target - self.begun).as_millis() as u64);
            if whole > Instant::now() {
                sleep_until(whole).await;
            }
        }
        if target > Instant::now() {
            advance(target - Instant::now()).await;
        }
        settle().await;
    }

    pub(super) fn stats(&self) -> Stats {
        let log = self.log();
        let local = log.calls.iter().filter(|call| call.is_local).count() as u64;
        let overridden = log.calls.iter().filter(|call| call.admission.numbers.is_overridden).count() as u64;
        let (admitted, refused) = (log.calls.len() as u64, log.refused);
        let (penalties, notices) = (log.penalties.len() as u64, self.notices.count());
        let failed = log.store_errors;
        Stats { schedules: 1, admitted, local, overridden, penalties, notices, refused, failed }
    }
}

impl Stats {
    pub(super) fn add(&mut self, other: &Stats) {
        self.schedules += other.schedules;
        self.admitted += other.admitted;
        self.local += other.local;
        self.overridden += other.overridden;
        self.penalties += other.penalties;
        self.notices += other.notices;
        self.refused += other.refused;
        self.failed += other.failed;
    }
}

/// Lets everything happen that takes no time.
pub(super) async fn settle() {
    for _ in 0..TURNS {
        yield_now().await;
    }
}
