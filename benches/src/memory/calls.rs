//! Calls of one thread, by its processor time.

use std::hint::black_box;
use std::rc::Rc;
use std::time::Instant;

use crate::functions;
use crate::limiters::{admitting, governor_admitting};
#[cfg(feature = "overrides")]
use crate::overridden::{self, Overridden};
use crate::table::Line;
use crate::workload::{Key, Workload, now};

pub(super) fn limiters() -> Vec<Line> {
    let by_text = admitting("text");
    let governor_by_text = Rc::new(governor_admitting::<String>());
    let by_id = admitting("id");
    let governor_by_id = Rc::new(governor_admitting::<u64>());
    let text = by_workload(
        "limiter by &str",
        move |key| _ = black_box(now(by_text.try_acquire(key.text.as_str())).is_ok()),
        "governor by String",
        move |key| _ = black_box(governor_by_text.check_key(&key.text).is_ok()),
        [0.5, 0.5, 0.5],
    );
    let id = by_workload(
        "limiter by u64",
        move |key| _ = black_box(now(by_id.try_acquire(key.id)).is_ok()),
        "governor by u64",
        move |key| _ = black_box(governor_by_id.check_key(&key.id).is_ok()),
        [0.6, 0.7, 0.65],
    );
    text.into_iter().chain(id).collect()
}

pub(super) fn annotated() -> Vec<Line> {
    let governor = Rc::new(governor_admitting::<String>());
    let by_hand = move |key: &Key| {
        if governor.check_key(&format!("{}:{}:{}", "bench", "by_id", key.id)).is_ok() {
            _ = black_box(now(functions::plain(key)).is_ok());
        }
    };
    let ours = |key: &Key| _ = black_box(now(functions::by_id(key)).is_ok());
    let three = |key: &Key| _ = black_box(now(functions::three_policies(key)).is_ok());
    let mut lines =
        by_workload("annotated call by u64", ours, "format! and governor by String", by_hand, [0.5; 3]);
    lines.push(
        Line::new("annotated call by u64, hot", "ns", move || Workload::Hot.time(ours))
            .against("Instant::now()", || Workload::Hot.time(|_| _ = black_box(Instant::now())))
            .at_most(1.5),
    );
    lines.push(
        Line::new("three policies on a call, hot", "ns", move || Workload::Hot.time(three))
            .against("one policy", move || Workload::Hot.time(ours))
            .at_most(2.5),
    );
    lines
}

/// Calls of policies of which something is overridden, against the same without overrides.
#[cfg(feature = "overrides")]
pub(super) fn overridden() -> Vec<Line> {
    let mut lines = Vec::new();
    let mut add = |what: &str, of: Overridden, workload: Workload, budget: f64| {
        let literal = [of, Overridden::Nothing].map(overridden::literal_call);
        let computed = [of, Overridden::Nothing].map(overridden::computed_call);
        for (numbers, [ours, theirs]) in [("", literal), (", computed numbers", computed)] {
            let what = format!("{what}{numbers}, {}", workload.name());
            let line = Line::new(what, "ns", move || settled(workload, &ours));
            let line = line.against("nothing overridden", move || settled(workload, &theirs));
            lines.push(line.at_most(budget));
        }
    };
    for workload in [Workload::Hot, Workload::Uniform] {
        add("overridden key", Overridden::Keys, workload, 1.2);
        add("other keys overridden", Overridden::OtherKeys, workload, 1.2);
    }
    add("overridden by name", Overridden::ByName, Workload::Hot, 2.0);
    add("keys of another policy overridden", Overridden::OtherPolicy, Workload::Hot, 1.05);
    lines
}

fn by_workload(
    what: &str,
    ours: impl Fn(&Key) + Clone + 'static,
    against: &str,
    theirs: impl Fn(&Key) + Clone + 'static,
    budgets: [f64; 3],
) -> Vec<Line> {
    let line = |(workload, budget): (Workload, f64)| {
        let (ours, theirs) = (ours.clone(), theirs.clone());
        Line::new(format!("{what}, {}", workload.name()), "ns", move || workload.time(&ours))
            .against(against, move || workload.time(&theirs))
            .at_most(budget)
    };
    Workload::ALL.into_iter().zip(budgets).map(line).collect()
}

/// Processor nanoseconds per call, once all keys were called.
#[cfg(feature = "overrides")]
fn settled(workload: Workload, call: &impl Fn(&Key)) -> f64 {
    workload.time(call);
    workload.time(call)
}
