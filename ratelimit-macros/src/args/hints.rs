//! Words of other rate limiters.

/// Returns what to write instead of a word of another rate limiter.
pub(super) fn find(written: &str) -> Option<&'static str> {
    let written = normalized(written);
    let is_written = |word| normalized(word) == written;
    HINTS.iter().find(|(words, _)| words.split(' ').any(is_written)).map(|(_, hint)| *hint)
}

/// Returns whether the word is the cost of a call.
pub(super) fn is_cost(written: &str) -> bool {
    find(written) == find("need")
}

/// `maxBurstSeconds` is `max_burst_seconds`.
pub(super) fn normalized(word: &str) -> String {
    word.replace('_', "").to_lowercase()
}

#[rustfmt::skip]
const HINTS: &[(&str, &str)] = &[
    ("rate", "write `leak_rate = 5.0` on `funnel_limit`, or `limit = 100, period = \"1m\"` on `count_limit` or `window_limit`"),
    ("leak_rate", "write `rate = 5.0` on `rate_limit`, or `limit = 100, period = \"1m\"` on `count_limit` or `window_limit`"),
    ("permits_per_second tokens_per_second per_second replenish_rate refill_rate token_rate pass_rate funnel_rate leaking_rate leak qps rps", "write `rate = 5.0` on `rate_limit`, or `leak_rate = 5.0` on `funnel_limit`"),
    ("limit max max_requests requests count pass_count limit_for_period calls times amount value points hits", "write `rate = \"100/min\"` on `rate_limit`, `capacity = 10` on `funnel_limit`, `limit = 100` on `count_limit` or `window_limit`, or `max = 20` on `concurrency_limit`"),
    ("period duration interval window window_size window_ms time during limit_refresh_period rate_interval", "write `period = \"1m\"` on `count_limit` or `window_limit`, or a rate with its period: `\"100/min\"`"),
    ("time_unit unit per rate_unit rate_interval_unit token_rate_unit funnel_rate_unit during_unit duration_unit timeout_unit", "durations and rates contain their unit: `\"30s\"`, `\"100/min\"`"),
    ("capacity burst size bucket_size burst_size burst_capacity allow_burst max_burst max_tokens", "write `burst = 10` on `rate_limit`, `capacity = 10` on `funnel_limit`, or `limit = 100` on `count_limit` or `window_limit`"),
    ("max_burst_seconds burst_seconds", "write `burst = \"5s\"` on `rate_limit`"),
    ("refill_amount refill_tokens refill_time refill_period refill_duration refill_seconds", "write `rate = \"100/min\", refill = interval` on `rate_limit`"),
    ("drain leaking_duration", "write `drain = \"30m\"` on `funnel_limit`, or a rate with its period: `\"100/min\"`"),
    ("bandwidths", "write one attribute for each bandwidth"),
    ("init_tokens init_token initial_tokens", "a new bucket is full, and a new window is empty; leave it out"),
    ("warmup_period warmup_time warmup_duration warmup_seconds warmup_sec warmup_period_seconds warmup_period_sec", "write `warmup = \"3s\"` on `rate_limit`"),
    ("cold_factor", "the cold factor is always 3; leave it out"),
    ("allow_debt debt allow_overdraft overdraft allow_borrow borrowing smooth_bursty", "write `borrow` on `rate_limit`"),
    ("queue", "write it on `funnel_limit`, or to space calls evenly on `rate_limit` write `burst = 1, timeout = \"5s\"`"),
    ("queueing queuing queued pacing paced shaping exec_evenly delay max_queue max_queue_size queue_size queue_limit high_water", "write `capacity = 10, queue` on `funnel_limit`"),
    ("nodelay", "calls are delayed only with `queue` or `timeout`; leave it out"),
    ("concurrency concurrent concurrency_limit concurrency_level max_concurrency max_concurrent max_concurrent_calls max_concurrent_requests max_parallel max_parallel_calls max_in_flight in_flight bulkhead", "to bound how many calls run at once, write `max = 20` on `concurrency_limit`"),
    ("slack", "it says by how much leases may exceed a `rate_limit`; those of `count_limit` never exceed its windows, so write `lease = 100` there"),
    ("limit_type", "write `key_type = IP`"),
    ("cache_key key_expression key_generator key_func by", "write `key = user.id`"),
    ("key_prefix namespace", "write `prefix = \"sms\"`"),
    ("need request_need requested_tokens add_water permits tokens weight quantity", "write `cost = 2`"),
    ("fallback_method fallback_method_name block_handler handler on_limited on_limit on_exceeded on_reject or_else", "write `fallback = f`"),
    ("message msg error_message status_code http_status_code standard_headers legacy_headers", "a refused call returns its `Error`; write `fallback = |error| …` to return something else"),
    ("enable enabled", "write `skip_when = !enabled`"),
    ("dry_run shadow_mode report_only", "write `shadow`"),
    ("skip skip_if skip_condition exempt_when", "write `skip_when = user.is_admin`"),
    ("deduct_when post_execute_condition skip_successful_requests", "write `charge_when = |out| out.is_err()`"),
    ("skip_failed_requests", "write `charge_when = |out| out.is_ok()`"),
    ("expire expire_time expiration ttl", "keys expire by themselves; leave it out"),
    ("is_abort block blocking is_blocking", "leave it out: a call waits for up to `timeout`, and without one it is refused at once"),
    ("timeout_duration timeout_seconds timeout_sec timeout_ms timeout_millis timeout_in_millis acquire_timeout blocking_timeout queue_timeout", "write `timeout = \"200ms\"`"),
    ("wait wait_ms wait_for wait_time wait_time_ms wait_timeout max_wait max_wait_ms max_wait_millis max_wait_seconds max_wait_time max_wait_duration", "write `timeout = \"200ms\"`"),
    ("max_delay max_delay_ms max_queueing_time max_queueing_time_ms", "write `timeout = \"200ms\"`"),
    ("fail_open fail_closed pass_on_store_error swallow_errors failure_mode_deny on_error on_redis_error on_failure error_policy error_strategy failure_policy", "write `on_store_error = local`, `on_store_error = allow` or `on_store_error = deny`"),
];

