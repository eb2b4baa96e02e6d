//! Calls to the servers of a store. Each ends by its deadline.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::{BoxFuture, join_all};
use redis::{Cmd, FromRedisValue, Value, cmd};
use tokio::time::Instant;

use super::cluster::by_slot;
use super::deployment::Deployment;
use super::error::CallError;
use super::holds::{HOLD_TTL, Holds};
use super::node::NodeRequest;
use super::scripts::{self, Form, Invocation, Scripts};
use super::server_time::ServerTime;
use crate::algorithm::AlgorithmSpec;
use crate::base::runtime::BACKGROUND;
use crate::store::charge::{Charge, Outcome};
use crate::store::correction::{Corrected, Correction};
use crate::store::error::StoreError;
#[cfg(feature = "metrics")]
use crate::store::series::CALL_TIME;

/// Around how many other times the windows of calendars may be asked for: that of the server, and the end of a pause.
const MOST_TIMES: usize = 2;

/// What a store needs for a call.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) deployment: Arc<Deployment>,
    pub(super) timeout: Duration,
    pub(super) scripts: Arc<Scripts>,
    /// Whether a server that is not known as a Cluster wants the keys of a call in one slot.
    pub(super) has_slots: AtomicBool,
    /// Whether a server has run the script that refunds.
    pub(super) knows_correct: AtomicBool,
    /// What calls of this process hold.
    pub(super) holds: Holds,
    pub(super) time: ServerTime,
}

impl Client {
    pub(super) fn new(deployment: Arc<Deployment>, timeout: Duration, scripts: Arc<Scripts>) -> Self {
        let (has_slots, knows_correct) = (AtomicBool::new(false), AtomicBool::new(false));
        let (holds, time) = (Holds::new(HOLD_TTL, || BACKGROUND.handle()), ServerTime::default());
        Client { deployment, timeout, scripts, has_slots, knows_correct, holds, time }
    }

    /// Returns the deadline of a call that begins now.
    pub(super) fn deadline(&self) -> Instant {
        Instant::now() + self.timeout
    }

