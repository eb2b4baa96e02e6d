//! What a URL says of where Redis is.

use std::time::Duration;

use redis::io::tcp::TcpSettings;
use redis::io::tcp::socket2::TcpKeepalive;
use redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo, ProtocolVersion};

use crate::error::store::StoreError;

/// Where Redis is, and how it lets us in.
pub(super) enum Address {
    /// One server.
    Server(ConnectionInfo),
    /// The master of this name, which changes: the Sentinels know who it is.
    Sentinel { sentinels: Vec<ConnectionInfo>, master: String, login: ConnectionInfo },
    /// A Cluster, of which some nodes are known.
    Cluster { seeds: Vec<ConnectionInfo> },
}

const SENTINEL_PORT: u16 = 26379;

impl Address {
    /// What the URL says. Errors never hold the URL, which may hold a password.
    pub(super) fn parse(url: &str) -> Result<Self, StoreError> {
        let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
        let (base, kind) = scheme.split_once('+').unwrap_or((scheme, ""));
        if base == "rediss" && !cfg!(feature = "tls") {
            return Err(StoreError::permanent(
                "TLS to Redis, rediss://, needs the feature `tls` of `ratelimits`",
            ));
        }
        let behind_hosts = rest.find(['/', '?', '#']).map_or("", |at| &rest[at..]);
        // The rest of such a password would pass for a host or a name, which errors tell.
        if behind_hosts.contains('@') && base != "unix" && kind != "unix" {
            return Err(wrong(
                "the URL has an `@` behind its hosts: in a user's name and password, `/`, `?` and `#` are written %2F, %3F and %23",
            ));
        }
        match (base, kind) {
            ("redis" | "rediss" | "unix", "") | ("redis", "unix") => Ok(Address::Server(info(url)?)),
            ("redis" | "rediss", "sentinel") => {
                let Many { hosts, path, at } = Many::parse(rest, Some(SENTINEL_PORT))?;
                let (master, db) = path.split_once('/').unwrap_or((path, ""));
                if master.is_empty() {
                    return Err(wrong(
                        "the URL of Sentinels ends in their master's name: redis+sentinel://host1,host2/mymaster",
                    ));
                }
                let sentinels = at.each(base, &hosts, "")?;
                let login = at.each(base, &hosts[..1], db)?.remove(0);
                Ok(Address::Sentinel { sentinels, master: master.to_owned(), login })
            }
            ("redis" | "rediss", "cluster") => {
                let Many { hosts, path, at } = Many::parse(rest, None)?;
                if !matches!(path, "" | "0") {
                    return Err(wrong("a Redis Cluster has no databases: leave the path out of its URL"));
                }
                Ok(Address::Cluster { seeds: at.each(base, &hosts, "")? })
            }
            _ => Err(wrong(
                "the URL of a store begins with redis://, rediss://, redis+unix://, redis+sentinel://, redis+cluster:// \
                 or memory://",
            )),
        }
    }
}

/// The same login at another host and port.
pub(super) fn elsewhere(login: &ConnectionInfo, host: &str, port: u16) -> ConnectionInfo {
    let host = host.to_owned();
    let addr = match login.addr() {
        ConnectionAddr::TcpTls { insecure, tls_params, .. } => {
            ConnectionAddr::TcpTls { host, port, insecure: *insecure, tls_params: tls_params.clone() }
        }
        _ => ConnectionAddr::Tcp(host, port),
    };
    login.clone().set_addr(addr)
}

/// A URL with several hosts, which no URL has by its standard.
struct Many<'a> {
    hosts: Vec<String>,
    path: &'a str,
    at: Around<'a>,
}

/// What stands around the host of each.
struct Around<'a> {
    user: &'a str,
    query: &'a str,
}

impl<'a> Many<'a> {
    fn parse(rest: &'a str, port: Option<u16>) -> Result<Self, StoreError> {
        let (authority, tail) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        let (path, query) = tail.split_at(tail.find(['?', '#']).unwrap_or(tail.len()));
        let (user, hosts) = match authority.rfind('@') {
            Some(at) => authority.split_at(at + 1),
            None => ("", authority),
        };
        let with_port = |host: &str| match port {
            Some(port) if host.ends_with(']') || !host.contains(':') => format!("{host}:{port}"),
            _ => host.to_owned(),
        };
        let hosts: Vec<String> = hosts.split(',').filter(|host| !host.is_empty()).map(with_port).collect();
        if hosts.is_empty() {
            return Err(wrong("the URL names no host"));
        }
        Ok(Many { hosts, path: path.trim_matches('/'), at: Around { user, query } })
    }
}

