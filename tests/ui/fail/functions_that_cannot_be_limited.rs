use std::future::{Future, ready};
use std::pin::Pin;

use futures_util::future::BoxFuture;
use ratelimits::{Error, concurrency_limit, count_limit, funnel_limit, rate_limit, window_limit};

#[count_limit(5, "1m")]
const fn constant() -> Result<(), Error> {
    Ok(())
}

#[rate_limit(5)]
extern "C" fn foreign() -> Result<(), Error> {
    Ok(())
}

#[unsafe(no_mangle)]
#[window_limit(5, "1m")]
fn exported() -> Result<(), Error> {
    Ok(())
}

#[concurrency_limit(5)]
#[unsafe(export_name = "renamed")]
fn exported_by_another_name() -> Result<(), Error> {
    Ok(())
}

#[funnel_limit(5, 1)]
fn opaque() -> impl Future<Output = Result<(), Error>> + Send {
    ready(Ok(()))
}

#[count_limit(5, "1m")]
fn boxed<'a>() -> BoxFuture<'a, Result<(), Error>> {
    Box::pin(ready(Ok(())))
}

#[count_limit(5, "1m")]
fn pinned() -> Pin<Box<dyn Future<Output = Result<(), Error>>>> {
    let async_block = async { Ok(()) };
    Box::pin(async_block)
}

trait Service {
    type Future;

    fn call(&self) -> Self::Future;
}

impl Service for u8 {
    type Future = std::future::Ready<Result<(), Error>>;

    #[rate_limit(5, fallback = |error| ready(Err(error)))]
    fn call(&self) -> Self::Future {
        ready(Ok(()))
    }
}

fn main() {}
