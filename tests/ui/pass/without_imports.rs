//! Attributes that need no import or prelude.

#![deny(warnings)]
#![no_implicit_prelude]

#[::ratelimits::rate_limit(rate = 5.0, burst = 10, key = "<user>:<@ip>")]
async fn send(user: u64) -> ::core::result::Result<u64, ::ratelimits::Error> {
    ::core::result::Result::Ok(user)
}

#[::ratelimits::count_limit(limit = user, period = "1d", fallback = instead, pass_args)]
async fn read(user: u64) -> u64 {
    user
}

fn instead(user: u64) -> u64 {
    user
}

fn main() {
    let _ = (send(1), read(1));
}
