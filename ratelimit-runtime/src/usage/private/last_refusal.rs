//! What the last refusal of a thread is made of, if one to three policies decided the call. Under a flood most calls are refused, so their
//! error is made where it is returned, and not moved there.

use std::cell::Cell;

use crate::algorithm::PlainSnapshot;
use crate::base::coop::count_refusal;
use crate::decide::charges::PolicyCharge;
use crate::decide::decision::{FEW, SinglePolicy};
use crate::decide::definition::{ChargeNumbers, Definition, DefinitionRef};
use crate::decide::error::{Error, KeptKey, Limited};
use crate::store::PlainOutcome;
use crate::store::decided_by::DecidedBy;

/// The last refusal of a thread, which is read before any of the user's code runs: by the statement that returns, in generated code. One that
/// is needed later is [kept](super::Refusal).
///
/// A cell for each number: a copy would read together what was written apart, which is slow.
pub(super) struct LastRefusal {
    now: Cell<u64>,
    policies: Cell<usize>,
    charges: [LastCharge; FEW],
}

/// What one of the policies read, and whether it admits the call.
struct LastCharge {
    definition: Cell<Option<&'static Definition>>,
    cost: Cell<u64>,
    admits: Cell<bool>,
    snapshot: Cell<PlainSnapshot>,
}

thread_local! {
    static LAST: LastRefusal = const {
        LastRefusal { now: Cell::new(0), policies: Cell::new(1), charges: [const { LastCharge::unused() }; FEW] }
    };
}

impl LastRefusal {
    /// Sets it for a call with these charges that is refused. Returns false if the error needs more than this.
    #[inline(always)]
    pub(super) fn set<const N: usize>(charges: &[&PolicyCharge<'_>; N], outcome: &PlainOutcome<N>) -> bool {
        const { assert!(N <= FEW) };
        LAST.with(|last| {
            for (i, charge) in charges.iter().enumerate() {
                let DefinitionRef::Static(definition) = charge.definition else { return false };
                if let ChargeNumbers::Computed(..) = charge.numbers {
                    return false;
                }
                let of = &last.charges[i];
                of.definition.set(Some(definition));
                of.cost.set(charge.cost);
                of.admits.set(outcome.admits[i]);
                of.snapshot.set(outcome.snapshots[i]);
            }
            last.now.set(outcome.now);
            last.policies.set(N);
            count_refusal();
            true
        })
    }

    /// Returns the index of the attribute whose policy refused.
    pub(super) fn policy() -> Option<usize> {
        LAST.with(|last| {
            let mut refusing = (0..last.policies.get()).filter(|i| !last.charges[*i].admits.get());
            // Mostly it is the only one.
            let reported = match (refusing.next(), refusing.next()) {
                (Some(only), None) => only,
                _ => last.limited().1,
            };
            last.charges[reported].definition.get()?.attribute.index
        })
    }

    /// Returns the error.
    #[inline(always)]
    pub(super) fn error() -> Error {
        if LAST.with(|last| last.policies.get()) > 1 {
            return Error::Limited(LAST.with(LastRefusal::limited).0);
        }
        let (now, asked) = LAST.with(|last| (last.now.get(), last.charges[0].read()));
        Error::Limited(Limited::of_one(said(asked, now, false), DecidedBy::Memory, KeptKey::none()))
    }

    /// Returns what a few policies refused, and which of them is reported.
    #[inline(never)]
    fn limited(&self) -> (Limited, usize) {
        let policy = |i: usize| said(self.charges[i].read(), self.now.get(), self.charges[i].admits.get());
        Limited::of_few(self.policies.get(), policy, DecidedBy::Memory, |_| None)
    }
}

/// What a policy was asked, and what it read.
type Asked = (Option<&'static Definition>, u64, PlainSnapshot);

impl LastCharge {
    const fn unused() -> Self {
        LastCharge {
            definition: Cell::new(None),
            cost: Cell::new(0),
            admits: Cell::new(false),
            snapshot: Cell::new(PlainSnapshot::UNUSED),
        }
    }

    #[inline(always)]
    fn read(&self) -> Asked {
        (self.definition.get(), self.cost.get(), self.snapshot.get())
    }
}

/// Returns what a policy says, given whether it admits the call. If it does, it reports the state as it is.
#[inline(always)]
fn said((definition, cost, snapshot): Asked, now: u64, admits: bool) -> SinglePolicy {
    let Some((definition, numbers, plain)) = definition.and_then(|definition| {
        let numbers = definition.literal()?;
        Some((definition, numbers, numbers.plain?))
    }) else {
        debug_assert!(false, "each charge that was set has both");
        return SinglePolicy::NONE;
    };
    let cost = if admits { 0 } else { cost };
    definition.said(&plain.verdict(numbers.limit, snapshot, now, cost, admits))
}
