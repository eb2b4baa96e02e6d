//! The overrides of a namespace in Redis: a hash with a text, and a version that grows with each text. Beside it is a list of their
//! changes.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use redis::cmd;
use tokio::time::Instant;

use super::RedisStore;
use super::client::Client;
use crate::key::NamespaceText;
use crate::store::error::StoreError;

/// How long calls may take that nobody waits for.
const PATIENCE: Duration = Duration::from_secs(2);

/// How many changes the log has at most.
pub(crate) const MOST_CHANGES: usize = 1000;

/// The overrides under a key.
#[derive(Clone)]
pub(crate) struct StoredOverrides {
    pub(super) client: Arc<Client>,
    key: String,
    log_key: String,
    pub(super) inventory_key: String,
    timeout: Duration,
}

impl RedisStore {
    /// Returns those of a namespace.
    pub(crate) fn overrides(&self, namespace: &NamespaceText) -> StoredOverrides {
        let (key, inventory_key) = (namespace.overrides_key(), namespace.inventory_key());
        let log_key = namespace.override_log_key();
        let (client, timeout) = (Arc::clone(&self.client), self.client.timeout);
        StoredOverrides { client, key, log_key, inventory_key, timeout }
    }
}

impl StoredOverrides {
    /// For a task in the background: on a busy machine, one of its calls may miss a deadline that is short enough for requests.
    pub(crate) fn patient(self) -> Self {
        StoredOverrides { timeout: self.timeout.max(PATIENCE), ..self }
    }

    /// Returns the deadline of a call that begins now.
    pub(super) fn deadline(&self) -> Instant {
        Instant::now() + self.timeout
    }

    /// Whether these are the same, over the same connections.
    pub(crate) fn is(&self, other: &StoredOverrides) -> bool {
        self.key == other.key && Arc::ptr_eq(&self.client.deployment, &other.client.deployment)
    }

    pub(crate) fn key(&self) -> &str {
        &self.key
    }

    /// Returns the version, if there are any.
    ///
    /// # Errors
    ///
    /// If Redis fails.
    pub(crate) async fn version(&self) -> Result<Option<String>, StoreError> {
        Ok(self.fields(&["version"]).await?.pop().flatten())
    }

    /// Returns the version, if there are any, and the text.
    ///
    /// # Errors
    ///
    /// If Redis fails.
    pub(crate) async fn read(&self) -> Result<(Option<String>, String), StoreError> {
        let mut both = self.fields(&["version", "toml"]).await?;
        let text = both.pop().flatten().unwrap_or_default();
        Ok((both.pop().flatten(), text))
    }

    /// Returns the time of the server, in seconds since the Unix epoch.
    ///
    /// # Errors
    ///
    /// If Redis fails.
    pub(crate) async fn now(&self) -> Result<u64, StoreError> {
        let reply = self.client.send(&[&self.key], &cmd("TIME"), self.deadline(), false).await?;
        let time = redis::from_redis_value::<(u64, u64)>(reply);
        time.map(|(seconds, _)| seconds)
            .map_err(|error| StoreError::transient("invalid `TIME` reply").caused_by(error))
    }

    async fn fields(&self, fields: &[&str]) -> Result<Vec<Option<String>>, StoreError> {
        let command = cmd("HMGET").arg(&self.key).arg(fields).take();
        let reply = self.client.send(&[&self.key], &command, self.deadline(), false).await?;
        redis::from_redis_value(reply).map_err(|error| {
            StoreError::transient("Redis holds something else than overrides").caused_by(error)
        })
    }

    /// Replaces them, if they still have this version: the empty text if there are none. Notes these changes in the log, of which the
    /// last ones stay. Returns whether they had.
    ///
    /// # Errors
    ///
    /// If Redis fails. The overrides may be replaced all the same.
    pub(crate) async fn replace(
        &self,
        version: &str,
        text: &str,
        changes: &[String],
    ) -> Result<bool, StoreError> {
        let keys = [self.key.as_str(), &self.log_key];
        let last = changes.len().saturating_sub(MOST_CHANGES);
        let replace = cmd("EVAL")
            .arg(REPLACE)
            .arg(keys.len())
            .arg(&keys)
            .arg(version)
            .arg(text)
            .arg(MOST_CHANGES)
            .arg(&changes[last..])
            .take();
        let reply = self.client.send(&keys, &replace, self.deadline(), false).await?;
        Ok(matches!(reply, redis::Value::Int(1)))
    }

    /// Returns the changes in the log, the last one first, with their times in seconds since the Unix epoch.
    ///
    /// # Errors
    ///
    /// If Redis fails.
    pub(crate) async fn log(&self) -> Result<Vec<(u64, String)>, StoreError> {
        let command = cmd("LRANGE").arg(&self.log_key).arg(0).arg(-1).take();
        let reply = self.client.send(&[&self.log_key], &command, self.deadline(), false).await?;
        let changes = redis::from_redis_value::<Vec<String>>(reply).map_err(|error| {
            StoreError::transient("Redis holds something else than a log of overrides").caused_by(error)
        })?;
        let change = |change: &String| {
            let (time, change) = change.split_once(' ')?;
            Some((time.parse().ok()?, change.to_owned()))
        };
        Ok(changes.iter().filter_map(change).collect())
    }
}

/// Each version is later than all before it, also after the key was lost. Neither the overrides nor their log have an expiry. The log
/// comes first, so that no change is without its author.
const REPLACE: &str = r"
local function call(name, ...)
  local reply = redis.pcall(name, ...)
  if type(reply) == 'table' and reply.err then
    local denied = string.find(reply.err, 'run this command', 1, true)
    error({err = denied and 'NOPERM the user of this connection may not run ' .. name or reply.err})
  end
  return reply
end
local version = call('HGET', KEYS[1], 'version') or ''
if version ~= ARGV[1] then return 0 end
local time = call('TIME')
local next_version = math.max(time[1] * 1000000 + time[2], (tonumber(version) or 0) + 1)
for i = 4, #ARGV do
  call('LPUSH', KEYS[2], time[1] .. ' ' .. ARGV[i])
end
call('LTRIM', KEYS[2], 0, ARGV[3] - 1)
call('HSET', KEYS[1], 'version', string.format('%.0f', next_version), 'toml', ARGV[2])
return 1
";

impl fmt::Debug for StoredOverrides {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredOverrides").field("key", &self.key).finish_non_exhaustive()
    }
}
