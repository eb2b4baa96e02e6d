//! Attributes of tracing, axum and tokio, above and below ours.

#![allow(clippy::unused_async, reason = "`debug_handler` has an async function for every handler below it")]

use std::future::Future;

use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use tracing::{Instrument, Span, instrument};

use super::limits::{count_limit, rate_limit, window_limit};
use super::{AppResult, Text, assert_admits_one, assert_outputs, isolated, text};

/// Defines a function twice, with its two attributes in either order.
macro_rules! in_both_orders {
    (#[$($ours:tt)*] #[$($other:tt)*] $above:ident $below:ident $($function:tt)*) => {
        #[$($ours)*]
        #[$($other)*]
        async fn $above $($function)*

        #[$($other)*]
        #[$($ours)*]
        async fn $below $($function)*
    };
}

in_both_orders! {
    #[count_limit(1, "1d", key = id)]
    #[instrument(level = "debug", skip(list), fields(length = list.len()), ret, err(Debug))]
    above_span below_span(id: u8, list: &[u8]) -> AppResult<Vec<u8>> {
        let list = list.iter().map(|number| number + id).collect();
        tokio::task::yield_now().await;
        Ok(list)
    }
}

in_both_orders! {
    #[rate_limit("1/day", key = a, fallback = first, pass_args)]
    #[instrument(skip_all)]
    patterns_above_span patterns_below_span((a, ref b): (u8, Text), mut text: Text) -> Text {
        text.0.extend([a.to_string().as_str(), &b.0]);
        text
    }
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
fn tracing_spans() {
    isolated(async {
        assert_admits_one!(
            below_span(1, &[1]) => [2],
            above_span(1, &[1]) => [2],
        );
        assert_outputs!(
            patterns_below_span((1, text("b")), text("a")) => text("a1b"), text("b");
            patterns_above_span((1, text("b")), text("a")) => text("a1b"), text("b");
            instrumented_by_hand(1) => Some(1), None;
        );
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

in_both_orders! {
    #[count_limit(1, "1d", key = id)]
    #[axum::debug_handler]
    above_handler below_handler(
        Path(id): Path<u64>,
        headers: HeaderMap,
    ) -> Result<impl IntoResponse, HttpError> {
        Ok((StatusCode::CREATED, format!("{id} {}", headers.len())))
    }
}

in_both_orders! {
    #[rate_limit("1/day", key = "<a>:<state>", fallback = refused, pass_args)]
    #[axum::debug_handler(state = u8)]
    passing_above_handler passing_below_handler(
        Path((a, _)): Path<(u8, u8)>,
        State(state): State<u8>,
        body: String,
    ) -> Response {
        (StatusCode::CREATED, format!("{a}{state}{body}")).into_response()
    }
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
async fn axum_alias(Path(id): Path<u64>) -> axum::response::Result<String> {
    Ok(id.to_string())
}

#[window_limit(1, "1d", fallback = |_| StatusCode::TOO_MANY_REQUESTS.into_response())]
#[axum::debug_handler]
async fn opaque() -> impl IntoResponse {
    StatusCode::CREATED.into_response()
}

#[test]
fn axum_handlers() {
    const TWICE: (u16, u16) = (201, 429);
    macro_rules! statuses {
        ($call:expr) => {{
            let first = $call.await.into_response().status();
            (first.as_u16(), $call.await.into_response().status().as_u16())
        }};
    }
    isolated(async {
        assert_eq!(statuses!(below_handler(Path(1), HeaderMap::new())), TWICE);
        assert_eq!(statuses!(above_handler(Path(1), HeaderMap::new())), TWICE);
        assert_eq!(statuses!(passing_below_handler(Path((1, 2)), State(3), String::new())), TWICE);
        assert_eq!(statuses!(passing_above_handler(Path((1, 2)), State(3), String::new())), TWICE);
        assert_eq!(statuses!(alias(Path(1))), (200, 429));
        assert_eq!(statuses!(axum_alias(Path(1))), (200, 429));
        assert_eq!(statuses!(opaque()), TWICE);
    });
}

#[count_limit(1, "1d")]
#[tokio::test]
async fn tokio_test() -> AppResult<()> {
    tokio::task::yield_now().await;
    Ok(())
}

#[count_limit(1, "1d", fallback = second_run, pass_args)]
#[tokio::main(flavor = "current_thread")]
async fn program(text: &str) -> usize {
    tokio::task::yield_now().await;
    text.len()
}

fn second_run(text: &str) -> usize {
    text.len() + 100
}

#[test]
fn tokio_main() {
    assert_eq!((program("a"), program("a")), (1, 101));
}
