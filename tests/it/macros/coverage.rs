//! The regions that `-C instrument-coverage` sees.

use std::path::{Path, PathBuf};
use std::process::Command;

const SOURCE: &str = "
use ratelimits::{Error, count_limit};

#[count_limit(5, \"1d\")]
pub async fn plain(text: &str) -> Result<bool, Error> {
    if text.is_empty() {
        return Ok(false);
    }
    Ok(text == text.trim())
}

#[count_limit(5, \"1d\", charge_when = |out| out.is_ok())]
pub async fn charged(text: &str) -> Result<bool, Error> {
    if text.is_empty() {
        return Ok(false);
    }
    Ok(text == text.trim())
}
";

/// Compiles the source with the newest build of the library that it works with, and returns the MIR.
fn instrumented_mir() -> String {
    let deps = std::env::current_exe().unwrap().parent().unwrap().to_owned();
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("coverage");
    std::fs::create_dir_all(&directory).unwrap();
    let (source, mir) = (directory.join("limited.rs"), directory.join("limited.mir"));
    std::fs::write(&source, SOURCE).unwrap();
    let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
    let mut libraries: Vec<PathBuf> =
        std::fs::read_dir(&deps).unwrap().map(|entry| entry.unwrap().path()).collect();
    libraries.retain(|path| name(path).starts_with("libratelimits-") && name(path).ends_with(".rlib"));
    libraries.sort_by_key(|path| path.metadata().unwrap().modified().unwrap());
    let compiles = |library: &PathBuf| {
        let output = Command::new("rustc")
            .args(["--edition=2024", "--crate-type=lib", "-Cinstrument-coverage"])
            .arg(format!("--emit=mir={}", mir.display()))
            .arg(format!("-Ldependency={}", deps.display()))
            .arg(format!("--extern=ratelimits={}", library.display()))
            .arg(&source)
            .output()
            .unwrap();
        output.status.success()
    };
    assert!(libraries.iter().rev().any(compiles), "none of {libraries:?} compiles");
    std::fs::read_to_string(&mir).unwrap()
}

#[test]
fn bodies_are_covered() {
    let mir = instrumented_mir();
    for statement in ["text.is_empty()", "Ok(false)", "Ok(text == text.trim())"] {
        let lines: Vec<_> = (1..).zip(SOURCE.lines()).filter(|(_, line)| line.contains(statement)).collect();
        assert_eq!(lines.len(), 2);
        for (number, line) in lines {
            let start = format!("limited.rs:{number}:{}: ", line.find(statement).unwrap() + 1);
            let is_covered = mir.lines().any(|line| line.contains("coverage Code") && line.contains(&start));
            assert!(is_covered, "{start}{statement}");
        }
    }
}
