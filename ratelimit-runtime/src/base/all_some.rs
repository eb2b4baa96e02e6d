//! Arrays whose elements may be missing.

/// Returns all elements, unless one is missing.
#[inline(always)]
pub(crate) fn all_some<T: Copy, const N: usize>(options: [Option<T>; N]) -> Option<[T; N]> {
    let mut all = [(*options.first()?)?; N];
    for (element, option) in all.iter_mut().zip(options) {
        *element = option?;
    }
    Some(all)
}
