use std::time::Duration;

use super::order;
use crate::algorithm::ChargeId;
use crate::key::Key;
use crate::policy::{Policy, SlidingWindow, TokenBucket};
use crate::store::correction::{Correction, CorrectionKind};

#[test]
fn receipts_of_a_log_are_in_the_order_of_its_entries() {
    let log = Policy::from(SlidingWindow::new(10, Duration::from_secs(1)));
    let bucket = Policy::from(TokenBucket::per_second(1).burst(10));
    let ordered = |policy: &Policy, at: &[Option<u64>]| {
        let spec = policy.spec().unwrap();
        let correction = |at: &Option<u64>| {
            let receipt = |at| CorrectionKind::Refund(Some(ChargeId { at, ..ChargeId::default() }));
            Correction { key: Key::raw("a"), spec, cost: 1, kind: at.map_or(CorrectionKind::Debit, receipt) }
        };
        let corrections: Vec<_> = at.iter().map(correction).collect();
        let mut numbered: Vec<_> = corrections.iter().enumerate().collect();
        order(&mut numbered);
        numbered.iter().map(|(number, _)| at[*number]).collect::<Vec<_>>()
    };
    let at = [Some(3), Some(1), Some(2), None, Some(5), Some(4)];
    // A debt stays where it is.
    assert_eq!(ordered(&log, &at), [Some(1), Some(2), Some(3), None, Some(4), Some(5)]);
    assert_eq!(ordered(&bucket, &at), at);
}
