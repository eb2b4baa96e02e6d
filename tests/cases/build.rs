//! Writes the cases again with functions that are not async, for `blocking.rs`: without `async` and `.await`, and with closures for
//! async blocks.

use std::path::PathBuf;
use std::{env, fs, io};

const CASES: &str = "../cases";

/// What is about futures.
const ASYNC_ONLY: [&str; 5] = ["frameworks", "futures", "holding", "prologue", "returned_futures"];

/// What is replaced, in this order, once async blocks are closures.
const REPLACED: [(&str, &str); 24] = [
    ("use std::future::Future;\n", ""),
    ("use async_trait::async_trait;\n", ""),
    ("#[async_trait]\n", ""),
    ("#[async_trait::async_trait]\n", ""),
    ("#[async_trait(?Send)]\n", ""),
    ("tokio::task::yield_now().await", "std::thread::yield_now()"),
    (".await", ""),
    ("async fn", "fn"),
    ("async unsafe fn", "unsafe fn"),
    ("async |", "|"),
    ("AsyncFn", "Fn"),
    ("impl Future<Output = T>", "impl FnOnce() -> T"),
    ("impl Future<Output = AppResult<u8>>", "AppResult<u8>"),
    ("Box::pin(", "std::convert::identity("),
    // The app's own.
    ("use std::pin::Pin;\n", ""),
    ("Pin<Box<dyn Future<Output = ()> + '_>>", "impl FnOnce()"),
    ("Some(test)", "Some(test())"),
    ("    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();\n", ""),
    ("runtime.block_on(Registry::in_memory().scope(test))", "Registry::in_memory().sync_scope(test)"),
    // What takes a future, but a closure that makes one would do as well.
    ("panic_message(", "panic_message(|| "),
    (".scope(", ".sync_scope(|| "),
    ("|error| move || ", "|error| "),
    ("scope(|| || ", "scope(|| "),
    ("scope(|| move || ", "scope(move || "),
];

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed={CASES}");
    println!("cargo::rustc-check-cfg=cfg(runs_every_set)");
    if env::var("CARGO_PKG_NAME").is_ok_and(|package| package != "edition-2021") {
        println!("cargo::rustc-cfg=runs_every_set");
    }
    let directory = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    for entry in fs::read_dir(CASES)? {
        let path = entry?.path();
        if let (true, Some(name)) = (path.is_file(), path.file_name()) {
            fs::write(directory.join(name), without_async(&fs::read_to_string(&path)?))?;
        }
    }
    let all = fs::read_to_string(format!("{CASES}/all.rs"))?;
    let modules = all.find("mod app;").expect("the modules are at the end");
    fs::write(directory.join("cases.rs"), &all[modules..])
}

fn without_async(cases: &str) -> String {
    let mut cases = without_modules(cases);
    for block in ["async {", "async move {"] {
        while let Some(start) = cases.find(block) {
            let body = start + block.len();
            let end = body + end_of_block(&cases[body..]);
            let closure =
                format!("{}{{{}", block.replace("async ", "").replace('{', "|| "), &cases[body..end]);
            let rest = cases[end..].to_owned();
            let awaited = rest.trim_start().strip_prefix(".await");
            let (closure, rest) = match awaited {
                Some(rest) => (format!("({closure})()"), rest),
                None => (closure, rest.as_str()),
            };
            cases = format!("{}{closure}{rest}", &cases[..start]);
        }
    }
    REPLACED.iter().fold(cases, |cases, (from, to)| cases.replace(from, to))
}

/// Removes the modules that are about futures.
fn without_modules(cases: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    for line in cases.lines() {
        let module = line.strip_prefix("mod ").and_then(|rest| rest.strip_suffix(';'));
        if !module.is_some_and(|module| ASYNC_ONLY.contains(&module)) {
            kept.push(line);
        } else if kept.last().is_some_and(|line| line.starts_with("#[path")) {
            kept.pop();
        }
    }
    kept.join("\n")
}

/// Returns where a block ends whose first brace is open.
fn end_of_block(rest: &str) -> usize {
    let mut open = 1;
    let end = rest.find(|letter| {
        open += i32::from(letter == '{') - i32::from(letter == '}');
        open == 0
    });
    end.map_or(rest.len(), |end| end + 1)
}
