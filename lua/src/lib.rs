//! The Redis scripts of `ratelimits`: one `.lua` file per algorithm, and the scripts assembled from them. Not covered by
//! semver.
//!
//! An algorithm's file defines `width`, `check`, `commit`, `undo`, `restore` and `refund`. Its header specifies its state,
//! its arguments with their units, and its reply. A script is the prelude, one algorithm (or all of them, followed by
//! `mixed.lua`) and a driver: `decide.lua` or `refund.lua`. Two algorithms exist in a second form, `adjustable_…`, for
//! numbers that change from call to call: the same file with `adjustable` set.
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

const PRELUDE: &str = include_str!("../prelude.lua");
const DECIDE: &str = include_str!("../decide.lua");
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
        Some(name) => assemble(&[source(name), DECIDE].concat()),
        None => {
            let mut script = String::new();
            script.push_str("local algorithms = {}\n");
            for (name, source) in ALGORITHMS {
                script.push_str(&format!(
                    "algorithms.{name} = function()\n{source}\nreturn {{check = check, commit = commit, undo = undo, restore = restore}}\nend\n"
                ));
            }
            assemble(&(script + MIXED + DECIDE))
        }
    }
}

/// Returns the script that refunds charges of the named algorithm.
///
/// # Panics
///
/// If no algorithm has this name.
#[must_use]
pub fn refund(algorithm: &str) -> String {
    assemble(&[source(algorithm), REFUND].concat())
}

/// Returns the names of the commands that a script may call, including alternatives to denied ones.
#[must_use]
pub fn commands(script: &str) -> BTreeSet<&str> {
    script.split("call('").skip(1).filter_map(|call| call.split('\'').next()).collect()
}

/// Prepends the prelude, and inserts the names of the commands.
fn assemble(script: &str) -> String {
    let script = [PRELUDE, script].concat();
    let names: Vec<String> = commands(&script).iter().map(|name| format!("'{name}'")).collect();
    script.replace("--[[ commands ]]", &names.join(", "))
}

/// Replaces the clock of a script: `now` is a Lua expression for microseconds, and `expire` a statement that replaces each
/// expiry, in the scope of `key` and of the Unix `second` at which the key would expire.
///
/// # Panics
///
/// If the prelude lacks the lines that this replaces.
#[must_use]
pub fn with_time(script: &str, now: &str, expire: &str) -> String {
    const NOW: &str = "local now = time[1] * 1000000 + time[2]\n";
    const EXPIRE: &str = "    redis.call('EXPIREAT', key, int(second))\n";
    const SET: &str = "    redis.call('SET', key, value, 'PXAT', int(second * 1000))\n";
    for line in [NOW, EXPIRE, SET] {
        assert_eq!(script.matches(line).count(), 1, "the prelude has this line once: {line}");
    }
    script
        .replace(NOW, &format!("local now = {now}\n"))
        .replace(EXPIRE, &format!("    {expire}\n"))
        .replace(SET, &format!("    redis.call('SET', key, value)\n    {expire}\n"))
}

fn source(algorithm: &str) -> &'static str {
    match ALGORITHMS.iter().find(|(name, _)| *name == algorithm) {
        Some((_, source)) => source,
        None => panic!("no algorithm is named {algorithm}"),
    }
}

#[cfg(test)]
mod tests {
    use super::{ALGORITHMS, commands, decide, refund};

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
        let all: Vec<&str> = [BUCKET, LIST].concat();
        assert!(commands(&decide(None)).iter().eq(all.iter().collect::<std::collections::BTreeSet<_>>()));
    }
}
