//! What generated code uses. It changes with every version, so nothing else may use it.

mod bound;
mod call;
mod charged;
pub mod const_args;
mod future;
mod last_refusal;
mod pausables;
mod refusal;
pub mod runtime_args;
mod spare;
mod used;

pub use bound::{Bound, BoundFuture, unlimited};
pub use call::Call;
#[cfg(all(test, feature = "overrides"))]
pub(crate) use charged::AttributeCall;
pub use charged::{Charged, Refusal};
pub use future::{Decided, DecisionFuture};
pub use pausables::{Pausables, PauseLength, pause_when};
pub use refusal::*;
pub use used::{Used, charge_when, run, settle};

pub use ::inventory;

pub use crate::base::calendar::{CalendarPeriod, Zone};
use crate::base::invalid_policy::InvalidPolicy;
pub use crate::base::rate::Rate;
pub use crate::decide::decision::Decision;
pub use crate::decide::error::Error;
pub use crate::decide::on_store_error::OnStoreError;
pub use crate::key::KeyPart;
pub use crate::policy::{
    Algorithm, ConcurrencyLimit, FixedWindow, LeakyBucket, LeaseSize, NotifyAt, Policy, SlidingWindow,
    TokenBucket,
};
pub use crate::usage::call_site::{Attribute, CallSite, RegisteredSite, SiteOptions, SiteText, Tag};
pub use crate::usage::registry::Registry;

/// A number or policy that is computed per call, and may be invalid.
pub type Checked<T> = Result<T, InvalidPolicy>;
