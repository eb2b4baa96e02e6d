//! The registry of this process, which collects what the headers of responses tell.

use std::sync::LazyLock;

use ratelimits::web::{HeaderFormat, RateLimitHeaders};
use ratelimits::{Registry, install};

static INSTALLED: LazyLock<(RateLimitHeaders, Registry)> = LazyLock::new(|| {
    let headers = RateLimitHeaders::new([HeaderFormat::Draft11, HeaderFormat::XRateLimit]);
    let registry = Registry::builder().observer(headers.observer()).in_memory();
    install(registry.clone()).unwrap();
    (headers, registry)
});

/// The headers for a layer. To be called before the first decision of a test.
pub(crate) fn headers() -> RateLimitHeaders {
    INSTALLED.0.clone()
}

/// The registry of the process.
pub(crate) fn installed() -> Registry {
    INSTALLED.1.clone()
}
