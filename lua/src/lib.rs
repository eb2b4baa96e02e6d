//! The Redis scripts of `ratelimits`: one `.lua` file per algorithm, and the scripts assembled from them. Not covered by
//! semver.
//!
//! An algorithm's file defines `check`, `commit`, `undo`, `restore`, `correct` and `pause`. Its header specifies its state, its
//! arguments with their units, and its reply. Some algorithms exist in a second form, `adjustable_…`, for numbers that change
//! from call to call: `gcra` in a file of its own, to which `settled_gcra` adds, the others in the same file with `adjustable` set.
//!
//! One script decides: `plain.lua`, a pass over lists of charges that makes hardly any function, with all algorithms and `decide.lua`
//! for what the pass leaves to them. `plain_buckets.lua` is the same for lists of nothing but buckets. The
//! reply of a pass is one text, packed by the library `struct`, which Redis and Valkey include. Another script, `correct.lua`, gives
//! permits back, charges what calls have used beyond their costs, or pauses keys, and begins with such a pass too. It also takes what
//! processes say about their holds.
//!
//! # Errors
//!
//! Redis does not roll back a failed script. A server that rejects writes (`OOM`, `READONLY`, `MISCONF`, `NOREPLICAS`)
//! rejects the first one, but a missing permission can fail any command. So the scripts catch errors and `restore` the
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
//! | `adjustable_gcra`, `settled_gcra`, `interval_bucket`, `warming_up`, `fixed_window`, `calendar_window` | `TIME` `GET` `SET` `DEL` |
//! | `sliding_window` | `TIME` `LLEN` `LINDEX` `LRANGE` `LSET` `LTRIM` `RPUSH` `EXPIREAT` `DEL` |
//! | `holds` | `TIME` `HMGET` `HGETALL` `HSET` `HDEL` `EXPIREAT` `DEL` |
#![forbid(unsafe_code)]

use std::collections::BTreeSet;

/// Returns a file with a line in front that says whether the numbers of its policies can change.
macro_rules! adjustable {
    ($file:literal, $adjustable:literal) => {
        concat!("local adjustable = ", $adjustable, "\n", include_str!($file))
    };
}

/// The algorithms, named after their files, in the order of their numbers in the arguments of the scripts, from 1 on. Each has a
/// Rust twin of the same name.
pub const ALGORITHMS: [(&str, &str); 11] = [
    ("gcra", include_str!("../gcra.lua")),
    ("fixed_window", include_str!("../fixed_window.lua")),
    ("sliding_window", include_str!("../sliding_window.lua")),
    ("interval_bucket", adjustable!("../interval_bucket.lua", false)),
    ("adjustable_gcra", include_str!("../adjustable_gcra.lua")),
    ("adjustable_interval_bucket", adjustable!("../interval_bucket.lua", true)),
    ("warming_up", adjustable!("../warming_up.lua", false)),
    ("adjustable_warming_up", adjustable!("../warming_up.lua", true)),
    (
        "settled_gcra",
        concat!(include_str!("../adjustable_gcra.lua"), "--[[ all ]]\n", include_str!("../settled_gcra.lua")),
    ),
    ("holds", include_str!("../holds.lua")),
    ("calendar_window", include_str!("../calendar_window.lua")),
];

/// The files that are part of every script, or included in others.
const CLOCK: &str = include_str!("../clock.lua");
const ERRORS: &str = include_str!("../errors.lua");
const PRELUDE: &str = include_str!("../prelude.lua");
const ALGORITHMS_BY_NUMBER: &str = include_str!("../algorithms.lua");
const DECIDE: &str = include_str!("../decide.lua");
const PLAIN: &str = include_str!("../plain.lua");
const PLAIN_ARGUMENTS: &str = include_str!("../plain_arguments.lua");
const PLAIN_CALENDAR_READ: &str = include_str!("../plain_calendar_read.lua");
const PLAIN_CALENDAR_WRITE: &str = include_str!("../plain_calendar_write.lua");
const PLAIN_HOLDS_READ: &str = include_str!("../plain_holds_read.lua");
const PLAIN_HOLDS_WRITE: &str = include_str!("../plain_holds_write.lua");
const PLAIN_BUCKETS: &str = include_str!("../plain_buckets.lua");
const PLAIN_CORRECTIONS: &str = include_str!("../plain_corrections.lua");
const INTEGER: &str = include_str!("../integer.lua");
const CORRECT: &str = include_str!("../correct.lua");

/// What a script does. Redis creates the functions of a script anew for each call, so it has only those that it needs: those after
/// a line with the name of the other part in brackets, up to the next one, are left out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Decisions,
    Corrections,
}

/// Turns the pass over plain states on.
const FIRST_PASS: &str = "local has_first_pass = true\n";

