//! The layer as a service of tower.

use std::convert::Infallible;
use std::future::{Ready, poll_fn, ready};
use std::task::{Context, Poll};

use axum::http::{Request, Response};
use ratelimits::web::RateLimitLayer;
use tower::{Layer, Service};

/// A service that is ready once it was asked. Its clones are not.
#[derive(Debug, Default)]
struct Strict {
    is_ready: bool,
}

impl Clone for Strict {
    fn clone(&self) -> Self {
        Strict::default()
    }
}

impl Service<Request<()>> for Strict {
    type Response = Response<()>;
    type Error = Infallible;
    type Future = Ready<Result<Response<()>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.is_ready = true;
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<()>) -> Self::Future {
        assert!(std::mem::take(&mut self.is_ready), "it was not asked whether it is ready");
        ready(Ok(Response::new(())))
    }
}

#[tokio::test]
async fn service_that_is_ready_is_called() {
    let mut service = RateLimitLayer::new().layer(Strict::default());
    for _ in 0..2 {
        poll_fn(|task| service.poll_ready(task)).await.unwrap();
        assert_eq!(service.call(Request::new(())).await.unwrap().status(), 200);
    }
}
