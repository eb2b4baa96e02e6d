//! What is read of requests, in terms that all frameworks share.

/// A request without its body.
pub(super) trait RequestHead {
    /// How to provide the address of the peer, for the log.
    const PEER_ADVICE: &'static str;

    fn method(&self) -> &str;

    /// The values of a header, in order.
    fn values<'a>(&'a self, header: &'a str) -> impl DoubleEndedIterator<Item = &'a [u8]>;

    /// Whether a script of another origin may be waiting for the response.
    fn is_cross_origin(&self) -> bool {
        self.values("origin").next().is_some()
    }

    /// Whether this is what a browser sends to ask whether it may send a request: without a body and without credentials.
    fn is_preflight(&self) -> bool {
        let has = |header: &&str| self.values(header).next().is_some();
        self.method() == "OPTIONS"
            && ["origin", "access-control-request-method"].iter().all(has)
            && !["authorization", "content-length", "content-type", "cookie", "transfer-encoding"]
                .iter()
                .any(has)
    }
}
