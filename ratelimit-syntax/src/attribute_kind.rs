//! The attributes and their arguments, by name.

/// One of the attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttributeKind {
    /// `rate_limit`: a token bucket.
    Rate,
    /// `count_limit`: a fixed window.
    Count,
    /// `funnel_limit`: a leaky bucket.
    Funnel,
    /// `window_limit`: a sliding window.
    Window,
    /// `concurrency_limit`: a semaphore.
    Concurrency,
}

/// The arguments with a value that all attributes have.
const SHARED: [&str; 17] = [
    "key",
    "key_type",
    "prefix",
    "name",
    "cost",
    "timeout",
    "fallback",
    "on_store_error",
    "skip_when",
    "charge_when",
    "settle",
    "pause_when",
    "penalty",
    "bind",
    "notify_at",
    "registry",
    "crate",
];

/// The values of `on_store_error`.
pub const ON_STORE_ERROR: [&str; 3] = ["local", "allow", "deny"];

/// The periods of `count_limit` that are those of a calendar.
pub const CALENDAR_PERIODS: [&str; 4] = ["day", "week", "month", "year"];

/// The values of `key_type`.
pub const KEY_TYPES: [&str; 4] = ["IP", "USER", "METHOD", "CUSTOM"];

impl AttributeKind {
    /// All attributes.
    pub const ALL: [AttributeKind; 5] = [
        AttributeKind::Rate,
        AttributeKind::Count,
        AttributeKind::Funnel,
        AttributeKind::Window,
        AttributeKind::Concurrency,
    ];

    /// Returns the attribute of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<AttributeKind> {
        AttributeKind::ALL.into_iter().find(|attribute| attribute.name() == name)
    }

    /// Returns the name of the attribute.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            AttributeKind::Rate => "rate_limit",
            AttributeKind::Count => "count_limit",
            AttributeKind::Funnel => "funnel_limit",
            AttributeKind::Window => "window_limit",
            AttributeKind::Concurrency => "concurrency_limit",
        }
    }

    /// Returns the arguments that may be positional.
    #[must_use]
    pub const fn positional(self) -> &'static [&'static str] {
        match self {
            AttributeKind::Rate => &["rate", "burst"],
            AttributeKind::Count | AttributeKind::Window => &["limit", "period"],
            AttributeKind::Funnel => &["capacity", "leak_rate"],
            AttributeKind::Concurrency => &["max"],
        }
    }

    /// Returns the arguments that are numbers of the policy.
    #[must_use]
    pub const fn numbers(self) -> &'static [&'static str] {
        match self {
            AttributeKind::Rate => &["rate", "burst", "warmup"],
            AttributeKind::Count => &["limit", "period"],
            AttributeKind::Funnel => &["capacity", "leak_rate", "drain"],
            AttributeKind::Window => &["limit", "period", "precision"],
            AttributeKind::Concurrency => &["max"],
        }
    }

    /// Returns the arguments with a value that are no such number, and that not all attributes have.
    const fn others(self) -> &'static [&'static str] {
        match self {
            AttributeKind::Rate => &["refill", "lease", "slack"],
            AttributeKind::Count => &["zone", "lease"],
            AttributeKind::Funnel | AttributeKind::Window | AttributeKind::Concurrency => &[],
        }
    }

    /// Returns the arguments without a value.
    #[must_use]
    pub const fn flags(self) -> &'static [&'static str] {
        match self {
            AttributeKind::Rate => &["borrow", "pass_args", "shadow"],
            AttributeKind::Count => &["aligned", "pass_args", "shadow"],
            AttributeKind::Funnel => &["queue", "pass_args", "shadow"],
            AttributeKind::Window | AttributeKind::Concurrency => &["pass_args", "shadow"],
        }
    }

    /// Returns the arguments with a value that not all attributes have.
    pub fn own(self) -> impl Iterator<Item = &'static str> + Clone {
        self.numbers().iter().chain(self.others()).copied()
    }

    /// Returns all arguments.
    pub fn arguments(self) -> impl Iterator<Item = &'static str> + Clone {
        self.own().chain(SHARED).chain(self.flags().iter().copied())
    }

    /// Returns the argument of this name.
    #[must_use]
    pub fn argument(self, name: &str) -> Option<&'static str> {
        self.arguments().find(|argument| *argument == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        for attribute in AttributeKind::ALL {
            assert_eq!(AttributeKind::named(attribute.name()), Some(attribute));
            let arguments: Vec<_> = attribute.arguments().collect();
            for (at, argument) in arguments.iter().enumerate() {
                assert!(!arguments[..at].contains(argument), "{argument}");
            }
        }
        assert_eq!(AttributeKind::named("rate"), None);
    }

    #[test]
    fn arguments_belong_to_their_attributes() {
        assert_eq!(AttributeKind::Funnel.positional(), ["capacity", "leak_rate"]);
        assert_eq!(AttributeKind::Funnel.argument("queue"), Some("queue"));
        assert_eq!(AttributeKind::Count.argument("queue"), None);
        for attribute in AttributeKind::ALL {
            assert!(["key", "shadow"].iter().all(|shared| attribute.argument(shared).is_some()));
        }
    }
}
