//! What generated code names. Not for anybody else: it changes with every version.

mod call;
mod charged;
pub mod const_args;
mod future;
mod refusal;
pub mod runtime_args;

pub use call::Call;
pub use charged::{Charged, RefundFuture, Refusal};
pub use future::DecisionFuture;
pub use refusal::*;

pub use crate::call_site::{CallSite, SiteName, SiteOptions, Tag};
pub use crate::error::Error;
use crate::error::invalid_policy::InvalidPolicy;
pub use crate::key::KeyPart;
pub use crate::on_store_error::OnStoreError;
pub use crate::policy::{FixedWindow, LeakyBucket, Policy, SlidingWindow, TokenBucket};
pub use crate::rate::Rate;
pub use crate::registry::Registry;

/// A number or a policy that is evaluated in each call, and may be wrong there.
pub type Checked<T> = Result<T, InvalidPolicy>;
