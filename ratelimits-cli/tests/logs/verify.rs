//! The command `verify`, run on small logs.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::command::{Run, run};

/// An access log in which one address has three calls in a second admitted, and one refused.
const ACCESS: &str = r#"192.0.2.1 - frank [10/Oct/2000:13:55:36 -0700] "GET /a HTTP/1.0" 200 2326
192.0.2.1 - frank [10/Oct/2000:13:55:36 -0700] "GET /\"b\" HTTP/1.0" 503 2326

192.0.2.2 - - [10/Oct/2000:13:55:36 -0700] "POST /a HTTP/1.0" 200 2326
192.0.2.1 - frank [10/Oct/2000:13:55:36 -0700] "GET /a HTTP/1.0" 429 0
192.0.2.1 - frank [10/Oct/2000:13:55:36 -0700] "GET /a HTTP/1.0" 200 2326
192.0.2.2 - - [10/Oct/2000:13:55:39 -0700] "POST /a HTTP/1.0" 429 0
"#;

fn verify(arguments: &[&str], log: impl AsRef<[u8]>) -> Run {
    run("verify", arguments, log)
}

fn json_of(arguments: &[&str], log: &str) -> Value {
    let run = verify(&[arguments, &["--json"]].concat(), log);
    assert!(matches!(run.code, Some(0 | 1)), "{run:?}");
    run.json()
}

#[test]
fn tables_name_the_worst_interval() {
    let run = verify(
        &["rate_limit(1, burst = 2)", "count_limit(100, \"day\", key = user)", "--clock-error", "2ms"],
        ACCESS,
    );
    let expected = r#"2000-10-10T20:55:36Z to 2000-10-10T20:55:39Z, each time may be wrong by 2ms

ADMITTED  REFUSED  NEEDLESSLY  KEYS
       4        2           1     2

POLICY                               PERMITS  EXCEEDED KEYS  WORST EXCESS
rate_limit(1, burst = 2)                   4              1             1
count_limit(100, "day", key = user)        4              0             0

POLICY                    KEY        FROM                  TO                    ADMITTED  ALLOWED  EXCESS
rate_limit(1, burst = 2)  192.0.2.1  2000-10-10T20:55:36Z  2000-10-10T20:55:36Z         3        2       1
"#;
    assert_eq!(run.out, expected);
    let notes = "note: ignored `key` of count_limit(100, \"day\", key = user)\n\
                 note: 1 of 1 needless refusals are so early in the log that calls from before it may be why\n\
                 note: all times of the log are whole seconds; if they were cut to that, write `--clock-error 500ms`\n";
    assert_eq!((run.err.as_str(), run.code), (notes, Some(1)));
}

#[test]
fn json_shows_the_same() {
    let expected = json!({
        "from": "2000-10-10T20:55:36Z",
        "to": "2000-10-10T20:55:39Z",
        "clock_error_nanoseconds": 2_000_000,
        "admitted": 4,
        "refused": 2,
        "needless_refusals": 1,
        "early_needless_refusals": 0,
        "keys": 2,
        "policies": [{
            "policy": "frank's",
            "permits": 4,
            "exceeded_keys": 1,
            "uncertain_keys": 0,
            "worst_excess": 1,
            "needed_refusals": 1,
            "unknown_refusals": 0,
        }],
        "most_exceeded": [{
            "policy": "frank's",
            "key": "192.0.2.1",
            "from": "2000-10-10T20:55:36Z",
            "to": "2000-10-10T20:55:36Z",
            "admitted": 3,
            "allowed": 2,
            "excess": 1,
            "certain": true,
        }],
    });
    assert_eq!(
        json_of(&["rate_limit(1, burst = 2, name = \"frank's\")", "--clock-error", "2ms"], ACCESS),
        expected
    );
}

#[test]
fn logs_that_keep_a_policy_pass() {
    let run = verify(&["rate_limit(1, burst = 3)"], ACCESS);
    let expected = "POLICY                    PERMITS  EXCEEDED KEYS  WORST EXCESS\n\
                    rate_limit(1, burst = 3)        4              0             0\n";
    assert!(run.out.ends_with(expected), "{}", run.out);
    assert_eq!(run.code, Some(0));
}

