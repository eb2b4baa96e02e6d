//! Attributes of others, above ours and below.

#![allow(clippy::unused_async, reason = "`debug_handler` has an async function for every handler below it")]

use std::future::Future;

use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use tracing::{Instrument, Span, instrument};

use super::limits::{count_limit, rate_limit, window_limit};
use super::{AppResult, Text, alone, assert_limited, text};

#[instrument(ret, err(Debug))]
#[count_limit(1, "1d", key = id)]
async fn span_above(id: u8, list: &[u8]) -> AppResult<Vec<u8>> {
    let list = list.iter().map(|number| number + id).collect();
    tokio::task::yield_now().await;
    Ok(list)
}

#[count_limit(1, "1d", key = id)]
#[instrument(level = "debug", skip(list), fields(length = list.len()))]
async fn span_below(id: u8, list: &[u8]) -> AppResult<Vec<u8>> {
    let list = list.iter().map(|number| number + id).collect();
    tokio::task::yield_now().await;
    Ok(list)
}

#[instrument(skip_all)]
#[rate_limit("1/day", key = a, fallback = first, pass_args)]
async fn patterns_below_a_span((a, ref b): (u8, Text), mut text: Text) -> Text {
    text.0.extend([a.to_string().as_str(), &b.0]);
    text
}

#[rate_limit("1/day", key = a, fallback = first, pass_args)]
#[instrument(skip_all)]
async fn patterns_above_a_span((a, ref b): (u8, Text), mut text: Text) -> Text {
    text.0.extend([a.to_string().as_str(), &b.0]);
    text
}

fn first(pair: (u8, Text), _: Text) -> Text {
    pair.1
}

#[count_limit(1, "1d", key = id, fallback = none, pass_args)]
fn instrumented_by_hand(id: u8) -> impl Future<Output = Option<u8>> {
    async move { Some(id) }.instrument(Span::none())
}

fn none(_: u8) -> Option<u8> {
    None
}

#[test]
fn spans_of_tracing() {
    alone(async {
        assert_eq!(span_above(1, &[1]).await.unwrap(), [2]);
        assert_limited(span_above(1, &[1]).await);
        assert_eq!(span_below(1, &[1]).await.unwrap(), [2]);
        assert_limited(span_below(1, &[1]).await);
        assert_eq!(patterns_below_a_span((1, text("b")), text("a")).await, text("a1b"));
        assert_eq!(patterns_below_a_span((1, text("b")), text("a")).await, text("b"));
        assert_eq!(patterns_above_a_span((1, text("b")), text("a")).await, text("a1b"));
        assert_eq!(patterns_above_a_span((1, text("b")), text("a")).await, text("b"));
        assert_eq!((instrumented_by_hand(1).await, instrumented_by_hand(1).await), (Some(1), None));
    });
}

struct HttpError(StatusCode);

impl From<ratelimits::Error> for HttpError {
    fn from(error: ratelimits::Error) -> Self {
        let status = if error.is_limited() { 429 } else { 503 };
        HttpError(StatusCode::from_u16(status).unwrap())
    }
}

impl IntoResponse for HttpError {
    fn into_response(self) -> Response {
        self.0.into_response()
    }
}

type HttpResult<T> = Result<T, HttpError>;

#[axum::debug_handler]
#[count_limit(1, "1d", key = id)]
async fn handler_above(Path(id): Path<u64>, headers: HeaderMap) -> Result<impl IntoResponse, HttpError> {
    Ok((StatusCode::CREATED, format!("{id} {}", headers.len())))
}

#[count_limit(1, "1d", key = id)]
#[axum::debug_handler]
async fn handler_below(Path(id): Path<u64>, headers: HeaderMap) -> Result<impl IntoResponse, HttpError> {
    Ok((StatusCode::CREATED, format!("{id} {}", headers.len())))
}

#[axum::debug_handler(state = u8)]
#[rate_limit("1/day", key = "<a>:<state>", fallback = refused, pass_args)]
async fn passing_below_a_handler(
    Path((a, _)): Path<(u8, u8)>,
    State(state): State<u8>,
    body: String,
) -> Response {
    (StatusCode::CREATED, format!("{a}{state}{body}")).into_response()
}

#[rate_limit("1/day", key = "<a>:<state>", fallback = refused, pass_args)]
#[axum::debug_handler(state = u8)]
async fn passing_above_a_handler(
    Path((a, _)): Path<(u8, u8)>,
    State(state): State<u8>,
    body: String,
) -> Response {
    (StatusCode::CREATED, format!("{a}{state}{body}")).into_response()
}

async fn refused(Path((a, b)): Path<(u8, u8)>, _: State<u8>, body: String) -> Response {
    tokio::task::yield_now().await;
    (StatusCode::TOO_MANY_REQUESTS, format!("{a}{b}{body}")).into_response()
}

#[axum::debug_handler]
#[window_limit(1, "1d")]
async fn alias(Path(id): Path<u64>) -> HttpResult<String> {
    Ok(id.to_string())
}

#[allow(clippy::result_large_err, reason = "the error of axum")]
#[axum::debug_handler]
#[window_limit(1, "1d", fallback = |error| Err(HttpError::from(error).into()))]
async fn alias_of_axum(Path(id): Path<u64>) -> axum::response::Result<String> {
    Ok(id.to_string())
}

#[window_limit(1, "1d", fallback = |_| StatusCode::TOO_MANY_REQUESTS.into_response())]
#[axum::debug_handler]
async fn opaque() -> impl IntoResponse {
    StatusCode::CREATED.into_response()
}

#[test]
fn handlers_of_axum() {
    const TWICE: (u16, u16) = (201, 429);
    macro_rules! statuses {
        ($call:expr) => {{
            let first = $call.await.into_response().status();
            (first.as_u16(), $call.await.into_response().status().as_u16())
        }};
    }
    alone(async {
        assert_eq!(statuses!(handler_above(Path(1), HeaderMap::new())), TWICE);
        assert_eq!(statuses!(handler_below(Path(1), HeaderMap::new())), TWICE);
        assert_eq!(statuses!(passing_below_a_handler(Path((1, 2)), State(3), String::new())), TWICE);
        assert_eq!(statuses!(passing_above_a_handler(Path((1, 2)), State(3), String::new())), TWICE);
        assert_eq!(statuses!(alias(Path(1))), (200, 429));
        assert_eq!(statuses!(alias_of_axum(Path(1))), (200, 429));
        assert_eq!(statuses!(opaque()), TWICE);
    });
}

#[count_limit(1, "1d")]
#[tokio::test]
async fn a_test_of_tokio() -> AppResult<()> {
    tokio::task::yield_now().await;
    Ok(())
}

#[count_limit(1, "1d", fallback = ran, pass_args)]
#[tokio::main(flavor = "current_thread")]
async fn program(text: &str) -> usize {
    tokio::task::yield_now().await;
    text.len()
}

fn ran(text: &str) -> usize {
    text.len() + 100
}

#[test]
fn programs_of_tokio() {
    assert_eq!((program("a"), program("a")), (1, 101));
}
