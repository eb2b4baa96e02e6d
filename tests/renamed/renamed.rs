//! `crate = path`, for a dependency under another name.

use std::future::Future;

use limits::{Error, Registry};

mod reexports {
    pub(super) use ::limits::{self as again, count_limit};
}

#[limits::rate_limit("1/day", key = "<id>:<@user_or_ip>", crate = limits, fallback = second, pass_args)]
async fn first((id, _): (u8, u8)) -> u8 {
    id
}

async fn second(pair: (u8, u8)) -> u8 {
    tokio::task::yield_now().await;
    pair.1
}

#[reexports::count_limit(limit = limit, period = "1d", cost = cost, crate = reexports::again)]
async fn computed(limit: u8, cost: u32) -> Result<u8, Error> {
    Ok(limit)
}

#[limits::window_limit(crate = ::limits, limit = 1, period = "1d", precision = "1h")]
#[limits::funnel_limit(2, drain = "1d", crate = ::limits, skip_when = id == 0)]
#[limits::concurrency_limit(1, crate = ::limits)]
#[limits::count_limit(2, "1d", charge_when = |out| matches!(out, Ok(1..)), crate = ::limits)]
async fn stacked(id: u8) -> Result<u8, Error> {
    Ok(id)
}

fn isolated<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(Registry::in_memory().scope(test))
}

#[test]
fn attributes_use_the_given_crate_path() {
    isolated(async {
        let context = || limits::RequestContext::new().with_user("ann");
        assert_eq!(context().scope(first((1, 2))).await, 1);
        assert_eq!(context().scope(first((1, 2))).await, 2);
        assert_eq!(computed(1, 1).await.unwrap(), 1);
        assert!(computed(1, 1).await.unwrap_err().is_limited());
        assert_eq!(stacked(1).await.unwrap(), 1);
        assert!(stacked(1).await.unwrap_err().is_limited());
    });
}
