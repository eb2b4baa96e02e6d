//! Which arguments there are, and how they are given.

use super::*;

const OF_COUNT: &str = "the arguments of `count_limit` are `limit`, `period`, `zone`, `lease`, `key`, `key_type`, `prefix`, `name`, \
                        `cost`, `timeout`, `fallback`, `on_store_error`, `skip_when`, `charge_when`, `settle`, `pause_when`, \
                        `penalty`, `bind`, `notify_at`, `registry`, `crate`, `aligned`, `pass_args`, `shadow`";

#[test]
fn unknown_arguments_are_listed_or_corrected() {
    fails(Count, "limit = 5, period = 60, zzz", &[("zzz", &format!("unknown argument `zzz`; {OF_COUNT}"))]);
    fails(Count, "5, 60, r#type = 1", &[("r#type", &format!("unknown argument `type`; {OF_COUNT}"))]);
    for (kind, args, written, meant) in [
        (Count, "limt = 5, period = 60", "limt", "limit"),
        (Rate, "5.0, busrt", "busrt", "burst"),
        (Funnel, "5, drian = 5", "drian", "drain"),
        (Rate, "5, onStoreError = deny", "onStoreError", "on_store_error"),
        (Rate, "5, keyType = IP", "keyType", "key_type"),
        (Rate, "5, Shadow", "Shadow", "shadow"),
        (Funnel, "5, leakRate = 5.0", "leakRate", "leak_rate"),
    ] {
        let message = format!("unknown argument `{written}`; did you mean `{meant}`?");
        fails(kind, args, &[(written, &message)]);
    }
}

#[test]
fn words_of_other_limiters_get_a_hint() {
    for (kind, args, word, hint) in [
        (Rate, "maxBurstSeconds = 5", "maxBurstSeconds", "write `burst = \"5s\"` on `rate_limit`"),
        (
            Rate,
            "5, timeUnit = TimeUnit.HOURS",
            "timeUnit",
            "durations and rates contain their unit: `\"30s\"`, `\"100/min\"`",
        ),
        (
            Count,
            "windowMs = 60000, max = 5",
            "windowMs",
            "write `period = \"1m\"` on `count_limit` or `window_limit`, or a rate with its period: `\"100/min\"`",
        ),
        (Funnel, "5, 60, pacing", "pacing", "write `capacity = 10, queue` on `funnel_limit`"),
        (Window, "5, 60, lease = 100", "lease", "it belongs to `rate_limit`, `count_limit`"),
        (Concurrency, "20, lease = 100", "lease", "it belongs to `rate_limit`, `count_limit`"),
        (
            Count,
            "5, 60, slack = \"1%\"",
            "slack",
            "it says by how much leases may exceed a `rate_limit`; those of `count_limit` never exceed its windows, so write `lease = 100` there",
        ),
        (
            Concurrency,
            "limit = 20",
            "limit",
            "write `rate = \"100/min\"` on `rate_limit`, `capacity = 10` on `funnel_limit`, `limit = 100` on `count_limit` or \
             `window_limit`, or `max = 20` on `concurrency_limit`",
        ),
        (
            Rate,
            "5, bulkhead = 3",
            "bulkhead",
            "to bound how many calls run at once, write `max = 20` on `concurrency_limit`",
        ),
    ] {
        let Err(errors) = read(kind, tokens(args), SEND) else { panic!("no error in `{args}`") };
        let first = errors.into_iter().next().unwrap();
        assert_eq!(first.span().source_text().unwrap(), word);
        assert_eq!(first.to_string(), format!("unknown argument `{word}`; {hint}"));
    }
}

#[test]
fn fractional_costs_are_scaled() {
    let scale = "permits are whole numbers, so scale them all: with twice the rate and burst, or limit, `cost = 1` is half a \
     permit";
    let need = format!("unknown argument `need`; {scale}");
    for value in ["0.5", "1.0 / 2.0", "(0.25)"] {
        fails(Rate, &format!("5, need = {value}"), &[("need", &need)]);
        fails(Rate, &format!("5, cost = {value}"), &[(value, &format!("`cost` is a fraction; {scale}"))]);
    }
    fails(Rate, "5, need = 2, shadow", &[("need", "unknown argument `need`; write `cost = 2`")]);
}

