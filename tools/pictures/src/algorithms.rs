//! What the pictures show.

/// An algorithm with its options, as the pictures show it.
#[derive(Debug)]
pub(crate) struct PicturedAlgorithm {
    /// The name of the picture's file, and of the policy.
    pub(crate) file: &'static str,
    pub(crate) name: &'static str,
    /// What the picture shows, for those who cannot see it.
    pub(crate) description: &'static str,
}

pub(crate) const ALGORITHMS: [PicturedAlgorithm; 10] = [
    PicturedAlgorithm {
        file: "token-bucket",
        name: "Token bucket",
        description: "Admits five calls of a burst at once, then one per second.",
    },
    PicturedAlgorithm {
        file: "interval-refill",
        name: "Token bucket, interval refill",
        description: "Admits five calls of a burst at once. Permits come back two at a time, every two seconds.",
    },
    PicturedAlgorithm {
        file: "borrow",
        name: "Token bucket, borrowing",
        description: "Admits a call of any cost while there is no debt. Later calls are refused until the debt is paid.",
    },
    PicturedAlgorithm {
        file: "warm-up",
        name: "Token bucket, warm-up",
        description: "Admits one call at a time, at a third of the rate when cold, and faster while it is in use.",
    },
    PicturedAlgorithm {
        file: "fixed-window",
        name: "Fixed window",
        description: "Admits five permits in each window of five seconds, which opens with the first call.",
    },
    PicturedAlgorithm {
        file: "aligned-window",
        name: "Fixed window, aligned",
        description: "Admits five permits in each window of five seconds. A burst across the end of a window gets those of both.",
    },
    PicturedAlgorithm {
        file: "sliding-log",
        name: "Sliding window, log",
        description: "Admits five permits in every interval of five seconds. Each comes back five seconds after it was taken.",
    },
    PicturedAlgorithm {
        file: "sliding-counter",
        name: "Sliding window, counter",
        description: "As the log, but permits come back together with those of the same second, up to a second later.",
    },
    PicturedAlgorithm {
        file: "leaky-meter",
        name: "Leaky bucket, meter",
        description: "The mirror image of the token bucket, which admits the same calls.",
    },
    PicturedAlgorithm {
        file: "leaky-queue",
        name: "Leaky bucket, queue",
        description: "One call starts at once. Up to five permits wait, start one second apart, and the rest is refused.",
    },
];
