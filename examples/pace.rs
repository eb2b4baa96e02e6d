//! Two processes pace their calls to a server as one. Run it with: cargo run --example pace
//!
//! Needs a Redis, at redis://127.0.0.1:6379 or where RATELIMITS_URL says.

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

/// One call leaves every 50 ms, whichever process makes it, and a hundred more wait for their turn.
#[funnel_limit(capacity = 100, leak_rate = 20.0, queue, name = "pace.calls", key = server)]
async fn call(server: String, client: String) -> Outcome {
    let mut stream = TcpStream::connect(server).await?;
    stream.write_all(client.as_bytes()).await?;
    stream.shutdown().await?;
    stream.read_to_end(&mut Vec::new()).await?; // until the server has seen it
    Ok(())
}

#[tokio::main]
async fn main() -> Outcome {
    let mut arguments = std::env::args().skip(1);
    match (arguments.next(), arguments.next()) {
        (Some(server), Some(client)) => be_a_client(server, client).await,
        _ => serve_two(),
    }
}

/// Makes all its calls at once. There is no loop that tries again, and nothing to wait for in the code.
async fn be_a_client(server: String, client: String) -> Outcome {
    let url = std::env::var("RATELIMITS_URL").unwrap_or_else(|_| "redis://127.0.0.1:6379".to_owned());
    // A job that paces would rather wait for Redis than pace by itself.
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

/// A server that tells what arrives and when, and two processes of this program as its clients.
fn serve_two() -> Outcome {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let server = listener.local_addr()?.to_string();
    let start = |client: &str| Command::new(std::env::current_exe()?).args([&server, client]).spawn();
    let (tell, told) = mpsc::channel();
    let began = Instant::now();
    std::thread::spawn(move || {
        let mut last = None;
        for mut stream in listener.incoming().flatten() {
            let (now, mut client) = (Instant::now(), String::new());
            if stream.read_to_string(&mut client).is_ok() {
                let spacing = last.replace(now).map(|last| now - last);
                println!("{}  {client}  {}", millis(now - began), spacing.map_or(String::new(), millis));
                let _ = tell.send(spacing);
            }
        }
    });
    for mut client in [start("client 1")?, start("client 2")?] {
        if !client.wait()?.success() {
            return Err("a client failed; is there a Redis?".into());
        }
    }

    let arrived: Vec<Option<Duration>> = told.try_iter().collect();
    let (calls, took) = (arrived.len(), began.elapsed().as_millis());
    println!("two processes made {calls} calls, paced at 20 a second, in {took} ms");
    // Each leaves at its slot or a little later: two can arrive nearer to each other if the first was late.
    let smallest = arrived.into_iter().flatten().min().unwrap_or_default();
    println!("smallest spacing: {}", millis(smallest).trim());
    Ok(())
}

fn millis(time: Duration) -> String {
    format!("{:6.1} ms", time.as_secs_f64() * 1000.0)
}
