//! The body of a response behind the middleware.

use std::pin::Pin;
use std::task::{Context, Poll};

use actix_web::body::{BodySize, MessageBody};
use actix_web::web::Bytes;
use pin_project_lite::pin_project;

use crate::usage::context::RequestContext;

pin_project! {
    /// The body of a response behind a [`RateLimitMiddleware`](super::RateLimitMiddleware).
    ///
    /// A streamed body is still in the context of its request, so that functions it calls know the caller.
    #[cfg_attr(docsrs, doc(cfg(feature = "actix")))]
    #[derive(Debug)]
    pub struct ScopedBody<B> {
        #[pin]
        body: B,
        context: RequestContext,
    }
}

impl<B> ScopedBody<B> {
    pub(super) fn new(body: B, context: RequestContext) -> Self {
        ScopedBody { body, context }
    }
}

impl<B: MessageBody> MessageBody for ScopedBody<B> {
    type Error = B::Error;

    fn size(&self) -> BodySize {
        self.body.size()
    }

    fn poll_next(self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Option<Result<Bytes, B::Error>>> {
        let projection = self.project();
        projection.context.poll(|| projection.body.poll_next(task))
    }

    fn try_into_bytes(self) -> Result<Bytes, Self> {
        let ScopedBody { body, context } = self;
        body.try_into_bytes().map_err(|body| ScopedBody { body, context })
    }
}
