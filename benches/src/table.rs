//! Measures lines in turns, and prints them as a Markdown table: ours, theirs, ratio, budget, and whether it is met.

use std::fmt::Write;

use crate::machine::ProcessorTicks;

/// What one measurement returns, in the unit of its line.
type Measure = Box<dyn FnMut() -> f64>;

/// One line of a table: something of ours, mostly beside something else.
pub(crate) struct Line {
    what: String,
    unit: &'static str,
    ours: Measure,
    theirs: Option<(String, Measure)>,
    budget: Option<Budget>,
    most_rounds: usize,
    turns: usize,
    warm_up: bool,
    worst: bool,
}

/// What the ratio must be, or our own figure if there is nothing to compare it with.
#[derive(Clone, Copy)]
enum Budget {
    AtMost(f64),
    AtLeast(f64),
}

/// How often to measure, and which lines.
pub(crate) struct Options {
    rounds: Option<usize>,
    filters: Vec<String>,
}

#[derive(Default)]
struct Samples {
    ours: Vec<f64>,
    theirs: Vec<f64>,
}

impl Line {
    pub(crate) fn new(
        what: impl Into<String>,
        unit: &'static str,
        ours: impl FnMut() -> f64 + 'static,
    ) -> Self {
        Line {
            what: what.into(),
            unit,
            ours: Box::new(ours),
            theirs: None,
            budget: None,
            most_rounds: usize::MAX,
            turns: 1,
            warm_up: true,
            worst: false,
        }
    }

    pub(crate) fn against(mut self, what: impl Into<String>, theirs: impl FnMut() -> f64 + 'static) -> Self {
        self.theirs = Some((what.into(), Box::new(theirs)));
        self
    }

    pub(crate) fn at_most(mut self, budget: f64) -> Self {
        self.budget = Some(Budget::AtMost(budget));
        self
    }

    pub(crate) fn at_least(mut self, budget: f64) -> Self {
        self.budget = Some(Budget::AtLeast(budget));
        self
    }

    /// Both sides are measured so often each round, in turns, because other programs disturb them.
    #[cfg(feature = "redis")]
    pub(crate) fn in_turns(mut self, turns: usize) -> Self {
        self.turns = turns;
        self
    }

    /// Measured in a process of its own, which takes seconds and needs no warm-up.
    pub(crate) fn in_own_process(mut self) -> Self {
        self.most_rounds = 3;
        self.warm_up = false;
        self
    }

    /// Judged by the highest of its figures, not by their median.
    pub(crate) fn by_the_worst(mut self) -> Self {
        self.worst = true;
        self
    }

    /// One measurement of both sides, in alternating order.
    fn measure(&mut self, round: usize, samples: &mut Samples) {
        let ours_first = round.is_multiple_of(2);
        if ours_first {
            samples.ours.push((self.ours)());
        }
        if let Some((_, theirs)) = &mut self.theirs {
            samples.theirs.push(theirs());
        }
        if !ours_first {
            samples.ours.push((self.ours)());
        }
    }

    fn row(&self, samples: &Samples) -> [String; 7] {
        let ours = if self.worst {
            [samples.ours.iter().copied().fold(0.0, f64::max); 3]
        } else {
            quartiles(&samples.ours)
        };
        let judged = match self.theirs {
            Some(_) => quartiles(&samples.ratios()),
            None => ours,
        };
        let spread = format!("{}–{}", digits(judged[0]), digits(judged[2]));
        let (against, theirs, ratio) = match &self.theirs {
            Some((what, _)) => {
                let theirs = format!("{} {}", digits(quartiles(&samples.theirs)[1]), self.unit);
                (what.clone(), theirs, digits(judged[1]))
            }
            None => Default::default(),
        };
        let (budget, met) = match self.budget {
            Some(Budget::AtMost(most)) => (format!("≤ {most}"), judged[1] <= most),
            Some(Budget::AtLeast(least)) => (format!("≥ {least}"), judged[1] >= least),
            None => (String::new(), true),
        };
        let met = match (self.budget, met) {
            (None, _) => "",
            (_, true) => "yes",
            (_, false) => "NO",
        };
        let ours = format!("{} {}", digits(ours[1]), self.unit);
        let ratio = if ratio.is_empty() { spread } else { format!("{ratio} ({spread})") };
        [self.what.clone(), against, ours, theirs, ratio, budget, met.to_owned()]
    }
}

