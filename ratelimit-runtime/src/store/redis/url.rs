//! Store URLs: the location of Redis and the login.

use std::time::Duration;

use redis::io::tcp::TcpSettings;
use redis::io::tcp::socket2::TcpKeepalive;
use redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo, ProtocolVersion};

use crate::error::store::StoreError;

/// A parsed store URL.
pub(super) enum RedisUrl {
    /// One server.
    Server(ConnectionInfo),
    /// Sentinels, the name of the master they watch, and the master's login, at any address.
    Sentinel { sentinels: Vec<ConnectionInfo>, master: String, login: ConnectionInfo },
    /// Some nodes of a Cluster.
    Cluster { seeds: Vec<ConnectionInfo> },
}

const SENTINEL_PORT: u16 = 26379;

impl RedisUrl {
    /// Parses a URL. Errors never contain it, as it may hold a password.
    pub(super) fn parse(url: &str) -> Result<Self, StoreError> {
        let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
        let (base, kind) = scheme.split_once('+').unwrap_or((scheme, ""));
        if base == "rediss" && !cfg!(feature = "tls") {
            return Err(StoreError::permanent("`rediss://` URLs need the feature `tls` of `ratelimits`"));
        }
        let after_hosts = rest.find(['/', '?', '#']).map_or("", |at| &rest[at..]);
        // The end of such a password would be taken for a host or a name, which errors do contain.
        if after_hosts.contains('@') && base != "unix" && kind != "unix" {
            return Err(invalid(
                "the Redis URL has an `@` after its hosts; write `/`, `?` and `#` in a username or password as %2F, %3F and %23",
            ));
        }
        match (base, kind) {
            ("redis" | "rediss" | "unix", "") | ("redis", "unix") => Ok(RedisUrl::Server(info(url)?)),
            ("redis" | "rediss", "sentinel") => {
                let url = MultiHostUrl::parse(rest, Some(SENTINEL_PORT))?;
                let (master, db) = url.path.split_once('/').unwrap_or((url.path, ""));
                if master.is_empty() {
                    return Err(invalid(
                        "a Sentinel URL ends with the name of the master: redis+sentinel://host1,host2/mymaster",
                    ));
                }
                let sentinels = url.infos(base, "")?;
                let login = url.info(base, &url.hosts[0], db)?;
                Ok(RedisUrl::Sentinel { sentinels, master: master.to_owned(), login })
            }
            ("redis" | "rediss", "cluster") => {
                let url = MultiHostUrl::parse(rest, None)?;
                if !matches!(url.path, "" | "0") {
                    return Err(invalid("a Redis Cluster has only database 0; remove the path from its URL"));
                }
                Ok(RedisUrl::Cluster { seeds: url.infos(base, "")? })
            }
            _ => Err(invalid(
                "a store URL starts with redis://, rediss://, redis+unix://, redis+sentinel://, redis+cluster:// or \
                 memory://",
            )),
        }
    }
}

/// Returns the same login for another host and port.
pub(super) fn with_host(login: &ConnectionInfo, host: &str, port: u16) -> ConnectionInfo {
    let host = host.to_owned();
    let addr = match login.addr() {
        ConnectionAddr::TcpTls { insecure, tls_params, .. } => {
            ConnectionAddr::TcpTls { host, port, insecure: *insecure, tls_params: tls_params.clone() }
        }
        _ => ConnectionAddr::Tcp(host, port),
    };
    login.clone().set_addr(addr)
}

/// A URL with several hosts, which standard URLs do not have.
struct MultiHostUrl<'a> {
    /// The username and password, with the `@`.
    userinfo: &'a str,
    hosts: Vec<String>,
    path: &'a str,
    /// The query or fragment, with its `?` or `#`.
    query: &'a str,
}

