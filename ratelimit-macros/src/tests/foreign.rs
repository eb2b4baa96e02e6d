//! Words of other limiters, of other attributes and of later versions.

use super::*;

/// Checks what is said to one argument beside those that must be there.
#[track_caller]
fn advises(kind: Kind, args: &str, advice: &str) {
    let word = args.rsplit(", ").next().unwrap().split(" = ").next().unwrap();
    fails(kind, args, &[(word, advice)]);
}

#[test]
fn words_of_token_buckets() {
    advises(Rate, "permitsPerSecond = 5", "`permitsPerSecond` is written `rate` here; write `rate = 5`");
    advises(Rate, "per_second = user.rate", "`per_second` is written `rate` here; write `rate = user.rate`");
    advises(Rate, "value = \"5/s\"", "`value` is written `rate` here; write `rate = \"5/s\"`");
    for written in [
        "maxBurstSeconds = 5",
        "max_burst_seconds = 5.0",
        "maxBurstSeconds = \"5s\"",
        "maxBurstSeconds = SECONDS",
    ] {
        let word = written.split(' ').next().unwrap();
        let advice = format!("`{word}` is written `burst` here; write `burst = \"5s\"`");
        advises(Rate, &format!("5, {written}"), &advice);
    }
    advises(Rate, "5, capacity = 5.0", "`capacity` belongs to `funnel_limit`; write `burst = 5`");
    advises(
        Rate,
        "5, burstCapacity = user.burst",
        "`burstCapacity` is written `burst` here; write `burst = user.burst`",
    );
    advises(Rate, "5, limit = 7", "`limit` belongs to `count_limit` and `window_limit`; write `burst = 7`");
    advises(
        Rate,
        "refillAmount = 10",
        "`refillAmount` is written `rate` here; write `rate = \"10/1m\", refill = interval`",
    );
    advises(
        Rate,
        "10, refillTime = 30",
        "`refillTime` is written `rate` here; write `rate = \"10/30s\", refill = interval`",
    );
    advises(Rate, "limitForPeriod = 5", "`limitForPeriod` is written `rate` here; write `rate = \"5/1m\"`");
    advises(Rate, "interval", "`interval` is written `rate` here; write `rate = \"100/1m\"`");
    advises(
        Rate,
        "period = \"1h\"",
        "`period` belongs to `count_limit` and `window_limit`; write `rate = \"100/1h\"`",
    );
    advises(
        Rate,
        "rate = 5.0, period = 60",
        "`period` belongs to `count_limit` and `window_limit`; write `rate = \"5/60s\"`",
    );
    advises(Rate, "drain = \"30m\"", "`drain` belongs to `funnel_limit`; write `rate = \"100/30m\"`");
    advises(Rate, "leak_rate = 5", "`leak_rate` belongs to `funnel_limit`; write `rate = 5`");
    advises(
        Rate,
        "10, timeUnit = TimeUnit.HOURS",
        "a time has its unit in it; leave `timeUnit` out, and write `rate = \"10/1h\"`",
    );
    fails(
        Rate,
        "refillAmount = 10, refillTime = 30",
        &[
            (
                "refillAmount",
                "`refillAmount` is written `rate` here; write `rate = \"10/1m\", refill = interval`",
            ),
            (
                "refillTime",
                "`refillTime` is written `rate` here; write `rate = \"10/30s\", refill = interval`",
            ),
        ],
    );
    advises(Rate, "5, initTokens = 0", "a new bucket is full; leave `initTokens` out");
}

#[test]
fn words_of_windows() {
    for kind in [Count, Window] {
        advises(kind, "period = 60, max = 5", "`max` is written `limit` here; write `limit = 5`");
        advises(
            kind,
            "period = 60, limitForPeriod = 5",
            "`limitForPeriod` is written `limit` here; write `limit = 5`",
        );
        advises(
            kind,
            "period = 60, value = user.limit",
            "`value` is written `limit` here; write `limit = user.limit`",
        );
        advises(kind, "period = 60, capacity = 5", "`capacity` belongs to `funnel_limit`; write `limit = 5`");
        advises(kind, "period = 60, burst = \"5s\"", "`burst` belongs to `rate_limit`; write `limit = 100`");
        advises(kind, "5, during = 10", "`during` is written `period` here; write `period = \"10s\"`");
        advises(kind, "5, window = \"1h\"", "`window` is written `period` here; write `period = \"1h\"`");
        advises(
            kind,
            "5, duration = \"PT1H\"",
            "`duration` is written `period` here; write `period = \"1m\"`",
        );
        advises(
            kind,
            "5, limitRefreshPeriod = WINDOW",
            "`limitRefreshPeriod` is written `period` here; write `period = \"1m\"`",
        );
        let belongs = "`rate` belongs to `rate_limit`; write `limit = ";
        for (rate, apart) in [
            ("\"100/min\"", "100, period = \"1min\""),
            ("\"1/5s\"", "1, period = \"5s\""),
            ("5", "5, period = \"1s\""),
            ("user.rate", "100, period = \"1m\""),
        ] {
            advises(kind, &format!("rate = {rate}"), &format!("{belongs}{apart}`"));
        }
        advises(
            kind,
            "5, time_unit = \"seconds\"",
            "a time has its unit in it; leave `time_unit` out, and write `period = \"1s\"`",
        );
    }
    advises(Count, "5, 60, initTokens = 0", "a new window is empty; leave `initTokens` out");
}

