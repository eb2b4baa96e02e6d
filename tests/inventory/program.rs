//! Checks that the inventory is complete, before any call and after some. `test.sh` builds this program in several ways.
#![forbid(unsafe_code)]

use std::fmt::Debug;

use ratelimits::{Error, Registry, count_limit, funnel_limit, rate_limit, window_limit};

struct User {
    id: u64,
    burst: u64,
}

struct Mails<T>(T);

trait Handler {
    fn name(&self) -> &str;

    #[allow(async_fn_in_trait)]
    #[count_limit(limit = 10, period = "1h")]
    async fn handle(&self) -> Result<(), Error> {
        let _ = self.name();
        Ok(())
    }
}

struct Ping;
struct Pong;

impl Handler for Ping {
    fn name(&self) -> &str {
        "ping"
    }
}

impl Handler for Pong {
    fn name(&self) -> &str {
        "pong"
    }
}

#[rate_limit(rate = "100/min", burst = 2 * 10, key = user.id, name = "search", cost = 2)]
#[window_limit(1000, "1d", precision = "1h", key = "<user.id>:<@ip>", shadow)]
async fn search(user: &User) -> Result<u64, Error> {
    Ok(user.id)
}

#[rate_limit(rate = 1.0 / 60.0, burst = user.burst, key = (user.id, &user.burst), on_store_error = deny)]
async fn computed(user: &User) -> Result<u64, Error> {
    Ok(user.id)
}

#[funnel_limit(capacity = 5, drain = "30m", queue, key_type = IP)]
#[allow(dead_code)]
async fn generic<T: Debug>(_: T) -> Result<(), Error> {
    Ok(())
}

impl<T> Mails<T> {
    #[rate_limit(rate = "10/min", refill = interval, prefix = "mails")]
    async fn send(&self) -> Result<(), Error> {
        let _ = &self.0;
        Ok(())
    }
}

/// Returns the inventory, a policy per line.
fn inventory() -> String {
    ratelimits::policies().iter().map(|policy| format!("{policy}\n")).collect()
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    inventory_dependency::used();
    assert_eq!(inventory(), include_str!("before-calls.txt"));
    let calls = async {
        let user = User { id: 7, burst: 3 };
        let mut results = vec![Ping.handle().await, Pong.handle().await];
        results.push(Mails(()).send().await);
        results.extend([search(&user).await.map(drop), computed(&user).await.map(drop)]);
        assert!(results.iter().all(Result::is_ok), "{results:?}");
    };
    Registry::in_memory().scope(calls).await;
    assert_eq!(inventory(), include_str!("after-calls.txt"));
    ratelimits::check_policies().expect("no two policies share a name");
}
