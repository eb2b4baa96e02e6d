//! Random messages to the scripts and to the model.

use ratelimit_runtime::algorithm::believed_holds::{HoldsState, Speaker, Take, Taken};
use ratelimit_runtime::store::account::Message;
use redis::aio::MultiplexedConnection;

use super::{Charge, Found, KEY, SECOND, Said, Scripts, Share, Stored, Turn, command};
use crate::support::budget::budget;
use crate::support::random::Random;
use crate::support::server::Server;
use crate::support::test_store::START;

const OTHER: &str = "rl:other";
const CLOCK: &str = "clock";
/// Where the test keeps the second in which the key expires.
const EXPIRES: &str = "rl:holds:expires";
const MESSAGES: u64 = 60;

/// A key in Redis and the same in the model, under a clock of their own.
struct Twins {
    connection: MultiplexedConnection,
    model: HoldsState,
    now: u64,
    max: u64,
}

#[tokio::test]
async fn scripts_do_as_the_model_does() {
    let server = Server::start();
    let timed = |script: String| {
        let now = format!("tonumber(redis.call('GET', '{CLOCK}'))");
        let expire = "redis.call('SET', key .. ':expires', second) redis.call('EXPIRE', key, 3600)";
        ratelimit_lua::with_time(&script, &now, expire)
    };
    let in_full = |script: String| timed(ratelimit_lua::without_first_pass(&script));
    let scripts = [Scripts::by(timed), Scripts::by(in_full)];
    let random = Random::seeded();
    let (mut admitted, mut forgotten, mut extended) = (0, 0, 0);
    for run in 0..budget(400, 50_000) {
        let random = &mut random.run(run);
        let connection = server.connect().await;
        let max = random.pick(&[1, 3, 6, 1000]);
        let mut twins = Twins { connection, model: HoldsState::default(), now: START, max };
        command("FLUSHALL").exec_async(&mut twins.connection).await.unwrap();
        command(&format!("SET {CLOCK} {START}")).exec_async(&mut twins.connection).await.unwrap();
        // In some runs, calls mostly wait, and end soon.
        let is_busy = run % 4 > 1;
        let ttls = random.pick(&[[5 * SECOND; 2], [5 * SECOND, 8 * SECOND + 1]]);
        let (scripts, mut last) = (&scripts[run as usize % 2], None);
        for step in 0..MESSAGES {
            let passed = match is_busy {
                true => random.pick(&[1, SECOND / 100, SECOND / 100, SECOND / 10]),
                false => random.pick(&[0, 0, 1, SECOND / 10, SECOND, 3 * SECOND, ttls[0], ttls[0] + 1]),
            };
            if !random.percent(60) {
                twins.pass(passed).await;
            }
            let doubled = last.filter(|_| random.percent(15));
            let said = doubled.unwrap_or_else(|| match is_busy {
                true => message_that_waits(random, ttls[0]),
                false => random_message(random, ttls),
            });
            last = Some(said);
            let context = format!("run {run}, step {step}: {said:?} at {}, max {max}", twins.now);
            match said.message {
                Message::Take(take) => {
                    // Sometimes another limit refuses the call.
                    let is_refused = random.percent(10);
                    match twins.take(scripts, said, take, is_refused, &context).await {
                        Taken::Yes => admitted += 1,
                        Taken::Forgotten => forgotten += 1,
                        Taken::No => {}
                    }
                }
                _ => extended += u64::from(twins.say(scripts, said, &context).await),
            }
            twins.compare(&context).await;
            if random.percent(20) {
                twins.peek(scripts, &context).await;
            }
        }
    }
    println!("{admitted} admitted, {forgotten} forgotten, {extended} extended");
    assert!(admitted > 1000 && forgotten > 100 && extended > 100);
}

fn random_message(random: &mut Random, ttls: [u64; 2]) -> Said {
    let of = Speaker { process: random.pick(&[1, 1, 2, 1 << 52]), epoch: random.pick(&[1, 2, 2, 3, 10]) };
    let message = match random.below(8) {
        0..=2 => Message::Take(Take {
            permits: random.pick(&[1, 1, 1, 2, 7]),
            released: random.pick(&[0, 0, 1, 2, 9]) * random.pick(&[1, 1, 7]),
            has_share: random.percent(50),
            waits: random.percent(40),
        }),
        3 | 4 => Message::Release(random.between(1, 9) * random.pick(&[1, 1, 1, 7, 40])),
        5 | 6 => Message::Extend,
        _ => Message::Report(random.pick(&[0, 1, 2])),
    };
    Said { of, message, ttl: ttls[(of.process % 2) as usize] }
}

