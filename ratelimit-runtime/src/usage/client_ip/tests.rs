//! Whatever a client sends, it cannot choose the address that it counts by.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::base::property_tests::config;

const PROXY: &str = "10.0.0.7";

fn behind_proxies() -> ClientIp {
    ClientIp::header("X-Forwarded-For", ["10.0.0.0/8", "2001:db8:7::/48", "192.0.2.1"]).unwrap()
}

fn find(peer: &str, lines: &[&str]) -> Result<String, MissingKey> {
    behind_proxies().find(peer.parse().unwrap(), lines).map(|ip| ip.to_string())
}

#[test]
fn nearest_address_that_is_not_trusted_is_the_clients() {
    for (lines, client) in [
        (&["198.51.100.2"][..], "198.51.100.2"),
        (&["1.1.1.1, 198.51.100.2, 10.1.2.3,192.0.2.1"], "198.51.100.2"),
        // Lines are parts of one list.
        (&["1.1.1.1", "198.51.100.2", "10.1.2.3"], "198.51.100.2"),
        (&["198.51.100.2, 2001:db8:7:1::1"], "198.51.100.2"),
        // All are trusted.
        (&["10.9.9.9, 10.1.2.3"], "10.9.9.9"),
        (&["unknown, 198.51.100.2"], "198.51.100.2"),
        (&[" , 198.51.100.2 ,, "], "198.51.100.2"),
        (&["198.51.100.2:4711, 10.1.2.3:80"], "198.51.100.2"),
        (&["::ffff:198.51.100.2"], "198.51.100.2"),
        (&["64:ff9b::198.51.100.2"], "198.51.100.2"),
        // A client behind a translator is no proxy.
        (&["1.1.1.1, 64:ff9b::10.1.2.3"], "10.1.2.3"),
        (&["2001:db8:1:2:3::4"], "2001:db8:1:2::"),
        (&["[2001:db8:1:2:3::4]"], "2001:db8:1:2::"),
        (&["[2001:db8:1:2:3::4]:443"], "2001:db8:1:2::"),
    ] {
        assert_eq!(find(PROXY, lines).as_deref(), Ok(client), "{lines:?}");
        assert_eq!(find("::ffff:10.0.0.7", lines).as_deref(), Ok(client), "{lines:?}");
    }
}

#[test]
fn proxys_address_stands_for_no_client() {
    for lines in [
        &[][..],
        &[""],
        &[" , "],
        &["unknown"],
        &["_hidden"],
        &["198.51.100.2, unknown, 10.1.2.3"],
        &["198.51.100.2:port"],
        &["198.51.100.2:65536"],
        &["[198.51.100.2]"],
        &["2001:db8::1]"],
        &["198.51.100.2 198.51.100.3"],
        &["for=198.51.100.2"],
        &["\"198.51.100.2\""],
    ] {
        assert_eq!(find(PROXY, lines), Err(MissingKey::Ip), "{lines:?}");
    }
    let bytes: [&[u8]; 1] = [b"\xff\xfe"];
    assert_eq!(behind_proxies().find(PROXY.parse().unwrap(), bytes), Err(MissingKey::Ip));
}

#[test]
fn header_means_nothing_without_a_proxy() {
    for lines in [&["198.51.100.2"][..], &["unknown"], &[]] {
        assert_eq!(find("203.0.113.9", lines).as_deref(), Ok("203.0.113.9"));
        let peer = ClientIp::peer().find(PROXY.parse().unwrap(), lines);
        assert_eq!(peer.unwrap().to_string(), PROXY);
    }
}

