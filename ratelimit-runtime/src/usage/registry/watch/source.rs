//! A file or a hash in Redis with overrides, and what was read there last.

use std::fmt;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use super::file::read_settled;
#[cfg(feature = "redis")]
use crate::decide::overrides::MAX_SIZE;
#[cfg(feature = "redis")]
use crate::store::StoredOverrides;
#[cfg(feature = "redis")]
use crate::store::error::StoreError;

/// How often a source is read.
pub(super) const POLL_INTERVAL: Duration = Duration::from_secs(2);

/// Where overrides are, and what was read there last.
#[derive(Debug)]
pub(super) enum Source {
    File {
        path: PathBuf,
        text: Option<String>,
    },
    /// With the version, of which there is none as long as there are no overrides.
    #[cfg(feature = "redis")]
    Redis {
        stored: StoredOverrides,
        version: Option<Option<String>>,
    },
}

/// Why a source could not be read.
#[derive(Debug)]
pub(super) struct Unread {
    /// For people.
    pub(super) problem: String,
    /// Whether the store failed, which may end by itself. Otherwise somebody has to do something.
    pub(super) is_outage: bool,
}

impl From<String> for Unread {
    fn from(problem: String) -> Self {
        Unread { problem, is_outage: false }
    }
}

/// What a look at the source gives.
#[derive(Debug)]
pub(super) enum Found {
    Same,
    /// Another text, or what is wrong with it.
    Text(Result<String, String>),
    /// It is being written. Look again after this time.
    Unsettled(Duration),
}

impl Source {
    pub(super) fn file(path: PathBuf) -> Self {
        Source::File { path, text: None }
    }

    #[cfg(feature = "redis")]
    pub(super) fn redis(stored: StoredOverrides) -> Self {
        Source::Redis { stored, version: None }
    }

    /// Looks for another text, while there are overrides in force or not.
    #[cfg_attr(not(feature = "redis"), expect(unused_variables, reason = "a file is either there or not"))]
    pub(super) async fn read(&mut self, is_in_force: bool) -> Result<Found, Unread> {
        match self {
            Source::File { .. } => self.read_file(),
            #[cfg(feature = "redis")]
            Source::Redis { stored, version } => read_stored(stored, version, is_in_force).await,
        }
    }

    /// Returns the time by the clock that overrides end by, in seconds since the Unix epoch, if it is known.
    pub(super) async fn now(&self) -> Option<u64> {
        match self {
            Source::File { .. } => system_time(),
            #[cfg(feature = "redis")]
            Source::Redis { stored, .. } => stored.now().await.ok(),
        }
    }

    /// Looks at a file.
    pub(super) fn read_file(&mut self) -> Result<Found, Unread> {
        match self {
            Source::File { path, text } => match read_settled(path) {
                Ok(Ok(found)) if text.as_ref() == Some(&found) => Ok(Found::Same),
                Ok(Ok(found)) => Ok(Found::Text(Ok(text.insert(found).clone()))),
                Ok(Err(rest)) => Ok(Found::Unsettled(rest)),
                Err(error) => Err(format!("could not read {}: {error}", path.display()).into()),
            },
            #[cfg(feature = "redis")]
            Source::Redis { .. } => Ok(Found::Same),
        }
    }
}

/// Returns the time of this machine, in seconds since the Unix epoch.
pub(super) fn system_time() -> Option<u64> {
    Some(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).ok()?.as_secs())
}

/// Looks for a later version. Without one, or with an earlier one, Redis has lost data: changes all have a later one, and so has the
/// empty text when overrides end.
#[cfg(feature = "redis")]
async fn read_stored(
    stored: &StoredOverrides,
    version: &mut Option<Option<String>>,
    is_in_force: bool,
) -> Result<Found, Unread> {
    let key = stored.key();
    let failed = |error: StoreError| Unread {
        problem: format!("could not read the key `{key}`: {error}"),
        is_outage: error.is_transient(),
    };
    let last = version.clone().flatten();
    let check = |found: &Option<String>| match (found, &last) {
        (None, _) if is_in_force => Err(Unread::from(format!(
            "the key `{key}` is gone, because Redis has lost data or somebody has deleted it; set the overrides again, \
             or end them with `ratelimits override clear --all`"
        ))),
        (Some(found), Some(last)) if is_earlier(found, last) => Err(Unread::from(format!(
            "the key `{key}` has version {found}, which is earlier than {last}: Redis has lost changes, or somebody has \
             written it without a greater version"
        ))),
        _ => Ok(()),
    };
    let found = stored.version().await.map_err(failed)?;
    if Some(&found) == version.as_ref() && (found.is_some() || !is_in_force) {
        return Ok(Found::Same);
    }
    check(&found)?;
    // Both as of one time.
    let (found, text) = stored.read().await.map_err(failed)?;
    check(&found)?;
    // A text without a version would not be read again.
    let text = if found.is_some() { text } else { String::new() };
    *version = Some(found);
    Ok(Found::Text(if text.len() > MAX_SIZE { Err(format!("{key} is larger than 4 MiB")) } else { Ok(text) }))
}

#[cfg(feature = "redis")]
fn is_earlier(version: &str, than: &str) -> bool {
    matches!((version.parse::<u64>(), than.parse::<u64>()), (Ok(version), Ok(than)) if version < than)
}

/// The name of the source, for events.
impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::File { path, .. } => path.display().fmt(f),
            #[cfg(feature = "redis")]
            Source::Redis { .. } => f.write_str("Redis"),
        }
    }
}