#[test]
fn every_format_is_read() {
    let words = "1800000000 a\n1800000000.000000001 a\n2027-01-15T08:00:01Z a\n";
    let csv = "at,user\n1800000000,a\n1800000000000,a\n1800000001000000,a\n";
    let lines = "{\"ts\": 1800000000, \"call\": {\"user\": \"a\"}}\n{\"ts\": \"2027-01-15T08:00:00Z\", \"call\": {\"user\": \"\\u0061\"}}\n\
                 {\"call\": {\"user\": \"a\"}, \"ts\": 1800000001000000000}\n";
    for (arguments, log) in [
        (&["--key", "2"][..], words),
        (&["--key", "user", "--time", "at"], csv),
        (&["--key", "2", "--time", "at"], csv),
        (&["--key", "call.user"], lines),
        (
            &["--key", "method"],
            "a - - [15/Jan/2027:08:00:00 +0000] \"GET /\" 200 1\na - - [15/Jan/2027:08:00:00 +0000] \"GET /\" 200 1\n\
                                a - - [15/Jan/2027:09:00:01 +0100] \"GET /\" 200 1\n",
        ),
    ] {
        let report = json_of(&[&["window_limit(1, 1)"], arguments].concat(), log);
        assert_eq!(
            (&report["admitted"], &report["to"]),
            (&json!(3), &json!("2027-01-15T08:00:01Z")),
            "{log}"
        );
        assert_eq!(
            (&report["keys"], &report["policies"][0]["worst_excess"]),
            (&json!(1), &json!(1)),
            "{log}"
        );
    }
}

#[test]
fn costs_are_those_of_lines_or_of_policies() {
    let bytes = json_of(&["count_limit(5000, \"1d\")", "--cost", "10"], ACCESS);
    assert_eq!(bytes["most_exceeded"][0]["excess"], 3 * 2326 - 5000);
    let two = json_of(&["count_limit(5, \"1d\", cost = 2)"], ACCESS);
    assert_eq!((&two["policies"][0]["permits"], &two["most_exceeded"][0]["excess"]), (&json!(8), &json!(1)));
    assert_eq!(json_of(&["count_limit(5, \"1d\", cost = 0)"], ACCESS)["policies"][0]["permits"], 0);
}

#[test]
fn refused_calls_have_a_field_that_says_so() {
    let one = "count_limit(1, \"1d\")";
    let by = |refused: &[&str], log| {
        let report = json_of(&[&[one, "--key", "user"], refused].concat(), log);
        [&report["admitted"], &report["refused"]].map(|number| number.as_u64().unwrap())
    };
    let lines = "{\"ts\": 1, \"user\": \"a\", \"allowed\": true}\n{\"ts\": 2, \"user\": \"a\", \"allowed\": false}\n\
                 {\"ts\": 3, \"user\": \"a\", \"allowed\": null, \"status\": 429}\n";
    assert_eq!(by(&[], lines), [2, 1]);
    assert_eq!(by(&["--refused", "ts=1", "--refused", "ts=2"], lines), [1, 2]);
    let access = json_of(&[one, "--refused", "status=503"], ACCESS);
    assert_eq!((&access["admitted"], &access["refused"]), (&json!(5), &json!(1)));
    let run = verify(&[one, "--key", "user", "--refused", "allowed=false"], lines);
    let problem = "error: line 3: no `allowed`, which says whether the call was refused; name another field with `--refused`\n";
    assert_eq!((run.err.as_str(), run.code), (problem, Some(3)));
}

#[test]
fn a_refusal_is_needless_if_no_policy_needs_it() {
    // The third call is refused by the window alone, the fourth by both, and the last by none.
    let log = "100 a 200\n101 a 200\n102 a 429\n102 a 200\n102 a 429\n200 a 429\n";
    let report =
        json_of(&["rate_limit(1, 3)", "count_limit(2, 60)", "--key", "2", "--refused", "3=429"], log);
    assert_eq!((&report["needless_refusals"], &report["early_needless_refusals"]), (&json!(1), &json!(0)));
    assert_eq!(report["policies"][0]["needed_refusals"], 0);
    assert_eq!(report["policies"][1]["needed_refusals"], 2);
    let queue =
        verify(&["funnel_limit(1, 1, queue)", "--key", "2", "--refused", "3=429"], "100 a 200\n102 a 429\n");
    assert_eq!(
        queue.err,
        "note: refusals of which a log does not tell whether funnel_limit(1, 1, queue) needed them: 1\n"
    );
}

