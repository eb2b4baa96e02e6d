//! Holds of users who may not run one of the commands, and of servers that refuse to write.

use std::collections::BTreeSet;

use ratelimit_runtime::algorithm::believed_holds::{Speaker, Take};
use ratelimit_runtime::store::account::Message;
use redis::Value;
use redis::aio::MultiplexedConnection;

use super::{Charge, KEY, KIND, SECOND, Said, Scripts, Share, Stored, start};
use crate::scripts::permissions::is_denial;
use crate::scripts::{Fault, Fixture, Stored as Dumped};

const WINDOW: &str = "rl:window";
const US: Speaker = Speaker { process: 1, epoch: 2 };
const MAX: u64 = 9;

/// All commands that could be denied.
const DENIABLE: [&str; 8] = ["hmget", "hgetall", "hset", "hdel", "expireat", "del", "set", "time"];

/// What a key holds before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Absent,
    Held,
    /// Others have expired.
    OthersEnded,
    /// Our share has expired.
    Ended,
    AllEnded,
    /// Only our last epoch is known.
    LastEpoch,
}

/// What is done to a key, alone or in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Take(u64),
    TakeMore(u64),
    TakeFirst,
    TakeLast,
    Shadow,
    TooMuch,
    RefusedByOther,
    /// Takes along that some have ended.
    Next,
    /// The same, but refused.
    NextTooMuch,
    NextRefusedByOther,
    Peek,
    Say(Message, u64),
}

use Action::{
    Next, NextRefusedByOther, NextTooMuch, Peek, RefusedByOther, Say, Shadow, TakeFirst, TakeLast, TakeMore,
    TooMuch,
};

const STATES: [State; 6] =
    [State::Absent, State::Held, State::OthersEnded, State::Ended, State::AllEnded, State::LastEpoch];

/// Some of them move the expiry of the key, the others do not.
pub(super) const ACTIONS: [Action; 18] = [
    Action::Take(10),
    Action::Take(1000),
    TakeMore(10),
    TakeMore(1000),
    TakeFirst,
    TakeLast,
    Shadow,
    TooMuch,
    RefusedByOther,
    Next,
    NextTooMuch,
    NextRefusedByOther,
    Peek,
    Say(Message::Release(9), 10),
    Say(Message::Extend, 10),
    Say(Message::Extend, 1000),
    Say(Message::Report(3), 1000),
    Say(Message::Report(0), 10),
];

impl State {
    async fn prepare(self, fixture: &mut Fixture) {
        fixture.send("FLUSHALL").await;
        let now = fixture.now().await;
        let (live, ended) = (Share::new(2, now + 300 * SECOND), Share::new(1, now - SECOND));
        let shares = match self {
            State::Absent => return,
            State::Held => vec![((1, 2), live), ((2, 1), live)],
            State::OthersEnded => vec![((1, 2), live), ((2, 1), ended), ((3, 1), ended)],
            State::Ended => vec![((1, 2), ended), ((2, 1), live)],
            State::AllEnded => vec![((1, 2), ended), ((2, 1), ended)],
            State::LastEpoch => vec![((1, 1), live), ((2, 1), live)],
        };
        let stored = Stored { ends: now / SECOND + 500, ..Stored::of(shares) };
        stored.write(&mut fixture.admin, KEY).await;
    }
}

