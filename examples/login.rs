//! Run with `cargo run -p examples --example login`: two limits in one decision, one of which counts only failures.

use ratelimits::{Error, RequestContext, count_limit, window_limit};

/// At most three wrong passwords per hour and account, and ten attempts per minute and address. A correct password does not
/// count against the account, nor does an attempt that the address limit refuses. With `deny`, a Redis outage is no
/// opportunity to guess passwords.
#[count_limit(
    limit = 3,
    period = "1h",
    key = account,
    charge_when = |out| !matches!(out, Ok(true)),
    fallback = |error| locked(error)
)]
#[window_limit(limit = 10, period = "1m", key_type = IP, on_store_error = deny)]
async fn log_in(account: &str, password: &str) -> Result<bool, Error> {
    Ok(password == format!("{account}'s secret"))
}

fn locked(error: Error) -> Result<bool, Error> {
    if !error.is_limited() {
        return Err(error);
    }
    println!("  the account is locked: too many wrong passwords");
    Ok(false)
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let from = |address: [u8; 4], account, password| {
        let context = RequestContext::new().with_ip(address);
        context.scope(async move {
            match log_in(account, password).await {
                Ok(true) => println!("{account}: welcome"),
                Ok(false) => println!("{account}: no"),
                Err(error) => println!("{account}: {error}"),
            }
        })
    };
    println!("ann logs in as often as she likes:");
    for _ in 0..5 {
        from([192, 0, 2, 1], "ann", "ann's secret").await;
    }
    println!("someone guesses her password:");
    for guess in ["12345", "password", "secret", "letmein"] {
        from([203, 0, 113, 9], "ann", guess).await;
    }
    println!("and tries other accounts, until the address is limited:");
    for account in ["bob", "cid", "dan", "eve", "fay", "gil", "hal", "ida"] {
        from([203, 0, 113, 9], account, "12345").await;
    }
}
