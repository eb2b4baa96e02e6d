//! Processor time, processors and memory, as the operating system reports them.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// The processor time that this thread has used. Others that share the machine hardly change it.
pub(crate) fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

/// Bytes of this process that are in memory.
pub(crate) fn resident_bytes() -> Result<u64, String> {
    let status = std::fs::read_to_string("/proc/self/status")
        .map_err(|error| format!("/proc/self/status: {error}"))?;
    status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB")?.parse::<u64>().ok())
        .map(|kilobytes| kilobytes * 1024)
        .ok_or_else(|| "/proc/self/status has no VmRSS".to_owned())
}

/// What the processors of this machine have done since it started, in clock ticks.
#[derive(Clone, Copy)]
pub(crate) struct ProcessorTicks {
    all: u64,
    /// Spent on other machines of the host.
    stolen: u64,
}

impl ProcessorTicks {
    /// Returns `None` on systems that do not say.
    pub(crate) fn now() -> Option<Self> {
        let stat = std::fs::read_to_string("/proc/stat").ok()?;
        let ticks: Vec<u64> =
            stat.lines().next()?.split_whitespace().skip(1).filter_map(|ticks| ticks.parse().ok()).collect();
        // The two that follow are part of others.
        Some(ProcessorTicks { all: ticks.iter().take(8).sum(), stolen: *ticks.get(7)? })
    }

    /// Returns the share of the time since these ticks that was spent on other machines.
    pub(crate) fn stolen_share(self, now: Self) -> f64 {
        (now.stolen - self.stolen) as f64 / (now.all - self.all).max(1) as f64
    }
}

/// Keeps the calling thread, or another process, on one processor: the `number`th from the end of those allowed. Does
/// nothing where there are not enough of them, or on systems without such a call.
pub(crate) fn pin(process: Option<u32>, number: usize) {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::Pid;
        use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

        let Ok(allowed) = sched_getaffinity(None) else { return };
        let process = process.and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        if let Some(processor) = (0..CpuSet::MAX_CPU).rev().filter(|&id| allowed.is_set(id)).nth(number) {
            let mut one = CpuSet::new();
            one.set(processor);
            _ = sched_setaffinity(process, &one);
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (process, number);
}
