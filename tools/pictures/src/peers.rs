//! The picture of whole libraries on one Redis, from the table of the last measurement.

use crate::svg::Svg;

const TITLE: &str = "Calls per second on one Redis";
const OURS: &str = "ratelimits";
const ROW: u64 = 26;
const FIRST_ROW: u64 = 66;
/// Where bars start, and the length of one that is as fast as this library.
const LEFT: u64 = 200;
const UNIT: f64 = 300.0;

/// Draws how many calls other libraries make, if this one makes one, by the page of benchmarks.
pub(crate) fn draw(benchmarks: &str) -> String {
    let mut rows = rows(benchmarks);
    rows.push((OURS, 1.0));
    rows.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    let description: String = rows.iter().map(|(name, calls)| format!(" {name}: {calls:.2}.")).collect();
    let mut svg = Svg::new(TITLE, &format!("Relative to ratelimits.{description}"));
    svg.text(12, 22, "b", TITLE);
    svg.text(12, 40, "", "64 tasks, relative to ratelimits");
    for ((name, calls), y) in rows.iter().zip((FIRST_ROW..).step_by(ROW as usize)) {
        let is_ours = *name == OURS;
        let length = (calls * UNIT).round() as u64;
        svg.text(LEFT - 10, y + 4, if is_ours { "b e" } else { "e" }, name);
        svg.bar(LEFT, y, length, is_ours);
        svg.text(LEFT + length + 8, y + 4, "", &format!("{calls:.2}"));
    }
    svg.finish(FIRST_ROW + ROW * rows.len() as u64 - 4)
}

/// Returns the libraries of the table, and the calls of each for one of ours.
fn rows(benchmarks: &str) -> Vec<(&str, f64)> {
    let table = benchmarks.split("\n## ").find(|part| part.starts_with("Whole libraries"));
    let rows = table.expect("the page has a table of peers").lines().filter_map(|line| {
        let columns: Vec<_> = line.split('|').map(str::trim).collect();
        let ratio: f64 = columns.get(5)?.split(' ').next()?.parse().ok()?;
        Some((*columns.get(2)?, 1.0 / ratio))
    });
    rows.collect()
}
