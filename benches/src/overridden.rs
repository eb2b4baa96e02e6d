//! Functions of which operators have overridden something: the policy by its name, or keys.

use std::fs::{self, File};
use std::hint::black_box;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};
use std::{env, process};

use ratelimits::{Error, Registry, count_limit};

use crate::workload::{Key, now};

#[count_limit(1_000_000_000_000, "1h", key = key.id, name = "bench.literal", registry = registry)]
async fn literal(registry: &Registry, key: &Key) -> Result<u64, Error> {
    Ok(key.id)
}

#[count_limit(1_000_000_000 + key.id, "1h", key = key.id, name = "bench.computed", registry = registry)]
async fn computed(registry: &Registry, key: &Key) -> Result<u64, Error> {
    Ok(key.id)
}

/// Calls of a policy, one a key.
pub(crate) type Call = Box<dyn Fn(&Key)>;

/// Returns calls of a policy with literal numbers.
pub(crate) fn literal_call(of: Overridden) -> Call {
    let registry = of.registry_of("bench.literal");
    Box::new(move |key| _ = black_box(now(literal(registry, key)).is_ok()))
}

/// Returns calls of a policy with computed numbers.
pub(crate) fn computed_call(of: Overridden) -> Call {
    let registry = of.registry_of("bench.computed");
    Box::new(move |key| _ = black_box(now(computed(registry, key)).is_ok()))
}

/// What is overridden of a policy.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Overridden {
    Nothing,
    ByName,
    /// As many keys as may be overridden, with which there are no calls.
    OtherKeys,
    /// As many, from 0 on.
    Keys,
    /// As many of another policy.
    OtherPolicy,
}

impl Overridden {
    /// Returns the registry in which that is overridden of this policy, which its first user makes.
    fn registry_of(self, policy: &'static str) -> &'static LazyLock<Registry, impl FnOnce() -> Registry> {
        Box::leak(Box::new(LazyLock::new(move || self.registry(policy))))
    }

    fn registry(self, policy: &str) -> Registry {
        const KEYS: u64 = 10_000;
        let tables = match self {
            Overridden::Nothing => return Registry::in_memory(),
            Overridden::ByName => vec![format!("[\"{policy}\"]")],
            Overridden::OtherKeys | Overridden::Keys | Overridden::OtherPolicy => {
                let from = if matches!(self, Overridden::OtherKeys) { u64::from(u32::MAX) } else { 0 };
                let policy = if matches!(self, Overridden::OtherPolicy) { "bench.other" } else { policy };
                (from..from + KEYS).map(|key| format!("[\"{policy}\".keys.{key}]")).collect()
            }
        };
        let text: String = tables.iter().map(|table| format!("{table}\nlimit = 900_000_000_000\n")).collect();
        // Each has its own, as registries read theirs again.
        static FILES: AtomicUsize = AtomicUsize::new(0);
        let file = FILES.fetch_add(1, Ordering::Relaxed);
        let path = env::temp_dir().join(format!("ratelimits-bench-{}-{file}.toml", process::id()));
        fs::write(&path, text).expect("temporary files can be written");
        // As if it were not being written.
        let old = SystemTime::now() - Duration::from_secs(60);
        File::options()
            .write(true)
            .open(&path)
            .and_then(|file| file.set_modified(old))
            .expect("it is a file");
        let registry = Registry::builder().overrides(&path).in_memory();
        // What is in force stays so.
        fs::remove_file(&path).expect("the file can be removed");
        registry
    }
}
