//! The picture of all algorithms, one below the other.

use crate::algorithms::PicturedAlgorithm;
use crate::run::{DecidedCall, END, Run};
use crate::svg::{LEFT, Mark, Svg};

const ROW: u64 = 34;
const FIRST_ROW: u64 = 62;

pub(crate) fn draw(runs: &[(PicturedAlgorithm, Run)]) -> String {
    let mut svg = Svg::new("All algorithms on the same calls", &description(runs));
    svg.text(12, 22, "b", "All algorithms on the same calls");
    svg.text(12, 40, "", "about 1 permit per second, up to 5 at once");
    let bottom = FIRST_ROW + ROW * runs.len() as u64;
    svg.axis(FIRST_ROW - 10, bottom - 10);
    for ((algorithm, run), y) in runs.iter().zip((FIRST_ROW..).step_by(ROW as usize)) {
        let (name, variant) = algorithm.name.split_once(", ").unwrap_or((algorithm.name, ""));
        svg.text(LEFT - 10, y + if variant.is_empty() { 9 } else { 2 }, "e", name);
        svg.text(LEFT - 10, y + 16, "e", variant);
        draw_calls(&mut svg, run, y);
    }
    svg.legend(bottom + 30, true);
    svg.finish(bottom + 44)
}

/// Draws when calls start, and below it when they are refused or begin to wait.
fn draw_calls(svg: &mut Svg, run: &Run, y: u64) {
    let (big, small): (Vec<&DecidedCall>, Vec<_>) = run.calls.iter().partition(|call| call.cost > 1);
    for (calls, is_big) in [(small, false), (big, true)] {
        let starts = calls.iter().filter_map(|call| call.start).filter(|start| *start <= END);
        svg.marks(Mark::Dot, is_big, starts.map(|start| (start, y)));
        let refused = calls.iter().filter(|call| call.start.is_none());
        svg.marks(Mark::Cross, is_big, refused.map(|call| (call.at, y + 12)));
    }
    let waiting = run.calls.iter().filter(|call: &&DecidedCall| call.waits());
    svg.rings(waiting.map(|call| (call.at, y + 12, call.cost)));
}

fn description(runs: &[(PicturedAlgorithm, Run)]) -> String {
    let calls = runs.first().map_or(0, |(_, run)| run.calls.len());
    let rows = runs.iter().map(|(algorithm, run)| {
        let (admitted, waiting, refused) = run.totals();
        let waiting = if waiting > 0 { format!(", {waiting} wait") } else { String::new() };
        format!(" {}: {admitted} start at once{waiting}, {refused} refused.", algorithm.name)
    });
    format!("{calls} calls in 20 seconds.{}", rows.collect::<String>())
}
