//! The tables of `guide/over-admission.md`, which are written between two marks.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::functions::Algorithm;
use crate::lines::LINES;
use crate::peers::{OURS, PEERS};
use crate::results::{self, Measured, Row};

const BEGIN: &str = "<!-- Begin of what `over-admission report` writes. -->\n";
const END: &str = "<!-- End of what `over-admission report` writes. -->\n";

/// Writes the tables of all results that were kept.
pub(crate) fn write() -> Result<(), String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../guide/over-admission.md");
    let failed = |error: std::io::Error| format!("{}: {error}", path.display());
    let page = fs::read_to_string(&path).map_err(failed)?;
    let page =
        replaced(&page, &tables(&results::all()?)).ok_or_else(|| format!("{}: no marks", path.display()))?;
    fs::write(&path, page).map_err(failed)
}

/// Returns the page with another text between the marks.
fn replaced(page: &str, text: &str) -> Option<String> {
    let (before, rest) = page.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some([before, BEGIN, text, END, after].concat())
}

fn tables(results: &[Measured]) -> String {
    [summary(results), memory(results), faults(results), peers(results)].join("\n")
}

/// All decisions of ours, but those of the control.
fn summary(results: &[Measured]) -> String {
    let is_ours = |measured: &&Measured| {
        measured.line != "planted" && PEERS.iter().all(|peer| peer.name != measured.line)
    };
    let rows: Vec<&Row> = results.iter().filter(is_ours).flat_map(|measured| &measured.rows).collect();
    let sum = |of: fn(&Row) -> u64| rows.iter().map(|row| of(row)).sum::<u64>();
    let (admitted, refused) = (sum(|row| row.admitted), sum(|row| row.refused));
    let is_in_process =
        |measured: &&Measured| measured.line == "memory" || OURS.contains(&(&measured.line, false));
    let in_process = results.iter().filter(is_in_process).flat_map(|measured| &measured.rows);
    let on_servers = admitted - in_process.map(|row| row.admitted).sum::<u64>();
    let above = sum(|row| row.excess.saturating_sub(row.bound.unwrap_or(u64::MAX)));
    format!(
        "**{} decisions, {above} permits beyond their bounds**: {} admitted a call and were checked, {} of them on servers, and {} refused \
         one, in {} runs of an algorithm. Measured on {}, on {} of an {} server, at commit {}.\n",
        grouped(admitted + refused),
        grouped(admitted),
        grouped(on_servers),
        grouped(refused),
        rows.len(),
        printed("date", &["-u", "+%-d %B %Y"]),
        match std::thread::available_parallelism().map_or(1, std::num::NonZero::get) {
            1 => "1 core".to_owned(),
            cores => format!("{cores} cores"),
        },
        std::env::consts::ARCH.replace('_', "-"),
        printed("git", &["rev-parse", "--short", "HEAD"]),
    )
}

fn memory(results: &[Measured]) -> String {
    let mut text =
        "## In process\n\n| policy | admitted | refused | left out | clock's error | excess | bound |\n\
                    | --- | --: | --: | --: | --: | --: | --: |\n"
            .to_owned();
    for row in results.iter().filter(|measured| measured.line == "memory").flat_map(|measured| &measured.rows)
    {
        let numbers = [row.admitted, row.refused, row.left_out].map(grouped).join(" | ");
        text +=
            &format!("| `{}` | {numbers} | {} ms | {} | 0 |\n", row.policy, row.clock_error_ms, row.excess);
    }
    text
}

