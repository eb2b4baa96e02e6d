//! Short runs of the program itself, with `ratelimits verify` and real servers.

use std::process::{Command, Output};

/// Runs the program, which finds the command beside it: cargo builds both for `cargo test --workspace`.
fn over_admission(arguments: &[&str]) -> Output {
    let output = Command::new(env!("CARGO_BIN_EXE_over-admission")).args(arguments).output();
    output.expect("the program runs")
}

/// Runs a line, several times if need be: on a busy machine, slow calls can make times too uncertain to find a permit.
fn line(name: &str) -> String {
    let mut output = over_admission(&["line", name]);
    for _ in 0..4 {
        if output.status.success() {
            break;
        }
        output = over_admission(&["line", name]);
    }
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn planted_permit_is_found_and_nothing_else() {
    for (name, found) in [("none", " 0 beyond the policy"), ("planted", " 1 beyond the policy")] {
        let text = line(name);
        assert_eq!(text.matches(found).count(), 5, "{text}");
    }
}

#[test]
fn decisions_in_process_stay_within_their_policies() {
    let output = over_admission(&["memory", "1"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(text.matches(" 0 beyond the policy").count(), 4, "{text}");
}

#[test]
fn unknown_line_is_an_error() {
    let output = over_admission(&["line", "nothing"]);
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("no line nothing"), "{output:?}");
}
