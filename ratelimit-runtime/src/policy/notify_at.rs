//! The share of a limit at which observers are notified of a key.

use crate::base::invalid_policy::InvalidPolicy;
use crate::base::rate::Rate;

/// A share of a limit, as an exact ratio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotifyAt {
    part: u64,
    whole: u64,
}

impl NotifyAt {
    /// Returns the simplest ratio within a relative 10⁻¹² of this number, as [`Rate`] does.
    ///
    /// # Errors
    ///
    /// If it is not above 0 and below 1.
    pub const fn new(share: f64) -> Result<Self, InvalidPolicy> {
        if share > 0.0
            && share < 1.0
            && let Ok(Rate { permits, period }) = Rate::from_per_second(share)
        {
            return Ok(NotifyAt { part: permits, whole: period.as_secs() });
        }
        Err(InvalidPolicy::new(
            "notify_at",
            "is not above 0 and below 1; write a share of the limit, such as 0.8",
        ))
    }

    /// Returns whether a key has used this share of its limit, given what is left of it.
    pub(crate) fn is_reached(self, limit: u64, remaining: u64) -> bool {
        let used = limit.saturating_sub(remaining);
        used > 0 && u128::from(used) * u128::from(self.whole) >= u128::from(limit) * u128::from(self.part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_reached_exactly() {
        for (share, limit, first) in [
            (0.8, 10, 8),
            (0.8, 11, 9),
            (0.8, 1, 1),
            (0.5, 3, 2),
            (0.1 + 0.2, 10, 3),
            (1.0 / 3.0, 9, 3),
            (0.999, 1_000_000_000_000, 999_000_000_000),
            (0.001, 1_000, 1),
            (3.2e-9, 1_000_000_000_000, 3_200),
        ] {
            let notify_at = NotifyAt::new(share).unwrap();
            assert!(notify_at.is_reached(limit, limit - first), "{share} of {limit}");
            assert!(!notify_at.is_reached(limit, limit - first + 1), "{share} of {limit}");
            assert!(notify_at.is_reached(limit, 0) && !notify_at.is_reached(limit, limit));
        }
        assert!(!NotifyAt::new(0.8).unwrap().is_reached(0, 0));
    }

    #[test]
    fn other_numbers_are_no_shares() {
        for share in [0.0, -0.0, -0.5, 1.0, 80.0, 1e-12, f64::NAN, f64::INFINITY] {
            assert!(NotifyAt::new(share).is_err(), "{share}");
        }
    }
}
