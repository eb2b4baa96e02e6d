//! Run with `cargo run -p web-examples --example calling-an-api`: a queue of jobs calls another service's API at its pace, and stops
//! when that answers 429.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::State;
use axum::http::header::RETRY_AFTER;
use axum::http::{HeaderName, StatusCode};
use axum::routing::get;
use ratelimits::{Error, Registry, install, rate_limit, retry_after};
use reqwest::Response;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// Calls of a host, ten a second with two at once. If the host says when to come back, nobody calls it before.
#[rate_limit(rate = "10/s", burst = 2, key = host, timeout = "30s", pause_when = told_to_wait)]
async fn fetch(host: &str, path: &str) -> Result<Response, FetchError> {
    Ok(reqwest::get(format!("http://{host}{path}")).await?)
}

fn told_to_wait(out: &Result<Response, FetchError>) -> Option<Duration> {
    let response = out.as_ref().ok()?;
    (response.status() == StatusCode::TOO_MANY_REQUESTS).then(|| retry_after(response.headers()))?
}

#[derive(Debug)]
#[allow(dead_code, reason = "they are printed")]
enum FetchError {
    /// The call could not wait so long.
    Limited(Error),
    Failed(reqwest::Error),
}

impl From<Error> for FetchError {
    fn from(error: Error) -> Self {
        FetchError::Limited(error)
    }
}

impl From<reqwest::Error> for FetchError {
    fn from(error: reqwest::Error) -> Self {
        FetchError::Failed(error)
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    install(Registry::in_memory())?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let host = listener.local_addr()?.to_string();
    tokio::spawn(async { axum::serve(listener, provider()).await });

    // Jobs that the host refused go back into the queue.
    let (queue, mut jobs) = mpsc::unbounded_channel();
    (1..=20).try_for_each(|job| queue.send(job))?;
    let (begun, mut calls, mut left) = (Instant::now(), JoinSet::new(), 20);
    while left > 0 {
        tokio::select! {
            Some(job) = jobs.recv() => {
                let host = host.clone();
                calls.spawn(async move { (job, fetch(&host, "/reports").await) });
            }
            Some(called) = calls.join_next() => {
                let (job, outcome) = called?;
                let at = begun.elapsed().as_secs_f64();
                match outcome {
                    Ok(response) if response.status() == StatusCode::TOO_MANY_REQUESTS => {
                        println!("{at:.1} s: job {job} is refused, and tried again");
                        queue.send(job)?;
                    }
                    Ok(response) => {
                        println!("{at:.1} s: job {job}: {}", response.text().await?);
                        left -= 1;
                    }
                    Err(error) => {
                        println!("{at:.1} s: job {job} has failed: {error:?}");
                        left -= 1;
                    }
                }
            }
        }
    }
    Ok(())
}

/// The other service. Others use its API as well: with the eighth call its quota is used up, for a second.
fn provider() -> Router {
    Router::new().route("/reports", get(report)).with_state(Arc::default())
}

#[derive(Default)]
struct Quota {
    calls: u32,
    used_up_at: Option<Instant>,
}

type Answer = Result<&'static str, (StatusCode, [(HeaderName, &'static str); 1])>;

async fn report(State(quota): State<Arc<Mutex<Quota>>>) -> Answer {
    let mut quota = quota.lock().unwrap_or_else(PoisonError::into_inner);
    quota.calls += 1;
    if quota.calls == 8 {
        quota.used_up_at = Some(Instant::now());
    }
    match quota.used_up_at {
        Some(at) if at.elapsed() < Duration::from_secs(1) => {
            Err((StatusCode::TOO_MANY_REQUESTS, [(RETRY_AFTER, "1")]))
        }
        _ => Ok("done"),
    }
}