#[test]
fn words_about_waiting_agree_with_timeout() {
    let leave_out = "unknown argument `isAbort`; leave it out: a call waits for up to `timeout`, and without one it is refused \
                     at once";
    fails(Rate, "5, isAbort = true", &[("isAbort", leave_out)]);
    fails(Rate, "5, isAbort = true, timeout = \"5s\"", &[("isAbort", leave_out)]);
    let timeout = "`timeout` has no unit; write `timeout = \"500s\"` for seconds, or `timeout = \"500ms\"` for milliseconds";
    let unit =
        "unknown argument `timeoutUnit`; durations and rates contain their unit: `\"30s\"`, `\"100/min\"`";
    let args = "5, isAbort = false, timeout = 500, timeoutUnit = MILLISECONDS";
    fails(Rate, args, &[("isAbort", leave_out), ("timeoutUnit", unit), ("500", timeout)]);
}

#[test]
fn arguments_of_other_attributes_name_their_owner() {
    for (kind, args, written, owner) in [
        (Rate, "5, aligned", "aligned", "`count_limit`"),
        (Count, "5, 60, precision = \"1s\"", "precision", "`window_limit`"),
        (Funnel, "5, 60, warmup = \"3s\"", "warmup", "`rate_limit`"),
    ] {
        let message = format!("unknown argument `{written}`; it belongs to {owner}");
        fails(kind, args, &[(written, &message)]);
    }
}

#[test]
fn duplicate_arguments_are_rejected() {
    fails(
        Count,
        "5, \"1m\", limit = 6, aligned, aligned",
        &[
            ("limit", "`limit` is specified more than once"),
            ("aligned", "`aligned` is specified more than once"),
        ],
    );
}

#[test]
fn missing_arguments_are_reported() {
    let limit = ("", "missing argument `limit`; write `limit = 100`");
    let period = ("", "missing argument `period`; write `period = \"1m\"`");
    fails(Count, "", &[limit, period]);
    fails(Window, "5", &[period]);
    fails(Concurrency, "", &[("", "missing argument `max`; write `max = 20`")]);
    fails(Rate, "burst = 5", &[("", "missing argument `rate`; write `rate = 5.0`")]);
    let leak_rate = "missing argument `leak_rate`; write `leak_rate = 5.0`, or `drain = \"30m\"` for the time from full \
                     to empty";
    fails(Funnel, "", &[("", "missing argument `capacity`; write `capacity = 10`"), ("", leak_rate)]);
    // An unknown argument may be the missing one.
    fails(Rate, "rte = 5", &[("rte", "unknown argument `rte`; did you mean `rate`?")]);
}

#[test]
fn flags_take_no_value() {
    let message = "`aligned` takes no value; write `aligned`, or leave it out";
    for value in ["true", "false", "% %"] {
        fails(Count, &format!("5, 60, aligned = {value}"), &[("aligned", message)]);
    }
    expands(Count, "5, 60, shadow, aligned,", SEND);
}

#[test]
fn other_arguments_need_a_value() {
    fails(
        Count,
        "limit, period =, key",
        &[
            ("limit", "`limit` needs a value; write `limit = …`"),
            ("period", "`period` needs a value; write `period = …`"),
            ("key", "`key` needs a value; write `key = …`"),
        ],
    );
    fails(Count, "limit, \"1m\"", &[("limit", "`limit` needs a value; write `limit = …`")]);
    fails(Count, "5, 60, crate", &[("crate", "`crate` needs a value; write `crate = …`")]);
}

