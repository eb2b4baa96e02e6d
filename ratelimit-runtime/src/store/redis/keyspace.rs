//! What a store does with all keys of a Redis, for the command `ratelimits`.

use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream;
use redis::{Cmd, FromRedisValue, Value, cmd};

use super::RedisStore;
use super::cluster::by_slot;
use super::deployment::Deployment;
use super::node::{Node, NodeRequest};
use super::scripts::key_text;
use crate::algorithm::AlgorithmSpec;
use crate::key::Key;
use crate::store::charge::{Charge, Outcome};
use crate::store::error::StoreError;

/// How many commands of one reader are at a server at a time. Redis runs what a connection has sent without a break, so others
/// wait for all of it.
const IN_FLIGHT: usize = 2;

/// A server with keys of its own.
#[derive(Clone, Debug)]
pub struct Master(Arc<Node>);

impl RedisStore {
    /// Returns the servers whose keys are together all keys.
    ///
    /// # Errors
    ///
    /// If the servers of a Cluster are unknown.
    pub async fn masters(&self) -> Result<Vec<Master>, StoreError> {
        match &*self.client.deployment {
            Deployment::Node(node) => Ok(vec![Master(Arc::clone(node))]),
            Deployment::Cluster(cluster) => {
                Ok(cluster.masters(self.deadline()).await?.into_iter().map(Master).collect())
            }
        }
    }

    /// Returns some of the keys of a server that match a pattern, and the cursor for the next ones: 0 after the last. A key may
    /// be returned twice.
    ///
    /// # Errors
    ///
    /// If Redis fails.
    pub async fn scan(
        &self,
        Master(node): &Master,
        cursor: u64,
        pattern: &str,
        count: usize,
    ) -> Result<(u64, Vec<Vec<u8>>), StoreError> {
        let scan = scan_command(cursor, pattern, count);
        let reply = node.send(NodeRequest::Plain(&scan), self.deadline(), false).await?;
        parsed("SCAN", reply)
    }

    /// Returns the time of the server, in microseconds since the Unix epoch, and the fields that the hash under a key has then or a
    /// little later.
    ///
    /// # Errors
    ///
    /// If Redis fails, or the value is no hash.
    pub async fn hash(&self, key: &Key) -> Result<(u64, Vec<(Vec<u8>, Vec<u8>)>), StoreError> {
        let (keys, deadline) = ([key_text(key)?], self.deadline());
        let time = self.client.send(&keys, &cmd("TIME"), deadline, false).await?;
        let (seconds, micros): (u64, u64) = parsed("TIME", time)?;
        let fields = self.client.send(&keys, &cmd("HGETALL").arg(&keys).take(), deadline, false).await?;
        Ok((seconds * 1_000_000 + micros, parsed("HGETALL", fields)?))
    }

    /// Decides about these charges, whose cost is 0, with commands for a few of them. Calls `each` with the index of a charge and
    /// its outcome, in any order, and ends with its first error.
    pub async fn read(
        &self,
        charges: &[Charge],
        mut each: impl FnMut(usize, Result<Box<Outcome>, StoreError>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let decisions: Vec<&[Charge]> = charges.iter().map(std::slice::from_ref).collect();
        let slots = if self.is_cluster() { by_slot(&decisions) } else { vec![(0..charges.len()).collect()] };
        let mut commands = Vec::new();
        for mut indices in slots {
            let algorithm = |index: &usize| charges[*index].spec.kind();
            indices.sort_by_key(algorithm);
            for same in indices.chunk_by(|one, other| algorithm(one) == algorithm(other)) {
                let most = max_reads(&charges[same[0]].spec);
                commands.extend(same.chunks(most).map(<[usize]>::to_vec));
            }
        }
        let replies = stream::iter(commands).map(async |command| {
            let decisions: Vec<&[Charge]> = command.iter().map(|index| decisions[*index]).collect();
            let outcomes = self.client.decide_many(&decisions, self.client.deadline()).await;
            (command, outcomes)
        });
        let mut replies = replies.buffer_unordered(IN_FLIGHT);
        while let Some((command, outcomes)) = replies.next().await {
            for (index, outcome) in command.into_iter().zip(outcomes) {
                each(index, outcome)?;
            }
        }
        Ok(())
    }
}

/// Returns the number of states that a command reads.
fn max_reads(spec: &AlgorithmSpec) -> usize {
    match spec {
        AlgorithmSpec::Gcra(_) | AlgorithmSpec::FixedWindow(_) | AlgorithmSpec::CalendarWindow(_) => 16,
        _ => 9,
    }
}

fn parsed<T: FromRedisValue>(command: &str, reply: Value) -> Result<T, StoreError> {
    T::from_redis_value(reply)
        .map_err(|error| StoreError::transient(format!("invalid `{command}` reply: {error}")))
}

fn scan_command(cursor: u64, pattern: &str, count: usize) -> Cmd {
    cmd("SCAN").arg(cursor).arg("MATCH").arg(pattern).arg("COUNT").arg(count).take()
}