/// Returns the script that decides charges of the named algorithm, or of any. Plain buckets have one of their own, which takes
/// other arguments.
#[must_use]
pub fn decide(algorithm: Option<&str>) -> String {
    match algorithm {
        Some("gcra") => assemble(Part::Decisions, &[PLAIN_BUCKETS], &ALGORITHMS[..1]),
        _ => assemble(Part::Decisions, &[FIRST_PASS, PLAIN], &ALGORITHMS),
    }
}

/// Returns the same script without its pass over plain states, for tests.
#[must_use]
pub fn without_first_pass(script: &str) -> String {
    script.replace(FIRST_PASS, "local has_first_pass = false\n")
}

/// Returns the script that corrects what keys of any algorithms were charged.
#[must_use]
pub fn correct() -> String {
    assemble(Part::Corrections, &[FIRST_PASS, CORRECT], &ALGORITHMS)
}

/// Returns the names of the commands that a script may call, including alternatives to denied ones.
#[must_use]
pub fn commands(script: &str) -> BTreeSet<&str> {
    script.split("call('").skip(1).filter_map(|call| call.split('\'').next()).collect()
}

/// Joins the clock and these pieces of a script, with the files that they include, these algorithms, and the names of its
/// commands.
fn assemble(part: Part, pieces: &[&str], algorithms: &[(&str, &str)]) -> String {
    let functions = match part {
        Part::Decisions => "check = check, commit = commit, undo = undo, restore = restore",
        Part::Corrections => "correct = correct, pause = pause",
    };
    let branch = |(kind, (_, source)): (i32, &(&str, &str))| {
        format!("if kind == {kind} then\n{source}\n--[[ all ]]\nalgorithm = {{{functions}}}\nend\n")
    };
    let branches: String = (1..).zip(algorithms).map(branch).collect();
    let mut script = [&[CLOCK], pieces].concat().concat();
    // Each may include those after it.
    let files = [
        ("plain_arguments", PLAIN_ARGUMENTS),
        ("plain_calendar_read", PLAIN_CALENDAR_READ),
        ("plain_calendar_write", PLAIN_CALENDAR_WRITE),
        ("plain_holds_read", PLAIN_HOLDS_READ),
        ("plain_holds_write", PLAIN_HOLDS_WRITE),
        ("plain_corrections", PLAIN_CORRECTIONS),
        ("integer", INTEGER),
        ("decide", DECIDE),
        ("algorithms", ALGORITHMS_BY_NUMBER),
        ("prelude", PRELUDE),
        ("errors", ERRORS),
    ];
    for (name, source) in files {
        script = script.replace(&format!("--[[ {name}.lua ]]\n"), source);
    }
    script = script.replace("--[[ branches ]]\n", &branches);
    let mut belongs = true;
    script = script.lines().fold(String::new(), |script, line| {
        belongs = match line {
            "--[[ all ]]" => true,
            "--[[ decisions ]]" => part == Part::Decisions,
            "--[[ corrections ]]" => part == Part::Corrections,
            _ => belongs,
        };
        if belongs { script + line + "\n" } else { script }
    });
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{ALGORITHMS, ALGORITHMS_BY_NUMBER, Part, assemble, commands, correct, decide};

    #[test]
    fn scripts_call_only_documented_commands() {
        const STRING: &[&str] = &["DEL", "EXPIREAT", "GET", "SET", "TIME"];
        const BUCKET: &[&str] = &["DEL", "EXPIREAT", "GET", "INCRBY", "SET", "TIME"];
        // `GET` is of prelude.lua, in a function that lists do not call.
        const LIST: &[&str] =
            &["DEL", "EXPIREAT", "GET", "LINDEX", "LLEN", "LRANGE", "LSET", "LTRIM", "RPUSH", "SET", "TIME"];
        const HASH: &[&str] = &["DEL", "EXPIREAT", "GET", "HDEL", "HGETALL", "HMGET", "HSET", "SET", "TIME"];
        let called = |script: &str| commands(script).into_iter().map(str::to_owned).collect::<BTreeSet<_>>();
        let documented = |names: &[&str]| names.iter().map(|name| name.to_string()).collect::<BTreeSet<_>>();
        for (name, source) in ALGORITHMS {
            let expected = match name {
                "gcra" => BUCKET,
                "sliding_window" => LIST,
                "holds" => HASH,
                _ => STRING,
            };
            let of = |part| called(&assemble(part, &[ALGORITHMS_BY_NUMBER], &[(name, source)]));
            let all = &of(Part::Decisions) | &of(Part::Corrections);
            assert_eq!(all, documented(expected), "{name}");
        }
        assert_eq!(called(&decide(Some("gcra"))), documented(BUCKET));
        let all = &(&documented(BUCKET) | &documented(LIST)) | &documented(HASH);
        assert_eq!(called(&decide(None)), all);
        assert_eq!(called(&correct()), &all - &documented(&["INCRBY"]));
    }
}
