//! State in Redis, for every process that asks it.

mod connections;
mod scripts;

use redis::{ErrorKind, ServerErrorKind, Value};

use self::connections::{Connections, Failure};
use self::scripts::{Invocation, Scripts};
use super::{Charge, Outcome};
use crate::algorithm::{Mark, Rule};
use crate::error::StoreError;
use crate::key::Key;

/// State in a Redis server: one multiplexed connection a runtime, one script call for any number of decisions.
#[derive(Debug)]
pub struct RedisStore {
    connections: Connections,
    scripts: Scripts,
}

impl RedisStore {
    /// A store that connects when it is first asked.
    ///
    /// # Errors
    ///
    /// If the URL is wrong.
    pub fn lazy(url: &str) -> Result<Self, StoreError> {
        Ok(RedisStore { connections: Connections::new(url)?, scripts: Scripts::new(|script| script) })
    }

    /// The store under a time of the caller's, for tests: both as [`ratelimit_lua::with_time`] takes them.
    #[must_use]
    pub fn with_time(self, now: &str, expire: &str) -> Self {
        let scripts = Scripts::new(|script| ratelimit_lua::with_time(&script, now, expire));
        RedisStore { scripts, ..self }
    }

    /// Connects and waits for a sign of life.
    ///
    /// # Errors
    ///
    /// If no server answers, or it does not let us in.
    pub async fn ping(&self) -> Result<(), StoreError> {
        self.connections.send(&redis::cmd("PING")).await?;
        Ok(())
    }

    /// Decides every list of charges, all or nothing but for shadows, in order and at one time.
    pub async fn decide(&self, decisions: &[&[Charge]]) -> Vec<Result<Outcome, StoreError>> {
        match self.try_decide(decisions).await {
            Ok(outcomes) => outcomes,
            Err(error) => decisions.iter().map(|_| Err(error.again())).collect(),
        }
    }

    /// Gives back `cost` permits: of the charge so marked, or of whatever the key holds. It is sent once.
    ///
    /// # Errors
    ///
    /// If Redis fails. It may have given the permits back all the same.
    pub async fn refund(
        &self,
        key: &Key,
        rule: &Rule,
        cost: u64,
        mark: Option<Mark>,
    ) -> Result<(), StoreError> {
        self.invoke(&self.scripts.refund(key, rule, cost, mark)?).await?;
        Ok(())
    }

    /// Forgets what the key holds.
    ///
    /// # Errors
    ///
    /// If Redis fails.
    pub async fn reset(&self, key: &Key) -> Result<(), StoreError> {
        self.connections.send(redis::cmd("DEL").arg(scripts::text(key)?)).await?;
        Ok(())
    }

    async fn try_decide(
        &self,
        decisions: &[&[Charge]],
    ) -> Result<Vec<Result<Outcome, StoreError>>, StoreError> {
        let reply = self.invoke(&self.scripts.decide(decisions)?).await?;
        scripts::outcomes(decisions, reply)
    }

    /// By hash, and only where the server says that it has not run the script, once more with the text: an error that
    /// could come after the script has run is never followed by another try.
    async fn invoke(&self, invocation: &Invocation<'_>) -> Result<Value, StoreError> {
        match self.connections.send(&invocation.evalsha()).await {
            Err(Failure::Replied(error)) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
                Ok(self.connections.send(&invocation.eval()).await?)
            }
            reply => Ok(reply?),
        }
    }
}
