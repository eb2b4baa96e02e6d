//! Decisions in a Redis that does not answer, on paused time: each ends at its deadline, to the millisecond, or at once.

use std::future::{Future, pending};
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ratelimits::store::{Charge, Dial, Key, RedisStore, Stream};
use ratelimits::{FixedWindow, Policy};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, DuplexStream, duplex};
use tokio::time::{Instant, advance, sleep};

const DEADLINE: Duration = RedisStore::DEADLINE;
const HELLO: &str = "%1\r\n$5\r\nproto\r\n:3\r\n";

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    None,
    /// The network takes the attempt to connect, and never says anything.
    NoConnection,
    /// Nobody listens.
    Refused,
    /// Connections are taken, and nothing is ever read: buffers run full.
    NothingRead,
    /// The first words of a connection are not answered.
    NoHello,
    NoPing,
    /// No command is answered.
    NoReply,
    /// A reply begins, and does not end.
    HalfReply,
    /// Replies come after so long.
    Slow(Duration),
    /// The connection is closed in place of a reply.
    Closed,
    /// The script is unknown, and when it is sent as well nothing comes any more.
    NoReplyToEval,
    /// An error in place of a reply.
    Error(&'static str),
}

/// A server as a fault makes it.
#[derive(Clone)]
struct Faulty {
    fault: Arc<Mutex<Fault>>,
    dialled: Arc<AtomicUsize>,
}

impl Faulty {
    fn new(fault: Fault) -> Self {
        Faulty { fault: Arc::new(Mutex::new(fault)), dialled: Arc::default() }
    }

    fn fault(&self) -> Fault {
        *self.fault.lock().unwrap()
    }

    fn set(&self, fault: Fault) {
        *self.fault.lock().unwrap() = fault;
    }

    fn dialled(&self) -> usize {
        self.dialled.load(Ordering::SeqCst)
    }

    async fn serve(self, stream: DuplexStream) -> io::Result<()> {
        let (read, mut write) = tokio::io::split(stream);
        let mut read = BufReader::new(read);
        loop {
            if self.fault() == Fault::NothingRead {
                pending::<()>().await;
            }
            let Some(name) = command(&mut read).await? else { return Ok(()) };
            match (&*name, self.fault()) {
                ("HELLO", Fault::NoHello) | ("PING", Fault::NoPing) => {}
                ("HELLO", _) => write.write_all(HELLO.as_bytes()).await?,
                ("PING", _) => write.write_all(b"+PONG\r\n").await?,
                ("INFO", _) => write.write_all(b"-NOPERM no\r\n").await?,
                (_, Fault::NothingRead | Fault::NoReply) | ("EVAL", Fault::NoReplyToEval) => {}
                (_, Fault::HalfReply) => write.write_all(b"*4\r\n:1\r\n:1").await?,
                (_, Fault::Closed) => return Ok(()),
                (_, Fault::NoReplyToEval) => write.write_all(b"-NOSCRIPT none\r\n").await?,
                (_, Fault::Error(error)) => write.write_all(format!("-{error}\r\n").as_bytes()).await?,
                (_, fault) => {
                    if let Fault::Slow(time) = fault {
                        sleep(time).await;
                    }
                    // A window that nobody has used, at second 1.
                    write.write_all(b"*4\r\n:1000000\r\n:1\r\n:1000000\r\n:0\r\n").await?;
                }
            }
        }
    }
}

impl Dial for Faulty {
    fn dial(&self) -> Pin<Box<dyn Future<Output = io::Result<Box<dyn Stream>>> + Send + '_>> {
        self.dialled.fetch_add(1, Ordering::SeqCst);
        Box::pin(async {
            match self.fault() {
                Fault::NoConnection => pending().await,
                Fault::Refused => Err(io::ErrorKind::ConnectionRefused.into()),
                _ => {
                    let (ours, theirs) = duplex(64);
                    tokio::spawn(self.clone().serve(theirs));
                    Ok(Box::new(ours) as Box<dyn Stream>)
                }
            }
        })
    }
}

/// The name of the next command, once all of it is here.
async fn command(read: &mut BufReader<tokio::io::ReadHalf<DuplexStream>>) -> io::Result<Option<String>> {
    let mut line = String::new();
    if read.read_line(&mut line).await? == 0 {
        return Ok(None);
    }
    let parts: usize = line.trim_start_matches('*').trim().parse().expect("an array of bulk strings");
    let mut name = String::new();
    for part in 0..parts {
        line.clear();
        read.read_line(&mut line).await?;
        let size: usize = line.trim_start_matches('$').trim().parse().expect("the size of a bulk string");
        let mut bytes = vec![0; size + 2];
        read.read_exact(&mut bytes).await?;
        if part == 0 {
            name = String::from_utf8_lossy(&bytes[..size]).to_uppercase();
        }
    }
    Ok(Some(name))
}

/// How a decision ended, and when.
async fn decide(store: &RedisStore) -> (Result<(), String>, Duration) {
    let rule = Policy::from(FixedWindow::new(5, Duration::from_secs(60))).rule().unwrap();
    let charge = Charge { key: Key::raw("{k}"), rule, cost: 1, wait: 0, shadow: false };
    let begun = Instant::now();
    let outcome = store.decide(&[&[charge]]).await.remove(0);
    (outcome.map(drop).map_err(|error| error.to_string()), begun.elapsed())
}

