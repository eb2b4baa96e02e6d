//! How long an upstream API asks its client to wait.

mod rate_limit_field;
mod seconds;

use std::time::{Duration, SystemTime};

use http::HeaderMap;
use http::header::{DATE, HeaderValue, RETRY_AFTER};

use seconds::seconds;

/// Reads from the headers of an upstream API's response how long it asks its client to wait. `None` if it does not, or if the
/// headers cannot be read.
///
/// The headers are those of the `http` crate, which reqwest, hyper and axum use.
///
/// ```
/// use std::time::Duration;
///
/// use http::Response;
/// use ratelimits::retry_after;
///
/// # fn main() -> Result<(), http::Error> {
/// let response = Response::builder().status(429).header("Retry-After", "30").body(())?;
/// assert_eq!(retry_after(response.headers()), Some(Duration::from_secs(30)));
///
/// // Of the quotas that are used up, the one that takes longest.
/// let quotas = r#""second";r=0;t=1, "day";r=0;t=3600, "month";r=95;t=86400"#;
/// let response = Response::builder().header("RateLimit", quotas).body(())?;
/// assert_eq!(retry_after(response.headers()), Some(Duration::from_secs(3600)));
/// # Ok(())
/// # }
/// ```
///
/// | header | what is read |
/// | --- | --- |
/// | `Retry-After` | Seconds, or a date in any of the three forms of RFC 9110. A date counts from the response's own `Date`, so that the client's clock does not matter; without that, from the system's clock. A date in the past is zero |
/// | `RateLimit` of draft-ietf-httpapi-ratelimit-headers-11, if there is no `Retry-After` | The longest `t` of the items whose `r` is 0; the others ask nobody to wait. Also the form of draft 7, `limit=100, remaining=0, reset=30` |
///
/// `Retry-After` takes precedence because the draft says so, and because it is about this client, whose retry the server may have
/// put off so that not all come at once. One that cannot be read counts as missing; of several, the longest counts.
///
/// A successful response may ask to wait, too: it took the last of a quota.
///
/// Some providers send seconds with a fraction, such as `0.5`, though RFC 9110 has none. A fraction is rounded up to whole
/// milliseconds. Seconds beyond `u64` are [`Duration::MAX`]. A server may ask for any time, so bound how long you wait.
///
/// `X-RateLimit-Reset` is not read: some servers write seconds there, and others a Unix time.
#[must_use]
pub fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let waits = headers.get_all(RETRY_AFTER).iter().filter_map(|value| wait(value, headers));
    waits.max().or_else(|| rate_limit_field::wait(headers))
}

fn wait(retry_after: &HeaderValue, headers: &HeaderMap) -> Option<Duration> {
    let text = retry_after.to_str().ok()?.trim();
    seconds(text).or_else(|| {
        let now = headers.get(DATE).and_then(date).unwrap_or_else(SystemTime::now);
        Some(date(retry_after)?.duration_since(now).unwrap_or_default())
    })
}

