//! Processes that are killed while their calls run: others never run too many beside them, and soon get their permits.

use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, SystemTime};

use ratelimits::{ConcurrencyLimit, OnStoreError, Registry};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::support::budget::budget;
use crate::support::processes::{Child, start, start_one};
use crate::support::random::Random;
use crate::support::server::Server;

const PROCESSES: usize = 4;
const TASKS: u64 = 200;
const MAX: i64 = 10;
const HOLD_TTL: Duration = Duration::from_secs(1);
/// A process that stands still for so long may have its holds forgotten.
const STALL: Duration = Duration::from_millis(300);
/// What a killed process has held is free by then.
const FREE_AFTER: Duration = HOLD_TTL.saturating_add(Duration::from_secs(1));

/// Microseconds of a clock that all processes share.
fn now() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_micros() as u64
}

/// Runs calls until it is killed, and logs when each starts and ends.
async fn run_calls(child: Child) {
    let registry =
        Registry::builder().deadline(HOLD_TTL / 4).hold_ttl(HOLD_TTL).on_store_error(OnStoreError::Deny);
    let registry = registry.connect_lazy(&child.url).unwrap();
    let jobs = registry.limiter("jobs", ConcurrencyLimit::new(MAX as u64)).unwrap();
    let log = Arc::new(Mutex::new(child.log()));
    let write = |log: &Mutex<File>, event: &str, call: u64| {
        // One write, so that no line is torn.
        let line = format!("{event} {} {call} {}\n", std::process::id(), now());
        log.lock().unwrap().write_all(line.as_bytes()).unwrap();
    };
    let stalls = Arc::clone(&log);
    thread::spawn(move || {
        loop {
            let (begin, start) = (now(), std::time::Instant::now());
            thread::sleep(STALL / 10);
            if start.elapsed() > STALL {
                write(&stalls, "stalls", begin);
            }
        }
    });
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        let (jobs, log, mut random) = (jobs.clone(), Arc::clone(&log), Random::new(now() ^ task));
        tasks.spawn(async move {
            for call in (task..).step_by(TASKS as usize) {
                let Ok(held) = jobs.acquire_timeout("key", Duration::from_secs(20)).await else { continue };
                write(&log, "starts", call);
                sleep(Duration::from_micros(random.between(1000, 20_000))).await;
                write(&log, "ends", call);
                drop(held);
            }
        });
    }
    tasks.join_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_processes_leave_no_holds_and_admit_no_more() {
    const TEST: &str = "killed_processes_leave_no_holds_and_admit_no_more";
    if let Some(child) = Child::from_env() {
        return run_calls(child).await;
    }
    let (server, mut random) = (Server::start(), Random::new(now()));
    let mut processes = start(&server, PROCESSES, module_path!(), TEST);
    let mut kills = HashMap::new();
    let begin = Instant::now();
    let mut lines = Vec::new();
    while begin.elapsed() < Duration::from_secs(budget(30, 600)) {
        sleep(Duration::from_secs(1)).await;
        let victim = random.below(PROCESSES as u64) as usize;
        let id = processes[victim].id();
        processes[victim].kill().await;
        kills.insert(id, now());
        lines.extend(processes[victim].lines());
        processes[victim] = start_one(&server, victim, module_path!(), TEST);
    }
    for process in &mut processes {
        let id = process.id();
        process.kill().await;
        kills.insert(id, now());
        lines.extend(process.lines());
    }
    check(&lines, &kills);
    let keys: Vec<String> = server.command(&["KEYS", "*"]).await;
    for key in keys {
        let ttl: i64 = server.command(&["PTTL", &key]).await;
        assert!(ttl > 0 || ttl == -2, "{key} has no expiry");
    }
}

/// Checks that never too many calls ran, except after a process stood still, and that calls went on after each kill. A call of a killed
/// process ended with it.
fn check(lines: &[String], kills: &HashMap<u32, u64>) {
    let (mut open, mut last) = (HashMap::new(), HashMap::new());
    let (mut changes, mut stalls) = (Vec::new(), Vec::new());
    for line in lines {
        let words: Vec<&str> = line.split(' ').collect();
        let [event, process, call, at] = words[..] else { panic!("{line}") };
        let (process, call): (u32, u64) = (process.parse().unwrap(), call.parse().unwrap());
        let at: u64 = at.parse().unwrap();
        last.insert(process, at);
        match event {
            "starts" => {
                open.insert((process, call), at);
                changes.push((at, 1));
            }
            "ends" => {
                open.remove(&(process, call)).expect("it has started");
                changes.push((at, -1));
            }
            _ => stalls.push(call..at + HOLD_TTL.as_micros() as u64),
        }
    }
    // One that is killed may be seen to be so only later.
    let ends = |process| kills[process].min(last[process] + STALL.as_micros() as u64);
    changes.extend(open.keys().map(|(process, _)| (ends(process), -1)));
    changes.sort_unstable();
    let (mut running, mut most, mut begins) = (0, 0, 0);
    let starts: Vec<u64> = changes.iter().filter(|(_, change)| *change > 0).map(|(at, _)| *at).collect();
    for (at, change) in &changes {
        running += change;
        begins += u64::from(*change > 0);
        if stalls.iter().all(|stall| !stall.contains(at)) {
            most = most.max(running);
        }
    }
    println!("{begins} calls, at most {most} at once, {} kills, {} stalls", kills.len(), stalls.len());
    assert_eq!(most, MAX);
    let longest = starts.windows(2).map(|pair| pair[1] - pair[0]).max();
    let free_after = FREE_AFTER.as_micros() as u64;
    assert!(longest < Some(free_after) || !stalls.is_empty(), "no call started for {longest:?} µs");
}