impl<'a> MultiHostUrl<'a> {
    /// Parses what follows the scheme.
    fn parse(rest: &'a str, default_port: Option<u16>) -> Result<Self, StoreError> {
        let (authority, tail) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        let (path, query) = tail.split_at(tail.find(['?', '#']).unwrap_or(tail.len()));
        let (userinfo, hosts) = match authority.rfind('@') {
            Some(at) => authority.split_at(at + 1),
            None => ("", authority),
        };
        let with_port = |host: &str| match default_port {
            Some(port) if host.ends_with(']') || !host.contains(':') => format!("{host}:{port}"),
            _ => host.to_owned(),
        };
        let hosts: Vec<String> = hosts.split(',').filter(|host| !host.is_empty()).map(with_port).collect();
        if hosts.is_empty() {
            return Err(invalid("the Redis URL has no host"));
        }
        Ok(MultiHostUrl { userinfo, hosts, path: path.trim_matches('/'), query })
    }

    fn infos(&self, scheme: &str, path: &str) -> Result<Vec<ConnectionInfo>, StoreError> {
        self.hosts.iter().map(|host| self.info(scheme, host, path)).collect()
    }

    fn info(&self, scheme: &str, host: &str, path: &str) -> Result<ConnectionInfo, StoreError> {
        let MultiHostUrl { userinfo, query, .. } = self;
        info(&format!("{scheme}://{userinfo}{host}/{path}{query}"))
    }
}

/// Returns what redis-rs parses from the URL of one server, with the settings of all our connections.
fn info(url: &str) -> Result<ConnectionInfo, StoreError> {
    let (_, tail) = url.split_at(url.find(['?', '#']).unwrap_or(url.len()));
    if tail.contains('#') {
        return Err(invalid(
            "the Redis URL has a fragment; remove it (`#insecure` is not supported: servers are always verified)",
        ));
    }
    let info = url.into_connection_info().map_err(|error| invalid("invalid Redis URL").caused_by(error))?;
    // With RESP3 redis-rs reports a closed connection even if no call is in flight.
    let redis = info.redis_settings().clone().set_skip_set_lib_name();
    let redis = if tail.contains("protocol=") { redis } else { redis.set_protocol(ProtocolVersion::RESP3) };
    let (idle, interval) = (Duration::from_secs(10), Duration::from_secs(3));
    let keepalive = TcpKeepalive::new().with_time(idle).with_interval(interval);
    let tcp = TcpSettings::default().set_nodelay(true).set_keepalive(keepalive);
    #[cfg(any(target_os = "android", target_os = "fuchsia", target_os = "linux"))]
    let tcp = tcp.set_user_timeout(Duration::from_secs(5));
    Ok(info.set_tcp_settings(tcp).set_redis_settings(redis))
}

fn invalid(problem: &str) -> StoreError {
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
    fn hosts_share_login_and_query() {
        let url = "redis+sentinel://ann:p%40ss,w@one,two:7000,[::1]/mymaster/3";
        let Ok(RedisUrl::Sentinel { sentinels, master, login }) = RedisUrl::parse(url) else {
            panic!("{url}")
        };
        assert_eq!(addresses(&sentinels), ["one:26379", "two:7000", "::1:26379"]);
        assert_eq!(master, "mymaster");
        assert_eq!(login.redis_settings().password(), Some("p@ss,w"));
        assert_eq!((login.redis_settings().username(), login.redis_settings().db()), (Some("ann"), 3));

        let Ok(RedisUrl::Cluster { seeds }) = RedisUrl::parse("redis+cluster://one:7000,two") else {
            panic!("not a Cluster")
        };
        assert_eq!(addresses(&seeds), ["one:7000", "two:6379"]);
        assert_eq!(with_host(&seeds[0], "three", 7001).addr().to_string(), "three:7001");
    }

    #[test]
    fn errors_do_not_contain_the_password() {
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
            let Err(error) = RedisUrl::parse(url) else { panic!("{url} is valid") };
            let text = format!("{error} {error:?}");
            assert!(error.is_permanent() && !text.contains("secret"), "{url}: {text}");
        }
    }
}
