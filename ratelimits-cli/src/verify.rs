//! The command `verify`.

mod audit;
mod checks;
mod events;
mod in_order;
mod operand;
mod refused;
mod report;

use std::io::ErrorKind;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use ratelimit_runtime::Promise;
use ratelimit_runtime::inspect::parse_duration;

use crate::failure::Failure;
use crate::log::{Field, Format, Selection, Source};
use crate::message::write_message;
use crate::output;
use crate::policy_text::PolicyText;
use audit::{Audit, Audited};
use events::Events;
use in_order::InOrder;
use operand::Operand;
use refused::Refused;
use report::Report;

/// Check a log of any rate limiter against policies.
///
/// Reads the calls that a limiter has admitted, and says for each policy and key by how much the policy was exceeded in the worst
/// interval, in whole numbers. If the log also has the calls that were refused, it says how many of them no policy had to refuse.
///
/// A line is in the common or combined log format, or begins with a time, or is a JSON object; or the log is CSV, and its first line
/// names the columns. Times are RFC 3339 or Unix time, in seconds, or in milli-, micro- or nanoseconds. Every line counts, so one that
/// cannot be read is an error, and so is one with a time before that of an earlier line of its key: sort the log, or say how late
/// lines are with `--late`.
///
/// Policies promise at most, in every interval of length `t`, from one of its calls on and without its end:
///
///   rate_limit           burst + rate · t
///     refill = interval  burst + refill · (⌊t / period⌋ + 1)
///     borrow             burst + rate · t, and what the last call of the interval costs
///     warmup             rate · t, and what the last call costs
///   funnel_limit         capacity + leak_rate · t
///     queue              leak_rate · t, and what the last call costs
///   window_limit         limit, where t is the period
///   count_limit          limit in each window: of the calendar, on multiples of the period, or else from the first call of a key in
///                        the log on, and from its first call after the end of the last window
///   concurrency_limit    max at every time
///
/// The log should begin when the limiter did. If it does not, calls from before could be why a call was refused, or could have opened
/// other windows. The command says so where that matters. All other excesses are certain.
#[derive(Debug, Args)]
#[command(
    about = "Check a log of any rate limiter against policies",
    override_usage = "ratelimits verify [OPTIONS] <POLICY>... [LOG]",
    verbatim_doc_comment
)]
#[command(after_help = "Examples:
  ratelimits verify 'rate_limit(rate = \"100/min\", burst = 20)' access.log
  ratelimits verify 'window_limit(100, \"1m\")' --key tenant --refused allowed=false --clock-error 2ms calls.jsonl
  ratelimits verify 'count_limit(1000, \"day\")' --key 2 --late 5s < calls.csv
  ratelimits verify 'concurrency_limit(20)' --key model --duration seconds calls.jsonl

Exit codes:
  0  no policy is exceeded
  1  a policy is exceeded
  2  the arguments are wrong, or there is no such file
  3  a line cannot be read, which is named, or the log is empty: nothing is known")]
pub(crate) struct Verify {
    /// Policies as attributes: 'rate_limit(rate = "100/min", burst = 20)', in single quotes for the shell. Then the file with the log;
    /// without one, or with `-`, it is read from standard input.
    #[arg(required = true, value_name = "POLICY")]
    operands: Vec<Operand>,
    #[command(flatten)]
    fields: Selection,
    /// Which calls were refused: those whose field has this value. May be given several times. All others were admitted. Without it, they
    /// are those with a `status` of 429; for others, as of nginx, write `--refused status=503`.
    #[arg(long, value_name = "FIELD=VALUE")]
    refused: Vec<Refused>,
    /// The field with the time that a call has taken, for a concurrency limit: in seconds, or with a unit, like 250ms.
    #[arg(long, value_name = "FIELD")]
    duration: Option<Field>,
    /// How much each time may be wrong. Intervals may then be longer by twice that: an excess is one whatever the times were. For times
    /// that are cut to seconds, write 500ms.
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, default_value = "0s", hide_default_value = true)]
    clock_error: Duration,
    /// How far the time of a line may be before that of an earlier line. Lines of the last so many seconds are kept and sorted.
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, default_value = "0s", hide_default_value = true)]
    late: Duration,
    /// How many of the most exceeded keys to show.
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,
    /// Write JSON.
    #[arg(long)]
    json: bool,
}

