//! The command `simulate`.

mod counts;
mod key_states;
mod report;

use std::io::{self, BufRead, Write, stderr, stdin, stdout};
use std::process::ExitCode;

use clap::Args;

use crate::log::{Format, Lines, Selection, time};
use crate::policy_text::PolicyText;
use counts::Counts;
use key_states::Charge;
use report::Report;

/// Show what policies would have refused over a log.
///
/// Reads a log from standard input, and decides each line as a call, by the algorithms of the library and the times of the
/// log. Several policies decide together, as several attributes on a function do: a call that one of them refuses is charged
/// by none. Calls wait for a `queue`, and for no other policy. A concurrency limit depends on how long calls run, which a log does not
/// say.
///
/// A line is in the common or combined log format, or begins with a time, or is a JSON object; or the log is CSV, and its first line
/// names the columns. Times are RFC 3339 or Unix time, in seconds, or in milli-, micro- or nanoseconds. A line with a time before that of an earlier line is decided at the earlier line's time. If
/// more than a tenth of the calls come after the newest time, a warning names its line. Lines without a readable time or key are
/// counted and skipped.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ratelimits simulate 'rate_limit(rate = \"100/min\", burst = 20)' < access.log
  ratelimits simulate 'rate_limit(5.0)' 'count_limit(1000, \"1d\", aligned)' --key user < access.log
  ratelimits simulate 'window_limit(100, \"1m\")' --key request.remote_ip --time ts < log.jsonl

Exit codes: 0, 1 if no line could be read, 2 for a wrong usage.")]
pub(crate) struct Simulate {
    /// A policy as an attribute: 'rate_limit(rate = "100/min", burst = 20)', in single quotes for the shell.
    #[arg(required = true, value_name = "POLICY")]
    policies: Vec<PolicyText>,
    #[command(flatten)]
    fields: Selection,
    /// How many of the most refused keys to show.
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,
    /// Write JSON.
    #[arg(long)]
    json: bool,
}

/// How many lines that cannot be read are named.
const NAMED: u64 = 5;

impl Simulate {
    pub(crate) fn run(self) -> ExitCode {
        match self.simulate(stdin().lock()) {
            Ok(code) => code,
            // Whoever reads the output has seen enough.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
            Err(error) => {
                _ = writeln!(stderr(), "error: {error}");
                ExitCode::FAILURE
            }
        }
    }

    fn simulate(self, log: impl BufRead) -> io::Result<ExitCode> {
        let charges = match self.charges() {
            Ok(charges) => charges,
            Err(problem) => {
                writeln!(stderr(), "error: {problem}")?;
                return Ok(ExitCode::from(2));
            }
        };
        self.policies.iter().for_each(PolicyText::note_ignored);
        let mut format = Format::new(self.fields);
        let mut counts = Counts::new(charges);
        let skipped = read(log, &mut format, &mut counts)?;
        if counts.calls == 0 {
            let problem = if skipped == 0 { "the log is empty" } else { "no line of the log could be read" };
            writeln!(stderr(), "error: {problem}; `ratelimits simulate --help` lists the formats")?;
            return Ok(ExitCode::FAILURE);
        }
        if counts.is_out_of_order() {
            let Counts { after_newest, calls, newest_line, last, .. } = &counts;
            writeln!(
                stderr(),
                "warning: {after_newest} of {calls} calls come after line {newest_line}, which has the newest time, \
                 {}, and are decided at that time; correct that line, or sort the log by time",
                time::format(1_000 * last)
            )?;
        }
        let labels = self.policies.iter().map(|policy| policy.label.as_str());
        let report = Report::new(&counts, labels, self.top, skipped);
        let mut out = stdout().lock();
        if self.json {
            report.write_json(&mut out)?
        } else {
            report.write_table(&mut out)?
        }
        out.flush()?;
        Ok(ExitCode::SUCCESS)
    }

    /// Returns what the policies take of a call.
    fn charges(&self) -> Result<Vec<Charge>, String> {
        let charge = |policy: &PolicyText| {
            let spec = policy.policy.spec().map_err(|error| error.to_string())?;
            if spec.is_semaphore() {
                return Err(format!(
                    "a concurrency limit depends on how long calls run, which a log does not say: {}",
                    policy.label
                ));
            }
            Ok(Charge { spec, cost: policy.cost_in_log(self.fields.has_cost())? })
        };
        self.policies.iter().map(charge).collect()
    }
}

/// Decides all lines of a log. Returns the number of lines that cannot be read; the first of them are named.
fn read(log: impl BufRead, format: &mut Format, counts: &mut Counts) -> io::Result<u64> {
    let (mut lines, mut skipped) = (Lines::new(log), 0u64);
    while let Some(line) = lines.next()? {
        if line.is_first && format.read_header(&line.text) {
            continue;
        }
        match format.parse(&line.text) {
            Ok(call) => counts.add(line.number, &call),
            Err(problem) => {
                skipped += 1;
                if skipped <= NAMED {
                    writeln!(stderr(), "line {}: {problem}", line.number)?;
                }
            }
        }
    }
    if skipped > NAMED {
        writeln!(stderr(), "and {} more lines that cannot be read", skipped - NAMED)?;
    }
    Ok(skipped)
}
