//! Calls with two or three plain charges, which the memory store decides without a lock.

use super::charges::{Charges, PolicyCharge};
use crate::algorithm::PlainSpec;
use crate::base::all_some::all_some;
use crate::decide::backend::Backend;
use crate::store::{MemoryStore, PlainCharge, PlainOutcome};

impl Backend {
    /// Makes two or three charges of an attribute's call, whose keys are distinct, if all are admitted at once. Otherwise nothing is
    /// charged.
    pub(super) fn admits_few(&self, charges: &Charges<'_>) -> bool {
        let (Some(memory), Some(few)) = (self.memory(), charges.few()) else { return false };
        match few {
            [Some(a), Some(b), None] => self.admits(memory, charges, [a, b]),
            [Some(a), Some(b), Some(c)] => self.admits(memory, charges, [a, b, c]),
            _ => false,
        }
    }

    #[inline(always)]
    fn admits<const N: usize>(
        &self,
        memory: &MemoryStore,
        charges: &Charges<'_>,
        few: [&PolicyCharge<'_>; N],
    ) -> bool {
        let mut plain = [None; N];
        for (plain, charge) in plain.iter_mut().zip(few) {
            *plain = charge.plain().filter(|_| !charge.shadow && !charge.definition.attribute.refundable);
        }
        let Some(specs) = all_some(plain) else { return false };
        // None are made of a call that waits for a window if it is refused: such calls queue, and may overtake none that wait
        // already. A call that waits for buckets only does so if it is refused.
        if few.iter().any(|charge| charge.wait > 0) && specs.iter().any(|spec| !spec.reserves()) {
            return false;
        }
        let mut asked = [PlainCharge { key: few[0].key, spec: specs[0], cost: few[0].cost }; N];
        for i in 1..N {
            asked[i] = PlainCharge { key: few[i].key, spec: specs[i], cost: few[i].cost };
        }
        let Some(outcome) = memory.decide_all_plain(asked).filter(|outcome| outcome.admitted) else {
            return false;
        };
        if self.observers().is_some() {
            self.observe_few(charges, few, specs, &outcome);
        }
        true
    }

    #[inline(never)]
    fn observe_few<const N: usize>(
        &self,
        charges: &Charges<'_>,
        few: [&PolicyCharge<'_>; N],
        specs: [PlainSpec; N],
        outcome: &PlainOutcome<N>,
    ) {
        let Some(observers) = self.observers() else { return };
        for i in 0..N {
            let (seen, parts) = ((outcome.now, outcome.snapshots[i]), charges.parts_of(few[i]));
            observers.plain(few[i], specs[i], seen, true, parts);
        }
    }
}
