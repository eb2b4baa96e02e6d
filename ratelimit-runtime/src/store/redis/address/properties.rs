//! Whatever stands in a URL.

use std::error::Error;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::*;

/// In every password, in the middle.
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

/// A password as somebody writes it who does not know that some characters are to be escaped.
fn passwords() -> impl Strategy<Value = String> {
    let around = || r"[a-zA-Z0-9:/@?#,%&= \[\]\\é+-]{0,5}";
    // So that what is in front of the first odd character is a port.
    let before = prop_oneof![4 => around(), 1 => "[0-9]{1,4}[/?#,]"];
    (before, around()).prop_map(|(before, behind)| format!("{before}{SECRET}{behind}"))
}

/// All that an error tells, and all that a connection to an address will tell where it fails.
fn told(address: &Result<Address, StoreError>) -> String {
    let place = |infos: &[ConnectionInfo]| -> String {
        infos.iter().map(|info| format!("{} {:?} ", info.addr(), info.addr())).collect()
    };
    match address {
        Err(error) => {
            let mut told = format!("{error} {error:?} {error:#?}");
            let mut source = error.source();
            while let Some(error) = source {
                told += &format!("{error} {error:?} {error:#?}");
                source = error.source();
            }
            told
        }
        Ok(Address::Server(info)) => place(std::slice::from_ref(info)),
        Ok(Address::Sentinel { sentinels, master, login }) => {
            place(sentinels) + master + &place(std::slice::from_ref(login))
        }
        Ok(Address::Cluster { seeds }) => place(seeds),
    }
}

/// With every byte but letters and digits escaped.
fn escaped(text: &str) -> String {
    let escape = |byte: u8| match byte {
        byte if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    text.bytes().map(escape).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn any_text_is_an_address_or_an_error(url in any::<String>()) {
        let _ = Address::parse(&url);
    }

    #[test]
    fn any_text_behind_a_scheme_is_an_address_or_an_error(scheme in schemes(), rest in r"(\PC|[:/@?#,%\[\]])*") {
        let _ = Address::parse(&format!("{scheme}://{rest}"));
    }

    #[test]
    fn no_password_is_ever_told(
        // Of a Unix socket there is no host, and so no password before it.
        scheme in schemes().prop_filter("a host", |scheme| !scheme.ends_with("unix")),
        user in "[a-z:]{0,4}",
        password in passwords(),
        hosts in hosts(),
        tail in tails(),
    ) {
        let url = format!("{scheme}://{user}:{password}@{hosts}{tail}");
        let told = told(&Address::parse(&url)).to_lowercase();
        prop_assert!(!told.contains(SECRET), "{url} tells {told}");
    }

    #[test]
    fn an_escaped_password_is_read_at_every_host(
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
        let Ok(address) = Address::parse(&url) else { panic!("{url}") };
        let infos = match address {
            Address::Server(info) => vec![info],
            Address::Sentinel { sentinels, login, .. } => sentinels.into_iter().chain([login]).collect(),
            Address::Cluster { seeds } => seeds,
        };
        for info in infos {
            prop_assert_eq!(info.redis_settings().password(), Some(&*password));
        }
    }
}
