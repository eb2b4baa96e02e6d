//! The same tools over HTTP, where each request has its user.

use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::header::AUTHORIZATION;
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use ratelimits::RequestContext;
use ratelimits::web::RateLimitLayer;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};

use crate::tools::Articles;

pub(crate) fn app() -> Router {
    let config =
        StreamableHttpServerConfig::default().with_legacy_session_mode(false).with_json_response(true);
    let mcp = StreamableHttpService::new(|| Ok(Articles), Arc::new(LocalSessionManager::default()), config);
    Router::new().route_service("/mcp", mcp).layer(from_fn(authenticate)).layer(RateLimitLayer::new())
}

/// Finds out who is calling, and tells the tools.
async fn authenticate(mut request: Request, next: Next) -> Response {
    let Some(user) = request.headers().get(AUTHORIZATION).and_then(user) else {
        return StatusCode::UNAUTHORIZED.into_response();
    };
    let caller = RequestContext::current().with_user(user);
    request.extensions_mut().insert(caller);
    next.run(request).await
}

/// Stands in for a table of tokens.
fn user(authorization: &axum::http::HeaderValue) -> Option<&'static str> {
    match authorization.as_bytes() {
        b"Bearer token-of-ann" => Some("ann"),
        b"Bearer token-of-bob" => Some("bob"),
        _ => None,
    }
}
