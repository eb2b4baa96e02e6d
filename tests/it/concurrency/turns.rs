//! Calls that wait, of many processes: each process gets its share, in order, and a wide call is not overtaken for ever.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use ratelimits::{ConcurrencyLimit, Limiter, Registry};
use tokio::task::LocalSet;
use tokio::time::{Instant, sleep, sleep_until};

use crate::support::random::Random;
use crate::support::server::Server;

const PROCESSES: usize = 8;

/// The limiter as each of several processes has it.
fn processes(server: &Server, max: u64) -> Vec<Limiter> {
    let limiter = |_| {
        let registry =
            Registry::builder().deadline(Duration::from_secs(2)).connect_lazy(&server.url()).unwrap();
        registry.limiter("jobs", ConcurrencyLimit::new(max)).unwrap()
    };
    (0..PROCESSES).map(limiter).collect()
}

/// What a process has started.
#[derive(Default)]
struct Started {
    calls: Cell<u64>,
    /// The numbers of calls in the order in which they started.
    order: RefCell<Vec<u64>>,
}

#[tokio::test]
async fn processes_take_turns_and_ask_seldom() {
    const TASKS: usize = 250;
    const MAX: u64 = 10;
    let server = Server::start();
    let (begin, end) = (server.script_calls().await, Instant::now() + Duration::from_secs(12));
    let tasks = LocalSet::new();
    let all: Vec<_> = processes(&server, MAX)
        .into_iter()
        .map(|jobs| {
            let started = Rc::<Started>::default();
            for _ in 0..TASKS {
                let (jobs, started) = (jobs.clone(), Rc::clone(&started));
                tasks.spawn_local(async move {
                    while Instant::now() < end {
                        let number = started.calls.replace(started.calls.get() + 1);
                        let held = jobs.acquire("key").await.unwrap();
                        started.order.borrow_mut().push(number);
                        sleep(Duration::from_millis(20)).await;
                        drop(held);
                    }
                });
            }
            started
        })
        .collect();
    tasks.run_until(sleep_until(end)).await;
    let counts: Vec<usize> = all.iter().map(|started| started.order.borrow().len()).collect();
    let (total, messages) = (counts.iter().sum::<usize>(), server.script_calls().await - begin);
    println!("{counts:?} calls started, {total} with {messages} messages");
    let share = total as f64 / PROCESSES as f64;
    assert!(counts.iter().all(|count| (*count as f64 / share - 1.0).abs() < 0.2), "{counts:?}");
    assert!(messages as usize <= 2 * total, "{messages} messages for {total} calls");
    // A call that the machine does not let run for a while is overtaken.
    let overtaken = |order: &[u64]| order.windows(2).filter(|pair| pair[0] > pair[1]).count();
    let overtaken: usize = all.iter().map(|started| overtaken(&started.order.borrow())).sum();
    assert!(overtaken * 100 <= total, "{overtaken} calls were overtaken within their process");
}

#[tokio::test]
async fn wide_calls_are_not_overtaken_for_ever() {
    const MAX: u64 = 5;
    let server = Server::start();
    let limiters = processes(&server, MAX);
    let (tasks, end) = (LocalSet::new(), Instant::now() + Duration::from_secs(12));
    // Narrow calls of 100 ms, as many as keep nine of ten permits in use.
    for (process, jobs) in limiters.iter().cloned().enumerate() {
        tasks.spawn_local(async move {
            let mut random = Random::new(process as u64 + 1);
            while Instant::now() < end {
                let jobs = jobs.clone();
                tokio::task::spawn_local(async move {
                    if let Ok(held) = jobs.acquire_timeout("key", Duration::from_secs(5)).await {
                        sleep(Duration::from_millis(100)).await;
                        drop(held);
                    }
                });
                let mean = 100_000.0 * PROCESSES as f64 / (0.9 * MAX as f64);
                sleep(Duration::from_micros(random.between(0, 2 * mean as u64))).await;
            }
        });
    }
    let wide = limiters[0].clone();
    let longest = tasks
        .run_until(async {
            let mut longest = Duration::ZERO;
            while Instant::now() < end {
                sleep(Duration::from_secs(2)).await;
                let begin = Instant::now();
                let held = wide.acquire_n("key", MAX).await.unwrap();
                longest = longest.max(begin.elapsed());
                drop(held);
            }
            longest
        })
        .await;
    println!("a wide call waited {longest:?} at most");
    // Where it gets no turn, it waits until all permits happen to be free at once.
    assert!(longest < Duration::from_secs(3), "{longest:?}");
}