#[test]
fn words_of_funnels() {
    advises(Funnel, "10, passRate = 0.5", "`passRate` is written `leak_rate` here; write `leak_rate = 0.5`");
    advises(Funnel, "10, rate = 5", "`rate` belongs to `rate_limit`; write `leak_rate = 5`");
    advises(
        Funnel,
        "10, leakingDuration = 30",
        "`leakingDuration` is written `drain` here; write `drain = \"30s\"`",
    );
    advises(
        Funnel,
        "leak_rate = 5, limit = 10",
        "`limit` belongs to `count_limit` and `window_limit`; write `capacity = 10`",
    );
    advises(Funnel, "leak_rate = 5, burst = 10", "`burst` belongs to `rate_limit`; write `capacity = 10`");
    advises(Funnel, "10, 5, addWater = 1", "`addWater` is written `cost` here; write `cost = 1`");
    advises(
        Funnel,
        "10, timeUnit = TimeUnit.MINUTES",
        "a time has its unit in it; leave `timeUnit` out, and write `leak_rate = \"100/1m\"`",
    );
}

#[test]
fn words_for_waiting() {
    for kind in [Rate, Count, Funnel, Window] {
        for (written, timeout) in [
            ("timeoutDuration = 5", "5s"),
            ("max_wait = \"100ms\"", "100ms"),
            ("waitTime = user.wait", "200ms"),
            ("maxQueueingTimeMs = 500", "500ms"),
            ("timeout_ms = WAIT", "200ms"),
            ("wait", "200ms"),
            ("isAbort = true", "forever"),
            ("blocking", "forever"),
        ] {
            let word = written.split(' ').next().unwrap();
            let advice = format!("`{word}` is written `timeout` here; write `timeout = \"{timeout}\"`");
            advises(kind, &format!("5, 60, {written}"), &advice);
        }
        let advice = "`isAbort` is written `timeout` here; leave it out";
        advises(kind, "5, 60, isAbort = false", advice);
    }
    for (written, warmup) in
        [("warmupPeriod = 3", "3s"), ("warmUpPeriodSec = 10", "10s"), ("warmup_time = \"1m\"", "1m")]
    {
        let word = written.split(' ').next().unwrap();
        let advice = format!("`{word}` is written `warmup` here; write `warmup = \"{warmup}\"`");
        advises(Rate, &format!("5, {written}"), &advice);
    }
    advises(Rate, "5, coldFactor = 3.0", "a cold bucket gives a third of its rate; leave `coldFactor` out");
    advises(
        Rate,
        "5, allowDebt = true",
        "`allowDebt` is written `borrow` here; write `borrow`, without a value",
    );
    advises(Rate, "5, overdraft = false", "`overdraft` is written `borrow` here; leave it out");
    advises(
        Funnel,
        "leak_rate = 5, maxQueueSize = 20",
        "`maxQueueSize` is written `capacity` here; write `capacity = 20, queue`",
    );
    advises(Funnel, "5, 60, pacing", "`pacing` is written `queue` here; write `queue`, without a value");
    advises(Funnel, "5, 60, nodelay", "a bucket without `queue` delays no call; leave `nodelay` out");
}

