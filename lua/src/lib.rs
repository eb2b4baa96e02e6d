//! The Redis scripts of `ratelimits`: one `.lua` file per algorithm, and the scripts assembled from them. Not covered by
//! semver.
//!
//! An algorithm's file defines `width`, `check`, `commit`, `undo`, `restore` and `refund`. Its header specifies its state,
//! its arguments with their units, and its reply. A script is the clock, the prelude, one algorithm (or all of them, followed
//! by `mixed.lua`), and `decide.lua` with `decisions.lua`, or `refund.lua`. Two algorithms exist in a second form,
//! `adjustable_…`, for numbers that change from call to call: the same file with `adjustable` set.
//!
//! Most decisions are about plain states, and Redis creates the functions of a script anew for each call. So the scripts
//! named `…_plain` begin with a first pass that needs none of them; they contain the rest for the decisions that it cannot
//! make. Its reply is one text, packed by the library `cmsgpack`, which Redis and Valkey include.
//!
//! # Errors
//!
//! Redis does not roll back a failed script. A server that rejects writes (`OOM`, `READONLY`, `MISCONF`, `NOREPLICAS`)
//! rejects the first one, but a missing permission can fail any command. So the drivers catch errors and `restore` the
//! keys of a decision, and if possible one command sets a value and its expiry. The reply contains the text of an error,
//! which starts with its code. `CORRUPT` is our own code, for a value that is not a valid state.
//!
//! # Commands
//!
//! The user of the connection needs permission for `EVALSHA`, `EVAL` and the commands below. If one is denied, the first
//! decision that needs it fails; on Redis 7.0 and later the error names the command. Scripts can do without `DEL`, but a
//! reset cannot.
//!
//! | algorithm | commands |
//! | --- | --- |
//! | `gcra` | `TIME` `GET` `SET` `INCRBY` `EXPIREAT` `DEL` |
//! | `adjustable_gcra`, `interval_bucket`, `warming_up`, `fixed_window` | `TIME` `GET` `SET` `DEL` |
//! | `sliding_window` | `TIME` `LLEN` `LINDEX` `LRANGE` `LSET` `LTRIM` `RPUSH` `EXPIREAT` `DEL` |
#![forbid(unsafe_code)]

use std::collections::BTreeSet;

/// Returns a file with a line in front that says whether the numbers of its policies can change.
macro_rules! adjustable {
    ($file:literal, $adjustable:literal) => {
        concat!("local adjustable = ", $adjustable, "\n", include_str!($file))
    };
}

/// The algorithms, named after their files. Each has a Rust twin of the same name.
pub const ALGORITHMS: [(&str, &str); 8] = [
    ("gcra", include_str!("../gcra.lua")),
    ("adjustable_gcra", include_str!("../adjustable_gcra.lua")),
    ("interval_bucket", adjustable!("../interval_bucket.lua", false)),
    ("adjustable_interval_bucket", adjustable!("../interval_bucket.lua", true)),
    ("warming_up", adjustable!("../warming_up.lua", false)),
    ("adjustable_warming_up", adjustable!("../warming_up.lua", true)),
    ("fixed_window", include_str!("../fixed_window.lua")),
    ("sliding_window", include_str!("../sliding_window.lua")),
];

/// The algorithms with a first pass over plain states.
pub const PLAIN: [(&str, &str); 3] = [
    ("gcra", include_str!("../gcra_plain.lua")),
    ("fixed_window", include_str!("../fixed_window_plain.lua")),
    ("sliding_window", include_str!("../sliding_window_plain.lua")),
];

/// The files that are part of every script, or included in others.
const CLOCK: &str = include_str!("../clock.lua");
const FIRST_PASS: &str = include_str!("../first_pass.lua");
const ERRORS: &str = include_str!("../errors.lua");
const PRELUDE: &str = include_str!("../prelude.lua");
const DECIDE: &str = include_str!("../decide.lua");
const DECISIONS: &str = include_str!("../decisions.lua");
const REFUND: &str = include_str!("../refund.lua");
const MIXED: &str = include_str!("../mixed.lua");

