//! Text messages, which leave at the pace of the gateway.

use std::time::Duration;

use axum::http::StatusCode;
use ratelimits::{Error, funnel_limit};

/// The gateway takes ten messages per second from all processes. Up to 50 wait for it, each for its slot; more are refused.
#[funnel_limit(capacity = 50, leak_rate = 10, queue, name = "messages")]
pub(crate) async fn send(text: String) -> Result<StatusCode, Error> {
    // Stands in for the gateway.
    tokio::time::sleep(Duration::from_millis(5)).await;
    println!("sent: {text}");
    Ok(StatusCode::ACCEPTED)
}
