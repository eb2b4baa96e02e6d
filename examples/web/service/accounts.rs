//! Logins, which count only when they fail, and who has logged in.

use axum::Json;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use ratelimits::{Error, RequestContext, count_limit, window_limit};
use serde::Deserialize;

#[derive(Deserialize)]
pub(crate) struct Login {
    account: String,
    password: String,
}

/// Someone who has logged in.
#[derive(Clone)]
pub(crate) struct Session {
    pub(crate) user: String,
    pub(crate) searches_per_minute: u32,
}

/// At most three wrong passwords per hour and account, and ten attempts per minute and address. With `deny`, an outage of Redis is
/// no opportunity to guess passwords.
#[count_limit(
    limit = 3,
    period = "1h",
    name = "wrong passwords",
    key = login.account,
    charge_when = |out| !matches!(out, Ok(StatusCode::OK))
)]
#[window_limit(limit = 10, period = "1m", name = "logins", key_type = IP, on_store_error = deny)]
pub(crate) async fn log_in(Json(login): Json<Login>) -> Result<StatusCode, Error> {
    let is_right = login.password == format!("{}'s secret", login.account);
    Ok(if is_right { StatusCode::OK } else { StatusCode::UNAUTHORIZED })
}

/// Adds the user to the context of a request, which must carry a token.
pub(crate) async fn authenticate(mut request: Request, next: Next) -> Response {
    let header = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let Some(session) = header.and_then(|value| session(value.strip_prefix("Bearer ")?)) else {
        return (StatusCode::UNAUTHORIZED, [(WWW_AUTHENTICATE, "Bearer")]).into_response();
    };
    let context = RequestContext::current().with_user(&session.user);
    request.extensions_mut().insert(session);
    context.scope(next.run(request)).await
}

/// Stands in for a table of tokens.
fn session(token: &str) -> Option<Session> {
    let (user, searches_per_minute) = match token {
        "token-of-ann" => ("ann", 30),
        "token-of-bob" => ("bob", 3),
        _ => return None,
    };
    Some(Session { user: user.to_owned(), searches_per_minute })
}
