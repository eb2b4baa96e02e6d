//! Stands in for the Redis store in builds without the feature `redis`. It cannot be constructed.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::Instant;

use crate::key::Key;
use crate::store::charge::{Charge, Outcome, SharedCharges};
use crate::store::correction::{Corrected, Correction, OnCorrected, Urgency};
use crate::store::denials::Denials;
use crate::store::error::StoreError;
use crate::store::hold::Hold;
use crate::store::leases::Leases;
use crate::store::tls::Tls;

/// A store that no value of exists.
#[derive(Clone, Copy, Debug)]
pub enum RedisStore {}

impl RedisStore {
    /// For how long it believes what calls hold.
    pub const HOLD_TTL: Duration = Duration::ZERO;

    /// The deadline of its calls.
    pub const DEADLINE: Duration = Duration::ZERO;

    /// Fails.
    ///
    /// # Errors
    ///
    /// Always.
    pub(crate) fn shared(
        _url: &str,
        _times: (Duration, Duration),
        _tls: &Tls,
        _denials: Option<Denials>,
    ) -> Result<Self, StoreError> {
        Err(StoreError::permanent(
            "Redis needs the feature `redis` of `ratelimits`; without it the URL of a store is memory://",
        ))
    }

    pub(crate) async fn decide_shared(
        &self,
        _charges: &SharedCharges,
        _begun: Instant,
    ) -> Result<Box<Outcome>, StoreError> {
        match *self {}
    }

    pub(crate) fn admit(&self, _index: usize, _charge: &Charge) -> Option<Arc<Hold>> {
        match *self {}
    }

    pub(crate) fn on_release(&self, _listener: impl Fn(&Key) + Send + Sync + 'static) {
        match *self {}
    }

    pub(crate) fn without_batches(self) -> Self {
        match self {}
    }

    pub(crate) fn denials(&self) -> Option<&Denials> {
        match *self {}
    }

    pub(crate) fn leases(&self) -> &Arc<Leases> {
        match *self {}
    }

    pub(crate) fn deadline(&self) -> Instant {
        match *self {}
    }

    pub(crate) fn is_cluster(&self) -> bool {
        match *self {}
    }

    pub(crate) fn timeout(&self) -> Duration {
        match *self {}
    }

    pub(crate) fn deployment(&self) -> &'static str {
        match *self {}
    }

    pub(crate) fn server(&self) -> String {
        match *self {}
    }

    pub(crate) async fn ping(&self) -> Result<Option<String>, StoreError> {
        match *self {}
    }

    pub(crate) async fn decide(&self, _charges: &[Charge]) -> Result<Box<Outcome>, StoreError> {
        match *self {}
    }

    pub(crate) async fn decide_many(
        &self,
        _decisions: &[&[Charge]],
    ) -> Vec<Result<Box<Outcome>, StoreError>> {
        match *self {}
    }

    pub(crate) async fn correct_all(&self, _corrections: Vec<Correction>) -> Result<Corrected, StoreError> {
        match *self {}
    }

    pub(crate) fn correct(
        &self,
        _runtime: Option<&Handle>,
        _corrections: Vec<Correction>,
        _urgency: Urgency,
        _done: OnCorrected,
    ) {
        match *self {}
    }

    pub(crate) async fn reset(&self, _key: &Key) -> Result<bool, StoreError> {
        match *self {}
    }
}