impl Around<'_> {
    fn each(&self, scheme: &str, hosts: &[String], path: &str) -> Result<Vec<ConnectionInfo>, StoreError> {
        let Around { user, query } = self;
        hosts.iter().map(|host| info(&format!("{scheme}://{user}{host}/{path}{query}"))).collect()
    }
}

/// What redis-rs reads in the URL of one server, and what holds for each of them.
fn info(url: &str) -> Result<ConnectionInfo, StoreError> {
    let (_, tail) = url.split_at(url.find(['?', '#']).unwrap_or(url.len()));
    if tail.contains('#') {
        return Err(wrong(
            "the Redis URL has a fragment, which nothing reads: with `#insecure` too servers are verified; leave it out",
        ));
    }
    let info =
        url.into_connection_info().map_err(|error| wrong("the Redis URL is wrong").caused_by(error))?;
    // RESP3 tells of a connection that is closed while nobody waits for anything.
    let redis = info.redis_settings().clone().set_skip_set_lib_name();
    let redis = if tail.contains("protocol=") { redis } else { redis.set_protocol(ProtocolVersion::RESP3) };
    let (quiet, interval) = (Duration::from_secs(10), Duration::from_secs(3));
    let keepalive = TcpKeepalive::new().with_time(quiet).with_interval(interval);
    let tcp = TcpSettings::default().set_nodelay(true).set_keepalive(keepalive);
    #[cfg(any(target_os = "android", target_os = "fuchsia", target_os = "linux"))]
    let tcp = tcp.set_user_timeout(Duration::from_secs(5));
    Ok(info.set_tcp_settings(tcp).set_redis_settings(redis))
}

fn wrong(problem: &str) -> StoreError {
    StoreError::permanent(problem)
}

#[cfg(test)]
mod properties;

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(infos: &[ConnectionInfo]) -> Vec<String> {
        infos.iter().map(|info| info.addr().to_string()).collect()
    }

    #[test]
    fn several_hosts_share_what_stands_around_them() {
        let url = "redis+sentinel://ann:p%40ss,w@one,two:7000,[::1]/mymaster/3";
        let Ok(Address::Sentinel { sentinels, master, login }) = Address::parse(url) else { panic!("{url}") };
        assert_eq!(addresses(&sentinels), ["one:26379", "two:7000", "::1:26379"]);
        assert_eq!(master, "mymaster");
        assert_eq!(login.redis_settings().password(), Some("p@ss,w"));
        assert_eq!((login.redis_settings().username(), login.redis_settings().db()), (Some("ann"), 3));

        let Ok(Address::Cluster { seeds }) = Address::parse("redis+cluster://one:7000,two") else {
            panic!("a Cluster")
        };
        assert_eq!(addresses(&seeds), ["one:7000", "two:6379"]);
        let there = elsewhere(&seeds[0], "three", 7001);
        assert_eq!(there.addr().to_string(), "three:7001");
    }

    #[test]
    fn what_is_wrong_is_told_without_the_url() {
        for url in [
            "",
            "localhost",
            "http://secret@localhost",
            "redis://",
            "redis://:secret@:port",
            "redis://:secret@localhost/nonsense",
            "redis+sentinel://:secret@one,two",
            "redis+sentinel:///mymaster",
            "redis+sentinel://one/mymaster/nonsense",
            "redis+cluster://:secret@one/1",
            "redis+cluster://",
            "redis+cluster://one:port",
            "rediss://:secret@one#insecure",
            "redis://ann:12/secret@localhost",
            "redis+sentinel://ann:12/secret@one,two/mymaster",
            "redis+cluster://ann:12,secret#@one,two",
            "redis+nonsense://one",
            "unix+cluster://one",
        ] {
            let Err(error) = Address::parse(url) else { panic!("{url} is an address") };
            assert!(
                error.is_permanent() && !format!("{error} {error:?}").contains("secret"),
                "{url}: {error:?}"
            );
        }
    }
}