#[test]
fn words_of_all() {
    for (written, key_type) in
        [("LimitType.IP", "IP"), ("LimitType::USER", "USER"), ("\"custom\"", "CUSTOM"), ("DEFAULT", "IP")]
    {
        for word in ["limitType", "limit_type", "keyType"] {
            let advice = format!("`{word}` is written `key_type` here; write `key_type = {key_type}`");
            advises(Count, &format!("5, 60, {word} = {written}"), &advice);
        }
    }
    advises(Rate, "5, need = 1.0", "`need` is written `cost` here; write `cost = 1`");
    advises(Rate, "5, permits = user.cost", "`permits` is written `cost` here; write `cost = user.cost`");
    advises(Rate, "5, requestedTokens", "`requestedTokens` is written `cost` here; write `cost = 2`");
    advises(
        Rate,
        "5, fallbackMethod = \"f\"",
        "`fallbackMethod` is written `fallback` here; write `fallback = \"f\"`",
    );
    advises(
        Rate,
        "5, fallback = f, passArgs = true",
        "`passArgs` is written `pass_args` here; write `pass_args`, without a value",
    );
    advises(
        Rate,
        "5, fallback = f, passArgs = false",
        "`passArgs` is written `pass_args` here; leave it out",
    );
    advises(Rate, "5, expire = 60", "keys expire by themselves; leave `expire` out");
    advises(
        Rate,
        "5, message = \"too many\"",
        "a refused call returns its `Error`, or what `fallback = |error| …` makes of it; leave `message` out",
    );
    advises(
        Rate,
        "5, skipCondition = \"#admin\"",
        "`skipCondition` is written `skip_when` here; write `skip_when = user.is_admin`",
    );
    advises(Rate, "5, skipWhen = admin", "`skipWhen` is written `skip_when` here; write `skip_when = admin`");
    advises(Rate, "5, Shadow", "`Shadow` is written `shadow` here; write `shadow`, without a value");
}

#[test]
fn arguments_of_another_attribute() {
    advises(
        Rate,
        "5, aligned",
        "`aligned` belongs to `count_limit`; leave it out, or write `#[count_limit(…)]`",
    );
    advises(
        Count,
        "5, 60, precision = \"1s\"",
        "`precision` belongs to `window_limit`; leave it out, or write `#[window_limit(…)]`",
    );
    advises(
        Count,
        "5, 60, maxBurstSeconds = 5",
        "`maxBurstSeconds` is `burst` of `rate_limit`; leave it out, or write `#[rate_limit(…)]`",
    );
}

#[test]
fn arguments_for_waiting_of_another_attribute() {
    const QUEUE: &str = "`queue` belongs to `funnel_limit`; leave it out, or write `#[funnel_limit(…)]`";
    for (kind, args, evenly) in [
        (Rate, "5", ", or to space calls evenly `burst = 1, timeout = \"5s\"`"),
        (Count, "5, 60", ""),
        (Window, "5, 60", ""),
    ] {
        advises(kind, &format!("{args}, queue"), &format!("{QUEUE}{evenly}"));
        advises(
            kind,
            &format!("{args}, pacing"),
            "`pacing` is `queue` of `funnel_limit`; leave it out, or write `#[funnel_limit(…)]`",
        );
    }
    advises(
        Count,
        "5, 60, borrow",
        "`borrow` belongs to `rate_limit`; leave it out, or write `#[rate_limit(…)]`",
    );
    advises(
        Funnel,
        "5, 60, warmup = \"3s\"",
        "`warmup` belongs to `rate_limit`; leave it out, or write `#[rate_limit(…)]`",
    );
}

#[test]
fn arguments_of_later_versions() {
    advises(
        Window,
        "5, 60, lease = 100",
        "`lease` belongs to `rate_limit` and `count_limit`, and is not in this version yet; leave it out",
    );
    advises(Rate, "5, Lease = 100", "`lease` is not in this version yet; leave it out");
}

#[test]
fn what_to_do_without_a_store() {
    for kind in [Rate, Count, Funnel, Window] {
        for (written, word, meant) in [
            ("onStoreError = deny", "onStoreError", "deny"),
            ("failOpen = true", "failOpen", "allow"),
            ("fail_open = false", "fail_open", "deny"),
            ("failClosed = true", "failClosed", "deny"),
            ("fail_closed", "fail_closed", "deny"),
            ("onError = \"reject\"", "onError", "deny"),
            ("onError = Strategy.PASS", "onError", "allow"),
            ("onError = in_memory", "onError", "local"),
        ] {
            advises(
                kind,
                &format!("5, 60, {written}"),
                &format!("`{word}` is written `on_store_error` here; write `on_store_error = {meant}`"),
            );
        }
    }
}

#[test]
fn a_word_by_position_may_be_a_value() {
    for args in ["max, 60", "MAX, WINDOW", "limits::max, 60"] {
        expands(Count, args, "async fn send(max: u64) -> Result<(), AppError> { Ok(()) }");
    }
    advises(Count, "period = 60, max", "`max` is written `limit` here; write `limit = 100`");
}
