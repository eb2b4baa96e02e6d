//! The command `pictures`, which draws the pictures of the guide.

mod algorithms;
mod chart;
mod overview;
mod run;
mod svg;

use std::fs;
use std::io::{self, Write, stderr};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use crate::policy_text::PolicyText;
use algorithms::ALGORITHMS;
use run::Run;

/// Draw the pictures of the guide: every algorithm on the same calls.
#[derive(Debug, Args)]
#[command(hide = true)]
pub(crate) struct Pictures {
    /// The directory to write to.
    directory: PathBuf,
}

impl Pictures {
    pub(crate) fn run(&self) -> ExitCode {
        match self.write() {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                _ = writeln!(stderr(), "error: {}: {error}", self.directory.display());
                ExitCode::FAILURE
            }
        }
    }

    fn write(&self) -> io::Result<()> {
        fs::create_dir_all(&self.directory)?;
        files()?.iter().try_for_each(|file| fs::write(self.directory.join(&file.name), &file.text))
    }
}

#[derive(Debug)]
struct File {
    name: String,
    text: String,
}

/// Draws all pictures.
fn files() -> io::Result<Vec<File>> {
    let runs = ALGORITHMS.iter().map(|algorithm| {
        let policy: PolicyText = algorithm.policy.parse().map_err(io::Error::other)?;
        let spec = policy.policy.spec().map_err(io::Error::other)?;
        Ok((algorithm, Run::new(spec)))
    });
    let runs = runs.collect::<io::Result<Vec<_>>>()?;
    let mut files = vec![File { name: "overview.svg".to_owned(), text: overview::draw(&runs) }];
    files.extend(runs.iter().map(|(algorithm, run)| File {
        name: format!("{}.svg", algorithm.file),
        text: chart::draw(algorithm, run),
    }));
    let definitions = files.iter().map(definition).collect();
    files.push(File { name: "data-uris.md".to_owned(), text: definitions });
    Ok(files)
}

/// Returns a picture as the definition of a link. In rustdoc it takes the place of the path, which only works in the repository.
fn definition(file: &File) -> String {
    let encoded = file.text.trim_end().bytes().map(|byte| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(byte).to_string(),
        b'-' | b'.' | b'/' | b':' | b';' | b'=' | b',' | b'\'' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    });
    format!("[{}]: data:image/svg+xml,{}\n", file.name, encoded.collect::<String>())
}

#[cfg(test)]
mod tests;
