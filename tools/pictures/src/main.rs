//! Draws the pictures of the guide, every algorithm on the same calls, and that of the README: `cargo run -p guide-pictures`.
#![forbid(unsafe_code)]

mod algorithms;
mod chart;
mod overview;
mod peers;
mod policies;
mod run;
mod svg;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use algorithms::ALGORITHMS;
use run::Run;

fn main() -> io::Result<()> {
    let directory = directory();
    fs::create_dir_all(&directory)?;
    files().iter().try_for_each(|file| fs::write(directory.join(&file.name), &file.text))
}

/// Returns where the pictures are.
fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../guide/pictures")
}

#[derive(Debug)]
struct File {
    name: String,
    text: String,
}

/// Draws all pictures.
fn files() -> Vec<File> {
    let runs = ALGORITHMS.map(|algorithm| {
        let run = Run::new(&policies::find(algorithm.file));
        (algorithm, run)
    });
    let mut files = vec![File { name: "overview.svg".to_owned(), text: overview::draw(&runs) }];
    files.extend(runs.iter().map(|(algorithm, run)| File {
        name: format!("{}.svg", algorithm.file),
        text: chart::draw(algorithm, run),
    }));
    let benchmarks = include_str!("../../../guide/benchmarks.md");
    files.push(File { name: "peers.svg".to_owned(), text: peers::draw(benchmarks) });
    let definitions = files.iter().map(definition).collect();
    files.push(File { name: "data-uris.md".to_owned(), text: definitions });
    files
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
