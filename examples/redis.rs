//! Two processes share one policy. Needs a Redis, at redis://127.0.0.1:6379 or where RATELIMITS_URL says. Run it with:
//! cargo run --example redis

use std::process::{Command, Stdio};
use std::time::Duration;

use ratelimits::{Error, Registry, count_limit, install};

const CALLS: usize = 20;

/// Without Redis the two would not know of each other, so then there are no reports.
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

/// What every process does: a registry in `main`, and the attribute above counts for the whole fleet. A report may wait for
/// Redis for a while.
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

/// Two processes of this program, and a count of what they were allowed together.
fn start_two() -> Result<(), Box<dyn std::error::Error>> {
    let run = std::process::id().to_string();
    let start = || Command::new(std::env::current_exe()?).arg(&run).stdout(Stdio::piped()).spawn();
    let mut reports = 0;
    for process in [start()?, start()?] {
        let output = process.wait_with_output()?;
        if !output.status.success() {
            return Err("a process failed; is there a Redis?".into());
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
