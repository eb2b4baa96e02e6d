//! What a check shows.

use std::cmp::Reverse;
use std::time::Duration;

use serde::Serialize;

use super::audit::{Audit, Audited};
use super::checks::Interval;
use crate::log::time;
use crate::table::{Column, Table, grouped, keys};

/// What is found in a log, as it is written in JSON.
#[derive(Debug, Serialize)]
pub(super) struct Report<'r> {
    from: String,
    to: String,
    clock_error_nanoseconds: u64,
    admitted: u64,
    refused: u64,
    /// How many refused calls no policy had to refuse, and how many of them calls from before the log may be why.
    needless_refusals: u64,
    early_needless_refusals: u64,
    keys: usize,
    policies: Vec<PolicyReport<'r>>,
    most_exceeded: Vec<KeyReport<'r>>,
    #[serde(skip)]
    is_in_seconds: bool,
}

/// How much a time may be wrong that is cut to whole seconds: as much as if they were the middle of each.
const HALF_A_SECOND: u64 = 500_000_000;

#[derive(Debug, Serialize)]
struct PolicyReport<'r> {
    policy: &'r str,
    /// Of all admitted calls.
    permits: u64,
    exceeded_keys: usize,
    /// How many of them may not be exceeded if the log does not begin before the first call.
    uncertain_keys: usize,
    worst_excess: u64,
    /// How many refused calls the policy had to refuse, and of how many a log cannot tell.
    needed_refusals: u64,
    unknown_refusals: u64,
}

#[derive(Debug, Serialize)]
struct KeyReport<'r> {
    policy: &'r str,
    key: &'r str,
    from: String,
    to: String,
    admitted: u64,
    allowed: u64,
    excess: u64,
    /// Whether it is exceeded whatever calls came before the log.
    certain: bool,
}

