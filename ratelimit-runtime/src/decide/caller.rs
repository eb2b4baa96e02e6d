//! What attributes and limiters make of a decision.

use std::sync::Arc;

use crate::decide::acquired::{Acquired, DecidedRequest};
use crate::decide::charges::PolicyCharge;
use crate::decide::decision::Decision;
use crate::decide::definition::Definition;
use crate::decide::error::Error;
use crate::decide::single::SingleDecision;
use crate::store::{Hold, MemoryReceipt, PlainOutcome, Store};

/// Whose call is decided, and what it makes of the decision.
pub(crate) trait Caller {
    type Decision;

    /// Returns what it makes of any decision that admits the call, if that is the same for all: nothing has to be kept of one then.
    fn admitted(&self) -> Option<Self::Decision>;

    /// The only charge of the call was decided at once.
    fn single(&self, decision: SingleDecision<'_>) -> Self::Decision;

    /// A call with one to three plain charges is refused, which is neither observed nor logged. `None` to be told by [`single`](Self::single) or
    /// [`few`](Self::few).
    #[inline(always)]
    fn refused<const N: usize>(
        &self,
        charges: &[&PolicyCharge<'_>; N],
        outcome: &PlainOutcome<N>,
    ) -> Option<Self::Decision> {
        let _ = (charges, outcome);
        None
    }

    /// A few charges of the call were decided at once.
    fn few(&self, decision: impl FewDecision) -> Self::Decision;

    /// A request was decided, by the store that was charged, if one was.
    fn decided(&self, acquired: Acquired<'_>, store: Option<&Store>) -> Self::Decision;

    /// The same of a request that was awaited.
    fn awaited(&self, decided: DecidedRequest, store: Option<&Store>) -> Self::Decision {
        self.decided(decided.acquired(), store)
    }

    /// The call is refused by the policy of this attribute, or because the store failed.
    fn failed(&self, attribute: Option<usize>, error: Error) -> Self::Decision;
}

/// What became of two or three plain charges. All were made if the call is admitted, otherwise none.
pub(crate) trait FewDecision {
    /// Whether the call is admitted.
    fn admitted(&self) -> bool;

    /// Returns the charges of an admitted call that are holds or may be corrected, each hold with what reports its end.
    fn refundable(&self) -> impl Iterator<Item = (&'static Definition, MemoryReceipt, Option<Arc<Hold>>)>;

    /// Returns the decision of a call that is admitted.
    fn into_decision(self) -> Decision;

    /// Returns the error of a call that is refused, and the index of the attribute that refuses it.
    fn into_error(self) -> (Option<usize>, Error);
}
