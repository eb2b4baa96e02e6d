//! The body of a response behind the layer.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use crate::decide::decision::Decision;
use crate::usage::context::RequestContext;

pin_project! {
    /// The body of a response behind a [`RateLimitLayer`](super::RateLimitLayer): that of the service, or of a refusal.
    ///
    /// A streamed body is still in the context of its request, so that functions it calls know the caller.
    #[derive(Debug)]
    pub struct RateLimitBody<B> {
        #[pin]
        content: Content<B>,
    }
}

pin_project! {
    #[project = ContentProjection]
    #[derive(Debug)]
    enum Content<B> {
        Service { #[pin] body: B, context: RequestContext, decision: Option<Decision> },
        // `None` once it is read.
        Refusal { text: Option<Bytes> },
    }
}

impl<B> RateLimitBody<B> {
    /// The body of a request that was admitted. It holds the permits of the request until it has ended or is dropped.
    pub(super) fn of_service(body: B, context: RequestContext, decision: Option<Decision>) -> Self {
        RateLimitBody { content: Content::Service { body, context, decision } }
    }

    pub(super) fn of_refusal(text: String) -> Self {
        RateLimitBody {
            content: Content::Refusal { text: Some(text.into()).filter(|text: &Bytes| !text.is_empty()) },
        }
    }
}

impl<B> Body for RateLimitBody<B>
where
    B: Body<Data: From<Bytes>>,
{
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        task: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        match self.project().content.project() {
            ContentProjection::Service { body, context, decision } => {
                let frame = context.poll(|| body.poll_frame(task));
                if let Poll::Ready(None) = frame {
                    *decision = None;
                }
                frame
            }
            ContentProjection::Refusal { text } => {
                Poll::Ready(text.take().map(|text| Ok(Frame::data(text.into()))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.content {
            Content::Service { body, .. } => body.is_end_stream(),
            Content::Refusal { text } => text.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::Service { body, .. } => body.size_hint(),
            Content::Refusal { text } => SizeHint::with_exact(text.as_ref().map_or(0, Bytes::len) as u64),
        }
    }
}
