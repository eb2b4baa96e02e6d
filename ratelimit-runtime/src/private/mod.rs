//! What generated code uses. It changes with every version, so nothing else may use it.

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

pub use ::inventory;

pub use crate::call_site::{Attribute, CallSite, RegisteredSite, SiteOptions, SiteText, Tag};
pub use crate::error::Error;
use crate::error::invalid_policy::InvalidPolicy;
pub use crate::key::KeyPart;
pub use crate::on_store_error::OnStoreError;
pub use crate::policy::{Algorithm, FixedWindow, LeakyBucket, Policy, SlidingWindow, TokenBucket};
pub use crate::rate::Rate;
pub use crate::registry::Registry;

/// A number or policy that is computed per call, and may be invalid.
pub type Checked<T> = Result<T, InvalidPolicy>;