impl<'r> Report<'r> {
    pub(super) fn new(audit: &'r Audit, labels: &[&'r str], clock_error: u64, top: usize) -> Self {
        let mut names = vec![""; audit.keys().len()];
        audit.keys().iter().for_each(|(name, number)| names[*number] = name);
        let policies = audit.policies.iter().zip(labels);
        let mut exceeded: Vec<_> = policies
            .clone()
            .flat_map(|(policy, label)| {
                let names = &names;
                let key = move |(key, interval): (&usize, &'r Interval)| {
                    (interval, *label, names[*key], is_certain(audit, policy, *key, interval))
                };
                policy.check.exceeded().iter().map(key)
            })
            .collect();
        exceeded.sort_by_key(|(interval, label, name, _)| (Reverse(interval.excess()), *name, *label));
        let key = |(interval, policy, key, certain): &(&Interval, &'r str, &'r str, bool)| KeyReport {
            policy,
            key,
            from: time::format(interval.from),
            to: time::format(interval.to),
            admitted: interval.admitted,
            allowed: interval.allowed,
            excess: interval.excess(),
            certain: *certain,
        };
        Report {
            from: time::format(audit.first),
            to: time::format(audit.last),
            clock_error_nanoseconds: clock_error,
            admitted: audit.admitted,
            refused: audit.refused,
            needless_refusals: audit.needless,
            early_needless_refusals: audit.needless_early,
            keys: audit.keys().len(),
            most_exceeded: exceeded.iter().take(top).map(key).collect(),
            is_in_seconds: audit.is_in_seconds,
            policies: policies.map(|(policy, label)| PolicyReport::new(audit, policy, label)).collect(),
        }
    }

    pub(super) fn is_exceeded(&self) -> bool {
        self.policies.iter().any(|policy| policy.exceeded_keys > 0)
    }

    /// Returns what the report depends on, and what the log does not tell.
    pub(super) fn notes(&self) -> impl Iterator<Item = String> {
        let early = (self.early_needless_refusals > 0).then(|| {
            format!(
                "note: {} of {} needless refusals are so early in the log that calls from before it may be why",
                grouped(self.early_needless_refusals),
                grouped(self.needless_refusals)
            )
        });
        let is_blurred =
            self.is_in_seconds && self.clock_error_nanoseconds < HALF_A_SECOND && self.is_exceeded();
        let in_seconds = is_blurred.then(|| {
            "note: all times of the log are whole seconds; if they were cut to that, write `--clock-error 500ms`".to_owned()
        });
        self.policies.iter().flat_map(PolicyReport::notes).chain(early).chain(in_seconds)
    }

    pub(super) fn text(&self) -> String {
        let mut calls = Table::new(vec![
            Column::number("admitted"),
            Column::number("refused"),
            Column::number("needlessly"),
            Column::number("keys"),
        ]);
        let of_refused = |number| if self.refused > 0 { grouped(number) } else { String::new() };
        calls.row([
            grouped(self.admitted),
            of_refused(self.refused),
            of_refused(self.needless_refusals),
            grouped(self.keys as u64),
        ]);
        let mut policies = Table::new(vec![
            Column::text("policy"),
            Column::number("permits"),
            Column::number("exceeded keys"),
            Column::number("worst excess"),
        ]);
        for PolicyReport { policy, permits, exceeded_keys, worst_excess, .. } in &self.policies {
            let numbers = [*permits, *exceeded_keys as u64, *worst_excess].map(grouped);
            policies.row([(*policy).to_owned()].into_iter().chain(numbers));
        }
        let error = match self.clock_error_nanoseconds {
            0 => String::new(),
            nanos => format!(", each time may be wrong by {:?}", Duration::from_nanos(nanos)),
        };
        let parts = [
            format!("{} to {}{error}\n", self.from, self.to),
            calls.text(),
            policies.text(),
            self.most_exceeded(),
        ];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
    }

    fn most_exceeded(&self) -> String {
        if self.most_exceeded.is_empty() {
            return String::new();
        }
        let mut table = Table::new(vec![
            Column::text("policy"),
            Column::text("key"),
            Column::text("from"),
            Column::text("to"),
            Column::number("admitted"),
            Column::number("allowed"),
            Column::number("excess"),
        ]);
        for KeyReport { policy, key, from, to, admitted, allowed, excess, .. } in &self.most_exceeded {
            let texts = [policy, key, from.as_str(), to].map(str::to_owned);
            table.row(texts.into_iter().chain([*admitted, *allowed, *excess].map(grouped)));
        }
        table.text()
    }
}

impl<'r> PolicyReport<'r> {
    fn new(audit: &Audit, policy: &Audited, label: &'r str) -> Self {
        let exceeded = policy.check.exceeded();
        let is_uncertain =
            |(key, interval): &(&usize, &Interval)| !is_certain(audit, policy, **key, interval);
        PolicyReport {
            policy: label,
            permits: policy.permits,
            exceeded_keys: exceeded.len(),
            uncertain_keys: exceeded.iter().filter(is_uncertain).count(),
            worst_excess: exceeded.values().map(Interval::excess).max().unwrap_or(0),
            needed_refusals: policy.needed,
            unknown_refusals: policy.unknown,
        }
    }

    fn notes(&self) -> impl Iterator<Item = String> {
        let uncertain = (self.uncertain_keys > 0).then(|| {
            format!(
                "note: the windows of {} that exceed {} are counted from the beginning of the log; calls from before it could have \
                 opened others",
                keys(self.uncertain_keys as u64),
                self.policy
            )
        });
        let unknown = (self.unknown_refusals > 0).then(|| {
            format!(
                "note: refusals of which a log does not tell whether {} needed them: {}",
                self.policy,
                grouped(self.unknown_refusals)
            )
        });
        uncertain.into_iter().chain(unknown)
    }
}

/// Returns whether calls from before the log could not make an excess none.
fn is_certain(audit: &Audit, policy: &Audited, key: usize, interval: &Interval) -> bool {
    !interval.is_from_first || audit.first_of(key) >= policy.check.settled(audit.first)
}
