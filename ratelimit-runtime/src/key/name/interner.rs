//! Names of limiters that live as long as the process.
//!
//! A decision names its policy. A name that all threads count would be written by each of them at every decision; one that is
//! never freed needs no count. So a name is leaked, once, and only so many are.

use std::collections::HashSet;
use std::sync::{LazyLock, Mutex, PoisonError};

/// How many names are interned.
const MAX_NAMES: usize = 4096;

/// How many bytes an interned name has at most, so that all of them take at most 1 MiB.
const MAX_LEN: usize = 256;

/// Returns the name for the rest of the process. `None` if it is long, or new after many others: names made at run time are
/// unbounded, and memory is not.
pub(crate) fn intern(name: &str) -> Option<&'static str> {
    static NAMES: LazyLock<Mutex<Interner>> = LazyLock::new(Mutex::default);
    NAMES.lock().unwrap_or_else(PoisonError::into_inner).intern(name)
}

#[derive(Debug, Default)]
struct Interner(HashSet<&'static str>);

impl Interner {
    fn intern(&mut self, name: &str) -> Option<&'static str> {
        if let Some(known) = self.0.get(name) {
            return Some(known);
        }
        if name.len() > MAX_LEN || self.0.len() >= MAX_NAMES {
            return None;
        }
        let name: &'static str = Box::leak(name.into());
        self.0.insert(name);
        Some(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_is_leaked_once() {
        let mut names = Interner::default();
        let [first, second] = [(); 2].map(|()| names.intern("reports").unwrap());
        assert_eq!((first, first.as_ptr()), ("reports", second.as_ptr()));
    }

    #[test]
    fn memory_of_names_is_bounded() {
        let mut names = Interner::default();
        let long = |i: usize| format!("{i:0MAX_LEN$}");
        let interned = (0..2 * MAX_NAMES).filter(|i| names.intern(&long(*i)).is_some());
        assert_eq!(interned.count(), MAX_NAMES);
        assert_eq!(names.0.iter().map(|name| name.len()).sum::<usize>(), 1 << 20);
        assert!(names.intern(&long(0)).is_some());
        assert_eq!(Interner::default().intern(&"x".repeat(MAX_LEN + 1)), None);
    }
}