    /// Makes one decision about a list of charges. In a box, because calls that wait for a batch need not hold what this takes.
    pub(super) fn decide<'a>(
        &'a self,
        form: Form,
        charges: &'a [Charge],
        deadline: Instant,
    ) -> BoxFuture<'a, Result<Box<Outcome>, StoreError>> {
        Box::pin(async move {
            let mut outcomes = self.decide_first(form, &[charges], deadline).await;
            outcomes.pop().unwrap_or_else(|| Err(StoreError::not_sent()))
        })
    }

    /// Makes several decisions, in order and at the same time of the store, with one call per Cluster slot. What such a
    /// call does not decide is decided alone, and later.
    pub(super) async fn decide_many(
        &self,
        decisions: &[&[Charge]],
        deadline: Instant,
    ) -> Vec<Result<Box<Outcome>, StoreError>> {
        let groups =
            if self.is_cluster() { by_slot(decisions) } else { vec![(0..decisions.len()).collect()] };
        let calls = groups.iter().map(|group| async {
            let decisions: Vec<&[Charge]> = group.iter().map(|index| decisions[*index]).collect();
            let form = self.scripts.common_form(&decisions);
            let mut outcomes = self.decide_together(form, &decisions, deadline).await;
            let rest = decisions[outcomes.len()..]
                .iter()
                .map(|charges| self.decide(self.scripts.form(charges), charges, deadline));
            outcomes.extend(join_all(rest).await);
            outcomes
        });
        let outcomes = join_all(calls).await.into_iter().flatten();
        let mut outcomes: Vec<_> = groups.iter().flatten().zip(outcomes).collect();
        outcomes.sort_by_key(|(index, _)| *index);
        outcomes.into_iter().map(|(_, outcome)| outcome).collect()
    }

    /// Makes several decisions with one call, or more if one would take long. Makes the first ones of them, or none, if Redis refuses
    /// the keys of others together.
    pub(super) async fn decide_together(
        &self,
        form: Form,
        decisions: &[&[Charge]],
        deadline: Instant,
    ) -> Vec<Result<Box<Outcome>, StoreError>> {
        let mut outcomes = self.decide_first(form, decisions, deadline).await;
        while !outcomes.is_empty() && outcomes.len() < decisions.len() {
            let more = self.decide_first(form, &decisions[outcomes.len()..], deadline).await;
            if more.is_empty() {
                break;
            }
            outcomes.extend(more);
        }
        outcomes
    }

    /// Makes several decisions with one call, or the first ones of them: none if Redis refuses these keys together, and some if all
    /// would take long.
    async fn decide_first(
        &self,
        form: Form,
        decisions: &[&[Charge]],
        deadline: Instant,
    ) -> Vec<Result<Box<Outcome>, StoreError>> {
        if !has_calendars(form, decisions) {
            return self.decide_at(form, decisions, deadline, 0).await;
        }
        let mut outcomes = self.decide_at(form, decisions, deadline, self.time.now()).await;
        // No decision comes after one that asks for another time.
        for _ in 0..MOST_TIMES {
            let Some(time) = outcomes.last().and_then(scripts::time_asked_for) else { break };
            let last = outcomes.len() - 1;
            outcomes.truncate(last);
            outcomes.extend(self.decide_at(form, &decisions[last..=last], deadline, time).await);
        }
        self.time.learn(&outcomes);
        outcomes
    }

    /// Makes the same decisions, with the windows of calendars around a time.
    async fn decide_at(
        &self,
        form: Form,
        decisions: &[&[Charge]],
        deadline: Instant,
        time: u64,
    ) -> Vec<Result<Box<Outcome>, StoreError>> {
        let is_batch = decisions.len() > 1;
        let takes = match self.holds.ask(decisions.iter().copied()) {
            Ok(takes) => takes,
            // The others need not fail.
            Err(_) if is_batch => return Vec::new(),
            Err(error) => return vec![Err(error); decisions.len()],
        };
        let reply = match self.scripts.decide(form, decisions, takes.sent(), time) {
            Ok(invocation) => self.invoke(&invocation, deadline, is_batch).await,
            Err(error) => Err(CallError::NotSent(error)),
        };
        if let Err(error) = &reply
            && is_batch
            && self.concerns_some_keys(error)
        {
            takes.hear_not_sent();
            return Vec::new();
        }
        if let Err(CallError::NotSent(error)) = reply {
            takes.hear_not_sent();
            return vec![Err(error); decisions.len()];
        }
        let outcomes = reply.map_err(StoreError::from).and_then(|reply| scripts::outcomes(decisions, reply));
        let mut outcomes = outcomes.unwrap_or_else(|error| vec![Err(error); decisions.len()]);
        takes.hear(decisions, &mut outcomes);
        outcomes
    }

    /// Corrects what several keys were charged with one call, sent at most once. Returns the result for each.
    pub(super) async fn correct(
        &self,
        corrections: &[&Correction],
    ) -> Result<Vec<Result<Corrected, StoreError>>, CallError> {
        let deadline = self.deadline();
        let mut corrected = self.correct_at(corrections, deadline, self.time.now()).await?;
        for (correction, result) in corrections.iter().zip(&mut corrected) {
            for _ in 0..MOST_TIMES {
                let Some(time) = scripts::time_asked_for(result) else { break };
                // An error concerns this one alone: the others are made.
                match self.correct_at(&[correction], deadline, time).await {
                    Ok(mut again) => *result = again.pop().unwrap_or_else(|| Err(StoreError::not_sent())),
                    Err(error) => *result = Err(error.into()),
                }
            }
        }
        Ok(corrected)
    }

    /// Makes the same corrections, with the windows of calendars around a time.
    async fn correct_at(
        &self,
        corrections: &[&Correction],
        deadline: Instant,
        time: u64,
    ) -> Result<Vec<Result<Corrected, StoreError>>, CallError> {
        let invocation = self.scripts.correct(corrections, time).map_err(CallError::NotSent)?;
        let is_batch = corrections.len() > 1;
        let reply = if self.knows_correct.load(Ordering::Relaxed) {
            self.invoke(&invocation, deadline, is_batch).await?
        } else {
            // To learn that the server does not know the hash would let what this process asks meanwhile overtake the correction.
            self.send(invocation.keys(), &invocation.eval(), deadline, is_batch).await?
        };
        self.knows_correct.store(true, Ordering::Relaxed);
        Ok(scripts::corrected(corrections.len(), reply))
    }

    /// Whether an error of keys that were sent together may concern only some of them.
    pub(super) fn concerns_some_keys(&self, error: &CallError) -> bool {
        if error.is_cross_slot() {
            self.has_slots.store(true, Ordering::Relaxed);
        }
        error.may_concern_one_key()
    }

    /// Calls a script by its hash, and again with its source only if the server does not know the hash: after any other
    /// error the script may have run.
    pub(super) async fn invoke(
        &self,
        invocation: &Invocation<'_>,
        deadline: Instant,
        is_batch: bool,
    ) -> Result<Value, CallError> {
        #[cfg(feature = "metrics")]
        let begin = Instant::now();
        let reply = match self.send(invocation.keys(), &invocation.evalsha(), deadline, is_batch).await {
            Err(error) if error.is_no_script() => {
                self.send(invocation.keys(), &invocation.eval(), deadline, is_batch).await
            }
            reply => reply,
        };
        #[cfg(feature = "metrics")]
        metrics::histogram!(CALL_TIME).record(begin.elapsed());
        reply
    }

    pub(super) async fn send(
        &self,
        keys: &[&str],
        command: &Cmd,
        deadline: Instant,
        is_batch: bool,
    ) -> Result<Value, CallError> {
        match &*self.deployment {
            Deployment::Node(node) => node.send(NodeRequest::Plain(command), deadline, is_batch).await,
            Deployment::Cluster(cluster) => cluster.send(keys, command, deadline, is_batch).await,
        }
    }

    /// Checks that a server responds.
    pub(super) async fn ping(&self, deadline: Instant) -> Result<(), CallError> {
        match &*self.deployment {
            Deployment::Node(node) => node.ping(deadline).await,
            Deployment::Cluster(cluster) => cluster.ping(deadline).await,
        }
    }

    /// Returns the name and version of a server, if it reports them by the deadline. `HELLO` needs no permission.
    pub(super) async fn version(&self, deadline: Instant) -> Option<String> {
        let reply = self.send(&[], &cmd("HELLO"), deadline, false).await.ok()?;
        let fields = HashMap::<String, Value>::from_redis_value(reply).ok()?;
        let field = |name| String::from_redis_value_ref(fields.get(name)?).ok();
        Some(format!("{} {}", field("server")?, field("version")?))
    }

    /// Whether calls can only share a batch if their keys are in one slot.
    pub(super) fn has_slots(&self) -> bool {
        self.is_cluster() || self.has_slots.load(Ordering::Relaxed)
    }

    pub(super) fn is_cluster(&self) -> bool {
        matches!(*self.deployment, Deployment::Cluster(_))
    }
}

/// Whether some decisions are about the windows of calendars.
fn has_calendars(form: Form, decisions: &[&[Charge]]) -> bool {
    let is_calendar = |charge: &Charge| matches!(charge.spec, AlgorithmSpec::CalendarWindow(_));
    cfg!(feature = "calendar")
        && !matches!(form, Form::Buckets(_))
        && decisions.iter().copied().flatten().any(is_calendar)
}
