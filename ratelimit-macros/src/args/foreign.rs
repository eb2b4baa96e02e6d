//! Words of other limiters, above all of the annotation libraries of Java, and what stands for them here. Only data:
//! [`advice`](super::advice) makes sentences of it. `max_burst_seconds` is `maxBurstSeconds` too.

use crate::kind::Kind::{self, Count, Funnel, Rate, Window};
use Answer::{Flag, Instead, Nothing, Ours, Switch};
use Slot::{Any, Code, Millis, Time, Whole};

/// Our own arguments that this version does not have, and the attributes that they are for. One that comes leaves here.
pub(super) const LATER: &[(&str, &[Kind])] = &[("lease", &[Rate, Count])];

/// What is said to a word.
pub(super) enum Answer {
    /// It is this argument here, with this value. `{}` is where what was written goes.
    Ours(&'static str, &'static str, Slot),
    /// It is this flag here.
    Flag(&'static str),
    /// It is true or false there, and this argument with this value here.
    Switch(&'static str, &'static str),
    /// It is not needed here, and why.
    Nothing(&'static str),
    /// It is not needed here, and why, because of this argument with this value.
    Instead(&'static str, &'static str, &'static str, Slot),
}

/// What of the written value goes into the answer, and the example where it cannot.
pub(super) enum Slot {
    /// Any expression.
    Any(&'static str),
    /// Any expression but a literal.
    Code(&'static str),
    /// A whole number.
    Whole(&'static str),
    /// A time: a number means seconds.
    Time(&'static str),
    /// A time: a number means milliseconds.
    Millis(&'static str),
    /// The unit of time that an enum like `TimeUnit.HOURS` names.
    Unit,
    /// The `key_type` that an enum like `LimitType.IP` names.
    KeyType,
    /// What `on_store_error` can be; what it is by itself, and for `false`.
    OnStoreError(&'static str, &'static str),
    /// The permits of a rate, with its period as an argument of its own.
    Apart,
}

/// Words with spaces between them, and what is said to each.
pub(super) type Row = (&'static str, Answer);

/// The words that mean something to this attribute alone, and those that mean the same to all.
pub(super) fn rows(kind: Kind) -> impl Iterator<Item = &'static Row> {
    let own = match kind {
        Rate => RATE,
        Count | Window => WINDOWS,
        Funnel => FUNNEL,
    };
    own.iter().chain(SHARED)
}

/// `{permits}` are those of the rate that stands before, in whatever words.
const RATE: &[Row] = &[
    (
        "permits_per_second tokens_per_second per_second replenish_rate refill_rate token_rate \
         pass_rate leak_rate qps rps value",
        Ours("rate", "{}", Any("5.0")),
    ),
    ("max_burst_seconds burst_seconds", Ours("burst", "\"{}\"", Time("5s"))),
    ("capacity burst_capacity max_burst max_tokens bucket_size limit", Ours("burst", "{}", Whole("10"))),
    ("refill_amount refill_tokens", Ours("rate", "\"{}/1m\", refill = interval", Whole("100"))),
    (
        "refill_time refill_period refill_duration refill_seconds",
        Ours("rate", "\"{permits}/{}\", refill = interval", Time("1m")),
    ),
    ("limit_for_period max max_requests requests count pass_count", Ours("rate", "\"{}/1m\"", Whole("100"))),
    (
        "limit_refresh_period period rate_interval interval duration during window time \
         leaking_duration drain",
        Ours("rate", "\"{permits}/{}\"", Time("1m")),
    ),
    (UNITS, Instead(HAS_UNIT, "rate", "\"{permits}/{}\"", Slot::Unit)),
    (
        "warmup_period warmup_time warmup_duration warmup_seconds warmup_sec warmup_period_seconds warmup_period_sec",
        Ours("warmup", "\"{}\"", Time("3s")),
    ),
    ("cold_factor", Nothing("a cold bucket gives a third of its rate")),
    ("allow_debt debt allow_overdraft overdraft allow_borrow borrowing smooth_bursty", Flag("borrow")),
    (INITIAL, Nothing("a new bucket is full")),
];

const WINDOWS: &[Row] = &[
    (
        "value max max_requests requests count pass_count permits limit_for_period refill_amount \
         refill_tokens capacity burst_capacity max_burst max_tokens burst",
        Ours("limit", "{}", Whole("100")),
    ),
    (
        "during duration interval window window_size time limit_refresh_period refill_time \
         refill_period refill_duration refill_seconds leaking_duration drain",
        Ours("period", "\"{}\"", Time("1m")),
    ),
    (
        "rate leak_rate pass_rate permits_per_second tokens_per_second per_second replenish_rate \
         refill_rate qps rps",
        Ours("limit", "{}", Slot::Apart),
    ),
    (UNITS, Instead(HAS_UNIT, "period", "\"{}\"", Slot::Unit)),
    (INITIAL, Nothing("a new window is empty")),
];

const FUNNEL: &[Row] = &[
    (
        "pass_rate funnel_rate leaking_rate leak rate permits_per_second tokens_per_second per_second \
         replenish_rate refill_rate qps rps",
        Ours("leak_rate", "{}", Any("5.0")),
    ),
    (
        "leaking_duration period during duration interval window limit_refresh_period refill_time \
         refill_period refill_duration refill_seconds",
        Ours("drain", "\"{}\"", Time("30m")),
    ),
    ("limit burst burst_capacity max_burst bucket_size max count value", Ours("capacity", "{}", Whole("10"))),
    (
        "max_queue max_queue_size queue_size queue_limit high_water",
        Ours("capacity", "{}, queue", Whole("10")),
    ),
    ("queueing queuing queued pacing paced shaping exec_evenly delay", Flag("queue")),
    ("nodelay", Nothing("a bucket without `queue` delays no call")),
    (UNITS, Instead(HAS_UNIT, "leak_rate", "\"{permits}/{}\"", Slot::Unit)),
    (INITIAL, Nothing("a new funnel is empty")),
];

const SHARED: &[Row] = &[
    ("limit_type key_type", Ours("key_type", "{}", Slot::KeyType)),
    ("cache_key key_expression key_generator by", Ours("key", "{}", Code("user.id"))),
    ("key_prefix namespace", Ours("prefix", "{}", Any("\"sms\""))),
    ("need request_need requested_tokens add_water permits tokens weight", Ours("cost", "{}", Whole("2"))),
    (
        "fallback_method fallback_method_name block_handler on_limited on_limit on_exceeded on_reject or_else",
        Ours("fallback", "{}", Any("f")),
    ),
    ("pass_args", Flag("pass_args")),
    ("dry_run shadow_mode", Flag("shadow")),
    ("skip_condition skip_if exempt_when", Ours("skip_when", "{}", Code("user.is_admin"))),
    ("deduct_when post_execute_condition", Ours("charge_when", "{}", Code("|out| out.is_err()"))),
    ("expire expire_time expiration ttl", Nothing("keys expire by themselves")),
    ("is_abort blocking is_blocking", Switch("timeout", "\"forever\"")),
    (
        "message msg error_message",
        Nothing("a refused call returns its `Error`, or what `fallback = |error| …` makes of it"),
    ),
    (
        "timeout_duration timeout_seconds timeout_sec max_wait max_wait_time max_wait_duration max_wait_seconds wait \
         wait_time wait_timeout wait_for acquire_timeout blocking_timeout max_delay max_queueing_time queue_timeout",
        Ours("timeout", "\"{}\"", Time("200ms")),
    ),
    (
        "timeout_ms timeout_millis timeout_in_millis max_wait_ms max_wait_millis wait_ms wait_time_ms max_delay_ms \
         max_queueing_time_ms",
        Ours("timeout", "\"{}\"", Millis("200ms")),
    ),
    (
        "fail_open on_error on_redis_error on_failure error_policy error_strategy failure_policy",
        Ours("on_store_error", "{}", Slot::OnStoreError("allow", "deny")),
    ),
    ("fail_closed", Ours("on_store_error", "{}", Slot::OnStoreError("deny", "allow"))),
];

const HAS_UNIT: &str = "a time has its unit in it";
const UNITS: &str = "time_unit unit per rate_unit rate_interval_unit token_rate_unit funnel_rate_unit during_unit \
                     duration_unit";
const INITIAL: &str = "init_tokens init_token initial_tokens";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_answer_names_an_argument_that_there_is_or_will_be() {
        for kind in Kind::ALL {
            for (words, answer) in rows(kind) {
                let (Ours(name, ..) | Flag(name) | Switch(name, _) | Instead(_, name, ..)) = answer else {
                    continue;
                };
                let later = LATER.iter().any(|(later, _)| later == name);
                assert!(later || kind.legal().contains(name), "{words}: {name} of {}", kind.name());
            }
        }
    }

    #[test]
    fn no_word_is_hidden_by_an_argument_or_an_earlier_row() {
        for kind in Kind::ALL {
            let own = rows(kind).take(rows(kind).count() - SHARED.len());
            let mut seen = Vec::new();
            for word in own.flat_map(|(words, _)| words.split(' ')) {
                assert!(!kind.legal().contains(&word) && !seen.contains(&word), "{word} of {}", kind.name());
                seen.push(word);
            }
        }
    }
}