impl Action {
    /// Returns the text of an error, or what the action was replied.
    pub(super) async fn run(
        self,
        scripts: &Scripts,
        user: &mut MultiplexedConnection,
    ) -> Result<String, String> {
        let released = if self.releases() { 1 } else { 0 };
        let take = |permits, has_share, ttl| {
            let take = Take { permits, released, has_share, waits: false };
            Charge::take(KEY, US, take, MAX, ttl * SECOND)
        };
        let list = match self {
            Action::Take(ttl) => vec![take(2, false, ttl)],
            TakeMore(ttl) => vec![take(2, true, ttl)],
            TakeFirst => vec![take(2, false, 1000), Charge::window(WINDOW, 1)],
            TakeLast => vec![Charge::window(WINDOW, 1), take(2, false, 1000)],
            Shadow => vec![Charge { kind: -KIND, ..take(2, false, 1000) }, Charge::window(WINDOW, 1)],
            Next => vec![take(2, false, 1000)],
            TooMuch | NextTooMuch => vec![take(MAX + 1, false, 10)],
            RefusedByOther | NextRefusedByOther => vec![take(2, false, 1000), Charge::window(WINDOW, 2)],
            Peek => vec![Charge::peek(KEY, MAX)],
            Say(message, ttl) => {
                let said = Said { of: US, message, ttl: ttl * SECOND };
                let text = scripts.say(user, KEY, said).await.map_err(|error| error.to_string())?;
                return if text.is_empty() || text.starts_with("HELD") { Ok(text) } else { Err(text) };
            }
        };
        let decided = scripts.decide(user, &list).await.map_err(|error| error.to_string())?;
        let text = |element| match element {
            Value::Int(number) if number > 1 << 50 => "now".to_owned(),
            Value::Int(number) => number.to_string(),
            Value::BulkString(text) => String::from_utf8_lossy(&text).to_lowercase(),
            other => panic!("{other:?}"),
        };
        decided.map(|elements| elements.into_iter().map(text).collect::<Vec<_>>().join(" "))
    }

    fn is_refused(self) -> bool {
        matches!(self, TooMuch | RefusedByOther | NextTooMuch | NextRefusedByOther)
    }

    /// Whether it may have released something although it has failed.
    fn releases(self) -> bool {
        matches!(self, Next | NextTooMuch | NextRefusedByOther)
    }
}

/// What is stored before and after an action.
struct Change {
    before: Vec<Dumped>,
    after: Vec<Dumped>,
    /// What has not expired of the holds.
    held: [Vec<((u64, u64), Share)>; 2],
}

async fn live(fixture: &mut Fixture) -> Vec<((u64, u64), Share)> {
    let now = fixture.now().await;
    let stored = Stored::read(&mut fixture.admin, KEY).await.unwrap_or_default();
    stored.shares.into_iter().filter(|(_, share)| share.until > now).collect()
}

/// Returns each state with each of the scripts.
fn cases(all: &[Scripts]) -> impl Iterator<Item = (State, &Scripts)> {
    STATES.into_iter().flat_map(move |state| all.iter().map(move |scripts| (state, scripts)))
}

fn permits(shares: &[((u64, u64), Share)]) -> Vec<((u64, u64), u64)> {
    shares.iter().map(|(of, share)| (*of, share.permits)).collect()
}

/// Runs an action during a fault.
async fn during(
    fixture: &mut Fixture,
    fault: &Fault,
    action: impl AsyncFnOnce() -> Result<String, String>,
) -> (Result<String, String>, Change) {
    let keys = [KEY.to_owned(), WINDOW.to_owned()];
    let (before, held) = (fixture.stored_under(&keys).await, live(fixture).await);
    fixture.send(&fault.start).await;
    let result = action().await;
    fixture.send(&fault.end).await;
    let after = fixture.stored_under(&keys).await;
    assert!(after.iter().all(Dumped::is_absent_or_expires), "{:?}: {after:?}", fault.start);
    let held = [held, live(fixture).await];
    (result, Change { before, after, held })
}

impl Change {
    fn assert_none(&self, context: &str) {
        assert_eq!(self.before, self.after, "{context}");
    }

    /// Checks that nothing has changed but what the action has released.
    fn assert_none_but(&self, action: Action, context: &str) {
        if !action.releases() {
            return self.assert_none(context);
        }
        let left =
            |shares: &[((u64, u64), Share)]| shares.iter().map(|(_, share)| share.permits).sum::<u64>();
        assert!(left(&self.held[1]) <= left(&self.held[0]), "{context}");
    }

    /// Checks that nothing is held that was not before. What has expired may be gone.
    fn assert_held(&self, context: &str) {
        assert_eq!(self.held[0], self.held[1], "{context}");
    }
}

