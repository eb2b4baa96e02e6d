//! The command `simulate`, run on small logs.

use serde_json::{Value, json};

use crate::command::{Run, run};

const LOG: &str = r#"192.0.2.1 - frank [10/Oct/2000:13:55:36 -0700] "GET /a HTTP/1.0" 200 2326
192.0.2.1 - frank [10/Oct/2000:13:55:36 -0700] "GET /b HTTP/1.0" 200 2326
192.0.2.1 - - [10/Oct/2000:13:55:37 -0700] "GET /a HTTP/1.0" 200 2326
no time

192.0.2.2 - - [10/Oct/2000:13:55:37 -0700] "POST /a HTTP/1.0" 200 2326
192.0.2.1 - frank [10/Oct/2000:13:55:30 -0700] "GET /a HTTP/1.0" 200 2326
192.0.2.1 - frank [10/Oct/2000:13:56:37 -0700] "GET /a HTTP/1.0" 200 2326
"#;

fn simulate(arguments: &[&str], log: impl AsRef<[u8]>) -> Run {
    run("simulate", arguments, log)
}

fn json_of(arguments: &[&str], log: &str) -> Value {
    let run = simulate(&[arguments, &["--json"]].concat(), log);
    assert_eq!(run.code, Some(0), "{}", run.err);
    run.json()
}

#[test]
fn tables_show_what_is_refused() {
    let run =
        simulate(&["rate_limit(rate = \"1/min\", burst = 2)", "count_limit(100, \"1d\", key = user)"], LOG);
    let expected = r#"2000-10-10T20:55:36Z to 2000-10-10T20:56:37Z

calls  admitted  refused   share  keys  keys with refusals
    6         4        2  33.3 %     2                   1

calls decided at the time of an earlier line, which was later: 1

policy                                 refused   share
rate_limit(rate = "1/min", burst = 2)        2  33.3 %
count_limit(100, "1d", key = user)           0   0.0 %

key        calls  refused   share         first refusal
192.0.2.1      5        2  40.0 %  2000-10-10T20:55:37Z
"#;
    assert_eq!(run.out, expected);
    let notes = "note: ignored `key` of count_limit(100, \"1d\", key = user)\nline 4: no readable time\n";
    assert_eq!((run.err.as_str(), run.code), (notes, Some(0)));
}

#[test]
fn json_shows_the_same() {
    let expected = json!({
        "from": "2000-10-10T20:55:36Z",
        "to": "2000-10-10T20:56:37Z",
        "calls": 6,
        "admitted": 4,
        "refused": 2,
        "waited": 0,
        "longest_wait_seconds": 0.0,
        "keys": 2,
        "refused_keys": 1,
        "late_calls": 1,
        "skipped_lines": 1,
        "policies": [{ "policy": "frank's", "refused": 2 }],
        "most_refused": [{ "key": "192.0.2.1", "calls": 5, "refused": 2, "first_refusal": "2000-10-10T20:55:37Z" }],
    });
    assert_eq!(json_of(&["rate_limit(rate = \"1/min\", burst = 2, name = \"frank's\")"], LOG), expected);
}

#[test]
fn refused_calls_are_charged_by_no_policy() {
    // The second policy refuses all but the first call of each key, so the first one never has to.
    let stack = ["count_limit(2, \"1d\")", "count_limit(1, \"1d\")"];
    let report = json_of(&stack, LOG);
    assert_eq!(report["refused"], 4);
    assert_eq!(report["policies"][0]["refused"], 0);
    assert_eq!(report["policies"][1]["refused"], 4);
}

#[test]
fn calls_wait_for_a_queue() {
    let report = json_of(&["funnel_limit(2, \"1/min\", queue)"], LOG);
    assert_eq!((&report["waited"], &report["longest_wait_seconds"]), (&json!(3), &json!(119.0)));
    assert_eq!(report["refused"], 1);
    let table = simulate(&["funnel_limit(2, \"1/min\", queue)"], LOG);
    assert!(table.out.contains("\ncalls that waited: 3, for up to 119 s\n"), "{}", table.out);
}

#[test]
fn keys_and_costs_are_fields() {
    let one = "count_limit(1, \"1d\")";
    let by_user = json_of(&[one, "--key", "user"], LOG);
    assert_eq!(
        (&by_user["calls"], &by_user["keys"], &by_user["skipped_lines"]),
        (&json!(4), &json!(1), &json!(3))
    );
    assert_eq!(json_of(&[one, "--key", "path"], LOG)["refused"], 4);
    assert_eq!(json_of(&[one, "--key", "method", "--top", "0"], LOG)["most_refused"], json!([]));
    let bytes = json_of(&["count_limit(5000, \"1d\")", "--cost", "10"], LOG);
    assert_eq!(bytes["refused"], 3);
    assert_eq!(json_of(&["count_limit(5000, \"1d\", cost = rows.len())", "--cost", "10"], LOG)["refused"], 3);
    let lines = "{\"ts\": 5, \"request\": {\"ip\": \"a\"}}\n{\"ts\": 6.5, \"request\": {\"ip\": \"a\"}}\n";
    let nested = json_of(&[one, "--key", "request.ip", "--time", "ts"], lines);
    assert_eq!((&nested["refused"], &nested["to"]), (&json!(1), &json!("1970-01-01T00:00:06.5Z")));
}