/// Returns the script that decides charges of the named algorithm, or of all algorithms if none is named.
///
/// # Panics
///
/// If no algorithm has this name.
#[must_use]
pub fn decide(algorithm: Option<&str>) -> String {
    match algorithm {
        Some(name) => assemble(&[PRELUDE, source(&ALGORITHMS, name), DECIDE, DECISIONS]),
        None => {
            let algorithms: String = ALGORITHMS
                .iter()
                .map(|(name, source)| {
                    format!(
                        "algorithms.{name} = function()\n{source}\nreturn {{check = check, commit = commit, undo = undo, restore = restore}}\nend\n"
                    )
                })
                .collect();
            assemble(&[PRELUDE, "local algorithms = {}\n", &algorithms, MIXED, DECIDE, DECISIONS])
        }
    }
}

/// Returns the script that decides plain charges of the named algorithm.
///
/// # Panics
///
/// If no algorithm with a first pass has this name.
#[must_use]
pub fn decide_plain(algorithm: &str) -> String {
    assemble(&[source(&PLAIN, algorithm)])
}

/// Returns the script that refunds charges of the named algorithm.
///
/// # Panics
///
/// If no algorithm has this name.
#[must_use]
pub fn refund(algorithm: &str) -> String {
    assemble(&[PRELUDE, source(&ALGORITHMS, algorithm), REFUND])
}

/// Returns the names of the commands that a script may call, including alternatives to denied ones.
#[must_use]
pub fn commands(script: &str) -> BTreeSet<&str> {
    script.split("call('").skip(1).filter_map(|call| call.split('\'').next()).collect()
}

/// Joins the clock and these pieces of a script, with the files that they include and the names of its commands.
fn assemble(pieces: &[&str]) -> String {
    let mut script = [&[CLOCK], pieces].concat().concat();
    // Errors last, as other files include it.
    let others = [("first_pass", FIRST_PASS), ("prelude", PRELUDE), ("decide", DECIDE), ("errors", ERRORS)];
    let files = ALGORITHMS.into_iter().chain(others);
    for (name, source) in files {
        script = script.replace(&format!("--[[ {name}.lua ]]\n"), source);
    }
    let names: Vec<String> = commands(&script).iter().map(|name| format!("'{name}'")).collect();
    script.replace("--[[ commands ]]", &names.join(", "))
}

/// Replaces the clock of a script: `now` is a Lua expression for microseconds, given the server's `time`, and `expire` a
/// statement that replaces each expiry, given the `key` and the Unix `second` at which it would expire.
#[must_use]
pub fn with_time(script: &str, now: &str, expire: &str) -> String {
    const SHIM: &str = include_str!("../test_clock.lua");
    SHIM.replace("--[[ now ]]", now).replace("--[[ expire ]]", expire) + script
}

fn source(files: &[(&str, &'static str)], algorithm: &str) -> &'static str {
    match files.iter().find(|(name, _)| *name == algorithm) {
        Some((_, source)) => source,
        None => panic!("no algorithm is named {algorithm}"),
    }
}

#[cfg(test)]
mod tests {
    use super::{ALGORITHMS, PLAIN, commands, decide, decide_plain, refund};

    #[test]
    fn scripts_call_only_documented_commands() {
        const STRING: &[&str] = &["DEL", "EXPIREAT", "GET", "SET", "TIME"];
        const BUCKET: &[&str] = &["DEL", "EXPIREAT", "GET", "INCRBY", "SET", "TIME"];
        const LIST: &[&str] =
            &["DEL", "EXPIREAT", "LINDEX", "LLEN", "LRANGE", "LSET", "LTRIM", "RPUSH", "SET", "TIME"];
        for (name, _) in ALGORITHMS {
            let documented = match name {
                "gcra" => BUCKET,
                "sliding_window" => LIST,
                _ => STRING,
            };
            for script in [decide(Some(name)), refund(name)] {
                let called: Vec<&str> = commands(&script).into_iter().collect();
                assert_eq!(called, documented, "{name}");
            }
        }
        for (name, _) in PLAIN {
            assert!(commands(&decide_plain(name)).is_subset(&commands(&decide(Some(name)))), "{name}");
        }
        let all: Vec<&str> = [BUCKET, LIST].concat();
        assert!(commands(&decide(None)).iter().eq(all.iter().collect::<std::collections::BTreeSet<_>>()));
    }
}