fn faults(results: &[Measured]) -> String {
    let mut servers: Vec<&str> = results.iter().map(|measured| measured.server.as_str()).collect();
    servers.retain(|server| server.contains("Redis") || server.contains("Valkey"));
    servers.sort_unstable();
    servers.dedup();
    let table = |server: &&str| {
        let mut text = format!(
            "### On {server}\n\n| fault | line | {} |\n| --- | --- |{}\n",
            Algorithm::ALL.map(Algorithm::name).join(" | "),
            " --: |".repeat(Algorithm::ALL.len())
        );
        for line in &LINES {
            let measured =
                results.iter().find(|measured| measured.line == line.name && measured.server == *server);
            let rows = measured.map_or(&[][..], |measured| &measured.rows);
            let cells = Algorithm::ALL.map(|algorithm| {
                let row = rows.iter().find(|row| row.limiter == algorithm.name());
                row.map_or_else(|| "not run here".to_owned(), excess_of_bound)
            });
            let store = if line.store == "one server" { String::new() } else { format!("{}: ", line.store) };
            text += &format!("| {store}{} | `{}` | {} |\n", line.text, line.name, cells.join(" | "));
        }
        text
    };
    let tables: Vec<String> = servers.iter().map(table).collect();
    format!(
        "## Under faults\n\nPermits beyond the policy in the worst interval, or at the worst moment, and the bound.\n\n{}",
        tables.join("\n")
    )
}

fn excess_of_bound(row: &Row) -> String {
    format!("{} of {}", row.excess, row.bound.unwrap_or(0))
}

fn peers(results: &[Measured]) -> String {
    let mut text = "## Beside other rate limiters\n\n\
                    | limiter | line | admitted | refused | checked as | excess | own promise | excess |\n\
                    | --- | --- | --: | --: | --- | --: | --- | --: |\n"
        .to_owned();
    let mut row = |title: &str, line: &str, row: &Row| {
        let (own, beyond) = row.own.clone().unwrap_or((row.policy.clone(), row.excess));
        let calls = [row.admitted, row.refused].map(grouped).join(" | ");
        text += &format!(
            "| {title} | `{line}` | {calls} | `{}` | {} | `{own}` | {beyond} |\n",
            row.policy, row.excess
        );
    };
    for (line, on_redis) in OURS {
        let place = if on_redis { "two processes on Redis" } else { "in process" };
        let ours =
            results.iter().filter(|measured| measured.line == line).flat_map(|measured| &measured.rows);
        ours.for_each(|ours| row(&format!("ratelimits, {place}"), line, ours));
    }
    for peer in &PEERS {
        for measured in results.iter().filter(|measured| measured.line == peer.name) {
            measured.rows.iter().for_each(|theirs| row(peer.title, peer.name, theirs));
        }
    }
    text += "\n| limiter | settings | what its authors say |\n| --- | --- | --- |\n";
    for peer in PEERS.iter().filter(|peer| results.iter().any(|measured| measured.line == peer.name)) {
        text += &format!("| `{}` | {} | {} |\n", peer.name, peer.settings, peer.promise);
    }
    text
}

/// Returns a number with its digits in groups of three.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Returns what a command prints.
fn printed(program: &str, arguments: &[&str]) -> String {
    let package = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let output = Command::new(program).args(arguments).current_dir(package).output();
    output.map_or_else(
        |_| "unknown".to_owned(),
        |output| String::from_utf8_lossy(&output.stdout).trim().to_owned(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_in_groups() {
        assert_eq!([7, 999, 1_000, 1_234_567].map(grouped), ["7", "999", "1,000", "1,234,567"]);
    }

    #[test]
    fn text_between_the_marks_is_replaced() {
        let page = format!("before\n{BEGIN}old\n{END}after\n");
        assert_eq!(replaced(&page, "new\n"), Some(format!("before\n{BEGIN}new\n{END}after\n")));
        assert_eq!(replaced("no marks", "new\n"), None);
    }

    #[test]
    fn excess_is_beside_its_bound_and_missing_lines_are_said() {
        let row = Row {
            limiter: "bucket".to_owned(),
            policy: "rate_limit(\"10/s\", burst = 20)".to_owned(),
            admitted: 1_500,
            refused: 2_000,
            left_out: 0,
            local: 0,
            clock_error_ms: 3,
            excess: 19,
            bound: Some(20),
            own: None,
        };
        let results =
            [Measured { line: "flush".to_owned(), server: "Redis 7.0.15".to_owned(), rows: vec![row] }];
        let text = tables(&results);
        assert!(text.contains("**3,500 decisions, 0 permits beyond their bounds**: 1,500 admitted a call and were checked, 1,500 of them"), "{text}");
        assert!(text.contains("| `flush` | 19 of 20 |"), "{text}");
        assert!(text.contains("| `kill` | not run here |"), "{text}");
    }
}
