//! Decisions of several lists on a Cluster, where each may lie in another slot.

use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

use super::slots::one_slot;
use super::{RedisStore, scripts};
use crate::error::store::StoreError;
use crate::store::{Charge, Outcome};

type Decided = Vec<Result<Outcome, StoreError>>;
type Deciding<'a> = Pin<Box<dyn Future<Output = Decided> + Send + 'a>>;

impl RedisStore {
    /// The lists of each slot in one call, in their order, and all calls at once: a master that does not answer, or a list
    /// that cannot be sent, is no trouble of the others.
    pub(super) fn decide_by_slot<'a>(&'a self, decisions: &'a [&'a [Charge]]) -> Deciding<'a> {
        Box::pin(async move {
            let (mut unsent, mut slots) = (Vec::new(), BTreeMap::<u16, Vec<usize>>::new());
            for (place, charges) in decisions.iter().enumerate() {
                match slot(charges) {
                    Ok(slot) => slots.entry(slot).or_default().push(place),
                    Err(error) => unsent.push((place, Err(error))),
                }
            }
            let calls = slots.values().map(|places| -> Deciding<'_> {
                Box::pin(async move {
                    let lists: Vec<&[Charge]> = places.iter().map(|place| decisions[*place]).collect();
                    self.decide_together(&lists).await
                })
            });
            let decided = all(calls.collect()).await.into_iter().flatten();
            let mut outcomes: Vec<_> = slots.values().flatten().copied().zip(decided).chain(unsent).collect();
            outcomes.sort_by_key(|(place, _)| *place);
            outcomes.into_iter().map(|(_, outcome)| outcome).collect()
        })
    }
}

/// The slot of all keys of a list.
fn slot(charges: &[Charge]) -> Result<u16, StoreError> {
    let keys: Result<Vec<&str>, _> = charges.iter().map(|charge| scripts::text(&charge.key)).collect();
    one_slot(&keys?)
}

/// What comes of all of these, which go on at the same time.
async fn all(mut calls: Vec<Deciding<'_>>) -> Vec<Decided> {
    let mut outputs: Vec<Option<Decided>> = calls.iter().map(|_| None).collect();
    poll_fn(|context| {
        let mut pending = false;
        for (call, output) in calls.iter_mut().zip(&mut outputs).filter(|(_, output)| output.is_none()) {
            match call.as_mut().poll(context) {
                Poll::Ready(decided) => *output = Some(decided),
                Poll::Pending => pending = true,
            }
        }
        if pending { Poll::Pending } else { Poll::Ready(()) }
    })
    .await;
    outputs.into_iter().flatten().collect()
}
