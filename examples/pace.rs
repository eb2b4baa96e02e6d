//! Run with `cargo run -p examples --example pace`: two processes space their calls to a server evenly.
//!
//! Needs Redis at redis://127.0.0.1:6379, or at the URL in RATELIMITS_URL.

use std::io::Read;
use std::net::TcpListener;
use std::process::Command;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use ratelimits::{OnStoreError, Registry, funnel_limit, install};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

type Outcome = Result<(), Box<dyn std::error::Error + Send + Sync>>;

const CALLS: usize = 10;

/// One call every 50 ms across both processes; up to 100 calls wait.
#[funnel_limit(capacity = 100, leak_rate = 20.0, queue, name = "pace.calls", key = server)]
async fn call(server: String, client: String) -> Outcome {
    let mut stream = TcpStream::connect(server).await?;
    stream.write_all(client.as_bytes()).await?;
    stream.shutdown().await?;
    stream.read_to_end(&mut Vec::new()).await?; // until the server has read it
    Ok(())
}

#[tokio::main]
async fn main() -> Outcome {
    let mut arguments = std::env::args().skip(1);
    match (arguments.next(), arguments.next()) {
        (Some(server), Some(client)) => run_client(server, client).await,
        _ => run_server(),
    }
}

/// Makes all calls at once, without a retry loop or any code that waits.
async fn run_client(server: String, client: String) -> Outcome {
    let url = std::env::var("RATELIMITS_URL").unwrap_or_else(|_| "redis://127.0.0.1:6379".to_owned());
    // Without Redis the spacing would not hold across processes, so wait longer for it.
    let registry = Registry::builder().deadline(Duration::from_secs(5)).on_store_error(OnStoreError::Deny);
    install(registry.connect(&url).await?)?;

    let mut calls = JoinSet::new();
    for _ in 0..CALLS {
        calls.spawn(call(server.clone(), client.clone()));
    }
    while let Some(outcome) = calls.join_next().await {
        outcome??;
    }
    Ok(())
}

/// Starts two clients as processes of this program, and prints when their calls arrive.
fn run_server() -> Outcome {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let server = listener.local_addr()?.to_string();
    let start = |client: &str| Command::new(std::env::current_exe()?).args([&server, client]).spawn();
    let (sender, arrivals) = mpsc::channel();
    let began = Instant::now();
    std::thread::spawn(move || {
        let mut last = None;
        for mut stream in listener.incoming().flatten() {
            let (now, mut client) = (Instant::now(), String::new());
            if stream.read_to_string(&mut client).is_ok() {
                let spacing = last.replace(now).map(|last| now - last);
                println!("{}  {client}  {}", millis(now - began), spacing.map_or(String::new(), millis));
                let _ = sender.send(spacing);
            }
        }
    });
    for mut client in [start("client 1")?, start("client 2")?] {
        if !client.wait()?.success() {
            return Err("a client failed; is Redis running?".into());
        }
    }

    let arrived: Vec<Option<Duration>> = arrivals.try_iter().collect();
    let (calls, took) = (arrived.len(), began.elapsed().as_millis());
    println!("two processes made {calls} calls, paced at 20 a second, in {took} ms");
    // Calls arrive at their slot or slightly later, so the spacing after a late call is smaller.
    let smallest = arrived.into_iter().flatten().min().unwrap_or_default();
    println!("smallest spacing: {}", millis(smallest).trim());
    Ok(())
}

fn millis(time: Duration) -> String {
    format!("{:6.1} ms", time.as_secs_f64() * 1000.0)
}