#[tokio::test]
async fn denied_command_leaves_holds_as_they_were() {
    let (mut fixture, mut user, all) = start().await;
    // Redis 6.2 does not name the command.
    let info: String = redis::cmd("INFO").arg("server").query_async(&mut fixture.admin).await.unwrap();
    let names_denied = !info.contains("redis_version:6.");
    let mut needed = BTreeSet::new();
    for (state, scripts) in cases(&all) {
        for action in ACTIONS {
            state.prepare(&mut fixture).await;
            let right = action.run(scripts, &mut user).await.expect("nothing is denied");
            let right_after = permits(&live(&mut fixture).await);
            if let Some(stored) = Stored::read(&mut fixture.admin, KEY).await {
                stored.check(&format!("{state:?}, {action:?}"));
            }
            for denied in DENIABLE {
                let context = format!("{state:?}, {action:?}, {denied} denied");
                let named = if names_denied { denied } else { "" };
                state.prepare(&mut fixture).await;
                let fault = Fault::denied(&[denied]);
                let run = async || action.run(scripts, &mut user).await;
                let (result, change) = during(&mut fixture, &fault, run).await;
                match result {
                    Err(error) => {
                        assert!(is_denial(&error.to_lowercase(), named), "{context}: {error}");
                        change.assert_none_but(action, &context);
                        needed.insert(denied);
                    }
                    // A shadow that cannot be charged fails alone.
                    Ok(text) if is_denial(&text, named) => {
                        assert_eq!(action, Shadow, "{context}: {text}");
                        assert_eq!(change.before[0], change.after[0], "{context}");
                    }
                    Ok(text) => {
                        // A call is refused even if what has ended cannot be released.
                        let fails_to_release = action.releases() && action.is_refused() && denied == "hset";
                        if fails_to_release {
                            change.assert_held(&context);
                        } else {
                            assert_eq!(text, right, "{context}");
                            assert_eq!(permits(&change.held[1]), right_after, "{context}");
                        }
                    }
                }
            }
        }
    }
    // Scripts can replace DEL with an expiry in the past.
    assert!(DENIABLE.iter().all(|command| needed.contains(command) == (*command != "del")), "{needed:?}");
}

#[tokio::test]
async fn two_denied_commands_leave_no_holds_without_expiry() {
    let (mut fixture, mut user, all) = start().await;
    for (i, first) in DENIABLE.iter().enumerate() {
        for second in &DENIABLE[i + 1..] {
            let fault = Fault::denied(&[first, second]);
            for (state, scripts) in cases(&all) {
                for action in ACTIONS {
                    let context = format!("{state:?}, {action:?}, {first} and {second} denied");
                    state.prepare(&mut fixture).await;
                    let run = async || action.run(scripts, &mut user).await;
                    let (result, change) = during(&mut fixture, &fault, run).await;
                    if result.is_err() && !action.releases() {
                        change.assert_held(&context);
                    }
                    let next = Action::Take(10).run(scripts, &mut user).await;
                    assert!(next.is_ok(), "{context}: {next:?}");
                    let stored = Stored::read(&mut fixture.admin, KEY).await.expect("something is held");
                    stored.check(&context);
                }
            }
        }
    }
}

#[tokio::test]
async fn servers_that_refuse_to_write_change_no_holds() {
    let (mut fixture, mut user, all) = start().await;
    for (code, fault) in [
        ("OOM", Fault::new("CONFIG SET maxmemory 1", "CONFIG SET maxmemory 0")),
        ("READONLY", Fault::new("REPLICAOF 127.0.0.1 1", "REPLICAOF NO ONE")),
        (
            "NOREPLICAS",
            Fault::new("CONFIG SET min-replicas-to-write 1", "CONFIG SET min-replicas-to-write 0"),
        ),
    ] {
        for (state, scripts) in cases(&all) {
            for action in ACTIONS {
                let context = format!("{code}, {state:?}, {action:?}");
                state.prepare(&mut fixture).await;
                let right = action.run(scripts, &mut user).await.expect("the server writes");
                state.prepare(&mut fixture).await;
                let run = async || action.run(scripts, &mut user).await;
                let (result, change) = during(&mut fixture, &fault, run).await;
                match result {
                    Err(error) => {
                        assert!(error.contains(code), "{context}: {error}");
                        assert!(!action.is_refused() && action != Peek, "{context}");
                        change.assert_none_but(action, &context);
                    }
                    Ok(text) if text.contains(&code.to_lowercase()) => change.assert_none(&context),
                    Ok(text) => {
                        assert!(text == right || action.releases(), "{context}: {text}");
                        if action.is_refused() || action == Peek {
                            change.assert_held(&context);
                        }
                    }
                }
            }
        }
    }
}
