//! What generated code learns of a decision.

use std::cell::Cell;
use std::mem;
use std::sync::Arc;
use std::thread::LocalKey;

use super::last_refusal::LastRefusal;
use super::spare::{Reusable, Spare};
use super::used::Used;
use crate::base::invalid_policy::InvalidPolicy;
use crate::base::log::LogBound;
use crate::decide::acquired::Acquired;
use crate::decide::charges::PolicyCharge;
use crate::decide::decision::settling;
use crate::decide::definition::{Definition, DefinitionRef, OwnedDefinition};
use crate::decide::error::Error;
use crate::decide::{Caller, FewDecision, SingleDecision};
use crate::key::missing_key::MissingKey;
use crate::policy::Algorithm;
use crate::store::error::StoreError;
use crate::store::{Corrected, Hold, MemoryReceipt, OwnedReceipt, PlainOutcome, Receipt, Store};

/// Why a call is refused. It is a pointer, because an error is moved several times on its way to the caller; `None` if it is made of the
/// last refusal of the thread (`last_refusal.rs`).
pub struct Refusal(Option<Box<Refused>>);

struct Refused {
    policy: Option<usize>,
    error: Error,
}

/// The charges of an admitted call that `charge_when` or `settle` may correct once the output is known, and the permits that it holds
/// until this is dropped.
///
/// Dropped, as with a call that is cancelled or panics, it corrects nothing.
pub struct Charged(Option<Box<Refundable>>);

enum Refundable {
    Nothing,
    /// The only charge that is a hold or may be corrected, in process.
    One(Correctable),
    /// Several such charges, in process.
    Few(Box<[Correctable]>),
    Any(Box<[(OwnedDefinition, Receipt)]>),
}

/// A charge of an attribute in process. If that is a hold, it ends as this is dropped.
struct Correctable {
    definition: &'static Definition,
    receipt: OwnedReceipt,
    /// What reports the end of a hold, once its permits are free.
    #[expect(dead_code, reason = "it reports as it is dropped")]
    observed: Option<Arc<Hold>>,
}

impl Reusable for Refused {
    const UNUSED: Self = Refused { policy: None, error: Error::MissingKey(MissingKey::Part) };

    fn spare() -> &'static LocalKey<Spare<Self>> {
        thread_local!(static SPARE: Spare<Refused> = const { Cell::new(None) });
        &SPARE
    }
}

impl Reusable for Refundable {
    const UNUSED: Self = Refundable::Nothing;

    fn spare() -> &'static LocalKey<Spare<Self>> {
        thread_local!(static SPARE: Spare<Refundable> = const { Cell::new(None) });
        &SPARE
    }
}

/// The call of a limited function. `None` if it is admitted, and nothing of it may be refunded.
pub(crate) struct AttributeCall;

impl Caller for AttributeCall {
    type Decision = Option<Result<Charged, Refusal>>;

    #[inline]
    fn admitted(&self) -> Option<Self::Decision> {
        Some(None)
    }

    #[inline(always)]
    fn single(&self, decision: SingleDecision<'_>) -> Self::Decision {
        if decision.goes_ahead() && !decision.charge.definition.attribute.refundable {
            return None;
        }
        single(decision)
    }

    #[inline(always)]
    fn refused<const N: usize>(
        &self,
        charges: &[&PolicyCharge<'_>; N],
        outcome: &PlainOutcome<N>,
    ) -> Option<Self::Decision> {
        LastRefusal::set(charges, outcome).then_some(Some(Err(Refusal(None))))
    }

    #[inline(always)]
    fn few(&self, decision: impl FewDecision) -> Self::Decision {
        if decision.admitted() {
            let mut refundable = decision.refundable().map(Correctable::new);
            let first = refundable.next()?;
            // Mostly it is the only one, and then nothing is allocated.
            return charged(match refundable.next() {
                None => Refundable::One(first),
                Some(second) => Refundable::Few([first, second].into_iter().chain(refundable).collect()),
            });
        }
        let (policy, error) = decision.into_error();
        refused(policy, error)
    }

    fn decided(&self, acquired: Acquired<'_>, store: Option<&Store>) -> Self::Decision {
        if !acquired.outcome.admitted {
            let decision = acquired.into_decision(None);
            let policy = acquired.request.policies()[decision.reported()].definition.attribute.index;
            return refused(policy, decision.into_error());
        }
        let store = store?;
        let refundable =
            || acquired.request.policies().iter().filter(|policy| policy.definition.attribute.refundable);
        // Mostly there is one, and then nothing is allocated.
        if let (Some(policy), None) = (refundable().next(), refundable().nth(1))
            && let OwnedDefinition::Static(definition) = policy.definition
            && let Some(receipt) = acquired.memory_receipt_of(policy, store)
        {
            return charged(Refundable::One(Correctable::new((definition, receipt, None))));
        }
        let refundable: Box<[_]> = refundable()
            .map(|policy| (policy.definition.clone(), acquired.receipt_of(policy, store)))
            .collect();
        if refundable.is_empty() { None } else { charged(Refundable::Any(refundable)) }
    }

    fn failed(&self, policy: Option<usize>, error: Error) -> Self::Decision {
        refused(policy, error)
    }
}

#[inline(always)]
fn refused(policy: Option<usize>, error: Error) -> Option<Result<Charged, Refusal>> {
    Some(Err(Refusal::new(policy, error)))
}

#[inline(always)]
fn charged(refundable: Refundable) -> Option<Result<Charged, Refusal>> {
    Some(Ok(Charged(Some(refundable.boxed()))))
}

#[inline(always)]
fn single(decision: SingleDecision<'_>) -> Option<Result<Charged, Refusal>> {
    // That of an attribute lives as long as the process.
    let DefinitionRef::Static(definition) = decision.charge.definition else { return None };
    if !decision.goes_ahead() {
        let unused = Refused::take_box();
        let refused = Refused { policy: definition.attribute.index, error: decision.into_error() };
        return Some(Err(Refusal(Some(Refused::put_into(unused, refused)))));
    }
    let unused = Refundable::take_box();
    let Some(receipt) = decision.receipt(&decision.verdict()) else {
        Refundable::give_back(unused);
        return None;
    };
    let observed = if receipt.is_hold() { decision.observed_hold() } else { None };
    let charge = Refundable::One(Correctable::new((definition, receipt, observed)));
    Some(Ok(Charged(Some(Refundable::put_into(unused, charge)))))
}

impl Correctable {
    #[inline(always)]
    fn new((definition, receipt, observed): (&'static Definition, MemoryReceipt, Option<Arc<Hold>>)) -> Self {
        Correctable { definition, receipt: OwnedReceipt(receipt), observed }
    }

    fn correct(&self, used: &Used) {
        let name = self.definition.name.as_str();
        match used {
            Used::Cost => {}
            Used::Nothing => {
                self.receipt.refund();
                tell_refund(name);
            }
            Used::Permits(Ok(used)) => {
                if self.receipt.settle(*used) == Corrected::Cut {
                    settling::report(name, Ok(Corrected::Cut));
                }
            }
            Used::Permits(Err(invalid)) => log_invalid(self.definition, invalid),
        }
    }
}

impl Refusal {
    #[inline(always)]
    pub(super) fn new(policy: Option<usize>, error: Error) -> Self {
        Refusal(Some(Refused { policy, error }.boxed()))
    }