/// The exit code if a policy is exceeded.
const EXCEEDED: u8 = 1;

impl Verify {
    pub(crate) fn run(self) -> ExitCode {
        match self.verify() {
            Ok(true) => ExitCode::from(EXCEEDED),
            Ok(false) => ExitCode::SUCCESS,
            Err(failure) => failure.report(),
        }
    }

    /// Returns whether a policy is exceeded.
    fn verify(self) -> Result<bool, Failure> {
        let (policies, path) = operand::split(self.operands).map_err(Failure::Usage)?;
        policies.iter().for_each(PolicyText::note_ignored);
        let clock_error = nanos(self.clock_error);
        let has_cost = self.fields.has_cost();
        let audited =
            policies.iter().map(|policy| audited(policy, has_cost, self.duration.is_some(), clock_error));
        let mut audit = Audit::new(audited.collect::<Result<_, _>>()?);
        let events =
            Events { format: Format::new(self.fields), refused: self.refused, duration: self.duration };
        read(path, events, InOrder::new(nanos(self.late)), &mut audit)?;
        let labels: Vec<_> = policies.iter().map(|policy| policy.label.as_str()).collect();
        let report = Report::new(&audit, &labels, clock_error, self.top);
        report.notes().for_each(write_message);
        match if self.json { output::write_json(&report) } else { output::write(&report.text()) } {
            // Whoever reads the output has seen enough, but not whoever reads the exit code.
            Err(Failure::Output(error)) if error.kind() == ErrorKind::BrokenPipe => {}
            written => written?,
        }
        Ok(report.is_exceeded())
    }
}

/// Returns what is checked of a policy.
fn audited(
    policy: &PolicyText,
    has_cost: bool,
    has_duration: bool,
    clock_error: u64,
) -> Result<Audited, Failure> {
    let invalid = |problem: String| Failure::Usage(format!("{problem}: {}", policy.label));
    let promise = policy.policy.promise().map_err(|error| invalid(error.to_string()))?;
    if matches!(promise, Promise::Holds { .. }) && !has_duration {
        return Err(invalid(
            "a concurrency limit depends on how long calls run; name the field that says so with `--duration`".to_owned(),
        ));
    }
    let cost = policy.cost_in_log(has_cost).map_err(Failure::Usage)?;
    Ok(Audited::new(checks::check(promise, clock_error), cost))
}

/// Checks all lines of a log, in the order of their times.
fn read(
    path: Option<PathBuf>,
    mut events: Events,
    mut in_order: InOrder,
    audit: &mut Audit,
) -> Result<(), Failure> {
    let mut source = Source::open(path)?;
    while let Some(line) = source.next()? {
        let failed = |problem: String| Failure::Log(format!("line {}: {problem}", line.number));
        let Some(event) =
            events.read(&line, audit.keys_mut()).map_err(|problem| failed(problem.to_string()))?
        else {
            continue;
        };
        in_order.push(event);
        while let Some(event) = in_order.pop() {
            audit.add(event).map_err(Failure::Log)?;
        }
        source.show_progress(audit.keys().len());
    }
    for event in in_order.rest() {
        audit.add(event).map_err(Failure::Log)?;
    }
    if audit.is_empty() {
        return Err(Failure::Log(
            "the log is empty; `ratelimits verify --help` lists the formats".to_owned(),
        ));
    }
    Ok(())
}

fn nanos(duration: Duration) -> u64 {
    duration.as_nanos().try_into().unwrap_or(u64::MAX / 4)
}
