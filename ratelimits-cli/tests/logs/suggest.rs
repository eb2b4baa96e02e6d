//! The command `suggest`, run on small logs.

use serde_json::json;

use crate::command::{Run, run};

fn suggest(arguments: &[&str], log: impl AsRef<[u8]>) -> Run {
    run("suggest", arguments, log)
}

/// Two calls at once every two seconds, by the number of a user from 0 on, whose calls come a little later than those of the last.
fn pairs(users: usize, seconds: usize) -> String {
    let line = |i: usize| {
        let (second, user) = (i / users / 2 * 2, i % users);
        format!("{{\"ts\": {}.{user:03}, \"tenant\": \"t{user}\", \"bytes\": 3}}\n", 1_800_000_000 + second)
    };
    (0..users * seconds).map(line).collect()
}

#[test]
fn tables_show_the_trade_and_the_attribute() {
    let run = suggest(&["--key", "tenant", "--refuse-at-most", "20%"], pairs(2, 1_000));
    let expected = r#"2027-01-15T08:00:00Z to 2027-01-15T08:16:38.001Z, held out from 2027-01-15T08:13:20Z on

PART      CALLS  KEYS  REFUSED      SHARE  REFUSED KEYS
used      1,600     2      318  19.8750 %             2
held out    400     2       80  20.0000 %             2

   RATE  BURST  REFILLS IN    REFUSED   HELD OUT  ON A LOG SCALE
 48/min      3        3.8s  19.8750 %  20.0000 %  ##############################  suggested
 50/min      3        3.6s  16.5000 %  17.0000 %  ##############################
100/min      2        1.2s   0.0000 %   0.0000 %  ########################

The product of rate and burst is smallest there.
At lower rates, a burst that suffices would not refill ten times within the log.
Above, the rate grows faster than the burst falls.

#[rate_limit(rate = "48/min", burst = 3, key = tenant)]
"#;
    assert_eq!(run.out, expected);
    assert_eq!((run.err.as_str(), run.code), ("", Some(0)));
    let window = ["--algorithm", "fixed-window", "--period", "10s"];
    let run =
        suggest(&[&["--key", "tenant", "--refuse-at-most", "20%"], &window[..]].concat(), pairs(2, 1_000));
    let expected = r#"
LIMIT  PERIOD    REFUSED   HELD OUT  ON A LOG SCALE
    8  10s     20.0000 %  20.0000 %  ###########################     suggested
   10  10s      0.0000 %   0.0000 %  ##############################

No lower limit refuses as few.

#[count_limit(limit = 8, period = "10s", key = tenant)]
"#;
    assert!(run.out.ends_with(expected), "{}", run.out);
}

#[test]
fn json_shows_the_same() {
    let run = suggest(&["--key", "tenant", "--refuse-at-most", "20%", "--json"], pairs(2, 1_000));
    let part = |calls: u64, refused: u64| {
        let refused_keys = if refused > 0 { 2 } else { 0 };
        json!({ "calls": calls, "keys": 2, "refused": refused, "refused_keys": refused_keys })
    };
    let row = |rate: &str, burst: u64, refused: [u64; 2], suggested: bool| {
        json!({
            "algorithm": "token bucket",
            "rate": rate,
            "burst": burst,
            "used": part(1_600, refused[0]),
            "held_out": part(400, refused[1]),
            "suggested": suggested,
        })
    };
    let expected = json!({
        "from": "2027-01-15T08:00:00Z",
        "held_out_from": "2027-01-15T08:13:20Z",
        "to": "2027-01-15T08:16:38.001Z",
        "refuse_at_most": "20%",
        "attribute": "#[rate_limit(rate = \"48/min\", burst = 3, key = tenant)]",
        "trade": [
            row("48/min", 3, [318, 80], true),
            row("50/min", 3, [264, 68], false),
            row("100/min", 2, [0, 0], false),
        ],
        "warnings": [],
    });
    assert_eq!(run.json(), expected);
    let window = ["--algorithm", "sliding-window", "--period", "10s", "--json"];
    let run = suggest(&[&["--key", "tenant"], &window[..]].concat(), pairs(2, 1_000));
    let row = &run.json()["trade"][0];
    assert_eq!(
        (&row["algorithm"], &row["limit"], &row["period"]),
        (&json!("sliding window"), &json!(10), &json!("10s"))
    );
}

#[test]
fn attributes_have_the_key_and_the_cost_of_the_log() {
    let log = pairs(2, 100)
        .replace("tenant", "type")
        .replace("\"bytes\"", "\"user\": \"a\", \"ip\": \"b\", \"call\": {\"org\": 7}, \"bytes\"");
    for (arguments, written) in [
        (&["--key", "user"][..], "key_type = USER)]"),
        (&["--key", "ip"], "key_type = IP)]"),
        (&["--key", "call.org"], "key = call.org)]"),
        (&["--key", "type"], "key = key)]"),
        (&["--key", "ip", "--cost", "bytes"], "key_type = IP, cost = bytes)]"),
    ] {
        for algorithm in
            [&["--algorithm", "token-bucket"][..], &["--algorithm", "fixed-window", "--period", "1h"]]
        {
            let run = suggest(&[arguments, algorithm, &["--json"]].concat(), &log);
            let attribute = run.json()["attribute"].as_str().unwrap().to_owned();
            assert!(attribute.ends_with(written), "{attribute}");
        }
    }
}

