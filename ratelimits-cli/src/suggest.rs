//! The command `suggest`.

mod argument;
mod bucket;
mod demand;
mod numbers;
mod rates;
mod report;
mod search;
mod share;
mod trial;
mod warnings;
mod window;

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::failure::Failure;
use crate::log::{Field, Format, Keys, Selection, Source};
use crate::message::write_message;
use crate::output;
use crate::policy_text::PolicyText;
use demand::{Call, Demand};
use numbers::Numbers;
use report::{Report, Row};
use share::Share;
use warnings::Traits;

/// Suggest a limit that refuses few of the calls of a log.
///
/// Reads a log, and finds the smallest numbers of a policy that refuse at most a share of all calls, all keys together, whether the
/// calls were admitted or refused when the log was written. The last fifth of the calls in time is held out: the numbers are chosen
/// without it, and then decide it as well, which shows whether they fit calls that they were not chosen by.
///
/// A token bucket trades its rate for its burst. The command shows the smallest burst of each round rate, from the lowest of which a
/// bucket refills ten times within the log, and suggests the bucket with the smallest product of both. A window has the smallest limit
/// for ten times the share, the share, a tenth of it, and none.
///
/// All calls are decided by the algorithms of the library, by the times of the log, and no call waits. The numbers are the smallest if
/// each call takes one permit. With `--cost` they refuse as few calls as is said, but smaller ones may as well.
///
/// A line is in the common or combined log format, or begins with a time, or is a JSON object; or the log is CSV, and its first line
/// names the columns. Times are RFC 3339 or Unix time, in seconds, or in milli-, micro- or nanoseconds. The order of the lines does not
/// matter. Every line counts, so one that cannot be read is an error. The command keeps 40 bytes for each call, and about a hundred for
/// each key.
#[derive(Debug, Args)]
#[command(about = "Suggest a limit that refuses few of the calls of a log", verbatim_doc_comment)]
#[command(after_help = "Examples:
  ratelimits suggest access.log --refuse-at-most 0.1%
  ratelimits suggest --key tenant calls.jsonl
  ratelimits suggest --algorithm fixed-window --period 1h --key user --refuse-at-most 1% access.log

Exit codes:
  0  done
  2  the arguments are wrong, or there is no such file
  3  a line cannot be read, which is named, or the log is empty or too short")]
pub(crate) struct Suggest {
    /// The file with the log. Without one, or with `-`, it is read from standard input.
    log: Option<PathBuf>,
    /// The share of all calls that may be refused.
    #[arg(long, value_name = "PERCENTAGE", default_value = "0.1%")]
    refuse_at_most: Share,
    /// What limits the calls. For a leaky bucket take the numbers of a token bucket: a capacity is a burst.
    #[arg(long, default_value = "token-bucket")]
    algorithm: Algorithm,
    /// The period of a window, as in an attribute: 1h, or for a fixed window also day, week, month or year, in UTC.
    #[arg(long, value_name = "DURATION", required_if_eq_any = [("algorithm", "fixed-window"), ("algorithm", "sliding-window")])]
    period: Option<String>,
    #[command(flatten)]
    fields: Selection,
    /// Write JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Algorithm {
    TokenBucket,
    FixedWindow,
    SlidingWindow,
}

/// Makes the numbers of a window of its limit.
type Window = Box<dyn Fn(u64) -> Numbers>;

impl Suggest {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let window = self.window()?;
        let arguments = argument::arguments(&self.fields);
        let (calls, traits) = read(self.log, self.fields)?;
        let demand = Demand::new(calls).ok_or_else(|| too_short("all of its calls are at one time"))?;
        let (trade, place) = choose(&demand, self.refuse_at_most, window)?;
        let attribute = format!("#[{}]", trade[place].attribute(&arguments));
        let suggested: PolicyText = attribute.parse().map_err(usage)?;
        let row = |(at, numbers): (usize, Numbers)| {
            let outcomes = trial::outcomes(&numbers.spec().map_err(usage)?, &demand);
            Ok(Row { numbers, outcomes, suggested: at == place })
        };
        let trade = trade.into_iter().enumerate().map(row).collect::<Result<Vec<Row>, Failure>>()?;
        let period = window::period(&suggested, demand.first);
        let warnings =
            warnings::warnings(&demand, traits, self.refuse_at_most, trade[place].outcomes, period);
        let report = Report::new(&demand, self.refuse_at_most.to_string(), attribute, trade, warnings);
        report.warnings.iter().for_each(|warning| write_message(format_args!("warning: {warning}")));
        if self.json { output::write_json(&report) } else { output::write(&report.text()) }
    }

    /// Returns the window that is asked for.
    fn window(&self) -> Result<Option<Window>, Failure> {
        let period = self.period.clone().unwrap_or_default();
        let window: Window = match self.algorithm {
            Algorithm::TokenBucket if self.period.is_some() => {
                return Err(usage(
                    "a token bucket has no period; ask for a window with `--algorithm fixed-window`",
                ));
            }
            Algorithm::TokenBucket => return Ok(None),
            Algorithm::FixedWindow => {
                Box::new(move |limit| Numbers::FixedWindow { limit, period: period.clone() })
            }
            Algorithm::SlidingWindow => {
                Box::new(move |limit| Numbers::SlidingWindow { limit, period: period.clone() })
            }
        };
        window(1).spec().map_err(usage)?;
        Ok(Some(window))
    }
}

/// Reads all calls of a log.
fn read(path: Option<PathBuf>, fields: Selection) -> Result<(Vec<Call>, Traits), Failure> {
    let mut source = Source::open(path.filter(|path| path.as_os_str() != "-"))?;
    let (mut format, mut keys) = (Format::new(fields), Keys::new());
    let (mut calls, mut traits) = (Vec::new(), Traits::default());
    let status = Field::Name("status".to_owned());
    while let Some(line) = source.next()? {
        let read = format.read_numbered(&line, &mut keys);
        let Some((call, fields)) =
            read.map_err(|problem| Failure::Log(format!("line {}: {problem}", line.number)))?
        else {
            continue;
        };
        traits.refused += u64::from(fields.get(&status).as_deref() == Some("429"));
        traits.is_finer_than_seconds |= !call.time.is_multiple_of(1_000_000_000);
        calls.push(Call { key: call.key, time: call.time / 1_000, cost: call.cost.unwrap_or(1) });
        source.show_progress(keys.len());
    }
    if calls.is_empty() {
        return Err(Failure::Log(
            "the log is empty; `ratelimits suggest --help` lists the formats".to_owned(),
        ));
    }
    Ok((calls, traits))
}

/// Returns numbers that refuse few enough calls, and the place of the suggested ones.
fn choose(demand: &Demand, share: Share, window: Option<Window>) -> Result<(Vec<Numbers>, usize), Failure> {
    let Some(window) = window else {
        return bucket::buckets(demand, share)
            .ok_or_else(|| too_short("no bucket that refuses as few refills ten times within it"));
    };
    window::windows(demand, share, &window).ok_or_else(|| match window(1) {
        Numbers::SlidingWindow { .. } => usage(
            "a sliding window counts at most 10,000 permits, which are too few; shorten the period, or use `--algorithm fixed-window`",
        ),
        _ => usage("a limit is at most 10^12 permits, which are too few; count the cost of calls in a larger unit"),
    })
}

fn usage(problem: impl ToString) -> Failure {
    Failure::Usage(problem.to_string())
}

fn too_short(why: &str) -> Failure {
    Failure::Log(format!("the log is too short: {why}"))
}

#[cfg(test)]
mod tests;
