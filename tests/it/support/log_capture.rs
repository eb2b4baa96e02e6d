//! Captures what the library logs.

use std::error::Error;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Dispatch, Event, Metadata, Subscriber};

/// A subscriber that records the library's events, and asserts their target.
#[derive(Clone, Debug)]
pub(crate) struct LogCapture {
    log: Arc<Mutex<Log>>,
    on_event: Option<fn()>,
}

#[derive(Debug, Default)]
struct Log {
    /// The `policy` field and the message of each event.
    events: Vec<(String, String)>,
    /// The `wait` and `waited` fields, by name.
    times: Vec<(String, String)>,
    /// Every field of every event, and its level.
    text: String,
}

impl Default for LogCapture {
    fn default() -> Self {
        // With one dispatcher alone, tracing caches the interest of each call site by whichever thread reaches it first: a
        // test without a subscriber would disable the event for the others.
        static OTHERS: OnceLock<[Dispatch; 2]> = OnceLock::new();
        OTHERS.get_or_init(|| [(); 2].map(|()| Dispatch::new(LogCapture::new(None))));
        LogCapture::new(None)
    }
}

impl LogCapture {
    fn new(on_event: Option<fn()>) -> Self {
        LogCapture { log: Arc::default(), on_event }
    }

    /// Calls `on_event` at each event, as a subscriber may itself be rate limited.
    pub(crate) fn then(on_event: fn()) -> Self {
        LogCapture { on_event: Some(on_event), ..LogCapture::default() }
    }

    /// The policy and the message of each event.
    pub(crate) fn events(&self) -> Vec<(String, String)> {
        self.log().events.clone()
    }

    pub(crate) fn messages(&self) -> Vec<String> {
        self.log().events.iter().map(|(_, message)| message.clone()).collect()
    }

    /// All fields of all events, and their levels.
    pub(crate) fn text(&self) -> String {
        self.log().text.clone()
    }

    /// The `wait` and `waited` fields, by name.
    pub(crate) fn times(&self) -> Vec<(String, String)> {
        self.log().times.clone()
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Subscriber for LogCapture {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && metadata.module_path().is_some_and(|module| module.starts_with("ratelimit"))
    }

    fn event(&self, event: &Event<'_>) {
        assert_eq!(event.metadata().target(), "ratelimits", "{event:?}");
        let mut fields = Fields::default();
        event.record(&mut fields);
        let mut log = self.log();
        log.text += &format!("level={}\n{}", event.metadata().level(), fields.text);
        log.times.append(&mut fields.times);
        log.events.push((fields.policy, fields.message));
        drop(log);
        if let Some(on_event) = self.on_event {
            on_event();
        }
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[derive(Default)]
struct Fields {
    policy: String,
    message: String,
    times: Vec<(String, String)>,
    text: String,
}

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "policy" {
            self.policy = value.to_owned();
        }
        self.text += &format!("{field}={value}\n");
    }

    /// With the causes, as `tracing-subscriber` writes them.
    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        self.record_debug(field, &format_args!("{value}"));
        let mut source = value.source();
        while let Some(cause) = source {
            self.text += &format!("{field}.source={cause}\n");
            source = cause.source();
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.text += &format!("{field}={value:?}\n");
        match field.name() {
            "message" => self.message = format!("{value:?}"),
            "wait" | "waited" => self.times.push((field.name().to_owned(), format!("{value:?}"))),
            _ => {}
        }
    }
}
