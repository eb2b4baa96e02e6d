//! A fake Redis on in-memory streams, with faults.

use std::future::{Future, pending};
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ratelimit_runtime::store::{Dial, Stream};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, duplex};
use tokio::task::JoinSet;
use tokio::time::sleep;

const HELLO: &str = "%1\r\n$5\r\nproto\r\n:3\r\n";

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Fault {
    None,
    /// Connection attempts hang.
    NoConnection,
    /// Connection attempts are refused.
    Refused,
    /// The server never reads, so buffers fill up.
    NothingRead,
    /// The handshake is not answered.
    NoHello,
    NoPing,
    /// No command is answered.
    NoReply,
    /// Replies stop halfway.
    HalfReply,
    /// Replies take this long.
    Slow(Duration),
    /// The connection is closed instead of a reply.
    Closed,
    /// The connection is closed after each reply.
    ClosedAfterReply,
    /// The script is unknown, and loading it is not answered.
    NoReplyToEval,
    /// Replies are this error.
    Error(&'static str),
    /// The same, after this time.
    SlowError(Duration, &'static str),
}

#[derive(Clone)]
pub(crate) struct FaultyServer {
    fault: Arc<Mutex<Fault>>,
    dialled: Arc<AtomicUsize>,
    commands: Arc<AtomicUsize>,
    is_full: Arc<AtomicBool>,
    served: Arc<Mutex<JoinSet<io::Result<()>>>>,
}

impl FaultyServer {
    pub(crate) fn new(fault: Fault) -> Self {
        FaultyServer {
            fault: Arc::new(Mutex::new(fault)),
            dialled: Arc::default(),
            commands: Arc::default(),
            is_full: Arc::default(),
            served: Arc::default(),
        }
    }

    fn fault(&self) -> Fault {
        *self.fault.lock().unwrap()
    }

    pub(crate) fn set(&self, fault: Fault) {
        *self.fault.lock().unwrap() = fault;
    }

    /// Closes all connections.
    pub(crate) fn hang_up(&self) {
        self.served.lock().unwrap().abort_all();
    }

    pub(crate) fn dialled(&self) -> usize {
        self.dialled.load(Ordering::SeqCst)
    }

    /// Returns how many commands on keys it has read.
    pub(crate) fn commands(&self) -> usize {
        self.commands.load(Ordering::SeqCst)
    }

    /// Lets all windows be full, or unused.
    pub(crate) fn set_full(&self, is_full: bool) {
        self.is_full.store(is_full, Ordering::SeqCst);
    }

    async fn serve(self, stream: DuplexStream) -> io::Result<()> {
        let (read, mut write) = tokio::io::split(stream);
        let mut read = BufReader::new(read);
        loop {
            if self.fault() == Fault::NothingRead {
                pending::<()>().await;
            }
            let Some(command) = read_command(&mut read).await? else { return Ok(()) };
            let name = String::from_utf8_lossy(&command[0]).to_uppercase();
            if !matches!(&*name, "HELLO" | "PING" | "CLIENT" | "INFO") {
                self.commands.fetch_add(1, Ordering::SeqCst);
            }
            match (&*name, self.fault()) {
                ("HELLO", Fault::NoHello) | ("PING", Fault::NoPing) => {}
                ("HELLO", _) => write.write_all(HELLO.as_bytes()).await?,
                ("PING", _) => write.write_all(b"+PONG\r\n").await?,
                ("CLIENT", _) => write.write_all(b"+OK\r\n").await?,
                ("INFO", _) => write.write_all(b"-NOPERM no\r\n").await?,
                (_, Fault::NothingRead | Fault::NoReply) | ("EVAL", Fault::NoReplyToEval) => {}
                (_, Fault::HalfReply) => write.write_all(b"*4\r\n:1\r\n:1").await?,
                (_, Fault::Closed) => return Ok(()),
                (_, Fault::NoReplyToEval) => write.write_all(b"-NOSCRIPT none\r\n").await?,
                (_, Fault::Error(error)) => write.write_all(format!("-{error}\r\n").as_bytes()).await?,
                (_, Fault::SlowError(time, error)) => {
                    sleep(time).await;
                    write.write_all(format!("-{error}\r\n").as_bytes()).await?;
                }
                (_, fault) => {
                    let is_full = self.is_full.load(Ordering::SeqCst);
                    if let Fault::Slow(time) = fault {
                        sleep(time).await;
                    }
                    if is_refund(&command) {
                        write.write_all(b"*1\r\n$0\r\n\r\n").await?;
                        continue;
                    }
                    // A window that is opened at second 1, or has been full since then.
                    let (admitted, count) = if is_full { (0, 1_000_000) } else { (1, 0) };
                    let numbers = format!(":{admitted}\r\n:1000000\r\n:{count}\r\n:0\r\n:0\r\n");
                    let reply = format!("*2\r\n:1000000\r\n*5\r\n{numbers}");
                    write.write_all(reply.as_bytes()).await?;
                    if fault == Fault::ClosedAfterReply {
                        return Ok(());
                    }
                }
            }
        }
    }
}

impl Dial for FaultyServer {
    fn dial(&self) -> Pin<Box<dyn Future<Output = io::Result<Box<dyn Stream>>> + Send + '_>> {
        self.dialled.fetch_add(1, Ordering::SeqCst);
        Box::pin(async {
            match self.fault() {
                Fault::NoConnection => pending().await,
                Fault::Refused => Err(io::ErrorKind::ConnectionRefused.into()),
                _ => {
                    let (ours, theirs) = duplex(64);
                    self.served.lock().unwrap().spawn(self.clone().serve(theirs));
                    Ok(Box::new(ours) as Box<dyn Stream>)
                }
            }
        })
    }
}

/// Returns whether it is a script call that refunds one charge, after whose key there is one argument. One that decides has more.
fn is_refund(command: &[Vec<u8>]) -> bool {
    command.len() == 5
}

/// Reads a command with its arguments.
pub(crate) async fn read_command(
    read: &mut BufReader<ReadHalf<DuplexStream>>,
) -> io::Result<Option<Vec<Vec<u8>>>> {
    let mut line = String::new();
    if read.read_line(&mut line).await? == 0 {
        return Ok(None);
    }
    let count: usize = line.trim_start_matches('*').trim().parse().expect("an array of bulk strings");
    let mut parts = Vec::with_capacity(count);
    for _ in 0..count {
        line.clear();
        read.read_line(&mut line).await?;
        let size: usize = line.trim_start_matches('$').trim().parse().expect("the size of a bulk string");
        let mut bytes = vec![0; size + 2];
        read.read_exact(&mut bytes).await?;
        bytes.truncate(size);
        parts.push(bytes);
    }
    Ok(Some(parts))
}
