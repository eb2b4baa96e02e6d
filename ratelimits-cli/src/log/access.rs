//! The common and the combined log format, of the log of an access server.

use std::borrow::Cow;
use std::net::IpAddr;

use ratelimit_runtime::RequestContext;

/// Returns the first text in brackets, which is the time.
pub(super) fn time(line: &str) -> Option<&str> {
    Some(line.split_once('[')?.1.split_once(']')?.0)
}

/// Returns a field by its name.
pub(super) fn field<'l>(line: &'l str, name: &str) -> Option<Cow<'l, str>> {
    match name {
        "ip" => Some(network(line.split_ascii_whitespace().next()?)),
        "user" => line.split_ascii_whitespace().nth(2).filter(|user| *user != "-").map(Cow::Borrowed),
        "method" => request(line)?.0.split_ascii_whitespace().next().map(Cow::Borrowed),
        "path" => {
            let target = request(line)?.0.split_ascii_whitespace().nth(1)?;
            Some(Cow::Borrowed(target.split(['?', '#']).next().unwrap_or(target)))
        }
        "status" => {
            let status = request(line)?.1.split_ascii_whitespace().next()?;
            let is_code = status.len() == 3 && status.bytes().all(|byte| byte.is_ascii_digit());
            is_code.then_some(Cow::Borrowed(status))
        }
        _ => None,
    }
}

/// Returns what the library counts an address by. Other text, like a host name, stays as it is.
pub(super) fn network(address: &str) -> Cow<'_, str> {
    let network = match address.parse::<IpAddr>() {
        Ok(IpAddr::V6(ip)) => RequestContext::new().with_ip(ip).ip(),
        Ok(IpAddr::V4(_)) | Err(_) => None,
    };
    network.map_or(Cow::Borrowed(address), |ip| Cow::Owned(ip.to_string()))
}

/// Returns the first text in quotes, which is the request line, and what follows it.
fn request(line: &str) -> Option<(&str, &str)> {
    let (_, text) = line.split_once('"')?;
    let is_end = |at: &usize| !text[..*at].ends_with('\\') || text[..*at].ends_with("\\\\");
    let end = text.match_indices('"').map(|(at, _)| at).find(is_end)?;
    Some((&text[..end], &text[end + 1..]))
}
