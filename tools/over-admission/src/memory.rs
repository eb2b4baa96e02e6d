//! Decisions in process, by the hundred million: two threads, ten thousand keys, and a log of what was admitted.

use std::fs::{self, File};
use std::future::Future;
use std::io::{BufWriter, Write};
use std::pin::pin;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use ratelimits::{Limiter, Registry};

use crate::functions::{Algorithm, Numbers};
use crate::log::{clock_error, middle, now};
use crate::results::{self, Measured, Row};
use crate::traffic::Random;
use crate::verify::verify;

const THREADS: u64 = 2;
const KEYS: u64 = 10_000;

/// In nanoseconds. A call that takes longer, because its thread had to stop, is not in the log: its time is not known well enough.
const SLOW: u64 = 20_000_000;

/// Lines that a thread hands over at once.
const BATCH: usize = 4_096;

/// Within which the threads hand their lines over.
const LATE: Duration = Duration::from_secs(5);

/// The shares of the algorithms, in percent.
const SHARES: [(Algorithm, u64); 4] =
    [(Algorithm::Bucket, 40), (Algorithm::Log, 20), (Algorithm::Counter, 20), (Algorithm::Window, 20)];

/// Makes so many million decisions, by one algorithm or by all.
pub(crate) fn run(millions: u64, algorithm: Option<&str>) -> Result<(), String> {
    let shares = SHARES.iter().filter(|(of, _)| algorithm.is_none_or(|name| name == of.name()));
    let mut rows = Vec::new();
    for (of, percent) in shares {
        let decisions = millions * 1_000_000 * if algorithm.is_some() { 100 } else { *percent } / 100;
        rows.push(measure(*of, decisions)?);
    }
    if rows.is_empty() {
        return Err(format!("no algorithm {}", algorithm.unwrap_or_default()));
    }
    Measured { line: "memory".to_owned(), server: "in process".to_owned(), rows }.keep()
}

fn measure(algorithm: Algorithm, decisions: u64) -> Result<Row, String> {
    let registry = Registry::in_memory();
    let limiter = algorithm.limiter(&registry, Numbers::Old).map_err(|error| error.to_string())?;
    let path = results::folder().join(format!("memory-{}.log", algorithm.name()));
    let file = File::create(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let (sender, receiver) = sync_channel::<Vec<u8>>(64);
    let Calls { refused, slow } = thread::scope(|scope| {
        let callers: Vec<_> = (0..THREADS)
            .map(|thread| {
                let (limiter, sender) = (limiter.clone(), sender.clone());
                scope.spawn(move || call(&limiter, thread, decisions / THREADS, &sender))
            })
            .collect();
        drop(sender);
        let mut file = BufWriter::with_capacity(1 << 20, file);
        receiver.iter().try_for_each(|lines| file.write_all(&lines)).and_then(|()| file.flush())?;
        let callers = callers.into_iter().map(|caller| caller.join().expect("no call panics"));
        let sum = |sum: Calls, more: Calls| Calls {
            refused: sum.refused + more.refused,
            slow: sum.slow + more.slow,
        };
        Ok::<_, std::io::Error>(callers.fold(Calls::default(), sum))
    })
    .map_err(|error| format!("{}: {error}", path.display()))?;
    let clock_error = clock_error(SLOW);
    let policy = algorithm.policy_text(Numbers::Old);
    let found = verify(&policy, &path, clock_error, LATE)?;
    // It may have gigabytes.
    fs::remove_file(&path).map_err(|error| error.to_string())?;
    Ok(Row {
        limiter: algorithm.name().to_owned(),
        policy,
        admitted: found.admitted,
        refused,
        left_out: slow,
        local: 0,
        clock_error_ms: clock_error.as_millis() as u64,
        excess: found.excess,
        bound: Some(0),
        own: None,
    })
}

/// Those of a thread that are not in its log.
#[derive(Debug, Default)]
struct Calls {
    refused: u64,
    /// Admitted.
    slow: u64,
}

/// Calls so often, and sends the lines of what was admitted.
fn call(limiter: &Limiter, seed: u64, decisions: u64, lines: &SyncSender<Vec<u8>>) -> Calls {
    let mut random = Random::new(seed + 1);
    let mut calls = Calls::default();
    let mut batch = Vec::with_capacity(BATCH * 48);
    // The end of a call is the start of the next one, so that the clock is read once for each. What is between belongs to the call.
    let mut start = now();
    for _ in 0..decisions {
        // The smaller of two numbers: some keys come much more often than others.
        let key = random.below(KEYS).min(random.below(KEYS));
        let is_admitted = decided(limiter.try_acquire(key)).is_ok();
        let end = now();
        if is_admitted {
            let (time, took) = middle(start, end);
            if took > SLOW {
                calls.slow += 1;
            } else {
                writeln!(batch, "{{\"time\":{time},\"key\":{key}}}").expect("memory can be written");
            }
            if batch.len() > BATCH * 40 {
                lines.send(std::mem::take(&mut batch)).expect("they are read");
            }
            start = now();
        } else {
            calls.refused += 1;
            start = end;
        }
    }
    lines.send(batch).expect("they are read");
    calls
}

/// Returns what a future has, which decides in process and so never waits.
fn decided<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => unreachable!("a decision in process does not wait"),
    }
}
