//! What a simulation shows.

use std::cmp::Reverse;
use std::io::{self, Write};

use serde::Serialize;

use super::counts::{Counts, KeyCounts};
use crate::log::time;

/// The counts of a log, as they are written in JSON.
#[derive(Debug, Serialize)]
pub(super) struct Report<'r> {
    from: String,
    to: String,
    calls: u64,
    admitted: u64,
    refused: u64,
    /// How many admitted calls have waited.
    waited: u64,
    longest_wait_seconds: f64,
    keys: usize,
    refused_keys: usize,
    /// How many calls have a time before that of an earlier line.
    late_calls: u64,
    skipped_lines: u64,
    policies: Vec<PolicyReport<'r>>,
    most_refused: Vec<KeyReport<'r>>,
}

#[derive(Debug, Serialize)]
struct PolicyReport<'r> {
    policy: &'r str,
    refused: u64,
}

#[derive(Debug, Serialize)]
struct KeyReport<'r> {
    key: &'r str,
    calls: u64,
    refused: u64,
    first_refusal: String,
}

impl<'r> Report<'r> {
    pub(super) fn new(
        counts: &'r Counts,
        labels: impl Iterator<Item = &'r str>,
        top: usize,
        skipped_lines: u64,
    ) -> Self {
        let keys = counts.keys.iter().map(|(name, counts)| (&**name, counts));
        let mut refused: Vec<_> = keys.filter(|(_, counts)| counts.refused > 0).collect();
        refused.sort_by_key(|(name, key)| (Reverse(key.refused), *name));
        let key_report = |&(name, counts): &(&'r str, &KeyCounts)| {
            let KeyCounts { calls, refused, first_refusal, .. } = *counts;
            KeyReport { key: name, calls, refused, first_refusal: time::format(1_000 * first_refusal) }
        };
        let policy_report = |(policy, refused): (_, &u64)| PolicyReport { policy, refused: *refused };
        Report {
            from: time::format(1_000 * counts.first),
            to: time::format(1_000 * counts.last),
            calls: counts.calls,
            admitted: counts.calls - counts.refused,
            refused: counts.refused,
            waited: counts.waited,
            longest_wait_seconds: counts.longest_wait as f64 / 1e6,
            keys: counts.keys.len(),
            refused_keys: refused.len(),
            late_calls: counts.late,
            skipped_lines,
            policies: labels.zip(&counts.refused_by).map(policy_report).collect(),
            most_refused: refused.iter().take(top).map(key_report).collect(),
        }
    }

    pub(super) fn write_json(&self, out: &mut impl Write) -> io::Result<()> {
        serde_json::to_writer_pretty(&mut *out, self)?;
        writeln!(out)
    }

    pub(super) fn write_table(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(out, "{} to {}\n", self.from, self.to)?;
        let share = share(self.refused, self.calls);
        let numbers = [self.calls, self.admitted, self.refused].map(|number| number.to_string());
        let [calls, admitted, refused] = numbers;
        let (keys, refused_keys) = (self.keys.to_string(), self.refused_keys.to_string());
        write_rows(
            out,
            &["calls", "admitted", "refused", "share", "keys", "keys with refusals"],
            [vec![calls, admitted, refused, share, keys, refused_keys]],
        )?;
        if self.waited > 0 {
            writeln!(out, "\ncalls that waited: {}, for up to {} s", self.waited, self.longest_wait_seconds)?;
        }
        if self.late_calls > 0 {
            writeln!(
                out,
                "\ncalls decided at the time of an earlier line, which was later: {}",
                self.late_calls
            )?;
        }
        writeln!(out)?;
        let policies = self.policies.iter().map(|PolicyReport { policy, refused }| {
            vec![visible(policy), refused.to_string(), self::share(*refused, self.calls)]
        });
        write_rows(out, &["policy", "refused", "share"], policies)?;
        if self.most_refused.is_empty() {
            return Ok(());
        }
        writeln!(out)?;
        let keys = self.most_refused.iter().map(|KeyReport { key, calls, refused, first_refusal }| {
            let share = self::share(*refused, *calls);
            vec![visible(key), calls.to_string(), refused.to_string(), share, first_refusal.clone()]
        });
        write_rows(out, &["key", "calls", "refused", "share", "first refusal"], keys)
    }
}

/// Writes a table. The first column is aligned to the left if it is text, and the others to the right.
fn write_rows(
    out: &mut impl Write,
    header: &[&str],
    rows: impl IntoIterator<Item = Vec<String>>,
) -> io::Result<()> {
    let header = header.iter().map(|&title| title.to_owned()).collect();
    let rows: Vec<Vec<String>> = [header].into_iter().chain(rows).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<_> = (0..rows[0].len()).map(width).collect();
    let is_text = matches!(rows[0][0].as_str(), "policy" | "key");
    for row in &rows {
        for (at, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let gap = if at > 0 { "  " } else { "" };
            match at == 0 && is_text {
                true => write!(out, "{gap}{cell:<width$}")?,
                false => write!(out, "{gap}{cell:>width$}")?,
            }
        }
        writeln!(out)?;
    }
    Ok(())
}

fn share(part: u64, whole: u64) -> String {
    format!("{:.1} %", 100.0 * part as f64 / whole.max(1) as f64)
}

/// Escapes what a terminal would not show: a log has text that others have chosen.
fn visible(text: &str) -> String {
    text.chars()
        .flat_map(|char| if char.is_control() { char.escape_default().collect() } else { vec![char] })
        .collect()
}
