//! What generated code names. Not for anybody else: it changes with every version.

pub mod dynamic;
pub mod literal;
mod refusal;

pub use refusal::*;

use std::fmt::{self, Display};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::backend::Pending;
use crate::context;
pub use crate::error::Error;
use crate::error::{InvalidPolicy, MissingKey};
pub use crate::key::KeyPart;
use crate::key::KeyWriter;
pub use crate::name::{Name, Place};
pub use crate::policy::{FixedWindow, LeakyBucket, Policy, SlidingWindow, TokenBucket};
pub use crate::rate::Rate;
use crate::registry::{self, Registry};

/// A number or a policy that is evaluated in each call, and may be wrong there.
pub type Checked<T> = Result<T, InvalidPolicy>;

/// A decision being put together: for each policy a charge, followed by the parts of its key.
#[derive(Debug)]
pub struct Call {
    registry: Registry,
    open: Option<Open>,
    charges: Vec<Pending>,
    /// The first thing that is wrong with the call.
    error: Option<Error>,
}

#[derive(Debug)]
struct Open {
    name: Name,
    prefix: &'static str,
    policy: Policy,
    cost: u64,
    key: KeyWriter,
}

impl Call {
    /// A decision of the current registry.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "nobody else makes one")]
    pub fn new() -> Self {
        Call { registry: registry::current(), open: None, charges: Vec::new(), error: None }
    }

    /// Begins the charge of a policy. A charge of nothing is none: nobody is asked, and nobody looks at its key.
    pub fn charge(&mut self, name: Name, prefix: &'static str, policy: Checked<Policy>, cost: Checked<u64>) {
        self.close();
        if cost == Ok(0) {
            return;
        }
        match policy.and_then(|policy| Ok((policy, cost?))) {
            Ok((policy, cost)) => {
                let key = self.registry.backend().key();
                self.open = Some(Open { name, prefix, policy, cost, key });
            }
            Err(invalid) => self.fail(invalid.into()),
        }
    }

    /// Adds a part to the key of the last charge.
    pub fn part<M, T: KeyPart<M> + ?Sized>(&mut self, part: &T) {
        if let Some(open) = &mut self.open
            && let Err(missing) = part.write(&mut open.key)
        {
            self.fail(missing.into());
        }
    }

    /// Adds the address of the context.
    pub fn ip(&mut self) {
        self.context(context::ip());
    }

    /// Adds the user of the context.
    pub fn user(&mut self) {
        self.context(context::user());
    }

    /// Adds the user of the context, or without one the address; one never meets the other.
    pub fn user_or_ip(&mut self) {
        match context::user() {
            Ok(user) => {
                self.part("user");
                self.part(&*user);
            }
            Err(_) => {
                self.part("ip");
                self.ip();
            }
        }
    }

    /// Decides, at once where nothing has to be awaited.
    pub fn decide(mut self) -> Deciding {
        self.close();
        if self.registry.backend().store.is_none() {
            return Deciding(Progress::Decided(Some(Ok(()))));
        }
        if let Some(error) = self.error {
            return Deciding(Progress::Decided(Some(Err(error))));
        }
        match self.registry.backend().decide_now(self.charges) {
            Ok(decided) => Deciding(Progress::Decided(Some(decided))),
            Err(charges) => {
                let backend = Arc::clone(self.registry.backend());
                Deciding(Progress::Asked(Box::pin(async move { backend.decide(charges).await.map(drop) })))
            }
        }
    }

    fn context(&mut self, part: Result<impl Display, MissingKey>) {
        if self.open.is_none() {
            return;
        }
        match part {
            Ok(part) => self.part(&part),
            Err(missing) => self.fail(missing.into()),
        }
    }

    /// Ends the charge that was begun.
    fn close(&mut self) {
        let Some(Open { name, prefix, policy, cost, key }) = self.open.take() else { return };
        match policy.rule() {
            Ok(rule) => {
                let charge = self.registry.backend().charge(key, (prefix, name, None), rule, cost);
                self.charges.push(charge);
            }
            Err(invalid) => self.fail(invalid.into()),
        }
    }

    fn fail(&mut self, error: Error) {
        self.error.get_or_insert(error);
    }
}

/// The decision about a call: small, as every limited function's future holds one.
#[must_use]
pub struct Deciding(Progress);

enum Progress {
    Decided(Option<Result<(), Error>>),
    Asked(Pin<Box<dyn Future<Output = Result<(), Error>> + Send>>),
}

impl Future for Deciding {
    type Output = Result<(), Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            Progress::Decided(decided) => decided.take().map_or(Poll::Pending, Poll::Ready),
            Progress::Asked(asked) => asked.as_mut().poll(context),
        }
    }
}

impl fmt::Debug for Deciding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Deciding")
    }
}
