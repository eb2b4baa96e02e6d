use std::collections::BTreeSet;

use super::*;

#[test]
fn committed_pictures_are_current() {
    let files = files();
    for File { name, text } in &files {
        let committed = fs::read_to_string(directory().join(name)).unwrap_or_default();
        assert!(committed == *text, "{name} is out of date; run `cargo run -p guide-pictures`");
        assert!(name.ends_with(".md") || text.len() < 10_000, "{name} has {} bytes", text.len());
    }
    let names: BTreeSet<_> = files.into_iter().map(|file| file.name).collect();
    let entries = fs::read_dir(directory()).unwrap();
    let committed: BTreeSet<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(names, committed);
}

#[test]
fn all_calls_are_shown() {
    for algorithm in &ALGORITHMS {
        let (admitted, waiting, refused) = Run::new(&policies::find(algorithm.file)).totals();
        assert_eq!(admitted + waiting + refused, 30, "{}", algorithm.name);
        assert_eq!(waiting > 0, algorithm.file == "leaky-queue", "{}", algorithm.name);
    }
}