#[test]
fn windows_depend_on_the_beginning_of_the_log() {
    let report = |log: &str| verify(&["count_limit(1, 60)", "--key", "2"], log);
    let early = report("100 b\n110.5 a\n160 a\n");
    let note = "note: the windows of 1 key that exceed count_limit(1, 60) are counted from the beginning of the log; calls from before it \
                could have opened others\n";
    assert_eq!((early.err.as_str(), early.code), (note, Some(1)));
    for log in ["100 b\n160.5 a\n210 a\n", "100 a\n160.5 a\n219 a\n"] {
        let run = report(log);
        assert_eq!((run.err.as_str(), run.code), ("", Some(1)), "{log}");
    }
}

#[test]
fn an_error_of_the_clock_widens_the_bound() {
    let log = "100.0 a\n100.996 a\n";
    let code = |policy: &str, error: &str| verify(&[policy, "--key", "2", "--clock-error", error], log).code;
    for policy in ["window_limit(1, 1)", "count_limit(1, 1)", "rate_limit(1, 1)"] {
        assert_eq!((code(policy, "1999us"), code(policy, "2ms")), (Some(1), Some(0)), "{policy}");
    }
    // Each boundary has one time that may be wrong.
    let aligned = "count_limit(1, 1, aligned)";
    assert_eq!((code(aligned, "0s"), code(aligned, "1us")), (Some(1), Some(0)));
}

#[test]
fn times_that_are_cut_to_seconds_are_told() {
    // Of calls every half second, four begin within two seconds.
    let log = "100 a\n100 a\n101 a\n101 a\n102 a\n";
    let run = |more: &[&str]| verify(&[&["rate_limit(2, 1)", "--key", "2"], more].concat(), log);
    let note = "note: all times of the log are whole seconds; if they were cut to that, write `--clock-error 500ms`\n";
    assert_eq!((run(&[]).err.as_str(), run(&[]).code), (note, Some(1)));
    let blurred = run(&["--clock-error", "500ms"]);
    assert_eq!((blurred.err.as_str(), blurred.code), ("", Some(0)));
}

#[test]
fn calls_that_run_at_once_are_counted() {
    let limit = "concurrency_limit(1)";
    for (durations, code) in
        [(["1", "1"], 0), (["1.000000001", "1"], 1), (["1s1us", "0s"], 0), (["1001ms", "1ms"], 1)]
    {
        let log = format!(
            "{{\"ts\": 5, \"took\": \"{}\"}}\n{{\"ts\": 6, \"took\": \"{}\"}}\n",
            durations[0], durations[1]
        );
        let log = log.replace("\"ts\"", "\"ip\": \"a\", \"ts\"");
        assert_eq!(verify(&[limit, "--duration", "took"], log).code, Some(code), "{durations:?}");
    }
    let refused = "{\"ts\": 5, \"ip\": \"a\", \"took\": 1}\n{\"ts\": 5.5, \"ip\": \"a\", \"status\": 429}\n";
    assert_eq!(json_of(&[limit, "--duration", "took"], refused)["policies"][0]["needed_refusals"], 1);
}

#[test]
fn late_lines_are_sorted() {
    let log = "100 a\n102 b\n101 a\n103 a\n102 a\n";
    let arguments = ["rate_limit(1, 1)", "--key", "2"];
    let run = verify(&arguments, log);
    let problem = "error: line 5: its time is before that of line 4, which has the same key; sort the log by time, or say how late lines \
                   are with `--late`\n";
    assert_eq!((run.err.as_str(), run.out.as_str(), run.code), (problem, "", Some(3)));
    assert_eq!(verify(&[&arguments[..], &["--late", "1s"]].concat(), log).code, Some(0));
    // Lines of other keys may come late, and do not count as too late for this one.
    let log = "100 a\n103 a\n104 b\n102 a\n103 b\n";
    assert_eq!(verify(&[&arguments[..], &["--late", "2s"]].concat(), log).code, Some(0));
    assert_eq!(verify(&[&arguments[..], &["--late", "999ms"]].concat(), log).code, Some(3));
}

