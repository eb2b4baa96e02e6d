//! What happens to a key once a call has been decided: it is charged less, or more, or is paused.

use super::account::Sent;
use crate::algorithm::believed_holds::Believed;
use crate::algorithm::{AlgorithmSpec, ChargeId};
use crate::key::Key;
use crate::store::error::StoreError;

/// Permits that a key gets back, or is charged beyond what it was, or its pause.
#[derive(Clone, Debug)]
pub struct Correction {
    pub key: Key,
    pub spec: AlgorithmSpec,
    pub cost: u64,
    pub kind: CorrectionKind,
}

#[derive(Clone, Copy, Debug)]
pub enum CorrectionKind {
    /// Gives back: of one charge as far as it still counts, or of whatever the key holds.
    Refund(Option<ChargeId>),
    /// Charges what a call has used beyond its cost, whatever the key holds.
    Debit,
    /// Admits no call for as many microseconds as the cost says.
    Pause,
    /// The same after a refusal, for as many microseconds as the next of these steps says, if the refusal is a penalty.
    Penalty(&'static [u64]),
    /// Says what a process holds.
    Holds(Sent),
}

/// When corrections on Redis are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Urgency {
    /// Before what the caller asks next, mostly.
    AtOnce,
    /// By a task, so that they take none of the caller's time.
    #[cfg(feature = "redis")]
    Soon,
    /// The same, but up to 100 ms later if others have just been sent, so that fewer calls take them all.
    Gathered,
}

/// How much of a correction was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Corrected {
    #[default]
    Whole,
    /// A debt was cut to the longest that its policy may have.
    Cut,
    /// The store believes this of the process, if it knows anything.
    Believed(Option<Believed>),
    /// The refusal was a penalty, of this step.
    Penalized(u64),
}

/// Learns whether the store has corrected what it was to.
pub(crate) type OnCorrected = Box<dyn FnOnce(Result<Corrected, StoreError>) + Send>;

impl Correction {
    /// Returns what makes a cost one of what was really used, given what identifies its charge.
    pub(crate) fn settlement(
        key: &Key,
        spec: &AlgorithmSpec,
        (cost, used): (i128, i128),
        charge_id: ChargeId,
    ) -> Option<Self> {
        let (cost, kind) = match used - cost {
            0 => return None,
            less @ ..0 => (-less, CorrectionKind::Refund(Some(charge_id))),
            more => (more, CorrectionKind::Debit),
        };
        Some(Correction {
            key: key.clone(),
            spec: *spec,
            cost: u64::try_from(cost).unwrap_or(u64::MAX),
            kind,
        })
    }

    pub(crate) fn pause(key: Key, spec: AlgorithmSpec, micros: u64) -> Self {
        Correction { key, spec, cost: micros, kind: CorrectionKind::Pause }
    }

    /// Whether one correction of both costs can stand for both: debts of a key, or refunds of one charge of a window, whose calls
    /// share it. A bucket that rounds what a debt is worth rounds once, and if the debt is cut, all these calls are told.
    #[cfg(feature = "redis")]
    pub(crate) fn adds_to(&self, other: &Correction) -> bool {
        let is_window = matches!(
            self.spec,
            AlgorithmSpec::FixedWindow(_)
                | AlgorithmSpec::CalendarWindow(_)
                | AlgorithmSpec::SlidingWindow(_)
        );
        let are_alike = match (self.kind, other.kind) {
            (CorrectionKind::Debit, CorrectionKind::Debit) => true,
            (CorrectionKind::Refund(one), CorrectionKind::Refund(other)) => is_window && one == other,
            _ => false,
        };
        are_alike && self.key == other.key && self.spec == other.spec
    }

    /// Returns the time of the entry of a log, or of sub-windows, to which it gives something back.
    #[cfg(feature = "redis")]
    pub(crate) fn time_in_log(&self) -> Option<u64> {
        match (self.spec, self.kind) {
            (AlgorithmSpec::SlidingWindow(_), CorrectionKind::Refund(charge_id)) => charge_id.map(|it| it.at),
            _ => None,
        }
    }

    pub(crate) fn refund(key: Key, spec: AlgorithmSpec, cost: u64, charge_id: Option<ChargeId>) -> Self {
        Correction { key, spec, cost, kind: CorrectionKind::Refund(charge_id) }
    }
}

impl Corrected {
    /// What came of both.
    pub(crate) fn and(self, other: Corrected) -> Self {
        if matches!(self, Corrected::Cut | Corrected::Penalized(_)) { self } else { other }
    }

    pub(crate) fn cut(is_cut: bool) -> Self {
        if is_cut { Corrected::Cut } else { Corrected::Whole }
    }
}
