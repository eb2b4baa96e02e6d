//! Requests that browsers send for other sites.

use axum::http::header::{HOST, ORIGIN};
use axum::http::request::Parts;

/// Whether a browser sends the request for a page of another origin.
///
/// Browsers tell by `Sec-Fetch-Site`, but not over plain HTTP, except to the own machine. All send `Origin` with a `POST`. Other
/// programs send neither, and have no cookies that a page could misuse.
pub(super) fn is_cross_origin(parts: &Parts) -> bool {
    let header = |name| parts.headers.get(name).map(|value: &axum::http::HeaderValue| value.as_bytes());
    if let Some(site) = header(axum::http::HeaderName::from_static("sec-fetch-site")) {
        return site != b"same-origin";
    }
    let Some(origin) = header(ORIGIN) else { return false };
    let authority = parts.uri.authority().map(|authority| authority.as_str().as_bytes());
    let Some(host) = header(HOST).or(authority) else { return true };
    !["http://", "https://"].iter().any(|scheme| origin.strip_prefix(scheme.as_bytes()) == Some(host))
}

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::*;

    #[test]
    fn requests_of_other_sites_are_found() {
        let cases: [(&[(&str, &str)], bool); 11] = [
            (&[], false),
            (&[("host", "limits.example")], false),
            (&[("sec-fetch-site", "same-origin"), ("origin", "https://outside")], false),
            (&[("sec-fetch-site", "same-site")], true),
            (&[("sec-fetch-site", "cross-site")], true),
            (&[("sec-fetch-site", "none")], true),
            (&[("origin", "http://limits.example:80"), ("host", "limits.example:80")], false),
            (&[("origin", "https://limits.example"), ("host", "limits.example")], false),
            (&[("origin", "http://limits.example:81"), ("host", "limits.example:80")], true),
            (&[("origin", "null"), ("host", "limits.example")], true),
            (&[("origin", "https://limits.example")], true),
        ];
        for (headers, expected) in cases {
            let request = headers
                .iter()
                .fold(Request::post("/reset"), |request, (name, value)| request.header(*name, *value));
            let (parts, ()) = request.body(()).unwrap().into_parts();
            assert_eq!(is_cross_origin(&parts), expected, "{headers:?}");
        }
    }
}
