//! Memory that is needed soon.

/// Lets the processor fetch what is read or written soon, while it does other things. Where that cannot be said, it is fetched when it is
/// needed.
#[inline(always)]
pub(crate) fn prefetch<T>(soon: &T) {
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    safe_arch::prefetch_t0(soon);
    _ = soon;
}
