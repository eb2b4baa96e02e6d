//! The inventory of a namespace in Redis: a hash of the policies that programs have, each with the time when one last said so.

use redis::cmd;

use super::overrides::StoredOverrides;
use crate::store::error::StoreError;

/// How long a policy is known after a program last said that it has it, in seconds.
const LIFETIME: u64 = 3600;

impl StoredOverrides {
    /// Says which policies a program has, in JSON by field, and the version of the overrides that are in force: the empty text if
    /// that is not known, or `none`. Returns the version that some program has said last, if any.
    ///
    /// # Errors
    ///
    /// If Redis fails.
    pub(crate) async fn publish(
        &self,
        policies: &[(String, String)],
        version: &str,
    ) -> Result<Option<String>, StoreError> {
        let mut publish = cmd("EVAL");
        publish.arg(PUBLISH).arg(1).arg(&self.inventory_key).arg(LIFETIME).arg(version);
        policies.iter().for_each(|(field, policy)| _ = publish.arg(field).arg(policy));
        let reply = self.client.send(&[&self.inventory_key], &publish, self.deadline(), false).await?;
        Ok(redis::from_redis_value(reply).unwrap_or_default())
    }

    /// Returns the policies that programs have, in JSON.
    ///
    /// # Errors
    ///
    /// If Redis fails.
    pub(crate) async fn inventory(&self) -> Result<Vec<String>, StoreError> {
        let (key, read) = (&*self.inventory_key, cmd("HGETALL").arg(&self.inventory_key).take());
        let reply = self.client.send(&[key], &read, self.deadline(), false).await?;
        let fields: Vec<(String, String)> = redis::from_redis_value(reply).map_err(|error| {
            StoreError::transient("Redis holds something else than an inventory").caused_by(error)
        })?;
        if fields.is_empty() {
            return Ok(Vec::new());
        }
        let now = self.now().await?;
        let policies =
            fields.into_iter().filter(|(field, _)| field.contains(':')).filter_map(|(_, value)| {
                let (said, policy) = value.split_once(' ')?;
                (now.saturating_sub(said.parse().ok()?) <= LIFETIME).then(|| policy.to_owned())
            });
        Ok(policies.collect())
    }
}

/// Once in a lifetime it removes what no program has said for as long.
const PUBLISH: &str = r"
local now, lifetime = tonumber(redis.call('TIME')[1]), tonumber(ARGV[1])
for i = 3, #ARGV, 2 do redis.call('HSET', KEYS[1], ARGV[i], now .. ' ' .. ARGV[i + 1]) end
local function age(value) return now - tonumber(string.match(value, '^%d+') or 0) end
if age(redis.call('HGET', KEYS[1], 'pruned') or '0') > lifetime then
  local all = redis.call('HGETALL', KEYS[1])
  for i = 1, #all, 2 do
    if age(all[i + 1]) > lifetime then redis.call('HDEL', KEYS[1], all[i]) end
  end
  redis.call('HSET', KEYS[1], 'pruned', now)
end
if ARGV[2] == 'none' then
  redis.call('HDEL', KEYS[1], 'overrides')
elseif ARGV[2] ~= '' then
  redis.call('HSET', KEYS[1], 'overrides', now .. ' ' .. ARGV[2])
end
redis.call('EXPIRE', KEYS[1], lifetime)
local said = redis.call('HGET', KEYS[1], 'overrides')
return said and age(said) <= lifetime and string.match(said, ' (.*)$')
";
