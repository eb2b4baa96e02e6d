use std::rc::Rc;

use ratelimits::{Error, rate_limit};

#[rate_limit(5, key = user)]
async fn of_one_thread(user: Rc<str>) -> Result<usize, Error> {
    tokio::task::yield_now().await;
    Ok(user.len())
}

fn main() {
    is_send(of_one_thread("ann".into()));
}

fn is_send(_: impl Send) {}