#[test]
fn csv_is_read() {
    let csv = "time,user,calls\n971211336.5,\"a,b\",2\n971211336500,\"a,b\",2\n971211337,c\n";
    let run = simulate(&["count_limit(3, \"1d\")", "--key", "user", "--cost", "calls", "--json"], csv);
    assert_eq!(run.json()["most_refused"][0]["key"], "a,b");
    assert_eq!(run.err, "line 4: 2 columns, where the header has 3\n");
}

#[test]
fn a_line_from_the_future_is_named() {
    // Its time is milliseconds.
    let log = "971211336 a\n\n4000000000000 a\n971211337 a\n971211338 b\n";
    for arguments in
        [&["count_limit(1, 1)", "--key", "2"][..], &["count_limit(1, 1)", "--key", "2", "--json"]]
    {
        let run = simulate(arguments, log);
        let warning = "warning: 2 of 4 calls come after line 3, which has the newest time, 2096-10-02T07:06:40Z, \
                       and are decided at that time; correct that line, or sort the log by time\n";
        assert_eq!((run.err.as_str(), run.code), (warning, Some(0)));
    }
    // Calls that end out of order are common.
    let run = simulate(&["count_limit(1, 1)"], LOG);
    assert!(!run.err.contains("warning"), "{}", run.err);
}

#[test]
fn logs_that_cannot_be_read_fail() {
    for (log, message) in [
        ("", "error: the log is empty; `ratelimits simulate --help` lists the formats\n"),
        ("\n\n", "error: the log is empty;"),
        ("a\n", "line 1: no readable time\nerror: no line of the log could be read;"),
        ("971211336 a\n", "line 1: no `ip` to count by; name another field with `--key`\nerror: no line"),
        (
            "a\nb\nc\nd\ne\nf\ng",
            "line 5: no readable time\nand 2 more lines that cannot be read\nerror: no line",
        ),
    ] {
        let run = simulate(&["rate_limit(5)"], log);
        assert!(run.err.contains(message), "{}", run.err);
        assert_eq!((run.out.as_str(), run.code), ("", Some(1)));
    }
}

#[test]
fn wrong_usage_is_an_error() {
    let nested = format!("rate_limit(rate = {}5{})", "(".repeat(20_000), ")".repeat(20_000));
    for (arguments, message) in [
        (&[][..], "required arguments were not provided"),
        (&["rate_limit(rate = user.plan)"], "`rate` is computed, and only the program knows its value;"),
        (
            &["rate_limit(5, cost = rows.len())"],
            "error: `cost` is computed, and only the program knows its value; write `cost = 2`, or name a field of the log with \
             `--cost`: rate_limit(5, cost = rows.len())\n",
        ),
        (&[&nested], "the policy has more than 1000 characters; write a policy like `rate_limit("),
        (&["rate_limit(5)", "--key", "0"], "fields are numbered from 1"),
        (&["rate_limit(5)", "--top", "x"], "invalid value 'x' for '--top <N>'"),
    ] {
        let run = simulate(arguments, LOG);
        assert!(run.err.contains(message), "{}", run.err);
        assert_eq!((run.out.as_str(), run.code), ("", Some(2)));
    }
}

#[test]
fn logs_do_not_say_how_long_calls_run() {
    let run = simulate(&["rate_limit(5)", "concurrency_limit(20)"], LOG);
    assert_eq!((run.code, &*run.out), (Some(2), ""));
    assert!(run.err.contains("which a log does not say: concurrency_limit(20)"), "{}", run.err);
}

#[test]
fn odd_bytes_are_read() {
    let mut log = b"971211336 \xff\x1b[31m\x07 x\n971211336 \xff\x1b[31m\x07\n".to_vec();
    log.extend(b"\0".repeat(1000));
    log.extend(b"\n971211336 long ");
    log.extend(b"x".repeat(3 << 20));
    log.extend(b"\n971211336 long");
    let run = simulate(&["count_limit(1, 60)", "--key", "2"], log);
    assert!(run.out.contains("\n\u{fffd}\\u{1b}[31m\\u{7}      2        1  50.0 %"), "{}", run.out);
    assert!(run.out.contains("\nlong                  2        1  50.0 %"), "{}", run.out);
    assert_eq!((run.code, run.err.as_str()), (Some(0), "line 3: no readable time\n"));
}
