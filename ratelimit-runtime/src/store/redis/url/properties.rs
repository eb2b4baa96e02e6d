//! Parses arbitrary URLs.

use std::error::Error;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::base::property_tests::config;

/// Occurs in every password.
const SECRET: &str = "x7secretq9";

fn schemes() -> impl Strategy<Value = &'static str> {
    select(vec![
        "redis",
        "rediss",
        "redis+unix",
        "unix",
        "redis+sentinel",
        "rediss+sentinel",
        "redis+cluster",
        "rediss+cluster",
        "valkey",
        "VALKEYS+sentinel",
        "redis+other",
        "http",
        "",
    ])
}

fn hosts() -> impl Strategy<Value = String> {
    let host = prop_oneof![
        4 => "[a-z]{1,4}",
        2 => "[a-z]{1,4}:[0-9]{1,6}",
        1 => Just(String::from("[::1]")),
        1 => Just(String::from("[::1]:7000")),
        1 => Just(String::new()),
        1 => r"[a-z:\[\]%@ é]{0,4}",
    ];
    vec(host, 0..4).prop_map(|hosts| hosts.join(","))
}

fn tails() -> impl Strategy<Value = String> {
    let path = prop_oneof![
        Just(String::new()),
        "/[0-9]{0,4}",
        "/[a-z]{1,6}",
        "/[a-z]{1,6}/[0-9]{1,2}",
        r"/[a-z/%é@]{0,6}"
    ];
    let query = prop_oneof![4 => Just(""), 1 => Just("?protocol=resp3"), 1 => Just("?protocol=no"), 1 => Just("#insecure"), 1 => Just("?")];
    (path, query).prop_map(|(path, query)| path + query)
}

/// A password whose special characters are not escaped.
fn passwords() -> impl Strategy<Value = String> {
    let around = || r"[a-zA-Z0-9:/@?#,%&= \[\]\\é+-]{0,5}";
    // Digits before a special character can be taken for a port.
    let before = prop_oneof![4 => around(), 1 => "[0-9]{1,4}[/?#,]"];
    (before, around()).prop_map(|(before, after)| format!("{before}{SECRET}{after}"))
}

/// Everything that an error shows, and everything that a failed connection to the URL would show.
fn shown(url: &Result<RedisUrl, StoreError>) -> String {
    let addresses = |infos: &[ConnectionInfo]| -> String {
        infos.iter().map(|info| format!("{} {:?} ", info.addr(), info.addr())).collect()
    };
    match url {
        Err(error) => {
            let mut shown = format!("{error} {error:?} {error:#?}");
            let mut source = error.source();
            while let Some(error) = source {
                shown += &format!("{error} {error:?} {error:#?}");
                source = error.source();
            }
            shown
        }
        Ok(RedisUrl::Server(info)) => addresses(std::slice::from_ref(info)),
        Ok(RedisUrl::Sentinel { sentinels, master, login }) => {
            addresses(sentinels) + master + &addresses(std::slice::from_ref(login))
        }
        Ok(RedisUrl::Cluster { seeds }) => addresses(seeds),
    }
}

/// Escapes every byte except letters and digits.
fn escaped(text: &str) -> String {
    let escape = |byte: u8| match byte {
        byte if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    text.bytes().map(escape).collect()
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn arbitrary_text_does_not_panic(url in any::<String>()) {
        let _ = RedisUrl::parse(&url);
    }

    #[test]
    fn arbitrary_text_after_a_scheme_does_not_panic(scheme in schemes(), rest in r"(\PC|[:/@?#,%\[\]])*") {
        let _ = RedisUrl::parse(&format!("{scheme}://{rest}"));
    }

    #[test]
    fn passwords_are_never_shown(
        // Of a Unix socket there is no host, and so no password before it.
        scheme in schemes().prop_filter("a host", |scheme| !scheme.ends_with("unix")),
        user in "[a-z:]{0,4}",
        password in passwords(),
        hosts in hosts(),
        tail in tails(),
    ) {
        let url = format!("{scheme}://{user}:{password}@{hosts}{tail}");
        let shown = shown(&RedisUrl::parse(&url)).to_lowercase();
        prop_assert!(!shown.contains(SECRET), "{url}: {shown}");
    }

    #[test]
    fn escaped_passwords_apply_to_every_host(
        scheme in select(vec!["redis", "redis+sentinel", "redis+cluster"]),
        password in passwords(),
        hosts in vec("[a-z]{1,5}", 1..4),
    ) {
        let (hosts, tail) = match scheme {
            "redis" => (hosts[0].clone(), "/3"),
            "redis+sentinel" => (hosts.join(","), "/mymaster/3"),
            _ => (hosts.join(","), ""),
        };
        let url = format!("{scheme}://ann:{}@{hosts}{tail}", escaped(&password));
        let Ok(parsed) = RedisUrl::parse(&url) else { panic!("{url}") };
        let infos = match parsed {
            RedisUrl::Server(info) => vec![info],
            RedisUrl::Sentinel { sentinels, login, .. } => sentinels.into_iter().chain([login]).collect(),
            RedisUrl::Cluster { seeds } => seeds,
        };
        for info in infos {
            prop_assert_eq!(info.redis_settings().password(), Some(&*password));
        }
    }
}
