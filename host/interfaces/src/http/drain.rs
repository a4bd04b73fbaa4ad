//! Request bodies that a handler does not read, because it refuses the request by its head.
//!
//! A connection that is closed with unread data is reset, and a client that still sends never sees the answer. So the
//! rest of such a body is read and thrown away, for a bounded time.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use http_body_util::BodyExt as _;
use hyper::body::{Frame, SizeHint};

/// How long the rest of a body may take to arrive.
const MAX_TIME: Duration = Duration::from_secs(5);

/// A body that is read to its end even if it is dropped before.
struct DrainedBody(Option<Body>);

pub(super) async fn unread(request: Request, next: Next) -> Response {
    next.run(request.map(|body| Body::new(DrainedBody(Some(body))))).await
}

impl HttpBody for DrainedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        match &mut self.0 {
            Some(body) => Pin::new(body).poll_frame(context),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.0.as_ref().is_none_or(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.0.as_ref().map_or_else(SizeHint::default, HttpBody::size_hint)
    }
}

impl Drop for DrainedBody {
    fn drop(&mut self) {
        let Some(body) = self.0.take().filter(|body| !body.is_end_stream()) else { return };
        // No one waits for it: the connection ends once both sides are done.
        tokio::spawn(tokio::time::timeout(MAX_TIME, rest(body)));
    }
}

async fn rest(mut body: Body) {
    while let Some(Ok(_)) = body.frame().await {}
}
