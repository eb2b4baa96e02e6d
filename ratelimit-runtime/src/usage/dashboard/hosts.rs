//! The names by which browsers reach the page.

use std::net::IpAddr;

use axum::http::header::HOST;
use axum::http::request::Parts;
use axum::http::uri::Authority;

/// Names, in lower case.
#[derive(Clone, Debug, Default)]
pub(super) struct Hosts(Vec<String>);

impl Hosts {
    pub(super) fn new<H: AsRef<str>>(names: impl IntoIterator<Item = H>) -> Self {
        Hosts(names.into_iter().map(|name| normal(name.as_ref())).collect())
    }

    /// Whether a request is for one of the names, or for what no other site can point to this server: an address, or `localhost`.
    pub(super) fn include(&self, parts: &Parts) -> bool {
        let header = parts.headers.get(HOST).and_then(|value| value.to_str().ok()?.parse::<Authority>().ok());
        let Some(authority) = header.or_else(|| parts.uri.authority().cloned()) else { return false };
        let name = normal(authority.host());
        let bare = name.trim_start_matches('[').trim_end_matches(']');
        name == "localhost" || bare.parse::<IpAddr>().is_ok() || self.0.contains(&name)
    }
}

fn normal(name: &str) -> String {
    name.trim_end_matches('.').to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::*;

    #[test]
    fn names_are_those_of_the_list() {
        let hosts = Hosts::new(["Limits.internal.example"]);
        for (host, expected) in [
            ("limits.internal.example", true),
            ("LIMITS.internal.example.:3000", true),
            ("localhost:3000", true),
            ("127.0.0.1:3000", true),
            ("[::1]:3000", true),
            ("outside", false),
            ("outside.limits.internal.example", false),
            ("limits.internal.example@outside", false),
            ("127.0.0.1.outside", false),
            ("localhost.outside:3000", false),
            ("", false),
            ("a b", false),
        ] {
            let (parts, ()) = Request::get("/").header("host", host).body(()).unwrap().into_parts();
            assert_eq!(hosts.include(&parts), expected, "{host}");
        }
        for (uri, expected) in
            [("http://limits.internal.example/", true), ("http://outside/", false), ("/", false)]
        {
            let (parts, ()) = Request::get(uri).body(()).unwrap().into_parts();
            assert_eq!(hosts.include(&parts), expected, "{uri}");
        }
    }
}
