//! Why a command fails, and its exit code.

use std::fmt;
use std::io::{self, ErrorKind};
use std::process::ExitCode;

use crate::message::write_message;

#[derive(Debug)]
pub(crate) enum Failure {
    /// There is no such key or policy.
    NoSuchKey(String),
    /// The arguments, or a file that they name, are wrong.
    Usage(String),
    /// Redis failed.
    Redis(String),
    /// Redis does not let the user do this.
    NoPermission(String),
    /// The key of the overrides holds something else.
    NoOverrides(String),
    /// A log cannot be read.
    Log(String),
    /// Standard output failed.
    Output(io::Error),
}

/// The commands that scripts need to read states and overrides.
const IN_SCRIPTS: [&str; 8] = ["get", "hget", "hgetall", "hmget", "lindex", "llen", "lrange", "time"];

/// What the help of the command says about exit codes.
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  there is no such key or policy
  2  the arguments, or a file that they name, are wrong
  3  Redis cannot be reached, refuses the command, or fails";

impl Failure {
    /// Writes what is wrong to standard error, and returns the exit code.
    pub(crate) fn report(&self) -> ExitCode {
        let code = match self {
            // Whoever reads the output has seen enough.
            Failure::Output(error) if error.kind() == ErrorKind::BrokenPipe => return ExitCode::SUCCESS,
            Failure::NoSuchKey(_) => 1,
            Failure::Usage(_) => 2,
            Failure::Redis(_)
            | Failure::NoPermission(_)
            | Failure::NoOverrides(_)
            | Failure::Log(_)
            | Failure::Output(_) => 3,
        };
        write_message(format_args!("error: {self}"));
        ExitCode::from(code)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::NoSuchKey(problem)
            | Failure::Usage(problem)
            | Failure::Redis(problem)
            | Failure::NoPermission(problem)
            | Failure::NoOverrides(problem)
            | Failure::Log(problem) => f.write_str(problem),
            Failure::Output(error) => write!(f, "cannot write the output: {error}"),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Failure::Output(error)
    }
}

/// Returns the failure of a command at a server: what it lacks a permission for, if that is the reason.
pub(crate) fn store_failure(error: &str, server: &str, user: Option<&str>, namespace: &str) -> Failure {
    let problem =
        if error.contains(server) { error.to_owned() } else { format!("Redis at {server}: {error}") };
    let rules = missing_rules(error, namespace);
    if rules.is_empty() {
        return Failure::Redis(problem);
    }
    let user = user.unwrap_or("default");
    Failure::NoPermission(format!("{problem}\nAdd the permission: ACL SETUSER {user} {}", rules.join(" ")))
}

/// Returns the ACL rules that allow what Redis says is not permitted.
fn missing_rules(error: &str, namespace: &str) -> Vec<String> {
    let lower = error.to_ascii_lowercase();
    if lower.contains("permissions to access") {
        return vec![format!("~{namespace}:*")];
    }
    // A script names what the user may not run of all that it may need. Most commands only read.
    let listed = || Some(lower.split_once("may not run ")?.1);
    let quoted = || lower.split_once("permissions to run the '")?.1.split('\'').next();
    let names: Vec<&str> = match quoted() {
        Some(name) => vec![name],
        None => {
            let names = listed().unwrap_or_default().split([',', ' ']).filter(|name| !name.is_empty());
            let (read, others): (Vec<_>, Vec<_>) = names.partition(|name| IN_SCRIPTS.contains(name));
            if read.is_empty() { others } else { read }
        }
    };
    // Only the script that replaces overrides needs these, and stops at the first command that is denied.
    let replaces = names.iter().any(|name| ["hget", "lpush"].contains(name));
    let names = if replaces { vec!["hget", "time", "lpush", "ltrim", "hset"] } else { names };
    names.iter().map(|name| format!("+{name}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_permissions_are_named() {
        for (error, rules) in [
            ("NOPERM: this user has no permissions to run the 'scan' command", "+scan"),
            ("NoPerm: this user has no permissions to run the 'scan' command or its subcommand", "+scan"),
            ("NOPERM the user of this connection may not run DEL, GET, LLEN", "+get +llen"),
            ("NOPERM the user of this connection may not run EXPIREAT, SET", "+expireat +set"),
            ("NOPERM the user of this connection may not run HGET", "+hget +time +lpush +ltrim +hset"),
            (
                "NOPERM: this user has no permissions to run the 'hget' command",
                "+hget +time +lpush +ltrim +hset",
            ),
            (
                "NOPERM the user of this connection may not run LPUSH script: f46e, on @user_script:6.",
                "+hget +time +lpush +ltrim +hset",
            ),
            ("NOPERM: No permissions to access a key", "~shop:*"),
            ("NOPERM: this user has no permissions to access one of the keys", "~shop:*"),
            ("could not connect: refused", ""),
        ] {
            assert_eq!(missing_rules(error, "shop").join(" "), rules, "{error}");
        }
    }
}
