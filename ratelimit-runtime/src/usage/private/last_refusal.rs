//! What the last refusal of a thread by a single policy is made of. Under a flood most calls are refused, so their error is made where it
//! is returned, and not moved there.

use std::cell::Cell;

use crate::algorithm::PlainSnapshot;
use crate::base::coop::count_refusal;
use crate::decide::charges::PolicyCharge;
use crate::decide::definition::{ChargeNumbers, Definition, DefinitionRef};
use crate::decide::error::{Error, KeptKey, Limited};
use crate::key::missing_key::MissingKey;
use crate::store::PlainOutcome;
use crate::store::decided_by::DecidedBy;

/// The last refusal of a thread, which is read before any of the user's code runs: by the statement that returns, in generated code. One that
/// is needed later is [kept](super::Refusal).
///
/// A cell for each number: a copy would read together what was written apart, which is slow.
pub(super) struct LastRefusal {
    definition: Cell<Option<&'static Definition>>,
    cost: Cell<u64>,
    now: Cell<u64>,
    snapshot: Cell<PlainSnapshot>,
}

thread_local! {
    static LAST: LastRefusal = const {
        LastRefusal {
            definition: Cell::new(None),
            cost: Cell::new(0),
            now: Cell::new(0),
            snapshot: Cell::new(PlainSnapshot::UNUSED),
        }
    };
}

impl LastRefusal {
    /// Sets it for a charge that is refused. Returns false, and sets nothing, if the error needs more than this.
    #[inline(always)]
    pub(super) fn set(charge: &PolicyCharge<'_>, outcome: &PlainOutcome<1>) -> bool {
        let (DefinitionRef::Static(definition), ChargeNumbers::Literal(_) | ChargeNumbers::ByKey(..)) =
            (charge.definition, &charge.numbers)
        else {
            return false;
        };
        count_refusal();
        LAST.with(|last| {
            last.definition.set(Some(definition));
            last.cost.set(charge.cost);
            last.now.set(outcome.now);
            last.snapshot.set(outcome.snapshots[0]);
        });
        true
    }

    /// Returns the index of the attribute whose policy refused.
    pub(super) fn policy() -> Option<usize> {
        LAST.with(|last| last.definition.get()?.attribute.index)
    }

    /// Returns the error.
    #[inline(always)]
    pub(super) fn error() -> Error {
        let (definition, cost, now, snapshot) =
            LAST.with(|last| (last.definition.get(), last.cost.get(), last.now.get(), last.snapshot.get()));
        // All that were set have both.
        let Some((definition, numbers, plain)) = definition.and_then(|definition| {
            let numbers = definition.literal()?;
            Some((definition, numbers, numbers.plain?))
        }) else {
            return Error::MissingKey(MissingKey::Part);
        };
        let verdict = plain.verdict(numbers.limit, snapshot, now, cost, false);
        Error::Limited(Limited::of_one(definition.said(&verdict), DecidedBy::Memory, KeptKey::none()))
    }
}
