//! Which arguments there are, and how they are given.

use super::*;

const OF_COUNT: &str = "the arguments of `count_limit` are `limit`, `period`, `key`, `key_type`, `prefix`, `name`, \
                        `cost`, `timeout`, `fallback`, `on_store_error`, `skip_when`, `charge_when`, `registry`, `crate`, `aligned`, \
                        `pass_args`, `shadow`";
const OF_RATE: &str = "the arguments of `rate_limit` are `rate`, `burst`, `refill`, `warmup`, `key`, `key_type`, \
                       `prefix`, `name`, `cost`, `timeout`, `fallback`, `on_store_error`, `skip_when`, `charge_when`, `registry`, \
                       `crate`, `borrow`, `pass_args`, `shadow`";
const OF_FUNNEL: &str = "the arguments of `funnel_limit` are `capacity`, `leak_rate`, `drain`, `key`, `key_type`, \
                         `prefix`, `name`, `cost`, `timeout`, `fallback`, `on_store_error`, `skip_when`, `charge_when`, `registry`, \
                         `crate`, `queue`, `pass_args`, `shadow`";

#[test]
fn unknown_arguments() {
    fails(
        Count,
        "limt = 5, period = \"1m\", limit = 5, zzz",
        &[
            ("limt", &format!("unknown argument `limt`; did you mean `limit`? {OF_COUNT}")),
            ("zzz", &format!("unknown argument `zzz`; {OF_COUNT}")),
        ],
    );
    fails(
        Rate,
        "5.0, busrt",
        &[("busrt", &format!("unknown argument `busrt`; did you mean `burst`? {OF_RATE}"))],
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
    fails(Count, "5, 60, shadow = true", &[("shadow", "`shadow` takes no value; write `shadow`")]);
    fails(Count, "5, 60, shadow = false", &[("shadow", "`shadow` takes no value; leave it out")]);
    fails(Count, "5, 60, shadow: true", &[("shadow", "`shadow` takes no value; write `shadow`")]);
    expands(Count, "5, 60, shadow", SEND);
}

#[test]
fn values_half_typed() {
    fails(Rate, "5, key = user.", &[("user.", "`user.` is no expression; write `key = …`")]);
    fails(Rate, "5, key = user., shadow", &[("user.", "`user.` is no expression; write `key = …`")]);
    fails(Rate, "rate =", &[("rate", "`rate` needs a value; write `rate = …`")]);
    fails(Rate, "5 *, 10", &[("5 *", "`5 *` is no expression; write `rate = …`")]);
    fails(Rate, "rate = 5, 6 *", &[("6 *", "`6 *` is no expression; write `… = …`")]);
    fails(Rate, "5, fallback = move", &[("move", "`move` is no expression; write `fallback = …`")]);
    fails(Rate, "5,, 10", &[(",", "no argument in front of this `,`; leave it out")]);
}

#[test]
fn separators() {
    fails(Count, "limit = 5; period = 60", &[(";", "`;` does not separate arguments; write `,`")]);
    fails(Count, "limit = 5 period = 60", &[("period", "no comma between two arguments; write `,`")]);
    fails(Count, "5, 60 # x, shadow", &[("#", "no comma between two arguments; write `,`")]);
    expands(Count, "5, 60, shadow,", SEND);
}

#[test]
fn names_with_a_prefix_or_a_keyword() {
    expands(Count, "r#limit = 5, r#period = 60, r#shadow", SEND);
    expands(Count, "5, 60, crate = ::renamed", SEND);
    fails(Count, "5, 60, crate", &[("crate", "`crate` needs a value; write `crate = …`")]);
    fails(
        Count,
        "r#max = 5, 60, r#type = 1",
        &[
            ("r#max", "`max` is written `limit` here; write `limit = 5`"),
            ("60", "a value without its name goes before all arguments with one; write `period = 60`"),
            ("r#type", &format!("unknown argument `type`; {OF_COUNT}")),
        ],
    );
    expands(Rate, "r#type, crate::BURST", "async fn send(r#type: u64) -> Result<(), AppError> { Ok(()) }");
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
        &[
            ("%", "`%` is no expression; write `period = …`"),
            ("aligned", "`aligned` takes no value; write `aligned`"),
        ],
    );
}

#[test]
fn what_is_missing_was_not_told_before() {
    fails(Rate, "rte = 5", &[("rte", &format!("unknown argument `rte`; did you mean `rate`? {OF_RATE}"))]);
    fails(
        Funnel,
        "5, drian = 5",
        &[("drian", &format!("unknown argument `drian`; did you mean `drain`? {OF_FUNNEL}"))],
    );
}

#[test]
fn other_ways_to_assign() {
    fails(Rate, "rate: 5", &[(":", "`:` gives no value; write `rate = 5`")]);
    fails(Rate, "rate:", &[(":", "`:` gives no value; write `rate = …`")]);
    for operator in [":=", "==", "=>"] {
        let message = format!("`{operator}` gives no value; write `rate = 5`");
        fails(Rate, &format!("rate {operator} 5"), &[(operator, &message)]);
    }
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
