//! Run with `cargo run -p examples --example redis`: two processes share one policy.
//!
//! Needs Redis at redis://127.0.0.1:6379, or at the URL in RATELIMITS_URL.

use std::process::{Command, Stdio};
use std::time::Duration;

use ratelimits::{Error, Registry, count_limit, install};

const CALLS: usize = 20;

/// With `deny`, there are no reports without Redis: the limit would not be shared.
#[count_limit(limit = 10, period = "10s", name = "example.report", key = run, on_store_error = deny)]
async fn report(run: &str) -> Result<(), Error> {
    println!("  process {} makes a report", std::process::id());
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    match std::env::args().nth(1) {
        Some(run) => work(&run).await,
        None => start_two(),
    }
}

/// Runs in each process: after `install`, the attribute above counts calls of all processes. The long deadline is for Redis
/// servers that are just starting.
async fn work(run: &str) -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::var("RATELIMITS_URL").unwrap_or_else(|_| "redis://127.0.0.1:6379".to_owned());
    install(Registry::builder().deadline(Duration::from_secs(5)).connect(&url).await?)?;

    for _ in 0..CALLS {
        match report(run).await {
            Err(error) if !error.is_limited() => return Err(error.into()),
            _ => {}
        }
    }
    Ok(())
}

/// Starts two processes of this program, and counts their reports.
fn start_two() -> Result<(), Box<dyn std::error::Error>> {
    let run = std::process::id().to_string();
    let start = || Command::new(std::env::current_exe()?).arg(&run).stdout(Stdio::piped()).spawn();
    let mut reports = 0;
    for process in [start()?, start()?] {
        let output = process.wait_with_output()?;
        if !output.status.success() {
            return Err("a process failed; is Redis running?".into());
        }
        let lines = String::from_utf8(output.stdout)?;
        print!("{lines}");
        reports += lines.lines().count();
    }
    println!(
        "two processes called {} times; together they made {reports} reports, limit 10 in 10 s",
        2 * CALLS
    );
    Ok(())
}