impl Options {
    /// Reads a number of rounds and a filter, in any order. A filter is one or more parts of names, separated by `|`.
    pub(crate) fn parse(arguments: &[&str]) -> Result<Self, String> {
        let mut options = Options { rounds: None, filters: Vec::new() };
        for argument in arguments {
            match argument.parse() {
                Ok(0) => return Err("at least one round".to_owned()),
                Ok(rounds) => options.rounds = Some(rounds),
                Err(_) => options.filters.extend(argument.split('|').map(str::to_owned)),
            }
        }
        Ok(options)
    }

    fn keep(&self, line: &Line) -> bool {
        let against = line.theirs.as_ref().map_or("", |(against, _)| against);
        let named = |filter: &String| line.what.contains(filter) || against.contains(filter);
        self.filters.is_empty() || self.filters.iter().any(named)
    }
}

impl Samples {
    /// The ratio of each turn, so that what disturbs both sides cancels out.
    fn ratios(&self) -> Vec<f64> {
        self.ours.iter().zip(&self.theirs).map(|(ours, theirs)| ours / theirs).collect()
    }
}

/// Measures all lines once a round, and prints medians, with the quartiles of the ratio.
pub(crate) fn run(title: &str, lines: Vec<Line>, rounds: usize, options: &Options) {
    let rounds = options.rounds.unwrap_or(rounds);
    let mut lines: Vec<(Line, Samples)> =
        lines.into_iter().filter(|line| options.keep(line)).map(|line| (line, Samples::default())).collect();
    let started = ProcessorTicks::now();
    for (line, _) in lines.iter_mut().filter(|(line, _)| line.warm_up) {
        line.measure(0, &mut Samples::default());
    }
    for round in 0..rounds {
        eprintln!("round {} of {rounds}", round + 1);
        for (line, samples) in lines.iter_mut().filter(|(line, _)| round < line.most_rounds) {
            for turn in 0..line.turns {
                line.measure(round + turn, samples);
            }
        }
    }
    println!(
        "{title}; medians of {rounds} rounds, or of three where a round takes seconds; quartiles in parentheses\n"
    );
    print!("{}", table(&lines));
    let (met, budgets) =
        lines.iter().fold((0, 0), |(met, budgets), (line, samples)| match line.row(samples)[6].as_str() {
            "" => (met, budgets),
            answer => (met + usize::from(answer == "yes"), budgets + 1),
        });
    if budgets > 0 {
        println!("\n{met} of {budgets} budgets met");
    }
    if let (Some(started), Some(now)) = (started, ProcessorTicks::now()) {
        println!(
            "\nThe host spent {:.1} % of the processors' time on other machines.",
            started.stolen_share(now) * 100.0
        );
    }
}

fn table(lines: &[(Line, Samples)]) -> String {
    let heads = ["what", "against", "ours", "theirs", "ratio", "budget", "met"];
    let rules = heads.map(|_| "-".to_owned());
    let rows: Vec<[String; 7]> = [heads.map(str::to_owned), rules]
        .into_iter()
        .chain(lines.iter().map(|(line, samples)| line.row(samples)))
        .collect();
    let widths: Vec<usize> = (0..heads.len())
        .map(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0))
        .collect();
    let mut text = String::new();
    for (number, row) in rows.iter().enumerate() {
        for (cell, &width) in row.iter().zip(&widths) {
            let padding = if number == 1 { "-" } else { " " }.repeat(width - cell.chars().count());
            _ = write!(text, "| {cell}{padding} ");
        }
        text.push_str("|\n");
    }
    text
}

/// The lower quartile, the median, and the upper quartile, interpolated.
fn quartiles(samples: &[f64]) -> [f64; 3] {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    [0.25, 0.5, 0.75].map(|share| {
        let at = (sorted.len() - 1) as f64 * share;
        let (below, above) = (sorted[at.floor() as usize], sorted[at.ceil() as usize]);
        below + (above - below) * at.fract()
    })
}

/// Three digits, or all of a larger number.
fn digits(number: f64) -> String {
    let decimals = match number.abs() {
        100.0.. => 0,
        10.0.. => 1,
        1.0.. => 2,
        _ => 3,
    };
    format!("{number:.decimals$}")
}