fn date(value: &HeaderValue) -> Option<SystemTime> {
    httpdate::parse_http_date(value.to_str().ok()?).ok()
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;
    use crate::base::property_tests::config;

    /// What response headers of these names and values ask for.
    fn asked(fields: &[(&'static str, &str)]) -> Option<Duration> {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(*name, HeaderValue::from_str(value).unwrap());
        }
        retry_after(&headers)
    }

    fn secs(seconds: u64) -> Option<Duration> {
        Some(Duration::from_secs(seconds))
    }

    #[test]
    fn seconds_are_read() {
        for (value, millis) in
            [("0", 0), ("30", 30_000), (" 30\t", 30_000), ("0.5", 500), ("1.0001", 1_001), ("2.1230", 2_123)]
        {
            assert_eq!(asked(&[("retry-after", value)]), Some(Duration::from_millis(millis)), "{value}");
        }
        assert_eq!(asked(&[("retry-after", "18446744073709551615")]), secs(u64::MAX));
        assert_eq!(asked(&[("retry-after", "18446744073709551615.9995")]), Some(Duration::MAX));
        assert_eq!(asked(&[("retry-after", "18446744073709551616")]), Some(Duration::MAX));
    }

    #[test]
    fn dates_count_from_the_date_of_the_response() {
        let sent = ("date", "Sun, 06 Nov 1994 08:49:07 GMT");
        for (value, seconds) in [
            ("Sun, 06 Nov 1994 08:49:37 GMT", 30),
            (" Sun, 06 Nov 1994 08:49:37 GMT ", 30),
            ("Sunday, 06-Nov-94 08:49:37 GMT", 30),
            ("Sun Nov  6 08:49:37 1994", 30),
            ("Sun, 06 Nov 1994 08:49:07 GMT", 0),
            ("Sun, 06 Nov 1994 08:00:00 GMT", 0),
        ] {
            assert_eq!(asked(&[("retry-after", value), sent]), secs(seconds), "{value}");
        }
    }

    #[test]
    fn dates_count_from_the_clock_without_a_valid_date() {
        let in_an_hour = httpdate::fmt_http_date(SystemTime::now() + Duration::from_secs(3600));
        for fields in [&[][..], &[("date", "today")]] {
            let wait = asked(&[&[("retry-after", &*in_an_hour)], fields].concat()).unwrap();
            assert!((3_500..=3_600).contains(&wait.as_secs()), "{wait:?}");
        }
        assert_eq!(asked(&[("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT")]), secs(0));
    }

    #[test]
    fn exhausted_quotas_are_read() {
        for (value, expected) in [
            (r#""default";r=0;t=30"#, secs(30)),
            (r#" "default" ; r=0;  t=30 "#, secs(30)),
            (r#""second";r=0;t=1,"day";r=0;t=3600,"month";r=9;t=86400"#, secs(3600)),
            (r#""default";t=30;r=0;pk=:c29tZSBrZXk=:"#, secs(30)),
            (r#""a \"quoted\" \\ name, and;r=9;t=9";r=0;t=30"#, secs(30)),
            (r#""ends with \\";r=0;t=30"#, secs(30)),
            ("default;r=0;t=30", secs(30)),
            (r#""default";r=0;r=1;t=30"#, None),
            (r#""default";r=1;t=30"#, None),
            (r#""default";r=0"#, None),
            (r#""default";t=30"#, None),
            (r#""default";r=-1;t=30"#, None),
            (r#""default";r=0;t=-30"#, None),
            (r#""default;r=0;t=30"#, None),
            (r#""default";r=0;t=30, "another"#, None),
            (r#""default;r=0;t=30";r=1;t=2"#, None),
            ("limit=100, remaining=0, reset=30", secs(30)),
            ("limit=100,remaining=1,reset=30", None),
            ("limit=100, reset=30", None),
        ] {
            assert_eq!(asked(&[("ratelimit", value)]), expected, "{value}");
        }
    }

    #[test]
    fn lines_of_one_name_are_one_list() {
        let lines = [("ratelimit", r#""second";r=0;t=1"#), ("ratelimit", r#""day";r=0;t=60"#)];
        assert_eq!(asked(&lines), secs(60));
        assert_eq!(asked(&[("ratelimit", "limit=1, remaining=0"), ("ratelimit", "reset=30")]), secs(30));
        assert_eq!(asked(&[("retry-after", "30"), ("retry-after", "60")]), secs(60));
    }

    #[test]
    fn retry_after_takes_precedence() {
        let quota = ("ratelimit", r#""default";r=0;t=30"#);
        assert_eq!(asked(&[quota, ("retry-after", "10")]), secs(10));
        assert_eq!(asked(&[quota, ("retry-after", "soon")]), secs(30));
    }

    #[test]
    fn unreadable_headers_ask_for_nothing() {
        assert_eq!(asked(&[]), None);
        for value in [
            "", " ", "soon", "-1", "+1", "1e3", ".5", "5.", "1.5.2", "1 s", "NaN", "inf", "٣", "1, 2",
            "\u{a0}",
        ] {
            assert_eq!(asked(&[("retry-after", value)]), None, "{value}");
            assert_eq!(asked(&[("ratelimit", value)]), None, "{value}");
        }
        for date in ["Mon, 06 Nov 1994 08:49:37 GMT", "Wed, 31 Feb 2024 00:00:00 GMT", "2024-02-29T00:00:00Z"]
        {
            assert_eq!(asked(&[("retry-after", date)]), None, "{date}");
        }
        assert_eq!(asked(&[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "30")]), None);
    }

    /// Text that resembles one of the headers.
    fn texts() -> impl Strategy<Value = String> {
        let pieces = [
            "\"",
            "\\",
            ",",
            ";",
            "=",
            " ",
            ".",
            "r",
            "t",
            "r=0",
            "t=",
            "remaining=0",
            "reset=",
            "0",
            "30",
            "Sun, ",
            "06",
            "-Nov-",
            " Nov ",
            "94",
            "1994",
            "9999",
            "08:49:37",
            " GMT",
            "é",
        ];
        let piece = prop_oneof![
            4 => select(pieces.to_vec()).prop_map(str::to_owned),
            1 => any::<u128>().prop_map(|number| number.to_string()),
            1 => "[ -~]{0,4}",
        ];
        vec(piece, 0..10).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #![proptest_config(config())]

        #[test]
        fn any_text_is_read_without_panic(values in vec(texts(), 3)) {
            asked(&[("retry-after", &values[0]), ("date", &values[1]), ("ratelimit", &values[2])]);
            asked(&[("ratelimit", &values[0]), ("ratelimit", &values[1])]);
        }

        #[test]
        fn written_quotas_are_read(quotas in vec(("[ -~]{0,8}", 0..3_u64, 0..1_000_u64), 1..5)) {
            let item = |(name, r, t): &(String, u64, u64)| {
                format!("\"{}\";r={r};t={t}", name.replace('\\', "\\\\").replace('"', "\\\""))
            };
            let field = quotas.iter().map(item).collect::<Vec<_>>().join(", ");
            let longest = quotas.iter().filter(|(_, r, _)| *r == 0).map(|(.., t)| *t).max();
            prop_assert_eq!(asked(&[("ratelimit", &field)]), longest.and_then(secs), "{}", field);
        }
    }
}