#[test]
fn a_line_that_cannot_be_read_is_an_error() {
    let long = format!("100 {}\n", "x".repeat(1 << 20));
    let unmatched = "time,ip\n1,a\n2,\"a\n";
    for (arguments, log, problem) in [
        (&[][..], "", "the log is empty; `ratelimits verify --help` lists the formats"),
        (&[], "\n \n", "the log is empty;"),
        (&[], "time,ip\n", "the log is empty;"),
        (&["--key", "2"], "100 a\nx a\n", "line 2: no readable time"),
        (&[], "\n{\"ts\": 100}\n", "line 2: no `ip` to count by; name another field with `--key`"),
        (&[], "{\"ts\": 100", "line 1: no JSON object"),
        (&[], unmatched, "line 3: quotes that do not match"),
        (&[], "time,ip\n1,a,b\n", "line 2: 3 columns, where the header has 2"),
        (&[], "time,ip\n1\n", "line 2: 1 column, where the header has 2"),
        (&["--key", "2", "--cost", "3"], "100 a 1.5\n", "line 1: field 3 is not a whole number of permits"),
        (
            &["--key", "2", "--cost", "3"],
            "100 a 9007199254740993\n",
            "line 1: the cost is more than 9007199254740992",
        ),
        (
            &["--key", "2", "--cost", "3"],
            "100 a 9007199254740992\n101 b 1\n",
            "line 2: the costs so far add up to more than 9007199254740992",
        ),
        (
            &["--key", "2", "--duration", "3"],
            "100 a fast\n",
            "line 1: field 3 is no duration; write seconds, or a unit, like 250ms",
        ),
        (&["--key", "2"], &long, "line 1: longer than 1 MiB"),
        (
            &[],
            "a - - [15/Jan/2027:08:00:00 +0000] \"GET /\" - 1\n",
            "line 1: no `status`, which says whether the call was refused;",
        ),
    ] {
        let run = verify(&[&["rate_limit(5)"], arguments].concat(), log);
        assert!(run.err.starts_with(&format!("error: {problem}")), "{}", run.err);
        assert_eq!((run.out.as_str(), run.code), ("", Some(3)), "{problem}");
    }
    let odd = verify(&["rate_limit(5)", "--key", "2"], b"100 a\xff\n");
    assert_eq!(odd.err, "error: line 1: the key is no UTF-8, so that other keys may look the same\n");
    assert_eq!(verify(&["rate_limit(5)", "--key", "2"], b"100 a \xff\n").code, Some(0));
}

#[test]
fn logs_are_files_or_standard_input() {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("verify.log");
    fs::write(&path, ACCESS).unwrap();
    let policy = "rate_limit(1, burst = 2)";
    let file = verify(&[policy, path.to_str().unwrap()], "");
    assert_eq!((file.code, &file.out), (Some(1), &verify(&[policy, "-"], ACCESS).out));
    let missing = verify(&[policy, "/nonexistent/access.log"], "");
    assert!(missing.err.starts_with("error: cannot open /nonexistent/access.log: "), "{}", missing.err);
    assert_eq!(missing.code, Some(2));
    let directory = verify(&[policy, env!("CARGO_TARGET_TMPDIR")], "");
    assert!(directory.err.starts_with("error: cannot read "), "{}", directory.err);
    assert_eq!(directory.code, Some(3));
}

#[test]
fn wrong_usage_is_an_error() {
    for (arguments, message) in [
        (&[][..], "required arguments were not provided"),
        (
            &["access.log"],
            "error: there is no policy; write one like 'rate_limit(rate = \"100/min\", burst = 20)' before the log",
        ),
        (
            &["rate_limit(rate = user.plan)"],
            "error: invalid policy 'rate_limit(rate = user.plan)': `rate` is computed,",
        ),
        (
            &["rate_limit(5, cost = rows.len())"],
            "error: `cost` is computed, and only the program knows its value; write `cost = 2`, or name a field of the log with \
             `--cost`: rate_limit(5, cost = rows.len())\n",
        ),
        (
            &["concurrency_limit(20)"],
            "error: a concurrency limit depends on how long calls run; name the field that says so with `--duration`: \
             concurrency_limit(20)\n",
        ),
        (&["rate_limit(5)", "--refused", "status"], "write a field and a value: status=429"),
        (&["rate_limit(5)", "--refused", "=429"], "a field has a name or a number"),
        (&["rate_limit(5)", "--clock-error", "2"], "is not a duration;"),
        (&["rate_limit(5)", "--key", "0"], "fields are numbered from 1"),
    ] {
        let run = verify(arguments, ACCESS);
        assert!(run.err.contains(message), "{}", run.err);
        assert_eq!((run.out.as_str(), run.code), ("", Some(2)));
    }
}
