//! The results of lines, which the report is made of: a file for each line and server below the target folder.

use std::fs;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// A line of the report.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Measured {
    /// The name of the line, and the server's name and version.
    pub(crate) line: String,
    pub(crate) server: String,
    pub(crate) rows: Vec<Row>,
}

/// What was measured of one algorithm, or of one limiter.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Row {
    pub(crate) limiter: String,
    pub(crate) policy: String,
    pub(crate) admitted: u64,
    pub(crate) refused: u64,
    /// Admitted calls that are not in the log.
    #[serde(default)]
    pub(crate) left_out: u64,
    /// How many of the admitted calls were decided in process during an outage.
    pub(crate) local: u64,
    pub(crate) clock_error_ms: u64,
    /// In the worst interval, beyond the policy.
    pub(crate) excess: u64,
    /// What the documentation says that the excess is at most. Of a peer, there is none.
    pub(crate) bound: Option<u64>,
    /// Of a peer: what its authors promise of the same calls, as a policy, and the permits beyond that.
    pub(crate) own: Option<(String, u64)>,
}

impl Measured {
    /// Prints the line, and keeps it for the report. An error if it is above its bound.
    pub(crate) fn keep(&self) -> Result<(), String> {
        for row in &self.rows {
            let Row { limiter, admitted, refused, local, clock_error_ms, excess, bound, own, .. } = row;
            println!(
                "{} on {}: {limiter}: {admitted} admitted ({local} locally), {refused} refused, ± {clock_error_ms} ms: \
                 {excess} beyond the policy, bound {bound:?}, own promise {own:?}",
                self.line, self.server
            );
        }
        let path = folder().join(format!("{}@{}.json", self.line, self.server.replace(' ', "-")));
        let text = serde_json::to_string_pretty(self).map_err(|error| error.to_string())?;
        fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
        match self.rows.iter().find(|row| row.bound.is_some_and(|bound| row.excess > bound)) {
            None => Ok(()),
            Some(row) => Err(format!("{}: {} is above its bound", self.line, row.limiter)),
        }
    }
}

/// Returns all that was kept, in the order of the names.
pub(crate) fn all() -> Result<Vec<Measured>, String> {
    let mut paths: Vec<PathBuf> = fs::read_dir(folder())
        .map_err(|error| error.to_string())?
        .filter_map(|file| Some(file.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .collect();
    paths.sort();
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).map_err(|error| error.to_string())?;
        serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))
    };
    paths.into_iter().map(read).collect()
}

/// Returns the folder of results and logs, beside the program.
pub(crate) fn folder() -> PathBuf {
    let own = std::env::current_exe().expect("a program knows where it is");
    let folder = own.with_file_name("over-admission-results");
    fs::create_dir_all(&folder).expect("the target folder can be written");
    folder
}
