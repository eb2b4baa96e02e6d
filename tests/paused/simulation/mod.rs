//! Schedules of processes that decide by one Redis, through a network that loses, delays and doubles what they say.
//!
//! # What is real, and what is simulated
//!
//! The code under test is all of the library: every process is a [`Registry`](ratelimits::Registry) with its batches, leases,
//! remembered refusals, holds, corrections, circuit breaker, and shares of an outage. The server is a real Redis that runs the real
//! scripts, in some schedules without their passes over plain states. In some, a process decides alone, by its memory store. Four
//! things are simulated:
//!
//! - **Time.** All processes live in a runtime whose clock is paused, and which goes on when there is nothing to do at a moment. The
//!   scripts read a clock of the simulation in place of `TIME`, and keys end by it (`server`).
//! - **The network.** Each process dials an in-memory stream (`network`). A command takes no time, or some milliseconds; it is
//!   executed and its reply is lost, or it is lost itself, or late by up to two seconds, or comes twice. A process can be cut off.
//! - **Operators.** They override numbers for all keys of a policy or for one, in one process before the others (`overridden`).
//! - **Fate.** Processes die and others start. All stand still. The server loses its data, fails over to an older state, or
//!   steps its clock (`schedule`).
//!
//! # What is checked
//!
//! Each admission is logged with the times between which it was charged: those of the call, which are one and the same where messages
//! take no time. `bounds` compares the permits of every interval of admissions with what the policy promises to admit in as long, by
//! [`Promise`](ratelimit_runtime::Promise), as `ratelimits verify` does. A promise is widened by what the faults of the schedule
//! cost, and by nothing else:
//!
//! - a loss of data, a failover, a clock that steps, or a reset divides the intervals around it, which costs one capacity. Calls that
//!   wait at that time keep their slots beside it;
//! - refunds of a bucket's calls from before one of these may credit what came after it, all together one capacity, and a refund without a
//!   receipt all of it;
//! - leases add their life to the length of intervals;
//! - what calls used beyond their estimates is added until it is settled;
//! - what a process admits during an outage keeps the promise of its share, also together with a permit of each call that Redis admits
//!   to it meanwhile;
//! - holds of processes that were silent for as long as they are believed do not count, and those from before a loss not until they
//!   are reported again. Where messages are lost, late or doubled, that is not known: those from before a loss do not count any more.
//!
//! Lost, late and doubled messages, stalls and deaths widen nothing else. A doubled message is a decision, or is about holds:
//! corrections are sent once, and TCP repeats nothing. Where there was no fault at all, a refusal is an error, too, if the call would
//! have kept the promise, or its permits were not held. A paused key admits nothing, and a bucket one permit afterwards. When all
//! faults have ended, each key admits its whole limit again.
//!
//! Where numbers are overridden, calls with a state of their own keep a promise of their own, by the numbers that were in force for
//! calls of the interval: `bounds` says which. So a key gets at most the sum of both, while a bucket's first override comes or its last
//! one ends.
//!
//! Windows of a calendar admit their limit each time that the clock of the server enters them (`calendars`). It begins ten seconds before
//! a day and a month, and steps over that.
//!
//! A penalty that a process knows of admits nothing until it ends, is one of the attribute's, and the next one does not come before
//! its end. Where nothing fails, a model of the key says when one is due and which (`penalties`). Observers are notified of a key that nears
//! its limit at most once for each window and for each loss, whatever becomes of messages, and not before the share is reached. Where
//! nothing fails, they are notified of each window (`notices`).
//!
//! Clocks of processes step only forward, all at once, when these stand still. Overrides with `shadow`, `off` and `blocked` are tested
//! with `usage/registry/shortcuts`, and all that a process may say of its holds in `tests/it/simulation`.
//!
//! # Repeating a run
//!
//! A seed decides everything. A failure prints it with the schedule's number and the steps that it takes to fail, without those that
//! it does not take: `RATELIMITS_SEED=… RATELIMITS_SCHEDULE=…` repeats it. A range of schedules, such as `0..500000`, is a part of a long run.

mod bounds;
mod calendars;
mod calls;
mod checks;
mod functions;
mod holds;
mod log;
mod network;
mod notices;
mod overridden;
mod pauses;
mod penalties;
mod process;
mod schedule;
mod server;
mod steps;
mod target;

use std::num::NonZero;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use self::schedule::{Plan, Stats};
use self::server::Server;
use crate::budget::budget;
use crate::random::Random;

#[test]
fn no_interval_exceeds_what_is_promised() {
    let seeded = Random::seeded();
    let only = std::env::var("RATELIMITS_SCHEDULE").ok();
    let schedules = only.map_or(0..budget(1_000, 1_000_000), |only| {
        let number = |text: &str| {
            text.parse::<u64>().expect("RATELIMITS_SCHEDULE is a number, or a range like 0..500")
        };
        only.split_once("..")
            .map_or_else(|| number(&only)..number(&only) + 1, |(from, to)| number(from)..number(to))
    });
    let (all, next) = (Mutex::new(Stats::default()), AtomicU64::new(schedules.start));
    let run_schedules = || {
        let server = Arc::new(Mutex::new(Server::start()));
        loop {
            let schedule = next.fetch_add(1, Ordering::Relaxed);
            if schedule >= schedules.end {
                break;
            }
            let plan = Plan::random(seeded.run(schedule));
            match plan.run(&server, false) {
                Ok(stats) => all.lock().unwrap().add(&stats),
                Err(problem) => {
                    let shortest = plan.shrink(&server);
                    let again = shortest.run(&server, true).err();
                    panic!(
                        "RATELIMITS_SCHEDULE={schedule}: {problem}\n{shortest:#?}\nthe shortest: {again:?}"
                    )
                }
            }
        }
    };
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(run_schedules);
        }
    });
    println!("{:?}", all.lock().unwrap());
}
