use std::rc::Rc;

use ratelimits::{Error, rate_limit};

#[rate_limit(5, key = user)]
async fn local(user: Rc<str>) -> Result<usize, Error> {
    tokio::task::yield_now().await;
    Ok(user.len())
}

fn main() {
    is_send(local("ann".into()));
}

fn is_send(_: impl Send) {}
