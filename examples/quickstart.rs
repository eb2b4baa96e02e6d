//! Run with `cargo run -p examples --example quickstart`: the four algorithms on a small service.

use std::future::Future;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use ratelimits::{Error, RequestContext, count_limit, funnel_limit, rate_limit, window_limit};

struct User {
    id: &'static str,
}

#[rate_limit(rate = 2.0, burst = 2, key = user.id)]
async fn send_text(user: &User) -> Result<(), Error> {
    Ok(())
}

#[count_limit(limit = 2, period = "1d", key = user.id)]
async fn export_data(user: &User) -> Result<(), Error> {
    Ok(())
}

#[funnel_limit(capacity = 3, leak_rate = "4/s")]
async fn charge_card(user: &User) -> Result<(), Error> {
    let _ = user;
    Ok(())
}

#[window_limit(limit = 2, period = "1s", key_type = IP)]
async fn log_in(user: &User) -> Result<(), Error> {
    let _ = user;
    Ok(())
}

#[tokio::main]
async fn main() {
    let (ann, bob) = (&User { id: "ann" }, &User { id: "bob" });
    let pause = || tokio::time::sleep(Duration::from_millis(500));

    let log = Log::new("send_text: token bucket, 2 per second and user, bursts of 2");
    log.call("ann", send_text(ann)).await;
    log.call("ann", send_text(ann)).await;
    log.call("ann", send_text(ann)).await;
    log.call("bob", send_text(bob)).await;
    pause().await;
    log.call("ann", send_text(ann)).await;

    let log = Log::new("export_data: fixed window, 2 per day and user");
    log.call("ann", export_data(ann)).await;
    log.call("ann", export_data(ann)).await;
    log.call("ann", export_data(ann)).await;
    log.call("bob", export_data(bob)).await;

    let log = Log::new("charge_card: leaky bucket, holds 3 and leaks 4 per second, for all users together");
    log.call("ann", charge_card(ann)).await;
    log.call("bob", charge_card(bob)).await;
    log.call("ann", charge_card(ann)).await;
    log.call("bob", charge_card(bob)).await;
    pause().await;
    log.call("bob", charge_card(bob)).await;

    let log = Log::new("log_in: sliding window, 2 in any second from one address");
    let from = |host| RequestContext::new().with_ip(Ipv4Addr::new(192, 0, 2, host));
    log.call("ann from 192.0.2.1", from(1).scope(log_in(ann))).await;
    pause().await;
    log.call("bob from 192.0.2.1", from(1).scope(log_in(bob))).await;
    log.call("bob from 192.0.2.1", from(1).scope(log_in(bob))).await;
    log.call("bob from 192.0.2.2", from(2).scope(log_in(bob))).await;
    pause().await;
    log.call("bob from 192.0.2.1", from(1).scope(log_in(bob))).await;
}

/// Prints the outcome of each call, and when it was made.
struct Log {
    since: Instant,
}

impl Log {
    fn new(title: &str) -> Self {
        println!("\n{title}");
        Log { since: Instant::now() }
    }

    async fn call(&self, caller: &str, call: impl Future<Output = Result<(), Error>>) {
        let at = self.since.elapsed().as_secs_f64();
        match call.await {
            Ok(()) => println!("  at {at:.1} s  {caller:18}  admitted"),
            Err(error) => match error.retry_after() {
                Some(wait) => {
                    println!("  at {at:.1} s  {caller:18}  limited, next permit in {}", Rounded(wait))
                }
                None => println!("  at {at:.1} s  {caller:18}  {error}"),
            },
        }
    }
}

/// A duration, rounded for display.
struct Rounded(Duration);

impl std::fmt::Display for Rounded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0.as_secs_f64() {
            seconds if seconds < 60.0 => write!(f, "{seconds:.2} s"),
            seconds => write!(f, "{:.1} h", seconds / 3600.0),
        }
    }
}