#[cfg(test)]
mod tests {
    use ratelimit_syntax::AttributeKind;

    use super::*;
    fn words() -> impl Iterator<Item = &'static str> {
        HINTS.iter().flat_map(|(words, _)| words.split(' '))
    }

    #[test]
    fn words_are_unique_and_unknown_somewhere() {
        let mut seen = Vec::new();
        for word in words() {
            assert!(!seen.contains(&normalized(word)), "{word}");
            assert!(AttributeKind::ALL.iter().any(|kind| kind.argument(word).is_none()), "{word}");
            seen.push(normalized(word));
        }
    }

    #[test]
    fn words_of_well_known_limiters_have_hints() {
        for word in [
            "burst_size",
            "allow_burst",
            "size",
            "key_func",
            "windowMs",
            "max",
            "skipSuccessfulRequests",
            "skipFailedRequests",
            "handler",
            "statusCode",
            "standardHeaders",
            "block",
            "bandwidths",
            "enable",
            "keyGenerator",
            "calls",
            "times",
            "amount",
            "http_status_code",
            "timeoutUnit",
            "isAbort",
            "need",
            "points",
            "passOnStoreError",
            "maxConcurrentCalls",
            "concurrency",
        ] {
            let hint = find(word).unwrap_or_else(|| panic!("{word}"));
            assert!(!hint.contains(". "), "{word}: more than a sentence");
        }
    }

    #[test]
    fn hints_name_arguments_that_exist() {
        let is_known = |word| AttributeKind::ALL.iter().any(|kind| kind.argument(word).is_some());
        for (_, hint) in HINTS {
            for assigned in hint.split(['`', ' ', ',']).collect::<Vec<_>>().windows(2) {
                assert!(assigned[1] != "=" || is_known(assigned[0]), "{hint}");
            }
        }
    }
}
