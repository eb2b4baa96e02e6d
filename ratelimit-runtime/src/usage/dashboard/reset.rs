//! Resetting a key by a request.

use axum::body::{Body, to_bytes};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use serde_json::Value;

use super::same_origin::is_cross_origin;
use crate::base::log::log;
use crate::decide::error::Error;
use crate::key::missing_key::MissingKey;
use crate::key::{IntoKey, KeySink, kind};
use crate::observe::dashboard::counts::Counts;
use crate::usage::registry::Registry;

/// No body of a request is longer.
const LONGEST_BODY: usize = 64 * 1024;

/// The parts of a key as text.
struct KeyTexts(Vec<String>);

/// A key as a request names it.
enum NamedKey {
    Parts(Vec<String>),
    /// That of a row of the page.
    Hash(String),
}

/// Resets the key that a request names. Returns whether it had state, or why it was not reset.
pub(super) async fn reset(
    registry: &Registry,
    counts: &Counts,
    may_reset: bool,
    parts: &Parts,
    body: Body,
) -> Result<bool, (StatusCode, String)> {
    let refuse = |status, reason: &str| Err((status, reason.to_owned()));
    if is_cross_origin(parts) {
        return refuse(StatusCode::FORBIDDEN, "the request is from another site");
    }
    if !may_reset {
        return refuse(StatusCode::FORBIDDEN, "you may not reset keys");
    }
    if !is_json(parts) {
        return refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, "the content type must be application/json");
    }
    let Ok(body) = to_bytes(body, LONGEST_BODY).await else {
        return refuse(StatusCode::PAYLOAD_TOO_LARGE, "the body is too long or incomplete");
    };
    let Some((name, key)) = parse(&body) else {
        let expected = r#"expected {"policy": "name", "key": ["part", …]}, with an empty list for a policy without a key"#;
        return refuse(StatusCode::BAD_REQUEST, expected);
    };
    let policy = registry.policy(&name).map_err(|error| (StatusCode::NOT_FOUND, error.to_string()))?;
    let key = match key {
        NamedKey::Parts(parts) => parts,
        NamedKey::Hash(hash) => match counts.limited_key(&policy.info().name, &hash) {
            Some(parts) => parts,
            None => {
                return refuse(StatusCode::NOT_FOUND, "the key is not in the list any more; enter its parts");
            }
        },
    };
    let reset = policy.reset(KeyTexts(key)).await.map_err(|error| (status(&error), error.to_string()))?;
    log!(INFO, policy = name, reset, "a key was reset on the dashboard");
    Ok(reset)
}

fn is_json(parts: &Parts) -> bool {
    let value = parts.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let essence = value.and_then(|value| value.split(';').next());
    essence.is_some_and(|essence| essence.trim().eq_ignore_ascii_case("application/json"))
}

/// Returns the name of the policy, and the key.
fn parse(body: &[u8]) -> Option<(String, NamedKey)> {
    let body: Value = serde_json::from_slice(body).ok()?;
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let key = match body.get("key_hash") {
        Some(hash) => NamedKey::Hash(text(hash)?),
        None => NamedKey::Parts(body.get("key")?.as_array()?.iter().map(text).collect::<Option<_>>()?),
    };
    Some((text(body.get("policy")?)?, key))
}

fn status(error: &Error) -> StatusCode {
    match error {
        Error::Store(_) => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::UNPROCESSABLE_ENTITY,
    }
}

impl IntoKey<kind::Tuple> for KeyTexts {
    fn add_to(&self, key: &mut KeySink<'_>) -> Result<bool, MissingKey> {
        self.0.iter().try_for_each(|part| key.part(part))?;
        Ok(!self.0.is_empty())
    }
}