    /// Returns the same for later, when the thread may have refused another call.
    #[cold]
    pub(super) fn kept(self) -> Self {
        let policy = self.policy();
        Refusal::new(policy, self.into_error())
    }

    /// Returns the index of the attribute whose policy refused; `None` if the store failed.
    #[inline]
    #[must_use]
    pub fn policy(&self) -> Option<usize> {
        match &self.0 {
            Some(refused) => refused.policy,
            None => LastRefusal::policy(),
        }
    }

    /// Returns the error for the caller.
    #[inline(always)]
    #[must_use]
    pub fn into_error(self) -> Error {
        match self.0 {
            Some(refused) => Refused::unboxed(refused).error,
            None => LastRefusal::error(),
        }
    }
}

impl Charged {
    /// No charge that may be refunded.
    pub const NOTHING: Charged = Charged(None);

    /// Corrects the charges by what each policy has used, by the index of its attribute. The call has ended, so it does not wait for
    /// Redis.
    pub fn correct(mut self, used: &[(usize, Used)]) {
        let used_of = |definition: &Definition| {
            // A hold has ended, and has nothing to give back.
            if definition.algorithm == Algorithm::Semaphore {
                return &Used::Cost;
            }
            let index = definition.attribute.index;
            used.iter().find(|(of, _)| Some(*of) == index).map_or(&Used::Nothing, |(_, used)| used)
        };
        let Some(charged) = &mut self.0 else { return };
        // Read where it is: the receipt is longer than what is done with it.
        match &mut **charged {
            Refundable::Nothing => {}
            Refundable::One(charge) => charge.correct(used_of(charge.definition)),
            Refundable::Few(charges) => {
                charges.iter().for_each(|charge| charge.correct(used_of(charge.definition)));
            }
            Refundable::Any(charged) => {
                let charged = mem::take(charged);
                let (mut definitions, mut receipts) = (Vec::new(), Vec::new());
                for (definition, receipt) in charged {
                    let used = match used_of(&definition) {
                        Used::Cost => continue,
                        Used::Nothing => {
                            tell_refund(definition.name.as_str());
                            None
                        }
                        Used::Permits(Ok(used)) => Some(*used),
                        Used::Permits(Err(invalid)) => {
                            log_invalid(&definition, invalid);
                            continue;
                        }
                    };
                    definitions.push((definition, used.is_some()));
                    receipts.push((receipt, used));
                }
                Receipt::settle_all(None, receipts, move |result| report(&definitions, &result));
            }
        }
    }
}

impl Drop for Charged {
    #[inline]
    fn drop(&mut self) {
        if let Some(charged) = self.0.take() {
            Refundable::give_back(charged);
        }
    }
}

/// Logs what became of corrections of a call, given for each policy whether it was settled, or else refunded.
fn report(corrected: &[(OwnedDefinition, bool)], result: &Result<Corrected, StoreError>) {
    for (definition, settles) in corrected {
        match result {
            result if *settles => settling::report(definition.name.as_str(), result.clone()),
            Err(error) => definition.log_failed_refund(error),
            Ok(_) => {}
        }
    }
}

#[cold]
fn log_invalid(definition: &Definition, invalid: &InvalidPolicy) {
    static INVALID: LogBound = LogBound::new();
    settling::log_unsettled(&INVALID, definition.name.as_str(), &invalid.to_string());
}

/// Adds a charge that was given back to what the response reports.
fn tell_refund(policy: &str) {
    #[cfg(feature = "web")]
    crate::usage::context::with_record(|record| record.give_back(policy));
    #[cfg(not(feature = "web"))]
    let _ = policy;
}

impl std::fmt::Debug for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Refusal").field("policy", &self.policy()).finish_non_exhaustive()
    }
}

/// Without keys.
impl std::fmt::Debug for Charged {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Charged")
    }
}
