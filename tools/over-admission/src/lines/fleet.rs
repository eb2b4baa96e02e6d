//! The processes of a line.

use std::path::PathBuf;

use super::PROCESSES;
use crate::functions::Algorithm;
use crate::results;
use crate::worker::{Job, Process};

/// The processes that were started so far.
#[derive(Debug)]
pub(super) struct Fleet {
    line: &'static str,
    processes: Vec<Process>,
    killed: usize,
}

impl Fleet {
    pub(super) fn new(line: &'static str) -> Self {
        Fleet { line, processes: Vec::new(), killed: 0 }
    }

    pub(super) fn start(&mut self, job: &Job) -> Result<(), String> {
        let number = self.processes.len();
        let log = results::folder().join(format!("{}-process-{number}.jsonl", self.line));
        self.processes.push(job.start(number, log)?);
        Ok(())
    }

    /// Starts as many as share the policies.
    pub(super) fn start_all(&mut self, job: &Job) -> Result<(), String> {
        (0..PROCESSES).try_for_each(|_| self.start(job))
    }

    /// Kills the first one, as `kill -9` does.
    pub(super) async fn kill_first(&mut self) -> Result<(), String> {
        self.killed = 1;
        self.processes[0].child.kill().await.map_err(|error| error.to_string())
    }

    /// Waits until all have ended that were not killed.
    pub(super) async fn ended(&mut self) -> Result<(), String> {
        for process in &mut self.processes[self.killed..] {
            process.ended().await?;
        }
        Ok(())
    }

    pub(super) fn logs(&self) -> Vec<PathBuf> {
        self.processes.iter().map(|process| process.log.clone()).collect()
    }

    pub(super) fn refused(&self, algorithm: Algorithm) -> u64 {
        self.processes.iter().map(|process| process.refused(algorithm)).sum()
    }
}
