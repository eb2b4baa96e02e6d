//! What the scripts cost the server, without the library and one decision a call.

use std::rc::Rc;
use std::time::Duration;

use ratelimits::{FixedWindow, Policy, SlidingWindow};

use super::bench::{Bench, Bucket, acquire};
use super::load::Usage;
use super::script::Script;
use crate::table::Line;

const LIMIT: u64 = 1_000_000_000;
const PERIOD: Duration = Duration::from_secs(60);

pub(super) fn one_decision(bench: &Bench) -> Vec<Line> {
    let line = |bucket: &Bucket| {
        let ours = bench.of(bench.by_our_script(bucket), Usage::calls_per_server_second);
        let textbook = bench.of(bench.by_textbook(bucket.name, bucket), Usage::calls_per_server_second);
        Line::new(format!("one decision a call, {}: by server CPU", bucket.name), "k/s", ours)
            .against("textbook GCRA script", textbook)
    };
    vec![line(&Bucket::BUSY).at_least(1.4), line(&Bucket::IDLE).at_least(1.05)]
}

/// Beside the script of the budget, and beside what a textbook has for the same algorithm.
pub(super) fn windows(bench: &Bench) -> Vec<Line> {
    let counter = SlidingWindow::new(LIMIT, PERIOD).precision(Duration::from_secs(1));
    let gcra = bench.by_textbook(Bucket::BUSY.name, &Bucket::BUSY);
    let line = |name: &str, policy: Policy, textbook: &str, script: Script| {
        let ours =
            Script::ours(&bench.load, &acquire(&bench.limiter(name, policy), 1)).operation(&bench.load);
        let textbook_call = script.operation(&bench.load);
        let line = || {
            let ours = bench.of(Rc::clone(&ours), Usage::server_microseconds);
            Line::new(format!("{name}: server CPU"), "µs", ours)
        };
        let beside = |call| bench.of(call, Usage::server_microseconds);
        [
            line().against("textbook GCRA script", beside(Rc::clone(&gcra))).at_most(1.1),
            line().against(textbook, beside(textbook_call)),
        ]
    };
    let fixed = line(
        "fixed window",
        FixedWindow::new(LIMIT, PERIOD).into(),
        "textbook INCR, PEXPIRE",
        Script::fixed_window(&bench.load, LIMIT, PERIOD),
    );
    let counter =
        line("counter", counter.into(), "textbook two counters", Script::counter(&bench.load, LIMIT, PERIOD));
    fixed.into_iter().chain(counter).collect()
}
