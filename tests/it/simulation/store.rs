//! The store of the simulations.

use ratelimit_runtime::algorithm::believed_holds::HoldsState;
use ratelimit_runtime::store::account::{Message, Reply, Sent};

use super::schedule::SECOND;

/// How long a process is believed.
pub(super) const TTL: u64 = 10 * SECOND;

/// Does what a message about a key says, and returns the reply.
pub(super) fn reply_to(sent: Sent, store: &mut HoldsState, now: u64, max: u64) -> Reply {
    let of = sent.speaker;
    match sent.message {
        Message::Take(take) => Reply::Taken(store.take(now, TTL, of, take, max)),
        Message::Release(released) => {
            store.release(now, of, released);
            Reply::Done
        }
        Message::Extend => Reply::Believed(store.extend(now, TTL, of)),
        Message::Report(permits) => {
            store.report(now, TTL, of, permits);
            Reply::Done
        }
    }
}
