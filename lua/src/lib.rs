//! The Redis scripts of `ratelimits`: one `.lua` file per algorithm, and the scripts assembled from them.
//!
//! An algorithm's file defines `width`, `check`, `commit`, `undo`, `restore` and `refund`, and its header says what its key
//! holds, what its arguments are, in which units, and what it replies. A script is the prelude, one algorithm (or all of
//! them behind `mixed.lua`) and a driver: `decide.lua` or `refund.lua`. Outside semver.
//!
//! # Failures
//!
//! Redis takes nothing back when a script fails. What its server may refuse for a while (`OOM`, `READONLY`, `MISCONF`,
//! `NOREPLICAS`) it refuses at the first write, but a command that its user may not run at any place. So the drivers catch
//! errors and `restore` the keys of a decision, and a value goes with its expiry in one command where it is possible.
//! An error is told by its text, which begins with its code: `CORRUPT` is ours, for a value that is no state.
//!
//! # Commands
//!
//! What the user of the connection must be allowed, besides `EVALSHA` and `EVAL`. Without one of them the first decision
//! that needs it fails, and on Redis 7.0 and later the error names it. `DEL` has stand-ins, but a reset is one.
//!
//! | algorithm | commands |
//! | --- | --- |
//! | `gcra` | `TIME` `GET` `SET` `INCRBY` `EXPIREAT` `DEL` |
//! | `interval_bucket`, `warming_up`, `fixed_window` | `TIME` `GET` `SET` `DEL` |
//! | `sliding_window` | `TIME` `LLEN` `LINDEX` `LRANGE` `LSET` `LTRIM` `RPUSH` `EXPIREAT` `DEL` |

use std::collections::BTreeSet;

/// The algorithms by the name of their file: each has a Rust twin of the same name.
pub const ALGORITHMS: [(&str, &str); 5] = [
    ("gcra", include_str!("../gcra.lua")),
    ("interval_bucket", include_str!("../interval_bucket.lua")),
    ("warming_up", include_str!("../warming_up.lua")),
    ("fixed_window", include_str!("../fixed_window.lua")),
    ("sliding_window", include_str!("../sliding_window.lua")),
];

const PRELUDE: &str = include_str!("../prelude.lua");
const DECIDE: &str = include_str!("../decide.lua");
const REFUND: &str = include_str!("../refund.lua");
const MIXED: &str = include_str!("../mixed.lua");

/// The script that decides charges of the named algorithm, or of all of them where none is named.
///
/// # Panics
///
/// If no algorithm has this name.
#[must_use]
pub fn decide(algorithm: Option<&str>) -> String {
    match algorithm {
        Some(name) => assembled(&[source(name), DECIDE].concat()),
        None => {
            let mut script = String::new();
            script.push_str("local algorithms = {}\n");
            for (name, source) in ALGORITHMS {
                script.push_str(&format!(
                    "algorithms.{name} = (function()\n{source}\nreturn {{check = check, commit = commit, undo = undo, restore = restore}}\nend)()\n"
                ));
            }
            assembled(&(script + MIXED + DECIDE))
        }
    }
}

/// The script that gives back charges of the named algorithm.
///
/// # Panics
///
/// If no algorithm has this name.
#[must_use]
pub fn refund(algorithm: &str) -> String {
    assembled(&[source(algorithm), REFUND].concat())
}

/// The commands that stand in a script, by name, each once: those that its user needs, and stand-ins for them.
#[must_use]
pub fn commands(script: &str) -> BTreeSet<&str> {
    script.split("call('").skip(1).filter_map(|call| call.split('\'').next()).collect()
}

/// Behind the prelude, which is told the commands by name.
fn assembled(script: &str) -> String {
    let script = [PRELUDE, script].concat();
    let names: Vec<String> = commands(&script).iter().map(|name| format!("'{name}'")).collect();
    script.replace("--[[ commands ]]", &names.join(", "))
}

/// The same script under a time of the caller's: `now` is a Lua expression for microseconds, and `expire` a statement
/// that sees `key` and the Unix `second` at which the key would go, and stands behind each `SET` too.
///
/// # Panics
///
/// If the prelude no longer has the lines that this replaces.
#[must_use]
pub fn with_time(script: &str, now: &str, expire: &str) -> String {
    const NOW: &str = "local now = time[1] * 1000000 + time[2]\n";
    const EXPIRE: &str = "    redis.call('EXPIREAT', key, int(second))\n";
    const SET: &str = "    redis.call('SET', key, value, 'PXAT', int(second * 1000))\n";
    for line in [NOW, EXPIRE, SET] {
        assert_eq!(script.matches(line).count(), 1, "a script has one such line: {line}");
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
    fn a_script_has_the_commands_that_operators_are_told() {
        const STRING: &[&str] = &["DEL", "EXPIREAT", "GET", "SET", "TIME"];
        const BUCKET: &[&str] = &["DEL", "EXPIREAT", "GET", "INCRBY", "SET", "TIME"];
        const LIST: &[&str] =
            &["DEL", "EXPIREAT", "LINDEX", "LLEN", "LRANGE", "LSET", "LTRIM", "RPUSH", "SET", "TIME"];
        for (name, _) in ALGORITHMS {
            let told = match name {
                "gcra" => BUCKET,
                "sliding_window" => LIST,
                _ => STRING,
            };
            for script in [decide(Some(name)), refund(name)] {
                let called: Vec<&str> = commands(&script).into_iter().collect();
                assert_eq!(called, told, "{name}");
            }
        }
        let all: Vec<&str> = [BUCKET, LIST].concat();
        assert!(commands(&decide(None)).iter().eq(all.iter().collect::<std::collections::BTreeSet<_>>()));
    }
}
