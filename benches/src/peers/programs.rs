//! Limiters in other languages, each in a program of its own, which `benches/others` has.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::redis::load::{DURATION, Load};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/others");

/// A program that measures whenever it is asked to. It runs on the processor of the thread that starts it.
pub(super) struct Program {
    process: Child,
    asked: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Program {
    /// rate-limiter-flexible, with ioredis.
    pub(super) fn rate_limiter_flexible(load: &Load, tasks: usize) -> Result<Self, String> {
        Self::start(load, tasks, "node", "rate-limiter-flexible.js")
    }

    /// limits, with asyncio.
    pub(super) fn limits(load: &Load, tasks: usize) -> Result<Self, String> {
        Self::start(load, tasks, &format!("{FOLDER}/venv/bin/python"), "limits_async.py")
    }

    /// Starts a program, and measures once, so that one whose packages are not installed is an error here.
    fn start(load: &Load, tasks: usize, interpreter: &str, program: &str) -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("{interpreter} {program}: {error}");
        let arguments = [u128::from(load.address().port()), tasks as u128, DURATION.as_millis()];
        let mut process = Command::new(interpreter)
            .current_dir(FOLDER)
            .arg(program)
            .args(arguments.map(|argument| argument.to_string()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(failed)?;
        let (asked, answers) = process.stdin.take().zip(process.stdout.take()).expect("both are pipes");
        let mut program = Program { process, asked, answers: BufReader::new(answers) };
        program.measure().map_err(failed)?;
        Ok(program)
    }

    /// Thousands of decisions per second.
    pub(super) fn throughput(&mut self) -> f64 {
        self.measure().expect("a program that has measured once does so again")
    }

    fn measure(&mut self) -> std::io::Result<f64> {
        writeln!(self.asked)?;
        let mut answer = String::new();
        self.answers.read_line(&mut answer)?;
        answer.trim().parse().map_err(std::io::Error::other)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        _ = self.process.kill();
        _ = self.process.wait();
    }
}