fn message_that_waits(random: &mut Random, ttl: u64) -> Said {
    let of = Speaker { process: random.between(1, 4), epoch: 1 };
    let message = match random.below(3) {
        0 => Message::Release(random.between(1, 20)),
        _ => Message::Take(Take {
            permits: random.pick(&[1, 1, 1, 2]),
            released: random.between(0, 20),
            has_share: false,
            waits: random.percent(80),
        }),
    };
    Said { of, message, ttl }
}

impl Twins {
    /// Lets time pass. The key expires by this clock.
    async fn pass(&mut self, micros: u64) {
        self.now += micros;
        let mut commands = redis::pipe();
        commands.cmd("SET").arg(CLOCK).arg(self.now).ignore().cmd("GET").arg(EXPIRES);
        let (expires,): (Option<u64>,) = commands.query_async(&mut self.connection).await.unwrap();
        if expires.is_some_and(|second| second * SECOND <= self.now) {
            command(&format!("DEL {KEY} {EXPIRES}")).exec_async(&mut self.connection).await.unwrap();
        }
    }

    async fn take(
        &mut self,
        scripts: &Scripts,
        said: Said,
        take: Take,
        is_refused: bool,
        context: &str,
    ) -> Taken {
        let Said { of, ttl, .. } = said;
        // What has ended is released, whatever refuses the call.
        self.model.release(self.now, of, take.released);
        let held = self.model.occupied(self.now, of, take.permits, self.max);
        let mut after = self.model.clone();
        let taken = after.take(self.now, ttl, of, take, self.max);
        let mut list = vec![Charge::take(KEY, of, take, self.max, ttl)];
        if is_refused {
            list.push(Charge::window(OTHER, 2));
        }
        // A call that waits gets its turn, whatever else refuses it.
        if !is_refused || taken == Taken::No {
            self.model = after;
        }
        let found = scripts.decide(&mut self.connection, &list).await.unwrap().expect("it is decided");
        let expected = Found { admits: taken == Taken::Yes, held, is_forgotten: taken == Taken::Forgotten };
        assert_eq!(Found::read(&found), expected, "{context}");
        if is_refused { Taken::No } else { taken }
    }

    /// Returns whether something was extended.
    async fn say(&mut self, scripts: &Scripts, said: Said, context: &str) -> bool {
        let Said { of, ttl, .. } = said;
        let mut believed = None;
        let expected = match said.message {
            Message::Release(released) => {
                self.model.release(self.now, of, released);
                String::new()
            }
            Message::Report(permits) => {
                self.model.report(self.now, ttl, of, permits);
                String::new()
            }
            _ => {
                believed = self.model.extend(self.now, ttl, of);
                believed.map_or("HELD".to_owned(), |it| format!("HELD {} {}", it.permits, it.released))
            }
        };
        assert_eq!(scripts.say(&mut self.connection, KEY, said).await.unwrap(), expected, "{context}");
        believed.is_some()
    }

    async fn peek(&mut self, scripts: &Scripts, context: &str) {
        let before = Stored::read(&mut self.connection, KEY).await;
        let list = [Charge::peek(KEY, self.max)];
        let found = scripts.decide(&mut self.connection, &list).await.unwrap().expect("it is decided");
        let held = self.model.occupied(self.now, Speaker { process: 0, epoch: 0 }, 0, self.max);
        let expected = Found { admits: true, held, is_forgotten: false };
        assert_eq!(Found::read(&found), expected, "{context}");
        assert_eq!(Stored::read(&mut self.connection, KEY).await, before, "{context}");
    }

