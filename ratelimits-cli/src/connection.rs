//! The Redis that a command works on.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use ratelimit_runtime::inspect::{Keyspace, Login, overrides_key};

use crate::failure::{Failure, store_failure};

/// The deadline of each command to Redis.
const DEADLINE: Duration = Duration::from_secs(5);

/// Options that stand before or after the name of a command.
#[derive(Debug, Args)]
#[command(next_help_heading = "Connection")]
pub(crate) struct Connection {
    /// Where Redis is, as for `Registry::connect`: redis://user:password@host:6379/0, rediss://…, redis+unix:///path,
    /// redis+sentinel://host1,host2/name, or redis+cluster://host1,host2. Without it, RATELIMITS_URL in the environment.
    #[arg(long)]
    url: Option<String>,
    /// What the keys of the program begin with, as for `Registry::builder().namespace(…)`. Without it, `rl`.
    #[arg(long, value_name = "NAME")]
    namespace: Option<String>,
    /// The authorities to verify a rediss:// server with, in place of those of the system, in PEM.
    #[arg(long, value_name = "FILE")]
    cacert: Option<PathBuf>,
    /// The certificate to present to a rediss:// server, in PEM.
    #[arg(long, value_name = "FILE", requires = "cert_key")]
    cert: Option<PathBuf>,
    /// The private key of the certificate, in PEM.
    #[arg(long, value_name = "FILE", requires = "cert")]
    cert_key: Option<PathBuf>,
}

impl Connection {
    /// Takes over what stands before the name of the command and not after it.
    pub(crate) fn or(&mut self, before: Connection) {
        let Connection { url, namespace, cacert, cert, cert_key } = before;
        self.url = self.url.take().or(url);
        self.namespace = self.namespace.take().or(namespace);
        self.cacert = self.cacert.take().or(cacert);
        if self.cert.is_none() {
            (self.cert, self.cert_key) = (cert, cert_key);
        }
    }

    pub(crate) fn namespace(&self) -> &str {
        self.namespace.as_deref().unwrap_or("rl")
    }

    pub(crate) async fn open(&self) -> Result<Keyspace, Failure> {
        let Some(url) = self.url() else {
            return Err(Failure::Usage("where is Redis? Pass --url, or set RATELIMITS_URL".to_owned()));
        };
        if url.to_ascii_lowercase().starts_with("memory:") {
            let problem =
                "the state of memory:// is in the process of the program, where only the program reaches it";
            return Err(Failure::Usage(problem.to_owned()));
        }
        let read = |path: &Option<PathBuf>| path.as_deref().map(read_file).transpose();
        let client = read(&self.cert)?.zip(read(&self.cert_key)?);
        let login = Login { url, authorities: read(&self.cacert)?, client };
        let keyspace = Keyspace::new(login, DEADLINE).map_err(|error| Failure::Usage(error.to_string()))?;
        keyspace.ping().await.map_err(|error| Failure::Redis(error.to_string()))?;
        Ok(keyspace)
    }

    /// Returns the failure of a command to Redis.
    pub(crate) fn failure(&self, keyspace: &Keyspace, error: &impl ToString) -> Failure {
        let user = self.url().and_then(|url| user_of(&url).map(str::to_owned));
        store_failure(&error.to_string(), &keyspace.server(), user.as_deref(), self.namespace())
    }

    /// Returns the failure of a command that reads or writes overrides.
    pub(crate) fn overrides_failure(&self, keyspace: &Keyspace, error: &impl ToString) -> Failure {
        let text = error.to_string();
        let holds_else = ["WRONGTYPE", "wrong kind of value", "something else than overrides"];
        if !holds_else.iter().any(|problem| text.contains(problem)) {
            return self.failure(keyspace, error);
        }
        let key = overrides_key(self.namespace());
        Failure::NoOverrides(format!(
            "{key} in Redis at {} holds no overrides; delete it: DEL {key}",
            keyspace.server()
        ))
    }

    fn url(&self) -> Option<String> {
        self.url.clone().or_else(|| std::env::var("RATELIMITS_URL").ok()).filter(|url| !url.is_empty())
    }
}

/// Returns the user in a URL, if it is plain there.
fn user_of(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("://")?;
    let (login, _) = rest.split_once(['/', '?', '#']).map_or(rest, |(hosts, _)| hosts).rsplit_once('@')?;
    let user = login.split(':').next()?;
    (!user.is_empty() && !user.contains('%')).then_some(user)
}

fn read_file(path: &Path) -> Result<Vec<u8>, Failure> {
    fs::read(path).map_err(|error| Failure::Usage(format!("cannot read {}: {error}", path.display())))
}
