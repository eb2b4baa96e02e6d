//! What the library tells in its log.

use std::fmt::Debug;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Dispatch, Event, Metadata, Subscriber};

/// Keeps the policy and the message of every event.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    events: Arc<Mutex<Vec<(String, String)>>>,
    times: Arc<Mutex<Vec<(String, String)>>>,
    text: Arc<Mutex<String>>,
    then: Option<fn()>,
}

impl Default for Told {
    fn default() -> Self {
        // Of a lone subscriber tracing takes it that whoever has none tells nobody, and a test beside this one, which has
        // none, might be the first to tell.
        static OTHERS: OnceLock<[Dispatch; 2]> = OnceLock::new();
        OTHERS.get_or_init(|| [(); 2].map(|()| Dispatch::new(Told::alone())));
        Told::alone()
    }
}

impl Told {
    fn alone() -> Self {
        Told { events: Arc::default(), times: Arc::default(), text: Arc::default(), then: None }
    }

    /// Runs this whenever something is told, as whoever hears it may be limited too.
    pub(crate) fn then(then: fn()) -> Self {
        Told { then: Some(then), ..Told::default() }
    }

    pub(crate) fn events(&self) -> Vec<(String, String)> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Every field of every event.
    pub(crate) fn text(&self) -> String {
        self.text.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How long a call waits or has waited, by the name of the field.
    pub(crate) fn times(&self) -> Vec<(String, String)> {
        self.times.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Subscriber for Told {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && metadata.target().starts_with("ratelimit")
    }

    fn event(&self, event: &Event<'_>) {
        let mut told = Fields::default();
        event.record(&mut told);
        self.text.lock().unwrap_or_else(PoisonError::into_inner).push_str(&told.text);
        self.times.lock().unwrap_or_else(PoisonError::into_inner).append(&mut told.times);
        self.events.lock().unwrap_or_else(PoisonError::into_inner).push((told.policy, told.message));
        if let Some(then) = self.then {
            then();
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

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.text += &format!("{field}={value:?}\n");
        match field.name() {
            "message" => self.message = format!("{value:?}"),
            "wait" | "waited" => self.times.push((field.name().to_owned(), format!("{value:?}"))),
            _ => {}
        }
    }
}
