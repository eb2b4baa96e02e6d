//! The body of a response behind the middleware.

use std::pin::Pin;
use std::task::{Context, Poll};

use actix_web::body::{BodySize, MessageBody};
use actix_web::web::Bytes;
use pin_project_lite::pin_project;

use crate::decide::decision::Decision;
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
        decision: Option<Decision>,
    }
}

impl<B> ScopedBody<B> {
    /// The body of a request that was admitted. It holds the permits of the request until it has ended or is dropped.
    pub(super) fn new(body: B, context: RequestContext, decision: Option<Decision>) -> Self {
        ScopedBody { body, context, decision }
    }
}

impl<B: MessageBody> MessageBody for ScopedBody<B> {
    type Error = B::Error;

    fn size(&self) -> BodySize {
        self.body.size()
    }

    fn poll_next(self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Option<Result<Bytes, B::Error>>> {
        let projection = self.project();
        let bytes = projection.context.poll(|| projection.body.poll_next(task));
        if let Poll::Ready(None) = bytes {
            *projection.decision = None;
        }
        bytes
    }

    fn try_into_bytes(self) -> Result<Bytes, Self> {
        let ScopedBody { body, context, decision } = self;
        body.try_into_bytes().map_err(|body| ScopedBody { body, context, decision })
    }
}
