//! The Redis scripts of `ratelimits`: one `.lua` file per algorithm, and the scripts assembled from them.
//!
//! An algorithm's file defines `width`, `check`, `commit`, `undo` and `refund`, and its header says what its key holds,
//! what its arguments are, in which units, and what it replies. A script is the prelude, one algorithm (or all of them
//! behind `mixed.lua`) and a driver: `decide.lua` or `refund.lua`. Outside semver.

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
        Some(name) => [PRELUDE, source(name), DECIDE].concat(),
        None => {
            let mut script = String::from(PRELUDE);
            script.push_str("local algorithms = {}\n");
            for (name, source) in ALGORITHMS {
                script.push_str(&format!(
                    "algorithms.{name} = (function()\n{source}\nreturn {{check = check, commit = commit, undo = undo}}\nend)()\n"
                ));
            }
            script + MIXED + DECIDE
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
    [PRELUDE, source(algorithm), REFUND].concat()
}

/// The same script under a time of the caller's: `now` is a Lua expression for microseconds, and `expire` a statement
/// that sees `key` and the Unix `second` at which the key would go.
///
/// # Panics
///
/// If the prelude no longer has the one line of each that this replaces.
#[must_use]
pub fn with_time(script: &str, now: &str, expire: &str) -> String {
    const NOW: &str = "local now = time[1] * 1000000 + time[2]\n";
    const EXPIRE: &str = "    redis.call('EXPIREAT', key, int(second))\n";
    assert_eq!(script.matches(NOW).count(), 1, "a script reads the clock in one line");
    assert_eq!(script.matches(EXPIRE).count(), 1, "a script sets expiries in one line");
    script.replace(NOW, &format!("local now = {now}\n")).replace(EXPIRE, &format!("    {expire}\n"))
}

fn source(algorithm: &str) -> &'static str {
    match ALGORITHMS.iter().find(|(name, _)| *name == algorithm) {
        Some((_, source)) => source,
        None => panic!("no algorithm is named {algorithm}"),
    }
}
