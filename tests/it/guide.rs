//! The pages of the guide.

use std::collections::BTreeSet;
use std::path::Path;

const INDEX: &str = include_str!("../../guide/README.md");
const MODULES: &str = include_str!("../../src/guide.rs");

/// The titles and names of the pages in the index.
fn index() -> Vec<(&'static str, &'static str)> {
    let links = INDEX.lines().filter_map(|line| line.strip_prefix('[')?.strip_suffix(".md"));
    let links = links.filter_map(|link| link.split_once("]: "));
    links.filter(|(title, _)| *title != "README").collect()
}

#[test]
fn mcp_page_shows_the_example() {
    let example =
        [include_str!("../../examples/mcp/tools.rs"), include_str!("../../examples/mcp/http.rs")].concat();
    let page = include_str!("../../guide/mcp.md");
    let blocks: Vec<_> = page.split("```rs\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert_eq!(blocks.len(), 4);
    for block in blocks {
        assert!(example.contains(block), "the example does not have\n{block}");
    }
}

#[test]
fn every_page_is_in_the_index_and_in_the_documentation() {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("guide");
    let files = std::fs::read_dir(guide).expect("it is there").map(|file| file.expect("it can be read"));
    let names = files.filter_map(|file| Some(file.file_name().to_str()?.strip_suffix(".md")?.to_owned()));
    let pages: BTreeSet<String> = names.filter(|name| name != "README").collect();

    let modules = MODULES.lines().filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(" {}"));
    assert_eq!(modules.map(|module| module.replace('_', "-")).collect::<BTreeSet<_>>(), pages);
    assert_eq!(index().iter().map(|(_, page)| (*page).to_owned()).collect::<BTreeSet<_>>(), pages);
    for (title, page) in index() {
        assert!(INDEX.contains(&format!("\n| [{title}] | ")), "{title} is in no list");
        let module = page.replace('-', "_");
        assert!(MODULES.contains(&format!("\n//! [{title}]: self::{module}\n")), "{title}");
    }
}