#[test]
fn costs_count() {
    let limit = |arguments: &[&str]| {
        let window = ["--key", "tenant", "--algorithm", "fixed-window", "--period", "10s", "--json"];
        suggest(&[&window, arguments].concat(), pairs(2, 100)).json()["trade"][0]["limit"].clone()
    };
    assert_eq!((limit(&[]), limit(&["--cost", "bytes"])), (json!(10), json!(30)));
}

#[test]
fn the_order_of_lines_does_not_matter() {
    let log = pairs(3, 100);
    let reversed: String = log.lines().rev().map(|line| format!("{line}\n")).collect();
    let arguments = ["--key", "tenant", "--refuse-at-most", "10%"];
    assert_eq!(suggest(&arguments, log).out, suggest(&arguments, reversed).out);
}

#[test]
fn what_makes_numbers_uncertain_is_told() {
    let warnings =
        |arguments: &[&str], log: &str| suggest(&[&["--key", "tenant"], arguments].concat(), log).err;
    let few = warnings(&["--refuse-at-most", "20%"], &pairs(2, 100));
    assert_eq!(
        few,
        "warning: the log is short: 8 of the calls held out are expected to be refused, and fewer than 20 check little; take a log of \
         500 or more calls\n"
    );
    let none = "warning: these numbers refuse no call of the part that they are chosen by, so nothing tells how many they will refuse\n";
    assert_eq!(warnings(&["--refuse-at-most", "0%"], &pairs(2, 1_000)), none);
    let hour = ["--refuse-at-most", "20%", "--algorithm", "sliding-window", "--period", "2m"];
    assert_eq!(
        warnings(&hour, &pairs(2, 1_000)),
        "warning: the log is short: the part that the limit is chosen by lasts 13m20s, which is less than 10 windows of 2m\n"
    );
    let day = ["--refuse-at-most", "20%", "--algorithm", "fixed-window", "--period", "day"];
    assert!(warnings(&day, &pairs(2, 1_000)).contains("which is less than 10 windows of 1d\n"));
    let refused = pairs(2, 1_000).replace("\"bytes\": 3", "\"status\": 429");
    assert_eq!(
        warnings(&["--refuse-at-most", "20%"], &refused),
        "warning: 2,000 calls have the status 429, and count like the others; if clients have sent them again, the numbers are higher \
         than needed\n"
    );
    let in_seconds = warnings(&["--refuse-at-most", "20%"], &pairs(1, 2_000).replace(".000", ""));
    assert_eq!(
        in_seconds,
        "warning: all times of the log are whole seconds; if they were cut to that, a burst may be wrong by what its rate refills in a \
         second, and limits of short windows as well\n"
    );
}

#[test]
fn a_line_that_cannot_be_read_is_an_error() {
    for (arguments, log, problem) in [
        (&[][..], "", "the log is empty; `ratelimits suggest --help` lists the formats\n"),
        (&[], "time,ip\n", "the log is empty;"),
        (&["--key", "2"], "100 a\nx a\n", "line 2: no readable time\n"),
        (&[], "\n{\"ts\": 100}\n", "line 2: no `ip` to count by; name another field with `--key`\n"),
        (&["--key", "2", "--cost", "3"], "100 a 1.5\n", "line 1: field 3 is not a whole number of permits\n"),
        (&["--key", "2"], "100 a\n100 b\n", "the log is too short: all of its calls are at one time\n"),
        (
            &["--key", "2"],
            "100 a\n100.000009 a\n",
            "the log is too short: no bucket that refuses as few refills ten times within it\n",
        ),
    ] {
        let run = suggest(arguments, log);
        assert!(run.err.starts_with(&format!("error: {problem}")), "{}", run.err);
        assert_eq!((run.out.as_str(), run.code), ("", Some(3)), "{problem}");
    }
    let long: String = (0..13_000).map(|i| format!("100.{i:06} a\n")).collect();
    let run = suggest(
        &["--key", "2", "--algorithm", "sliding-window", "--period", "1h", "--refuse-at-most", "0%"],
        long,
    );
    let problem = "error: a sliding window counts at most 10,000 permits, which are too few; shorten the period, or use `--algorithm \
                   fixed-window`\n";
    assert_eq!((run.err.as_str(), run.code), (problem, Some(2)));
    let costs = ["--key", "2", "--cost", "3", "--algorithm", "fixed-window", "--period", "1h"];
    let run = suggest(&costs, "100 a 1000000000001\n101 a 1\n");
    let problem = "error: a limit is at most 10^12 permits, which are too few; count the cost of calls in a larger unit\n";
    assert_eq!((run.err.as_str(), run.code), (problem, Some(2)));
}

#[test]
fn wrong_usage_is_an_error() {
    for (arguments, message) in [
        (&["--refuse-at-most", "0.1"][..], "write a percentage, like 0.1%"),
        (&["--refuse-at-most", "100%"], "write less than 100%"),
        (&["--algorithm", "fixed-window"], "--period <DURATION>"),
        (
            &["--period", "1h"],
            "error: a token bucket has no period; ask for a window with `--algorithm fixed-window`\n",
        ),
        (&["--algorithm", "fixed-window", "--period", "soon"], "error: `period` is not a duration;"),
        (&["--algorithm", "sliding-window", "--period", "day"], "error: `period` "),
        (&["--algorithm", "leaky-bucket"], "[possible values: token-bucket, fixed-window, sliding-window]"),
        (&["/nonexistent/access.log"], "error: cannot open /nonexistent/access.log: "),
    ] {
        let run = suggest(arguments, "");
        assert!(run.err.contains(message), "{arguments:?}: {}", run.err);
        assert_eq!((run.out.as_str(), run.code), ("", Some(2)), "{arguments:?}");
    }
}