#[test]
fn incomplete_values_are_spanned_whole() {
    let key = "expected an expression or a string; write `key = user.id` or `key = \"<user.id>\"`";
    for (args, span) in [("user.", "user."), ("user., shadow", "user."), ("<n>", "<n>"), ("@ip", "@ip")] {
        fails(Rate, &format!("5, key = {args}"), &[(span, key)]);
    }
    expands(Rate, "5, key = <User as Named>::name(user)", SEND);
    fails(Rate, "5 *, 10", &[("5 *", "expected an expression; write `rate = …`")]);
    fails(Rate, "5, fallback = move", &[("move", "expected an expression; write `fallback = …`")]);
    fails(Rate, "5,, 10", &[(",", "expected an argument")]);
}

#[test]
fn arguments_are_separated_by_commas() {
    let message = "expected `,`; arguments are written like `cost = 2`";
    for (args, found) in [
        ("limit = 5; period = 60", ";"),
        ("limit = 5 period = 60", "period"),
        ("5, 60 # x, shadow", "#"),
        ("limit => 5", "=>"),
    ] {
        let errors: Vec<_> = read(Count, tokens(args), SEND).err().unwrap().into_iter().collect();
        let found = errors.iter().any(|error| {
            error.to_string() == message
                && error.span().source_text().is_some_and(|text| found.starts_with(&text))
        });
        assert!(found, "{args}: {errors:?}");
    }
}

#[test]
fn values_follow_an_equals_sign() {
    for (args, written) in
        [("rate: 5.0, burst = 10", "rate = 5.0"), ("rate = 5, key: user.id", "key = user.id")]
    {
        fails(Rate, args, &[(":", &format!("unexpected `:`; write `{written}`"))]);
    }
    for flag in ["shadow: true", "shadow: false", "shadow = false"] {
        let message = "`shadow` takes no value; write `shadow`, or leave it out";
        fails(Rate, &format!("5, {flag}"), &[("shadow", message)]);
    }
    fails(Rate, "rate:", &[("rate", "`rate` needs a value; write `rate = …`")]);
    fails(Rate, "5, busrt: 10", &[("busrt", "unknown argument `busrt`; did you mean `burst`?")]);
}

#[test]
fn raw_identifiers_are_accepted() {
    expands(Count, "r#limit = 5, r#period = 60, r#shadow", SEND);
    expands(Rate, "r#type, crate::BURST", "async fn send(r#type: u64) -> Result<(), AppError> { Ok(()) }");
}

#[test]
fn two_arguments_may_be_positional() {
    for (args, span, of) in [
        ("limit = 5, \"1m\"", "\"1m\"", Count),
        ("5, \"1m\", user.id", "user.id", Count),
        ("5, \"1m\", key = user.id, 7 + 1", "7 + 1", Count),
        ("rate = 5, 10", "10", Rate),
    ] {
        let [first, second] = of.positional() else { panic!("{of:?}") };
        let message = format!(
            "only `{first}` and `{second}` may be positional, before all named arguments; write `… = {span}`"
        );
        fails(of, args, &[(span, &message)]);
    }
}

#[test]
fn one_argument_of_a_concurrency_limit_may_be_positional() {
    expands(Concurrency, "20", SEND);
    expands(Concurrency, "user.jobs, key = user.id", SEND);
    let message = "only `max` may be positional, before all named arguments; write `… = 60`";
    fails(Concurrency, "20, 60", &[("60", message)]);
}

#[test]
fn single_words_may_be_positional_values() {
    for args in ["max, 60", "MAX, WINDOW", "limits::max, 60"] {
        expands(Count, args, "async fn send(max: u64) -> Result<(), AppError> { Ok(()) }");
    }
    expands(Rate, "limits::rate(5), burst(10) + 1", SEND);
    let Err(errors) = read(Count, tokens("max, 60"), SEND) else { panic!("no error") };
    assert!(errors.to_string().starts_with("unknown argument `max`; write"), "{errors}");
}

#[test]
fn errors_are_reported_together() {
    let args = tokens("rat = 1, 1 / 60, busrt = 2, pass_args, key = \"<\", aligned");
    let errors = read(Rate, args, "const fn f() {}").err().unwrap();
    assert_eq!(errors.into_iter().count(), 6);
}
