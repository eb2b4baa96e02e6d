//! The page, and what every response has.

use std::sync::LazyLock;

use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
    X_FRAME_OPTIONS,
};
use axum::http::{HeaderName, HeaderValue};
use axum::response::{IntoResponse, Response};
use serde_json::Value;
use sha2::{Digest, Sha256};

/// All of the page, so that it needs no build and works below any path.
const PAGE: &str = include_str!("page.html");

/// Allows the script and the style of the page, by their hashes, and requests to the server of the page. A script may not write
/// HTML.
static POLICY: LazyLock<String> = LazyLock::new(|| {
    let (script, style) = (hash(element("script")), hash(element("style")));
    format!(
        "default-src 'none'; script-src '{script}'; style-src '{style}'; img-src data:; connect-src 'self'; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
         require-trusted-types-for 'script'; trusted-types 'none'"
    )
});

pub(super) fn page() -> impl IntoResponse {
    ([(CONTENT_TYPE, "text/html; charset=utf-8")], PAGE)
}

pub(super) fn json(value: &Value) -> impl IntoResponse {
    ([(CONTENT_TYPE, "application/json")], value.to_string())
}

/// Adds the headers that protect users of the page.
pub(super) async fn with_headers(mut response: Response) -> Response {
    let mut set = |name: HeaderName, value: &'static str| {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    };
    set(CONTENT_SECURITY_POLICY, POLICY.as_str());
    set(X_CONTENT_TYPE_OPTIONS, "nosniff");
    set(X_FRAME_OPTIONS, "DENY");
    set(REFERRER_POLICY, "no-referrer");
    set(HeaderName::from_static("cross-origin-resource-policy"), "same-origin");
    set(CACHE_CONTROL, "no-store");
    response
}

/// Returns the content of the only element of the page with this name.
fn element(name: &str) -> &'static str {
    let content =
        PAGE.split_once(&format!("<{name}>")).and_then(|(_, rest)| rest.split_once(&format!("</{name}>")));
    content.map_or("", |(content, _)| content)
}

/// Returns a source expression of a content security policy for this content.
fn hash(content: &str) -> String {
    format!("sha256-{}", base64(&Sha256::digest(content)))
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let group = (0..3).fold(0, |group, i| group << 8 | usize::from(chunk.get(i).copied().unwrap_or(0)));
        for i in 0..4 {
            let digit = DIGITS[group >> (18 - 6 * i) & 63];
            text.push(if i <= chunk.len() { char::from(digit) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_has_padding() {
        let texts = [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")];
        for (text, expected) in texts {
            assert_eq!(base64(text.as_bytes()), expected);
        }
        assert_eq!(base64(&[0xfb, 0xff]), "+/8=");
    }

    #[test]
    fn the_page_has_one_script_and_one_style() {
        for name in ["script", "style"] {
            assert!(element(name).len() > 1000, "{name}");
            assert_eq!(PAGE.matches(&format!("<{name}")).count(), 1, "{name}");
        }
        assert!(POLICY.contains("script-src 'sha256-"), "{}", *POLICY);
    }
}
