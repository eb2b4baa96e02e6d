//! Functions with attributes, as users write them. All are decided in process, and only those with `refused` in their names ever refuse.

use ratelimits::{Error, Registry, concurrency_limit, count_limit, funnel_limit, rate_limit, window_limit};

use crate::workload::Key;

#[rate_limit(1_000_000.0, 1_000_000_000_000, key = key.id)]
pub(crate) async fn by_id(key: &Key) -> Result<u64, Error> {
    Ok(key.id)
}

#[rate_limit(1_000_000.0, 1_000_000_000_000, key = key.text)]
pub(crate) async fn by_text(key: &Key) -> Result<u64, Error> {
    Ok(key.id)
}

#[rate_limit(1_000_000.0, 1_000_000_000_000)]
pub(crate) async fn by_method(key: &Key) -> Result<u64, Error> {
    Ok(key.id)
}

#[rate_limit("1/h", 1, key = key.id)]
pub(crate) async fn refused(key: &Key) -> Result<u64, Error> {
    Ok(key.id)
}

#[rate_limit(1_000_000.0, 1_000_000_000_000, key = key.id)]
#[count_limit(1_000_000_000_000, "1h", key = key.id)]
#[funnel_limit(1_000_000_000_000, leak_rate = 1_000_000.0, key = key.id)]
pub(crate) async fn three_policies(key: &Key) -> Result<u64, Error> {
    Ok(key.id)
}

#[count_limit(1_000_000_000_000, "1h", key = key.id)]
pub(crate) async fn fixed_window(key: &Key) -> Result<u64, Error> {
    Ok(key.id)
}

#[count_limit(1_000_000_000_000, "1h", aligned, key = key.id)]
pub(crate) async fn aligned_window(key: &Key) -> Result<u64, Error> {
    Ok(key.id)
}

#[rate_limit("1000000/1ms", 1_000_000_000_000, refill = interval, key = key.id)]
pub(crate) async fn interval_refill(key: &Key) -> Result<u64, Error> {
    Ok(key.id)
}

#[rate_limit(1_000_000.0, warmup = "1s", key = key.id)]
pub(crate) async fn warming_up(key: &Key) -> Result<u64, Error> {
    Ok(key.id)
}

#[count_limit(1_000_000_000_000, "month", zone = "Europe/Berlin", key = key.id)]
pub(crate) async fn calendar_window(key: &Key) -> Result<u64, Error> {
    Ok(key.id)
}

#[window_limit(1_000_000_000_000, "60s", precision = "1s", key = key.id)]
pub(crate) async fn counter(key: &Key) -> Result<u64, Error> {
    Ok(key.id)
}

#[concurrency_limit(1_000_000, key = key.id)]
pub(crate) async fn held(key: &Key) -> Result<u64, Error> {
    Ok(key.id)
}

#[rate_limit(1_000_000.0, 1_000_000_000_000, key = key.id)]
#[count_limit(1_000_000_000_000, "1h", key = key.id)]
#[concurrency_limit(1_000_000, key = key.id)]
pub(crate) async fn held_beside_two(key: &Key) -> Result<u64, Error> {
    Ok(key.id)
}

#[rate_limit(1_000_000.0, 1_000_000_000_000, key = key.id)]
#[concurrency_limit(1_000_000, key = key.id)]
pub(crate) async fn held_beside_one(key: &Key) -> Result<u64, Error> {
    Ok(key.id)
}

#[rate_limit(1_000_000.0, 1_000_000_000_000, key = key.id)]
pub(crate) fn blocking(key: &Key) -> Result<u64, Error> {
    Ok(key.id)
}

#[rate_limit("1/h", 1, key = key.id)]
pub(crate) fn blocking_refused(key: &Key) -> Result<u64, Error> {
    Ok(key.id)
}

#[rate_limit(1_000_000.0, 1_000_000_000_000, key = key.id)]
#[count_limit(1_000_000_000_000, "1h", key = key.id)]
#[funnel_limit(1_000_000_000_000, leak_rate = 1_000_000.0, key = key.id)]
pub(crate) fn blocking_three_policies(key: &Key) -> Result<u64, Error> {
    Ok(key.id)
}

#[concurrency_limit(1_000_000, key = key.id)]
pub(crate) fn blocking_held(key: &Key) -> Result<u64, Error> {
    Ok(key.id)
}

#[rate_limit(1_000_000.0, 1_000_000_000_000, key = key.id)]
#[count_limit(1, "1d", key = key.id)]
pub(crate) async fn refused_by_one_of_two(key: &Key) -> Result<u64, Error> {
    Ok(key.id)
}

#[rate_limit("1/h", 1, key = key.id, registry = registry)]
pub(crate) async fn refused_in(registry: &Registry, key: &Key) -> Result<u64, Error> {
    Ok(key.id)
}

#[rate_limit(1_000_000.0, 1_000_000_000_000, key = key.id)]
#[count_limit(1_000_000_000_000, "1h", key = key.id)]
#[window_limit(1_000_000_000_000, "60s", precision = "1s", key = key.id)]
#[funnel_limit(1_000_000_000_000, leak_rate = 1_000_000.0, key = key.id)]
pub(crate) async fn four_policies(key: &Key) -> Result<u64, Error> {
    Ok(key.id)
}

/// The body of the functions above, without an attribute.
pub(crate) async fn plain(key: &Key) -> Result<u64, Error> {
    Ok(key.id)
}
