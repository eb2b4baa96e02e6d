//! Run with `cargo run -p examples --example threads`: limits on functions that are not async.

use std::thread;
use std::time::Instant;

use ratelimits::{Error, concurrency_limit, rate_limit};

/// Two pictures at a time, and ten a second: a thread that is too early sleeps.
#[rate_limit(rate = 10.0, burst = 1, timeout = "forever")]
#[concurrency_limit(max = 2, timeout = "forever")]
fn resize(picture: u32) -> Result<u32, Error> {
    Ok(picture / 2)
}

/// Who is refused does not wait.
#[rate_limit(rate = "1/h", burst = 2, fallback = |_| "later")]
fn upload() -> &'static str {
    "now"
}

fn main() {
    let start = Instant::now();
    let work = |picture| match resize(picture) {
        Ok(width) => {
            let seconds = start.elapsed().as_secs_f32();
            println!("{seconds:3.1} s: {picture} to {width} pixels, uploaded {}", upload());
        }
        Err(error) => println!("{picture}: {error}"),
    };
    thread::scope(|scope| {
        for picture in [800, 1000, 1200, 1400, 1600] {
            scope.spawn(move || work(picture));
        }
    });
}
