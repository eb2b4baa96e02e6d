//! What generated code names. Not for anybody else: it changes with every version.

mod call;
mod deciding;
pub mod dynamic;
pub mod literal;
mod refusal;

pub use call::Call;
pub use deciding::{Charged, Deciding, Refunding, Refusal};
pub use refusal::*;

pub use crate::error::Error;
use crate::error::invalid_policy::InvalidPolicy;
pub use crate::key::KeyPart;
pub use crate::on_store_error::OnStoreError;
pub use crate::place::{Constant, Constants, Declared, Named, Place, Tag};
pub use crate::policy::{FixedWindow, LeakyBucket, Policy, SlidingWindow, TokenBucket};
pub use crate::rate::Rate;
pub use crate::registry::Registry;

/// A number or a policy that is evaluated in each call, and may be wrong there.
pub type Checked<T> = Result<T, InvalidPolicy>;