/// A server without a fault, and a connection to it.
async fn connected() -> (Faulty, RedisStore) {
    let server = Faulty::new(Fault::None);
    let store = RedisStore::over(server.clone());
    assert_eq!(decide(&store).await, (Ok(()), Duration::ZERO));
    (server, store)
}

#[tokio::test(start_paused = true)]
async fn every_decision_ends_at_its_deadline_whatever_is_not_answered() {
    let silent = [
        Fault::NoConnection,
        Fault::NothingRead,
        Fault::NoHello,
        Fault::NoPing,
        Fault::NoReply,
        Fault::HalfReply,
        Fault::Slow(DEADLINE + Duration::from_millis(1)),
        Fault::NoReplyToEval,
    ];
    for fault in silent {
        let store = RedisStore::over(Faulty::new(fault));
        let (outcome, took) = decide(&store).await;
        assert_eq!(took, DEADLINE, "{fault:?}, on the first connection: {outcome:?}");
        assert!(outcome.is_err(), "{fault:?}");
    }
    let while_connected = [
        Fault::NothingRead,
        Fault::NoReply,
        Fault::HalfReply,
        Fault::Slow(2 * DEADLINE),
        Fault::NoReplyToEval,
    ];
    for fault in while_connected {
        let (server, store) = connected().await;
        server.set(fault);
        let (outcome, took) = decide(&store).await;
        assert_eq!(took, DEADLINE, "{fault:?}, on a connection that stood: {outcome:?}");
        assert!(outcome.is_err(), "{fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_answered_ends_with_its_answer() {
    let in_time = DEADLINE - Duration::from_millis(1);
    let (server, store) = connected().await;
    server.set(Fault::Slow(in_time));
    assert_eq!(decide(&store).await, (Ok(()), in_time));

    for fault in [
        Fault::Refused,
        Fault::Closed,
        Fault::Error("OOM command not allowed"),
        Fault::Error("READONLY You can't write against a read only replica."),
        Fault::Error("LOADING Redis is loading the dataset in memory"),
        Fault::Error("MASTERDOWN Link with MASTER is down"),
        Fault::Error("NOAUTH Authentication required."),
        Fault::Error("BUSY Redis is busy running a script."),
        Fault::Error("CLUSTERDOWN The cluster is down"),
        Fault::Error("ERR something else"),
    ] {
        let store = RedisStore::over(Faulty::new(fault));
        let (outcome, took) = decide(&store).await;
        assert_eq!(took, Duration::ZERO, "{fault:?}: {outcome:?}");
        assert!(outcome.is_err(), "{fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_silent_costs_some_calls_their_deadline_and_the_others_nothing() {
    for fault in [Fault::NoReply, Fault::NothingRead, Fault::NoConnection, Fault::NoHello] {
        let (server, store) = match fault {
            Fault::NoConnection | Fault::NoHello => {
                let server = Faulty::new(fault);
                (server.clone(), RedisStore::over(server))
            }
            _ => connected().await,
        };
        server.set(fault);
        let dialled = server.dialled();
        let (mut waited, mut calls) = (0, 0);
        let end = Instant::now() + Duration::from_secs(10);
        while Instant::now() < end {
            let (outcome, took) = decide(&store).await;
            // Earlier where an attempt to connect is given up meanwhile, which has its own time.
            assert!(outcome.is_err() && took <= DEADLINE, "{fault:?}: {took:?}");
            waited += usize::from(!took.is_zero());
            calls += 1;
            advance(Duration::from_millis(1)).await;
        }
        // Some in a row, and then one at a time, less than ten a second.
        assert!(waited <= 5 + 40 && calls > 50 * waited, "{fault:?}: {waited} of {calls} calls waited");
        assert!(server.dialled() - dialled <= 40, "{fault:?}: {} connections", server.dialled());
        server.set(Fault::None);
        sleep(Duration::from_millis(500)).await;
        // The first call finds a connection that is dead, or opens one.
        let _ = decide(&store).await;
        sleep(Duration::from_millis(500)).await;
        assert_eq!(decide(&store).await, (Ok(()), Duration::ZERO), "{fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn calls_at_once_end_at_once_at_their_deadline() {
    let (server, store) = connected().await;
    server.set(Fault::NoReply);
    let store = Arc::new(store);
    let calls: Vec<_> = (0..1000)
        .map(|_| {
            let store = Arc::clone(&store);
            tokio::spawn(async move { decide(&store).await })
        })
        .collect();
    for call in calls {
        let (outcome, took) = call.await.unwrap();
        assert!(outcome.is_err());
        assert_eq!(took, DEADLINE);
    }
    let (_, took) = decide(&store).await;
    assert!(took.is_zero(), "the breaker is open");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_refuses_is_asked_less_than_ten_times_a_second() {
    let server = Faulty::new(Fault::Refused);
    let store = RedisStore::over(server.clone());
    let end = Instant::now() + Duration::from_secs(10);
    while Instant::now() < end {
        assert!(decide(&store).await.0.is_err());
        advance(Duration::from_millis(1)).await;
    }
    let dialled = server.dialled();
    assert!((10..=100).contains(&dialled), "{dialled} attempts in 10 s");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_closes_each_connection_is_not_stormed() {
    let server = Faulty::new(Fault::Closed);
    let store = RedisStore::over(server.clone());
    let end = Instant::now() + Duration::from_secs(10);
    while Instant::now() < end {
        assert!(decide(&store).await.0.is_err());
        advance(Duration::from_millis(1)).await;
    }
    let dialled = server.dialled();
    assert!((10..=100).contains(&dialled), "{dialled} attempts in 10 s");
}
