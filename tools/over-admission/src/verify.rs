//! `ratelimits verify`, which reads each log.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde::Deserialize;

/// What it finds in a log.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) admitted: u64,
    /// The permits beyond the policy in the worst interval of any key.
    pub(crate) excess: u64,
}

#[derive(Deserialize)]
struct Report {
    admitted: u64,
    policies: Vec<PolicyReport>,
}

#[derive(Deserialize)]
struct PolicyReport {
    worst_excess: u64,
}

/// Checks a log by a policy. Lines may be late by `late`.
pub(crate) fn verify(
    policy: &str,
    log: &Path,
    clock_error: Duration,
    late: Duration,
) -> Result<Found, String> {
    let milliseconds = |duration: Duration| format!("{}ms", duration.as_millis());
    let (clock_error, late) = (milliseconds(clock_error), milliseconds(late));
    let mut options = vec!["--key", "key", "--clock-error", &clock_error, "--late", &late];
    if policy.starts_with("concurrency_limit") {
        options.extend(["--duration", "held"]);
    }
    println!("  ratelimits verify '{policy}' {} {}", options.join(" "), log.display());
    let program = program()?;
    let output =
        Command::new(&program).arg("verify").arg(policy).args(options).arg("--json").arg(log).output();
    let output = output.map_err(|error| format!("{}: {error}", program.display()))?;
    // 0 if no policy is exceeded, 1 if one is.
    if !matches!(output.status.code(), Some(0 | 1)) {
        return Err(format!("ratelimits verify: {}", String::from_utf8_lossy(&output.stderr)));
    }
    let report: Report = serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())?;
    let excess = report.policies.iter().map(|policy| policy.worst_excess).max();
    Ok(Found { admitted: report.admitted, excess: excess.ok_or("no policy was checked")? })
}

/// The command beside this program, as both are built into one folder.
fn program() -> Result<PathBuf, String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let program = own.with_file_name(format!("ratelimits{}", std::env::consts::EXE_SUFFIX));
    if program.is_file() {
        return Ok(program);
    }
    let release = if cfg!(debug_assertions) { "" } else { " --release" };
    Err(format!("{} is missing: build it by `cargo build{release} -p ratelimits-cli`", program.display()))
}
