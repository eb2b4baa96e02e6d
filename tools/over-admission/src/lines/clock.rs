//! A server whose clock a file shifts: `server-with-shifted-clock`.

use std::path::PathBuf;
use std::time::Duration;

use crate::log::now;
use crate::support::server::Server;

/// Returns the file, if there is one.
pub(super) fn file() -> Option<PathBuf> {
    std::env::var_os("SHIFTED_CLOCK_FILE").map(PathBuf::from)
}

/// Shifts the clock of the server by these seconds, and checks that the server sees it.
pub(super) async fn step(server: &Server, seconds: &str) -> Result<(), String> {
    let file = file().ok_or("SHIFTED_CLOCK_FILE is not set")?;
    std::fs::write(&file, format!("{seconds}\n")).map_err(|error| format!("{}: {error}", file.display()))?;
    let (server_seconds, _): (u64, u64) = server.command(&["TIME"]).await;
    let shifted = server_seconds.abs_diff(Duration::from_nanos(now()).as_secs());
    if (9..=11).contains(&shifted) {
        Ok(())
    } else {
        Err(format!("the server's clock is off by {shifted} s, not 10 s"))
    }
}