#[test]
fn invalid_settings_are_errors() {
    let problem = |name, trusted: &[&str]| ClientIp::header(name, trusted).unwrap_err().to_string();
    for (name, trusted, expected) in [
        ("x-real-ip", &[][..], "no proxy is trusted"),
        ("x-real-ip", &["10.0.0.0/8", "nginx"], "`nginx` is not a network"),
        ("x-real-ip", &["10.0.0.0/33"], "`10.0.0.0/33` is not a network"),
        ("x-real-ip", &["0.0.0.0/0"], "`0.0.0.0/0` includes every client"),
        ("x-real-ip", &["::/0"], "`::/0` includes every client"),
        ("x-real-ip", &["::ffff:10.0.0.0/104"], "is a network of IPv4 addresses"),
        ("", &[PROXY], "`` is not a header name"),
        ("x real ip", &[PROXY], "`x real ip` is not a header name"),
        ("Forwarded", &[PROXY], "`Forwarded` is not supported"),
    ] {
        assert!(problem(name, trusted).contains(expected), "{}", problem(name, trusted));
    }
    assert!(ClientIp::peer().ipv6_prefix(0).is_err() && ClientIp::peer().ipv6_prefix(129).is_err());
    assert_eq!(behind_proxies().header_name(), Some("x-forwarded-for"));
}

/// Parts of headers, valid or not.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        3 => any::<IpAddr>().prop_map(|ip| ip.to_string().into_bytes()),
        2 => any::<SocketAddr>().prop_map(|ip| ip.to_string().into_bytes()),
        1 => "10\\.[0-9]\\.0\\.[0-9]".prop_map(String::into_bytes),
        1 => "[0-9a-f.:\\[\\]% ]{0,20}".prop_map(String::into_bytes),
        1 => vec(any::<u8>(), 0..20),
    ]
}

proptest! {
    #![proptest_config(config())]

    /// What the client sends comes before what the first proxy adds, on the same line or on lines of its own.
    #[test]
    fn clients_cannot_choose_their_address(
        sent in vec(piece(), 0..5),
        client: IpAddr,
        hops in vec("10\\.([0-9]|[1-9][0-9])\\.0\\.[0-9](:80)?", 0..3),
        own_lines: bool,
    ) {
        let client_ip = behind_proxies();
        let is_trusted = client_ip.forwarded.as_ref().unwrap().is_trusted(client.to_canonical());
        prop_assume!(!is_trusted);
        let added = [client.to_string()].into_iter().chain(hops).collect::<Vec<_>>().join(", ").into_bytes();
        let sent = sent.join(&b", "[..]);
        let lines = if own_lines { vec![sent, added] } else { vec![[sent, added].join(&b", "[..])] };
        let found = client_ip.find(PROXY.parse().unwrap(), &lines);
        prop_assert_eq!(found, Ok(network(client, 64)));
    }

    /// A stranger's header changes nothing.
    #[test]
    fn untrusted_peers_count_by_their_own_address(lines in vec(piece(), 0..5), peer: IpAddr) {
        let client_ip = behind_proxies();
        prop_assume!(!client_ip.forwarded.as_ref().unwrap().is_trusted(peer.to_canonical()));
        prop_assert_eq!(client_ip.find(peer, &lines), Ok(network(peer, 64)));
    }

    /// An address that is found is in the header. It is trusted only if the whole header is.
    #[test]
    fn any_header_gives_one_of_its_addresses_or_none(lines in vec(piece(), 0..5)) {
        let client_ip = behind_proxies().ipv6_prefix(128).unwrap();
        let found = client_ip.find(PROXY.parse().unwrap(), &lines);
        let entries: Vec<Option<IpAddr>> = lines
            .iter()
            .flat_map(|line| line.split(|byte| *byte == b','))
            .map(<[u8]>::trim_ascii)
            .filter(|entry| !entry.is_empty())
            .map(parse)
            .collect();
        let trusted = |ip: &IpAddr| client_ip.forwarded.as_ref().unwrap().is_trusted(*ip);
        let expected = match entries.iter().rposition(|entry| !entry.as_ref().is_some_and(trusted)) {
            Some(last) => entries[last],
            None => entries.first().copied().flatten(),
        };
        prop_assert_eq!(found.ok(), expected.map(|ip| network(ip, 128)));
    }
}
