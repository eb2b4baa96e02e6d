//! The keys of each policy, and how many of them are limited.

use std::collections::BTreeMap;

use ratelimit_runtime::inspect::KeyState;
use serde::Serialize;

use crate::failure::Failure;
use crate::progress::Progress;
use crate::scan::{Kind, Scan, Selection};
use crate::table::{Column, Table, grouped, grouped_unless_zero, keys};

/// The policies that have keys, and those of the inventory.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Summary {
    pub(crate) policies: Vec<Row>,
    /// Keys in the namespace that belong to no policy.
    pub(crate) foreign_keys: u64,
}

/// A policy.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    #[serde(flatten)]
    pub(crate) id: PolicyId,
    /// What overrides put the policy in.
    #[serde(rename = "override")]
    switch: Option<&'static str>,
    #[serde(flatten)]
    pub(crate) counts: Counts,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) struct PolicyId {
    pub(crate) policy: String,
    pub(crate) prefix: String,
    /// A policy has two while a release changes it.
    pub(crate) algorithm: String,
}

#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct Counts {
    pub(crate) keys: u64,
    /// The keys that are limited now, of those whose limit is known.
    pub(crate) limited: u64,
    /// The keys that are paused.
    pub(crate) paused: u64,
    /// The keys whose penalties are not all forgiven.
    pub(crate) penalized: u64,
    /// The keys of which it is not known whether they are limited.
    pub(crate) unknown: u64,
    /// The keys, beside the others, that no call uses while an override is in force: those of a bucket from before its numbers were
    /// overridden.
    pub(crate) unused: u64,
    /// The keys whose value is not the state of a policy.
    pub(crate) unreadable: u64,
}

impl Summary {
    pub(crate) async fn read(
        scan: &Scan<'_>,
        selection: &Selection,
        progress: Progress,
    ) -> Result<Summary, Failure> {
        let mut policies = BTreeMap::<PolicyId, Counts>::new();
        for entry in
            scan.inventory.entries().filter(|entry| selection.has(entry.prefix.as_deref(), &entry.name))
        {
            // A limiter may have keys with any prefix, or be used with another one.
            if let Some(prefix) = &entry.prefix {
                policies.entry(PolicyId::new(&entry.name, prefix, &entry.algorithm)).or_default();
            }
        }
        let add = |kind: &Kind, _: &str, state: Option<&KeyState>| {
            let algorithm = kind.reading.map_or("unknown", |reading| reading.algorithm().name());
            let counts = policies.entry(PolicyId::new(&kind.name, &kind.prefix, algorithm)).or_default();
            if kind.is_in_force { counts.add(state) } else { counts.unused += 1 }
        };
        let foreign_keys = scan.states(selection, progress, add).await?;
        let row = |(id, counts): (PolicyId, Counts)| {
            let switch = scan.switch(&id.prefix, &id.policy);
            Row { id, switch, counts }
        };
        let policies = policies.into_iter().map(row).collect();
        Ok(Summary { policies, foreign_keys })
    }

    /// Returns the table, with what has changed since another summary.
    pub(crate) fn table(&self, since: Option<&Summary>) -> String {
        let mut table = Table::new(vec![
            Column::text("policy"),
            Column::text("prefix"),
            Column::text("algorithm"),
            Column::text("override"),
            Column::number("keys"),
            Column::number("limited"),
            Column::number("share"),
            Column::number("paused"),
            Column::number("penalized"),
        ]);
        for Row { id, switch, counts } in &self.policies {
            let before = since.and_then(|since| since.policies.iter().find(|row| row.id == *id));
            let before = before.map(|row| row.counts);
            let all = with_change(grouped(counts.keys), counts.keys, before.map(|before| before.keys));
            let limited =
                with_change(counts.limited_text(), counts.limited, before.map(|before| before.limited));
            table.row([
                id.policy.clone(),
                id.prefix.clone(),
                id.algorithm.clone(),
                switch.unwrap_or_default().to_owned(),
                all,
                limited,
                counts.share(),
                grouped_unless_zero(counts.paused),
                grouped_unless_zero(counts.penalized),
            ]);
        }
        table.text()
    }

    /// Returns what the table does not say.
    pub(crate) fn notes(&self, has_inventory: bool) -> Vec<String> {
        let mut notes = Vec::new();
        let total = |of: fn(&Counts) -> u64| self.policies.iter().map(|row| of(&row.counts)).sum::<u64>();
        if total(|counts| counts.unknown) > 0 {
            notes.push(format!("?: {}", unknown_limits(has_inventory)));
        }
        if let unused @ 1.. = total(|counts| counts.unused) {
            notes
                .push(format!("not in use while an override is in force, and not counted: {}", keys(unused)));
        }
        if let unreadable @ 1.. = total(|counts| counts.unreadable) {
            notes.push(format!("no state of a policy: the values of {}", keys(unreadable)));
        }
        if self.foreign_keys > 0 {
            notes.push(format!("of no policy: {} in the namespace", keys(self.foreign_keys)));
        }
        notes
    }
}

/// Says why a limit is unknown, and how to get it.
pub(crate) fn unknown_limits(has_inventory: bool) -> &'static str {
    if has_inventory {
        "the limit is computed for each call, or the inventory does not have it"
    } else {
        "the limits of windows and concurrency limits, and computed numbers, are not in Redis; add the program's inventory with --inventory"
    }
}

impl PolicyId {
    fn new(policy: &str, prefix: &str, algorithm: &str) -> Self {
        PolicyId { policy: policy.to_owned(), prefix: prefix.to_owned(), algorithm: algorithm.to_owned() }
    }
}

impl Counts {
    fn add(&mut self, state: Option<&KeyState>) {
        self.keys += 1;
        self.paused += u64::from(state.is_some_and(|state| state.paused.is_some()));
        self.penalized += u64::from(state.is_some_and(|state| state.penalty_step > 0));
        match state.map(|state| state.limited) {
            Some(Some(limited)) => self.limited += u64::from(limited),
            Some(None) => self.unknown += 1,
            None => self.unreadable += 1,
        }
    }

    fn known(&self) -> u64 {
        self.keys - self.unknown - self.unreadable
    }

    fn limited_text(&self) -> String {
        match (self.limited, self.unknown) {
            (limited, 0) => grouped(limited),
            (0, _) => "?".to_owned(),
            (limited, _) => format!("{}+?", grouped(limited)),
        }
    }

    /// Returns the share of limited keys.
    fn share(&self) -> String {
        if self.known() == 0 || self.unknown > 0 {
            return String::new();
        }
        format!("{:.1} %", self.limited as f64 * 100.0 / self.known() as f64)
    }
}

fn with_change(text: String, now: u64, before: Option<u64>) -> String {
    match before.map(|before| (now.cmp(&before), now.abs_diff(before))) {
        Some((std::cmp::Ordering::Greater, change)) => format!("{text} (+{})", grouped(change)),
        Some((std::cmp::Ordering::Less, change)) => format!("{text} (-{})", grouped(change)),
        _ => text,
    }
}
