//! The picture of one algorithm: its calls, and below them the permits left.

use std::fmt::Write;

use crate::algorithms::PicturedAlgorithm;
use crate::run::{DecidedCall, END, Run};
use crate::svg::{LEFT, Mark, Svg, x};

/// The distance of two rows of calls.
const ROW: u64 = 20;
const FIRST_ROW: u64 = 62;
/// The distance of two rows of waiting calls.
const WAITING_ROW: u64 = 16;
/// The height of the permits left.
const LEVEL: u64 = 50;

pub(crate) fn draw(algorithm: &PicturedAlgorithm, run: &Run) -> String {
    let mut svg = Svg::new(algorithm.name, &description(algorithm, run));
    svg.text(12, 22, "b", algorithm.name);
    svg.text(12, 40, "m", &run.attribute);

    let waiting = rows(&run.calls);
    let refused_row = FIRST_ROW + ROW + WAITING_ROW * waiting.len() as u64;
    let bottom = refused_row + ROW + LEVEL;
    svg.axis(FIRST_ROW - 12, bottom);
    svg.text(LEFT - 10, FIRST_ROW + 4, "e", "admitted");
    let (big, small): (Vec<&DecidedCall>, Vec<_>) = run.calls.iter().partition(|call| call.cost > 1);
    for (calls, is_big) in [(&small, false), (&big, true)] {
        let times = |test: fn(&DecidedCall) -> bool, y| {
            calls.iter().filter(move |call| test(call)).map(move |call| (call.at, y))
        };
        svg.marks(Mark::Dot, is_big, times(DecidedCall::starts_at_once, FIRST_ROW));
        svg.marks(Mark::Cross, is_big, times(|call| call.start.is_none(), refused_row));
    }
    if !waiting.is_empty() {
        svg.text(LEFT - 10, FIRST_ROW + ROW + 4, "e", "waiting");
        draw_waiting(&mut svg, &waiting);
    }
    svg.text(LEFT - 10, refused_row + 4, "e", "refused");

    let left = if waiting.is_empty() { "permits left" } else { "places left" };
    svg.text(LEFT - 10, bottom - LEVEL / 2 + 4, "e", left);
    svg.text(LEFT - 10, bottom + 2, "e", "0");
    svg.text(LEFT - 10, bottom - LEVEL + 8, "e", &run.limit.to_string());
    svg.path("l", &level(run, bottom));
    svg.legend(bottom + 40, !waiting.is_empty());
    svg.finish(bottom + 54)
}

fn description(algorithm: &PicturedAlgorithm, run: &Run) -> String {
    let (admitted, waiting, refused) = run.totals();
    let waiting = if waiting > 0 { format!("{waiting} wait, ") } else { String::new() };
    format!(
        "{} Of {} calls in 20 seconds, {admitted} start at once, {waiting}{refused} are refused.",
        algorithm.description,
        run.calls.len()
    )
}

/// Returns the waiting calls in rows, in which no two overlap.
fn rows(calls: &[DecidedCall]) -> Vec<Vec<(u64, u64, u64)>> {
    let mut rows: Vec<Vec<(u64, u64, u64)>> = Vec::new();
    for call in calls.iter().filter(|call| call.waits()) {
        let Some(start) = call.start else { continue };
        let is_free =
            |row: &Vec<(u64, u64, u64)>| row.last().is_none_or(|(_, end, _)| *end + 400_000 < call.at);
        let waiting = (call.at, start, call.cost);
        match rows.iter_mut().find(|row| is_free(row)) {
            Some(row) => row.push(waiting),
            None => rows.push(vec![waiting]),
        }
    }
    rows
}

fn draw_waiting(svg: &mut Svg, rows: &[Vec<(u64, u64, u64)>]) {
    let heights = (0..).map(|row| FIRST_ROW + ROW + WAITING_ROW * row);
    let calls: Vec<_> =
        rows.iter().zip(heights).flat_map(|(row, y)| row.iter().map(move |call| (*call, y))).collect();
    let lines: String =
        calls.iter().map(|((at, start, _), y)| format!("M{} {y}H{}", x(*at), x(END.min(*start)))).collect();
    svg.path("w", &lines);
    svg.rings(calls.iter().map(|((at, _, cost), y)| (*at, *y, *cost)));
    for is_big in [false, true] {
        let starts = calls.iter().filter(|((_, start, cost), _)| (*cost > 1) == is_big && *start <= END);
        svg.marks(Mark::Dot, is_big, starts.map(|((_, start, _), y)| (*start, *y)));
    }
}

/// Returns the area below the permits left.
fn level(run: &Run, bottom: u64) -> String {
    let mut path = format!("M{} {bottom}", x(0));
    for (time, left) in &run.left {
        _ = write!(path, "H{}V{}", x(*time), bottom - left * LEVEL / run.limit.max(1));
    }
    _ = write!(path, "H{}V{bottom}Z", x(END));
    path
}
