//! The registry of this process, which collects what the headers of responses tell.

use std::sync::LazyLock;

use ratelimits::web::{HeaderFormat, RateLimitHeaders};
use ratelimits::{Registry, install};

static HEADERS: LazyLock<RateLimitHeaders> = LazyLock::new(|| {
    let headers = RateLimitHeaders::new([HeaderFormat::Draft11, HeaderFormat::XRateLimit]);
    install(Registry::builder().observer(headers.observer()).in_memory()).unwrap();
    headers
});

/// The headers for a layer. To be called before the first decision of a test.
pub(crate) fn headers() -> RateLimitHeaders {
    HEADERS.clone()
}