    /// Compares what both know now, but for what has expired.
    async fn compare(&mut self, context: &str) {
        let mut commands = redis::pipe();
        commands.cmd("HGETALL").arg(KEY).cmd("PTTL").arg(KEY).cmd("GET").arg(EXPIRES);
        let (fields, ttl, expires): (Vec<_>, i64, Option<u64>) =
            commands.query_async(&mut self.connection).await.unwrap();
        let stored = Stored::from_fields(&fields);
        if let Some(stored) = &stored {
            stored.check(context);
            assert!(ttl > 0, "{context}: no expiry");
            let second = expires.expect("it was written");
            assert_eq!(second, stored.ends, "{context}");
        }
        let Stored { shares, turns, .. } = stored.unwrap_or_default();
        let live: Vec<_> = shares.into_iter().filter(|(_, share)| share.until > self.now).collect();
        let is_live =
            |turn: &&Turn| !live.is_empty() && turn.until > self.now && turn.until <= self.now + SECOND;
        let turns: Vec<_> = turns.iter().filter(is_live).collect();
        // This drops what has expired.
        self.model.release(self.now, Speaker { process: 0, epoch: 0 }, 0);
        let model = format!("{:?}", self.model);
        let shares =
            live.iter().map(|(of, share)| format!("{of:?}: {share:?}")).collect::<Vec<_>>().join(", ");
        assert_eq!(format!("HoldsState {{ shares: {{{shares}}}, turns: {turns:?} }}"), model, "{context}");
    }
}

#[tokio::test]
async fn decision_reads_only_its_own_share() {
    let server = Server::start();
    let mut connection = server.connect().await;
    let scripts = Scripts::new();
    let (seconds, _): (u64, u64) = command("TIME").query_async(&mut connection).await.unwrap();
    let until = (seconds + 1000) * SECOND;
    let shares = (1..=1000).map(|process| ((process, 1), Share::new(1, until)));
    Stored::of(shares).write(&mut connection, KEY).await;
    command("CONFIG RESETSTAT").exec_async(&mut connection).await.unwrap();
    for (process, max, has_share, release) in
        [(500, 1005, true, 1), (2000, 1005, false, 1), (500, 1000, true, 2)]
    {
        let of = Speaker { process, epoch: 1 };
        let take = Take { permits: 1, released: 0, has_share, waits: false };
        let list = [Charge::take(KEY, of, take, max, 10 * SECOND)];
        let found = scripts.decide(&mut connection, &list).await.unwrap().expect("it is decided");
        assert_eq!(Found::read(&found).admits, max > 1000);
        let said = Said { of, message: Message::Release(release), ttl: SECOND };
        scripts.say(&mut connection, KEY, said).await.unwrap();
    }
    let stats: String = command("INFO commandstats").query_async(&mut connection).await.unwrap();
    assert!(stats.contains("cmdstat_hmget:calls=6,") && !stats.contains("cmdstat_hgetall"), "{stats}");
}

/// More fields than Lua's stack holds.
#[tokio::test]
async fn many_shares_expire_at_once() {
    let server = Server::start();
    let mut connection = server.connect().await;
    let scripts = Scripts::new();
    let (seconds, _): (u64, u64) = command("TIME").query_async(&mut connection).await.unwrap();
    let of = Speaker { process: 20_000, epoch: 1 };
    let take = Take { permits: 1, released: 0, has_share: false, waits: false };
    let take = Charge::take(KEY, of, take, 2, 10 * SECOND);
    let extend = Said { of: Speaker { process: 7, epoch: 1 }, message: Message::Extend, ttl: SECOND };
    for message in 0..3 {
        let mut shares: Vec<_> =
            (1..=9999).map(|process| ((process, 1), Share::new(1, seconds * SECOND))).collect();
        shares.push(((10_000, 1), Share::new(1, (seconds + 1000) * SECOND)));
        Stored::of(shares).write(&mut connection, KEY).await;
        let refuse = [take.clone(), Charge::window(OTHER, 2)];
        match message {
            0 => drop(scripts.decide(&mut connection, &refuse[..1]).await.unwrap().expect("it is decided")),
            1 => drop(scripts.decide(&mut connection, &refuse).await.unwrap().expect("it is decided")),
            _ => assert_eq!(scripts.say(&mut connection, KEY, extend).await.unwrap(), "HELD"),
        }
        let left = Stored::read(&mut connection, KEY).await.expect("one is left");
        left.check("all others have expired");
        assert_eq!(left.shares.len(), if message == 0 { 2 } else { 1 });
    }
}
