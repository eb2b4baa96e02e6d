use std::collections::BTreeSet;
use std::path::Path;

use super::*;

#[test]
fn committed_pictures_are_current() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../guide/pictures");
    let files = files().unwrap();
    for File { name, text } in &files {
        let committed = fs::read_to_string(directory.join(name)).unwrap_or_default();
        assert!(
            committed == *text,
            "{name} is out of date; run `cargo run -p ratelimits-cli -- pictures guide/pictures`"
        );
        assert!(name.ends_with(".md") || text.len() < 10_000, "{name} has {} bytes", text.len());
    }
    let names: BTreeSet<_> = files.into_iter().map(|file| file.name).collect();
    let entries = fs::read_dir(directory).unwrap();
    let committed: BTreeSet<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(names, committed);
}

#[test]
fn all_calls_are_shown() {
    for algorithm in &ALGORITHMS {
        let policy: PolicyText = algorithm.policy.parse().unwrap();
        assert!(policy.ignored.is_empty(), "{}", algorithm.policy);
        let run = Run::new(policy.policy.spec().unwrap());
        let (admitted, waiting, refused) = run.totals();
        assert_eq!(admitted + waiting + refused, 30, "{}", algorithm.name);
        assert_eq!(waiting > 0, algorithm.file == "leaky-queue", "{}", algorithm.name);
    }
}
