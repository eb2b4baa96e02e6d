//! What pauses of keys must keep back.

use super::bounds::{Admission, Widening};
use super::log::Pause;
use super::schedule::Run;
use super::target::{Kind, Target};

impl Run {
    /// Checks that a pause admits nothing, and one permit of a bucket afterwards, given the calls that have its state.
    pub(super) fn check_pause(
        &self,
        pause: &Pause,
        target: &Target,
        calls: &[Admission],
        widening: &Widening,
    ) -> Result<(), String> {
        let is_void = |until: u64| widening.breaks.iter().any(|at| at[0] <= until && at[1] >= pause.set);
        let is_within = |call: &Admission| call.start > pause.from && call.end < pause.until;
        if !is_void(pause.until) && !target.is_leased() && calls.iter().any(is_within) {
            return Err(format!("paused: {pause:?}, {calls:?}"));
        }
        let is_bucket = matches!(
            target.kind,
            Kind::Bucket | Kind::Changing | Kind::Settled | Kind::Meter | Kind::PenalizedBucket
        );
        if !is_bucket || self.plan.waits {
            return Ok(());
        }
        let fastest = calls.iter().map(|call| call.numbers.period).min().unwrap_or(target.period);
        let mut after: Vec<_> = calls.iter().filter(|call| call.start > pause.from).collect();
        after.sort_by_key(|call| call.end);
        let refunded: u64 =
            widening.refunds.iter().chain(&widening.receipts).map(|(_, permits)| permits).sum();
        let (mut permits, mut last, mut larger) = (-(refunded as i64), 0, 0);
        for call in after {
            permits += call.permits as i64 - call.excess as i64;
            last = last.max(call.end.saturating_sub(pause.until));
            // A larger bucket lacks no more permits.
            larger = call.numbers.limit.saturating_sub(pause.numbers.limit).max(larger);
            if permits > (1 + larger + last / fastest) as i64 && !is_void(call.end) {
                return Err(format!("{permits} permits after {pause:?}: {calls:?}"));
            }
        }
        Ok(())
    }
}
