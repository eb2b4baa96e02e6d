//! Keys, names, conditions, the registry and the crate.

use super::*;

#[test]
fn options_are_kept() {
    let args = "5, skip_when = user.is_admin && true, charge_when = |out| out.is_err(), registry = &user.registry, \
                crate = ::renamed::limits, shadow";
    let limited = read(Rate, tokens(args), SEND).unwrap();
    let limit = &limited.limits[0];
    assert!(limit.skip_when.is_some() && limit.charge_when.is_some() && limit.registry.is_some());
    assert!(limit.shadow);
    assert_eq!(limit.krate.as_ref().unwrap().segments.len(), 2);

    let limited = read(Rate, tokens("5"), SEND).unwrap();
    let limit = &limited.limits[0];
    assert!(limit.skip_when.is_none() && limit.charge_when.is_none() && limit.registry.is_none());
    assert!(!limit.shadow && limit.krate.is_none());
}

#[test]
fn key_types_are_words() {
    let message = "expected one of `IP`, `USER`, `METHOD`, `CUSTOM`";
    fails_with(Rate, "5, key_type", &["user", "\"IP\"", "LimitType.IP", "KeyType::Ip", "5"], message);
    let message = "`key_type = CUSTOM` needs a `key`; write `key = user.id`";
    fails_with(Rate, "5, key_type", &["CUSTOM"], message);
    let message = "`key` contradicts `key_type = IP`; leave out one of them";
    fails_with(Rate, "5, key = user.id, key_type", &["IP"], message);
}

#[test]
fn keys_have_parts() {
    fails_with(Rate, "5, key", &["()"], "an empty key has no parts; write `key = user.id`");
    let unclosed = "unclosed placeholder `<user`; write `<user>`, or `<<` for a literal `<`";
    fails_with(Rate, "5, key", &["\"a<user\""], unclosed);
}

#[test]
fn request_context_is_no_argument() {
    let message = |word: &str| format!("the function has no argument `{word}`; write `key_type = {word}`");
    fails_with(Rate, "5, key", &["IP"], &message("IP"));
    fails_with(Rate, "5, key", &["USER"], &message("USER"));
    expands(Rate, "5, key = IP", "async fn f(IP: u64) -> Result<(), E> {}");
}

#[test]
fn names_and_prefixes_are_strings() {
    let name = "`name` is a non-empty string literal; write `name = \"sms.send\"`";
    fails_with(Rate, "5, name", &["\"\"", "names::SEND"], name);
    let prefix = "`prefix` is a non-empty string literal; write `prefix = \"sms\"`";
    fails_with(Rate, "5, prefix", &["sms", "5"], prefix);
}

#[test]
fn charge_when_is_a_function() {
    let message =
        "`charge_when` takes a closure that gets the output; write `charge_when = |out| out.is_err()`";
    fails_with(Rate, "5, charge_when", &["true", "\"Result::is_err\"", "out.is_err()", "out == 5"], message);
    for condition in
        ["|out| out.is_err()", "move |_| false", "Result::is_err", "<E as Failed>::failed", "is_err"]
    {
        expands(Rate, &format!("5, charge_when = {condition}"), SEND);
    }
}

#[test]
fn settle_is_a_function() {
    let message = "`settle` takes a closure that gets the output; write `settle = |out| out.len()`";
    fails_with(Rate, "5, settle", &["5", "\"len\"", "out.len()"], message);
    for used in ["|out| out.len()", "move |_| 3_u8", "String::len", "used"] {
        expands(Rate, &format!("5, settle = {used}"), SEND);
    }
    // A call that is settled needs a free permit, whatever it costs.
    expands(Rate, "5, cost = 0, settle = used", SEND);
}

#[test]
fn penalty_is_a_list_of_durations() {
    for (penalty, message) in [
        (
            "\"1m\"",
            "`penalty` is a list of durations, one for each refusal in turn; write `penalty = [\"1m\"]`",
        ),
        (
            "steps",
            "`penalty` is a list of durations, one for each refusal in turn; write `penalty = [\"1m\", \"5m\", \"1h\"]`",
        ),
        (
            "[]",
            "an empty `penalty` pauses nothing; leave it out, or write `penalty = [\"1m\", \"5m\", \"1h\"]`",
        ),
    ] {
        fails_with(Rate, "5, penalty", &[penalty], message);
    }
    let message =
        "a step of `penalty` is a duration with a unit, the same for all calls; write it as `\"1m\"`";
    fails(Rate, "5, penalty = [60]", &[("60", message)]);
    fails(Rate, "5, penalty = [\"1m\", MINUTE]", &[("MINUTE", message)]);
    expands(Rate, "5, penalty = [\"1m\", \"5m\"]", SEND);
    expands(Count, "5, 60, charge_when = failed, pause_when = pause, penalty = [\"1m\"]", SEND);
}

