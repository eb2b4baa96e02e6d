//! What a suggestion shows.

use std::time::Duration;

use serde::Serialize;

use super::demand::Demand;
use super::numbers::Numbers;
use super::trial::{Outcome, Outcomes};
use crate::duration::human;
use crate::log::time;
use crate::table::{Column, Table, grouped};

/// A suggestion, as it is written in JSON.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) from: String,
    pub(super) held_out_from: String,
    pub(super) to: String,
    pub(super) refuse_at_most: String,
    /// The attribute with the suggested numbers.
    pub(super) attribute: String,
    pub(super) trade: Vec<Row>,
    pub(super) warnings: Vec<String>,
}

/// Numbers that refuse few enough calls, and what they refuse.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    #[serde(flatten)]
    pub(super) numbers: Numbers,
    #[serde(flatten)]
    pub(super) outcomes: Outcomes,
    pub(super) suggested: bool,
}

/// The longest bar.
const WIDTH: f64 = 30.0;

impl Report {
    pub(super) fn new(
        demand: &Demand,
        refuse_at_most: String,
        attribute: String,
        trade: Vec<Row>,
        warnings: Vec<String>,
    ) -> Self {
        let [from, held_out_from, to] =
            [demand.first, demand.held_out_from, demand.last].map(|micros| time::format(1_000 * micros));
        Report { from, held_out_from, to, refuse_at_most, attribute, trade, warnings }
    }

    pub(super) fn text(&self) -> String {
        let suggested = self.trade.iter().find(|row| row.suggested);
        let parts = [
            format!("{} to {}, held out from {} on\n", self.from, self.to, self.held_out_from),
            suggested.map(|row| self.parts(row.outcomes)).unwrap_or_default(),
            self.trade(),
            self.why(),
            format!("{}\n", self.attribute),
        ];
        parts.join("\n")
    }

    /// Says what the suggested numbers have before the others.
    fn why(&self) -> String {
        if !self.is_of_buckets() {
            return "No lower limit refuses as few.\n".to_owned();
        }
        let is_suggested = |row: Option<&Row>| row.is_some_and(|row| row.suggested);
        let below = match is_suggested(self.trade.first()) {
            true => "At lower rates, a burst that suffices would not refill ten times within the log.",
            false => "Below, the burst grows faster than the rate falls.",
        };
        let above = match is_suggested(self.trade.last()) {
            true => "Higher rates save no burst.",
            false => "Above, the rate grows faster than the burst falls.",
        };
        format!("The product of rate and burst is smallest there.\n{below}\n{above}\n")
    }

    fn is_of_buckets(&self) -> bool {
        self.trade.iter().all(|row| matches!(row.numbers, Numbers::TokenBucket { .. }))
    }

    fn parts(&self, Outcomes { used, held_out }: Outcomes) -> String {
        let mut table = Table::new(vec![
            Column::text("part"),
            Column::number("calls"),
            Column::number("keys"),
            Column::number("refused"),
            Column::number("share"),
            Column::number("refused keys"),
        ]);
        for (name, outcome) in [("used", used), ("held out", held_out)] {
            let Outcome { calls, keys, refused, refused_keys } = outcome;
            let [calls, keys, refused, refused_keys] = [calls, keys, refused, refused_keys].map(grouped);
            table.row([name.to_owned(), calls, keys, refused, share(outcome), refused_keys]);
        }
        table.text()
    }

    /// Draws the numbers, with bars as long as the logarithm of what grows.
    fn trade(&self) -> String {
        let numbers = if self.is_of_buckets() {
            vec![Column::number("rate"), Column::number("burst"), Column::number("refills in")]
        } else {
            vec![Column::number("limit"), Column::text("period")]
        };
        let rest = [
            Column::number("refused"),
            Column::number("held out"),
            Column::text("on a log scale"),
            Column::text(""),
        ];
        let mut table = Table::new(numbers.into_iter().chain(rest).collect());
        let largest = self.trade.iter().map(|row| row.numbers.most_at_once()).max().unwrap_or(1);
        for Row { numbers, outcomes, suggested } in &self.trade {
            let mut cells = match numbers {
                Numbers::TokenBucket { rate, burst } => {
                    let refills = human(Duration::from_micros(rate.micros_for(*burst)));
                    vec![rate.to_string(), grouped(*burst), refills]
                }
                Numbers::FixedWindow { limit, period } | Numbers::SlidingWindow { limit, period } => {
                    vec![grouped(*limit), period.clone()]
                }
            };
            let log = |number: u64| (number as f64 + 1.0).ln();
            let length = WIDTH * log(numbers.most_at_once()) / log(largest);
            cells.extend([
                share(outcomes.used),
                share(outcomes.held_out),
                "#".repeat(length.round() as usize),
                if *suggested { "suggested".to_owned() } else { String::new() },
            ]);
            table.row(cells);
        }
        table.text()
    }
}

fn share(Outcome { calls, refused, .. }: Outcome) -> String {
    format!("{:.4} %", 100.0 * refused as f64 / calls.max(1) as f64)
}
