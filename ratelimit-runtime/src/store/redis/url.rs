//! Store URLs: the location of Redis and the login.

use std::time::Duration;

use redis::io::tcp::TcpSettings;
use redis::io::tcp::socket2::TcpKeepalive;
use redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo, ProtocolVersion};

use crate::store::error::StoreError;

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

/// The arguments of a URL's query, and of that of a socket, whose path leaves no room for the login.
const ARGUMENTS: [&str; 1] = ["protocol"];
const SOCKET_ARGUMENTS: [&str; 4] = ["protocol", "db", "user", "pass"];

impl RedisUrl {
    /// Parses a URL. Errors never contain it, as it may hold a password.
    pub(super) fn parse(url: &str) -> Result<Self, StoreError> {
        let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
        let scheme = scheme.to_ascii_lowercase();
        let (base, kind) = scheme.split_once('+').unwrap_or((&scheme, ""));
        let base = match base {
            "valkey" => "redis",
            "valkeys" => "rediss",
            base => base,
        };
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
            ("redis" | "rediss", "") => Ok(RedisUrl::Server(info(&format!("{base}://{rest}"), &ARGUMENTS)?)),
            ("unix", "") | ("redis", "unix") => {
                // What follows it in a path would be taken for a name, which errors do contain.
                if rest.split('?').next().is_some_and(|path| path.contains('@')) {
                    return Err(invalid(
                        "the URL of a Redis socket has an `@` in its path; write the login as ?user=…&pass=…, and `@` in a path as %40",
                    ));
                }
                Ok(RedisUrl::Server(info(&format!("unix://{rest}"), &SOCKET_ARGUMENTS)?))
            }
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
                 memory://; valkey stands for redis, and valkeys for rediss",
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
        info(&format!("{scheme}://{userinfo}{host}/{path}{query}"), &ARGUMENTS)
    }
}