#[test]
fn pause_when_is_a_function() {
    let message =
        "`pause_when` takes a closure that gets the output; write `pause_when = |out| out.retry_after()`";
    fails_with(Rate, "5, pause_when", &["5", "\"2s\"", "out.retry_after()"], message);
    for pause in ["|out| out.retry_after()", "move |_| SECOND", "Answer::retry_after", "pause"] {
        expands(Rate, &format!("5, pause_when = {pause}"), SEND);
    }
    expands(Count, "5, 60, charge_when = failed, pause_when = pause", SEND);
    expands(Count, "5, 60, bind = decision, pause_when = pause", SEND);
}

#[test]
fn notify_at_is_a_share() {
    for args in ["5.0", "5.0, borrow", "\"5/s\", refill = interval, shadow", "user.rate, bind = decision"] {
        let expanded = expands(Rate, &format!("{args}, notify_at = 4.0 / 5.0"), SEND);
        let share = "notify_at : :: core :: option :: Option :: Some (__ratelimits :: const_args :: notify_at (\"notify_at\" , 4.0 / 5.0))";
        assert!(expanded.contains(share), "{expanded}");
    }
    assert!(expands(Count, "5, 60", SEND).contains("notify_at : :: core :: option :: Option :: None"));

    let problem = "a number above 0 and below 1 that is the same for all calls; write";
    for (value, instead) in [
        ("80", "0.8"),
        ("55", "0.55"),
        ("80u8", "0.8"),
        ("\"80%\"", "0.8"),
        ("\"7.5 %\"", "0.075"),
        ("\"0.9\"", "0.9"),
        ("1", "0.8"),
        ("0", "0.8"),
        ("800", "0.8"),
        ("-5", "0.8"),
        ("SHARE", "0.8"),
        ("user.share", "0.8"),
        ("\"most\"", "0.8"),
    ] {
        let message = format!("`notify_at` is a share of the limit, {problem} `notify_at = {instead}`");
        fails_with(Count, "5, 60, notify_at", &[value], &message);
    }
    for (kind, args, argument, problem) in [
        (
            Rate,
            "5.0, lease = 5",
            "lease",
            "a process takes the permits of a lease before calls use them, so no call reaches the share; leave out `lease` or `notify_at`",
        ),
        (
            Rate,
            "5.0, warmup = 3",
            "warmup",
            "calls at the usual rate empty a bucket with `warmup`, so a share of it says nothing; leave out `notify_at`, or write `borrow` instead of `warmup`",
        ),
    ] {
        fails(kind, &format!("{args}, notify_at = 0.8"), &[(argument, problem)]);
    }
    let on_hold = "what calls hold comes and goes without a window in which to tell of it once; leave out `notify_at`, or write it on another attribute of the function";
    fails_with(Concurrency, "5, notify_at", &["0.8", "80"], on_hold);
}

#[test]
fn bind_is_a_name() {
    let message = "`bind` is a name for the decision; write `bind = decision`";
    fails_with(Rate, "5, bind", &["\"decision\"", "5", "a::b", "f()", "self", "crate"], message);
    fails_with(
        Rate,
        "5, bind",
        &["user"],
        "the function has an argument `user`; give the decision another name",
    );
    expands(Rate, "5, bind = decision", SEND);
    expands(Rate, "5, bind = r#type", SEND);
}

#[test]
fn crate_is_a_path() {
    let message = "`crate` is the path of the renamed crate; write `crate = ::renamed`";
    fails_with(Rate, "5, crate", &["\"renamed\"", "5", "limits()", "limits::<u8>"], message);
    for path in ["::renamed", "renamed", "crate::limits", "self::limits", "super::limits"] {
        expands(Rate, &format!("5, crate = {path}"), SEND);
    }
}

#[test]
fn on_store_error_is_a_word() {
    for kind in AttributeKind::ALL {
        for (word, mode) in [("local", "Local"), ("allow", "Allow"), ("deny", "Deny")] {
            let own = if kind == Concurrency { "5" } else { "5, 60" };
            let expanded = expands(kind, &format!("{own}, on_store_error = {word}"), SEND);
            let written = format!(
                "on_store_error : :: core :: option :: Option :: Some (__ratelimits :: OnStoreError :: {mode})"
            );
            assert!(expanded.contains(&written), "{expanded}");
        }
        let absent = expands(kind, if kind == Concurrency { "5" } else { "5, 60" }, SEND);
        assert!(absent.contains("on_store_error : :: core :: option :: Option :: None"), "{absent}");
    }
    let message = "expected one of `local`, `allow`, `deny`";
    let values = ["\"deny\"", "Deny", "alow", "OnStoreError::Local", "5", "|error| error"];
    fails_with(Rate, "5, on_store_error", &values, message);
}
