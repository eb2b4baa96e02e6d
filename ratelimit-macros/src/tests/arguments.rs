//! Which arguments there are, and how they are given.

use super::*;

#[test]
fn unknown_arguments() {
    fails(
        Count,
        "limt = 5, period = \"1m\", limit = 5, zzz",
        &[
            (
                "limt",
                "unknown argument `limt`; did you mean `limit`? the arguments of `count_limit` are `limit`, `period`, `key`, `key_type`, `prefix`, `name`, `cost`, `fallback`, `aligned`, `pass_args`",
            ),
            (
                "zzz",
                "unknown argument `zzz`; the arguments of `count_limit` are `limit`, `period`, `key`, `key_type`, `prefix`, `name`, `cost`, `fallback`, `aligned`, `pass_args`",
            ),
        ],
    );
    fails(
        Rate,
        "5.0, busrt",
        &[(
            "busrt",
            "unknown argument `busrt`; did you mean `burst`? the arguments of `rate_limit` are `rate`, `burst`, `refill`, `key`, `key_type`, `prefix`, `name`, `cost`, `fallback`, `pass_args`",
        )],
    );
}

#[test]
fn doubled_arguments() {
    fails(
        Count,
        "5, \"1m\", limit = 6, aligned, aligned",
        &[
            ("limit", "`limit` is given twice; write it once"),
            ("aligned", "`aligned` is given twice; write it once"),
        ],
    );
}

#[test]
fn missing_arguments() {
    fails(
        Count,
        "",
        &[
            ("", "missing argument `limit`; write `limit = 100`"),
            ("", "missing argument `period`; write `period = \"1m\"`"),
        ],
    );
    fails(Rate, "burst = 5", &[("", "missing argument `rate`; write `rate = 5.0`")]);
    fails(
        Funnel,
        "",
        &[
            ("", "missing argument `capacity`; write `capacity = 10`"),
            (
                "",
                "missing argument `leak_rate`; write `leak_rate = 5.0`, or the time from full to empty: `drain = \"30m\"`",
            ),
        ],
    );
    fails(Window, "5", &[("", "missing argument `period`; write `period = \"1m\"`")]);
}

#[test]
fn flags_and_values() {
    fails(
        Count,
        "limit, period =, aligned = true, key",
        &[
            ("limit", "`limit` needs a value; write `limit = …`"),
            ("period", "`period` needs a value; write `period = …`"),
            ("aligned", "`aligned` takes no value; write `aligned`"),
            ("key", "`key` needs a value; write `key = …`"),
        ],
    );
    fails(Count, "limit, \"1m\"", &[("limit", "`limit` needs a value; write `limit = …`")]);
}

#[test]
fn positions() {
    fails(
        Count,
        "limit = 5, \"1m\"",
        &[("\"1m\"", "a value without its name goes before all arguments with one; write `period = \"1m\"`")],
    );
    fails(
        Rate,
        "rate = 5, 10",
        &[("10", "a value without its name goes before all arguments with one; write `burst = 10`")],
    );
    for (third, written) in [("user.id", "user.id"), ("user", "user"), ("\"<user.id>\"", "\"<user.id>\"")] {
        let message = format!("only `limit` and `period` go without their names; write `key = {written}`");
        fails(Count, &format!("5, \"1m\", {third}"), &[(third, &message)]);
    }
    fails(
        Count,
        "5, \"1m\", key = user.id, room.id",
        &[("room.id", "only `limit` and `period` go without their names; write `… = …`")],
    );
    fails(
        Count,
        "5, \"1m\", 7 + 1",
        &[("7 + 1", "only `limit` and `period` go without their names; write `… = …`")],
    );
    fails(Count, "5, \"1m\" aligned", &[("aligned", "no comma between two arguments; write `,`")]);
    fails(
        Count,
        "5, period = %, aligned = 1",
        &[("%", "expected an expression"), ("aligned", "`aligned` takes no value; write `aligned`")],
    );
}

#[test]
fn arguments_of_another_attribute() {
    fails(
        Rate,
        "5, limit = 5, aligned, drain = 5",
        &[
            (
                "limit",
                "`limit` belongs to `count_limit` and `window_limit`; the arguments of `rate_limit` are `rate`, `burst`, `refill`, `key`, `key_type`, `prefix`, `name`, `cost`, `fallback`, `pass_args`",
            ),
            (
                "aligned",
                "`aligned` belongs to `count_limit`; the arguments of `rate_limit` are `rate`, `burst`, `refill`, `key`, `key_type`, `prefix`, `name`, `cost`, `fallback`, `pass_args`",
            ),
            (
                "drain",
                "`drain` belongs to `funnel_limit`; the arguments of `rate_limit` are `rate`, `burst`, `refill`, `key`, `key_type`, `prefix`, `name`, `cost`, `fallback`, `pass_args`",
            ),
        ],
    );
}

#[test]
fn what_is_missing_was_not_told_before() {
    fails(
        Rate,
        "rte = 5",
        &[(
            "rte",
            "unknown argument `rte`; did you mean `rate`? the arguments of `rate_limit` are `rate`, `burst`, `refill`, `key`, `key_type`, `prefix`, `name`, `cost`, `fallback`, `pass_args`",
        )],
    );
    fails(
        Funnel,
        "5, drian = 5",
        &[(
            "drian",
            "unknown argument `drian`; did you mean `drain`? the arguments of `funnel_limit` are `capacity`, `leak_rate`, `drain`, `key`, `key_type`, `prefix`, `name`, `cost`, `fallback`, `pass_args`",
        )],
    );
}

#[test]
fn other_ways_to_assign() {
    fails(Rate, "rate: 5", &[(":", "`:` gives no value; write `rate = 5`")]);
    fails(
        Rate,
        "rate(5), burst: 10",
        &[("(5)", "`(…)` gives no value; write `rate = 5`"), (":", "`:` gives no value; write `burst = 10`")],
    );
    fails(
        Count,
        "5, \"1m\", key(user.id), aligned: true",
        &[
            ("(user.id)", "`(…)` gives no value; write `key = user.id`"),
            ("aligned", "`aligned` takes no value; write `aligned`"),
        ],
    );
    expands(Rate, "limits::rate(5), burst(10) + 1", SEND);
}

#[test]
fn templates_without_quotes() {
    for (written, meant) in
        [("<n>", "<n>"), ("@ip", "<@ip>"), ("<user.id>:<@ip>", "<user.id>:<@ip>"), ("<@user>", "<@user>")]
    {
        let message = format!("a template is a string; write `key = \"{meant}\"`");
        fails(Rate, &format!("5, key = {written}, pass_args, fallback = f"), &[(written, &message)]);
    }
    expands(Rate, "5, key = <User as Named>::name(user)", SEND);
}
