//! The texts of Redis errors, and the codes in them.

use std::sync::LazyLock;

/// The permissions that the scripts need, as an ACL spells them.
static PERMISSIONS: LazyLock<String> = LazyLock::new(|| {
    let script = ratelimit_lua::decide(None);
    let permissions =
        ratelimit_lua::commands(&script).into_iter().map(|name| format!("+{}", name.to_lowercase()));
    permissions.collect::<Vec<_>>().join(" ")
});

/// Returns what a store error says about the text of a Redis error.
pub(super) fn message(text: &str) -> String {
    // Redis 6.2 says this of every command in a script. Later versions are asked by the script.
    if text.contains("can't run this command") {
        let permissions = &*PERMISSIONS;
        return format!("Redis returned an error: {text}; the user of this connection needs {permissions}");
    }
    format!("Redis returned an error: {}", without_user(text))
}

/// Returns an error text without the name of the user that lacks a permission.
pub(super) fn without_user(text: &str) -> String {
    let split = text.split_once("User ").and_then(|(before, rest)| {
        let (user, after) = rest.split_once(" has no permissions")?;
        (!user.contains(' ')).then_some((before, after))
    });
    split.map_or_else(
        || text.to_owned(),
        |(before, after)| format!("{before}this user has no permissions{after}"),
    )
}

/// Whether the code or text of a Redis error means that retrying is useless: another program's value under the key, or
/// a script that trips over it. All other errors pass, or are for the operator to fix.
pub(super) fn is_permanent(code_or_text: &str) -> bool {
    let coded = words(code_or_text).take(10).any(|word| matches!(word, "WRONGTYPE" | "CORRUPT"));
    coded || [": attempt to ", ": bad argument "].iter().any(|lua| code_or_text.contains(lua))
}

/// Returns the words of an error text. The code is among the first: Redis before 7 puts the position in the script in
/// front of it.
pub(super) fn words(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split([' ', ':']).filter(|word| !word.is_empty());
    words.map(|word| word.trim_start_matches('-'))
}

#[cfg(test)]
mod tests {
    use super::{is_permanent, message};

    #[test]
    fn unnamed_missing_permissions_are_listed() {
        let denied = "ERR The user executing the script can't run this command or subcommand";
        let permissions = "+del +expireat +get +hdel +hgetall +hmget +hset +incrby +lindex +llen +lrange +lset +ltrim +rpush +set \
            +time";
        assert!(message(denied).ends_with(&format!(" needs {permissions}")), "{}", message(denied));
        assert!(message(denied).contains(denied));
        assert!(!message("OOM command not allowed when used memory > 'maxmemory'.").contains('+'));
    }

    #[test]
    fn foreign_values_are_permanent_errors() {
        for text in [
            "WRONGTYPE",
            "CORRUPT",
            "WRONGTYPE Operation against a key holding the wrong kind of value",
            "CORRUPT the value under this key is not the state of a limiter",
            "CORRUPT the value under this key is not the state of a limiter script: 6e2b, on @user_script:1.",
            "WRONGTYPE: Operation against a key holding the wrong kind of value",
            "ERR Error running script (call to f_6e2b): @user_script:12: WRONGTYPE Operation against a key",
            "user_script:93: attempt to perform arithmetic on a nil value",
            "ERR user_script:93: attempt to compare number with nil script: 6e2b, on @user_script:93.",
        ] {
            assert!(is_permanent(text), "{text}");
        }
    }

    #[test]
    fn server_outages_are_transient_errors() {
        for text in [
            "ERR",
            "OOM command not allowed when used memory > 'maxmemory'.",
            "@user_script: 12: -OOM command not allowed when used memory > 'maxmemory'.",
            "READONLY You can't write against a read only replica.",
            "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.",
            "NOREPLICAS Not enough good replicas to write.",
            "NOPERM the user of this connection may not run EXPIREAT",
            "ERR The user executing the script can't run this command or subcommand",
            "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
            "LOADING Redis is loading the dataset in memory",
        ] {
            assert!(!is_permanent(text), "{text}");
        }
    }
}