/// Returns what redis-rs parses from the URL of one server, with the settings of all our connections. redis-rs would ignore
/// other arguments than these.
fn info(url: &str, arguments: &[&str]) -> Result<ConnectionInfo, StoreError> {
    let (_, tail) = url.split_at(url.find(['?', '#']).unwrap_or(url.len()));
    if tail.contains('#') {
        return Err(invalid(
            "the Redis URL has a fragment; remove it (`#insecure` is not supported: servers are always verified)",
        ));
    }
    check_arguments(tail, arguments)?;
    let info = url.into_connection_info().map_err(|error| invalid("invalid Redis URL").caused_by(error))?;
    let login = info.redis_settings();
    // redis-rs would log in as `default`.
    if login.username().is_some_and(|user| user != "default") && login.password().is_none_or(str::is_empty) {
        return Err(invalid(
            "the Redis URL has a user without a password; write redis://user:password@host, with any password if the user \
             has none, or redis://host to log in as `default`",
        ));
    }
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

/// Fails if the query has another argument than these.
fn check_arguments(query: &str, known: &[&str]) -> Result<(), StoreError> {
    let pairs = query.trim_start_matches('?').split('&').filter(|pair| !pair.is_empty());
    let mut names = pairs.map(|pair| pair.split('=').next().unwrap_or_default());
    let mut has_password = false;
    let unknown = names.find(|name| {
        has_password |= *name == "pass";
        !known.contains(name)
    });
    let Some(unknown) = unknown else { return Ok(()) };
    // The unknown argument may be the end of the password.
    if has_password && known.contains(&"pass") {
        return Err(invalid(
            "the Redis URL has an unknown argument after `pass`; write `&` in a password as %26, and `#` as %23",
        ));
    }
    // Any other unknown argument may be a password as well.
    let instead = match unknown {
        "db" | "database" if !known.contains(&"db") => {
            "write the database as the path, as in redis://host/3 or redis+sentinel://host/master/3"
        }
        "user" | "username" | "pass" | "password" if !known.contains(&"user") => {
            "write the login before the host, as in redis://user:password@host"
        }
        _ => {
            let known = known.join(", ");
            return Err(invalid(&format!(
                "the Redis URL has an unknown argument; those of this URL are {known}"
            )));
        }
    };
    Err(invalid(&format!("the Redis URL has an unknown argument `{unknown}`; {instead}")))
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
    fn schemes_of_valkey_and_in_upper_case_are_those_of_redis() {
        let kind = |url: &str| match RedisUrl::parse(url) {
            Ok(RedisUrl::Server(info)) => format!("{:?} {}", info.addr(), info.redis_settings().db()),
            Ok(RedisUrl::Sentinel { sentinels, master, .. }) => format!("{:?} {master}", sentinels[0].addr()),
            Ok(RedisUrl::Cluster { seeds }) => format!("{:?}", seeds[0].addr()),
            Err(error) => panic!("{url}: {error}"),
        };
        let mut rests = vec![("", "one:7000/3"), ("+sentinel", "one,two/mymaster"), ("+cluster", "one,two")];
        let plain = rests.clone();
        rests.push(("+unix", "/run/redis.sock?db=2"));
        for (suffix, rest) in rests {
            let redis = kind(&format!("redis{suffix}://{rest}"));
            for scheme in ["valkey", "REDIS", "Valkey"] {
                assert_eq!(kind(&format!("{scheme}{}://{rest}", suffix.to_uppercase())), redis);
            }
        }
        assert_eq!(kind("UNIX:///run/redis.sock?db=2"), kind("redis+unix:///run/redis.sock?db=2"));
        if cfg!(feature = "tls") {
            for (suffix, rest) in plain {
                let rediss = kind(&format!("rediss{suffix}://{rest}"));
                assert_ne!(rediss, kind(&format!("redis{suffix}://{rest}")));
                for scheme in ["valkeys", "REDISS", "ValkeyS"] {
                    assert_eq!(kind(&format!("{scheme}{suffix}://{rest}")), rediss);
                }
            }
        }
    }

    fn error(url: &str) -> String {
        match RedisUrl::parse(url) {
            Err(error) if error.is_permanent() => error.to_string(),
            _ => panic!("{url} is valid"),
        }
    }

    #[test]
    fn unknown_arguments_are_refused() {
        for (url, name, instead) in [
            ("redis://host?db=3", "`db`", "redis://host/3"),
            ("redis+sentinel://one,two/mymaster?db=3", "`db`", "redis+sentinel://host/master/3"),
            ("redis+cluster://one?timeout=3", "", "are protocol"),
            ("redis://host/3?protocol=resp3&user=ann&pass=secret", "`user`", "redis://user:password@host"),
            ("redis+unix:///run/redis.sock?username=ann", "", "protocol, db, user, pass"),
            ("valkey://host?Protocol=resp2", "", "are protocol"),
            ("redis://host?secret", "", "are protocol"),
            ("redis://host?secret=", "", "are protocol"),
            ("redis+unix:///run/redis.sock?db=1&pass=top&secret=x", "", "%26"),
        ] {
            let error = error(url);
            assert!(
                error.contains(name) && error.contains(instead) && !error.contains("secret"),
                "{url}: {error}"
            );
        }
        for url in [
            "redis://host?",
            "redis://host/3?protocol=resp3",
            "redis+cluster://one,two?protocol=2",
            "redis+sentinel://one,two/mymaster?protocol=3",
            "redis+unix:///run/redis.sock?db=1&user=ann&pass=secret&protocol=resp2",
        ] {
            assert!(RedisUrl::parse(url).is_ok(), "{url}");
        }
    }

    #[test]
    fn user_without_a_password_is_refused() {
        for url in [
            "redis://ann@host",
            "redis://ann:@host",
            "redis+sentinel://ann@one,two/mymaster",
            "redis+cluster://ann@one",
            "redis+unix:///run/redis.sock?user=ann",
            "redis+unix:///run/redis.sock?user=ann&pass=",
        ] {
            let error = error(url);
            assert!(error.contains("redis://user:password@host") && !error.contains("ann"), "{url}: {error}");
        }
        for url in
            ["redis://default@host", "redis://:secret@host", "redis://host", "redis+unix:///a?pass=secret"]
        {
            assert!(RedisUrl::parse(url).is_ok(), "{url}");
        }
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
            "redis://secret@one",
            "redis://one?pass=secret",
            "unix:///run/redis.sock@secret",
            "redis+unix://ann:secret@/run/redis.sock",
            "redis+unix:///run/redis.sock@secret?db=1",
            "unix+cluster://one",
        ] {
            let Err(error) = RedisUrl::parse(url) else { panic!("{url} is valid") };
            let text = format!("{error} {error:?}");
            assert!(error.is_permanent() && !text.contains("secret"), "{url}: {text}");
        }
    }
}
