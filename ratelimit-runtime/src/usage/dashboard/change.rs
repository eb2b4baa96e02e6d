//! Resetting or pausing a key by a request.

use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use serde_json::{Value, json};

use super::same_origin::is_cross_origin;
use crate::base::log::log;
use crate::base::units::parse_duration;
use crate::decide::error::Error;
use crate::key::missing_key::MissingKey;
use crate::key::{IntoKey, KeySink, kind};
use crate::observe::dashboard::counts::Counts;
use crate::policy::Algorithm;
use crate::usage::policy_handle::PolicyHandle;
use crate::usage::registry::Registry;

/// No body of a request is longer.
const LONGEST_BODY: usize = 64 * 1024;

/// The parts of a key as text.
#[derive(Clone)]
pub(super) struct KeyTexts(pub(super) Vec<String>);

/// A key as a request names it.
enum NamedKey {
    Parts(Vec<String>),
    /// That of a row of the page.
    Hash(String),
}

/// What can be done with a key.
#[derive(Clone, Copy, Debug)]
pub(super) enum Change {
    Reset,
    Pause,
}

/// A request to change a key.
pub(super) struct ChangeRequest<'a> {
    pub(super) registry: &'a Registry,
    pub(super) counts: &'a Counts,
    /// Whether its sender may.
    pub(super) is_allowed: bool,
    pub(super) parts: &'a Parts,
    pub(super) body: Body,
}

/// What a request asks for.
struct Asked {
    name: String,
    policy: PolicyHandle,
    key: KeyTexts,
    body: Value,
}

type Refusal = (StatusCode, String);

/// Changes the key that a request names. Returns what has come of it, or why nothing was changed.
pub(super) async fn change(change: Change, request: ChangeRequest<'_>) -> Result<Value, Refusal> {
    let Asked { name, policy, key, body } = asked(request).await?;
    match change {
        Change::Reset => {
            let reset = policy.reset(key).await.map_err(failed)?;
            log!(INFO, policy = name, reset, "a key was reset on the dashboard");
            Ok(json!({ "reset": reset }))
        }
        Change::Pause if policy.info().algorithm == Algorithm::Semaphore => {
            Err((StatusCode::UNPROCESSABLE_ENTITY, "a concurrency limit cannot be paused".to_owned()))
        }
        Change::Pause => {
            let duration = body.get("duration").and_then(Value::as_str).unwrap_or_default();
            let duration = match parse_duration(duration) {
                Ok(Duration::ZERO) => Err("is zero; write how long, like 30s"),
                parsed => parsed,
            };
            let invalid = |problem| (StatusCode::BAD_REQUEST, format!("`duration` {problem}"));
            let duration = duration.map_err(invalid)?;
            policy.pause(key.clone(), duration).await.map_err(failed)?;
            // The pause may have been cut, or the key be paused for longer.
            let left = policy.peek_pause(key).await.map_err(failed)?.paused().unwrap_or_default();
            Ok(json!({ "paused_seconds": left.as_secs_f64() }))
        }
    }
}

/// Reads a request, if its sender may change keys.
async fn asked(request: ChangeRequest<'_>) -> Result<Asked, Refusal> {
    let ChangeRequest { registry, counts, is_allowed, parts, body } = request;
    let refuse = |status, reason: &str| Err((status, reason.to_owned()));
    if is_cross_origin(parts) {
        return refuse(StatusCode::FORBIDDEN, "the request is from another site");
    }
    if !is_allowed {
        return refuse(StatusCode::FORBIDDEN, "you may not reset or pause keys");
    }
    if !is_json(parts) {
        return refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, "the content type must be application/json");
    }
    let Ok(body) = to_bytes(body, LONGEST_BODY).await else {
        return refuse(StatusCode::PAYLOAD_TOO_LARGE, "the body is too long or incomplete");
    };
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let Some((name, key)) = named(&body) else {
        let expected = r#"expected {"policy": "name", "key": ["part", …]}, with an empty list for a policy without a key"#;
        return refuse(StatusCode::BAD_REQUEST, expected);
    };
    let policy = registry.policy(&name);
    let policy = policy.map_err(|error| (StatusCode::NOT_FOUND, error.to_string()))?;
    let key = match key {
        NamedKey::Parts(parts) => parts,
        NamedKey::Hash(hash) => match counts.limited_key(&policy.info().name, &hash) {
            Some(parts) => parts,
            None => {
                return refuse(StatusCode::NOT_FOUND, "the key is not in the list any more; enter its parts");
            }
        },
    };
    Ok(Asked { name, policy, key: KeyTexts(key), body })
}

fn is_json(parts: &Parts) -> bool {
    let value = parts.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let essence = value.and_then(|value| value.split(';').next());
    essence.is_some_and(|essence| essence.trim().eq_ignore_ascii_case("application/json"))
}

/// Returns the name of the policy, and the key.
fn named(body: &Value) -> Option<(String, NamedKey)> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let key = match body.get("key_hash") {
        Some(hash) => NamedKey::Hash(text(hash)?),
        None => NamedKey::Parts(body.get("key")?.as_array()?.iter().map(text).collect::<Option<_>>()?),
    };
    Some((text(body.get("policy")?)?, key))
}

fn failed(error: Error) -> Refusal {
    let status = match error {
        Error::Store(_) => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::UNPROCESSABLE_ENTITY,
    };
    (status, error.to_string())
}

impl IntoKey<kind::Tuple> for KeyTexts {
    fn add_to(&self, key: &mut KeySink<'_>) -> Result<bool, MissingKey> {
        self.0.iter().try_for_each(|part| key.part(part))?;
        Ok(!self.0.is_empty())
    }
}
