//! The example service, over HTTP.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use crate::client::{Client, Reply};

/// The running service. Ends when dropped.
pub(crate) struct Service {
    process: Child,
    pub(crate) client: Client,
    /// Open, because the service writes to it.
    _output: BufReader<ChildStdout>,
}

const ANN: &str = "authorization: Bearer token-of-ann";
pub(crate) const BOB: &str = "authorization: Bearer token-of-bob";

impl Service {
    pub(crate) fn start(trusted_proxies: &str) -> Self {
        // Cargo builds examples next to the tests.
        let test = std::env::current_exe().unwrap();
        let mut path = PathBuf::from(test.ancestors().nth(2).unwrap());
        path.extend(["examples", "service"]);
        let mut command = Command::new(path);
        command.env("PORT", "0").env("TRUSTED_PROXIES", trusted_proxies).env_remove("RATELIMITS_URL");
        let mut process = command.stdout(Stdio::piped()).spawn().expect("the example is built");
        let (mut output, mut line) = (BufReader::new(process.stdout.take().unwrap()), String::new());
        output.read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening on ").expect(&line).parse().unwrap();
        Service { process, client: Client(address), _output: output }
    }

    async fn log_in(&self, account: &str, password: &str) -> Reply {
        let login = format!("{{\"account\":\"{account}\",\"password\":\"{password}\"}}");
        self.client.post("/login", &["content-type: application/json"], &login).await
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        _ = self.process.kill();
        _ = self.process.wait();
    }
}

/// Sends requests until one is limited. Returns how many were admitted before: more than the burst, if permits refill meanwhile.
pub(crate) async fn until_limited(mut request: impl AsyncFnMut() -> Reply) -> (u64, Reply) {
    for admitted in 0..150 {
        let reply = request().await;
        match reply.status {
            200 => {}
            429 => return (admitted, reply),
            _ => panic!("{reply:?}"),
        }
    }
    panic!("none is limited");
}

#[tokio::test]
async fn logins_are_limited_by_failures() {
    let service = Service::start("10.0.0.0/8");
    for _ in 0..4 {
        let right = service.log_in("ann", "ann's secret").await;
        // That of the account gave its charge back.
        assert_eq!((right.status, right.header("ratelimit-policy")), (200, Some(LOGINS)));
    }
    for status in [401, 401, 401, 429] {
        assert_eq!(service.log_in("ann", "guess").await.status, status);
    }
    let locked = service.log_in("ann", "ann's secret").await;
    assert_eq!((locked.status, locked.header("content-type")), (429, Some("application/problem+json")));
    assert!(locked.body.ends_with("\"violated-policies\":[\"wrong passwords\"]}"), "{}", locked.body);
    assert!((3500..=3600).contains(&locked.seconds()), "{locked:?}");
    // Seven attempts were admitted, those of the locked account not among them.
    for status in [401, 401, 401, 429] {
        assert_eq!(service.log_in("bob", "guess").await.status, status);
    }
    let limited = service.log_in("eve", "guess").await;
    assert!(limited.body.ends_with("\"violated-policies\":[\"logins\"]}"), "{}", limited.body);
    assert!(limited.seconds() <= 60, "{limited:?}");
}

const LOGINS: &str = "\"logins\";q=10;w=60, \"flood\";q=200;w=2, \"wrong passwords\";q=3;w=3600";

#[tokio::test]
async fn searches_are_limited_by_plan() {
    let service = Service::start("10.0.0.0/8");
    assert_eq!(service.client.get("/search?cats", &[]).await.status, 401);
    for (token, searches) in [(ANN, 30), (BOB, 3)] {
        let (admitted, limited) =
            until_limited(async || service.client.get("/search?cats", &[token]).await).await;
        assert!(admitted >= searches, "{admitted} of {searches}");
        if token == BOB {
            assert_eq!(limited.header("ratelimit-policy"), Some(SEARCHES_OF_BOB));
            assert!((1..=20).contains(&limited.seconds()), "{limited:?}");
        }
    }
}

const SEARCHES_OF_BOB: &str = "\"searches\";q=3;w=60, \"flood\";q=200;w=2";

#[tokio::test]
async fn reads_are_limited_by_address() {
    let service = Service::start("127.0.0.0/8");
    let read =
        async |from: &str| service.client.get("/articles/7", &[&format!("x-forwarded-for: {from}")]).await;
    let mut spoofed = 0..;
    let (admitted, _) = until_limited(async || {
        // The client can write the first address, the proxy writes the last.
        read(&format!("203.0.113.{}, 192.0.2.1", spoofed.next().unwrap() % 256)).await
    })
    .await;
    assert!(admitted >= 20, "{admitted}");
    // With another spelling, until a permit refills.
    let (admitted, limited) = until_limited(async || read("192.0.2.1:4711").await).await;
    assert!(admitted < 20 && limited.seconds() == 1, "{admitted}");
    assert_eq!(read("192.0.2.2").await.body, "article 7\n");
    assert_eq!(read("unknown").await.status, 500);
}

#[tokio::test]
async fn uploads_are_limited_by_size() {
    let service = Service::start("10.0.0.0/8");
    let upload = async |bytes: usize| service.client.post("/files", &[ANN], &"x".repeat(bytes)).await;
    assert_eq!(upload(300_000).await.body, "300000 bytes\n");
    let limited = upload(400_000).await;
    assert_eq!(limited.status, 429, "{limited:?}");
    assert!((1..=2).contains(&limited.seconds()), "{limited:?}");
    let large = upload(500_001).await;
    assert_eq!((large.status, large.header("retry-after")), (413, None), "{large:?}");
}

#[tokio::test]
async fn messages_leave_at_the_pace_of_the_gateway() {
    let service = Service::start("10.0.0.0/8");
    let start = std::time::Instant::now();
    let sent =
        async |i: usize| service.client.post("/messages", &[ANN], &format!("message {i}")).await.status;
    let (one, two, three) = tokio::join!(sent(1), sent(2), sent(3));
    assert_eq!([one, two, three], [202; 3]);
    // Slots are 100 ms apart, and no call starts before its slot.
    assert!(start.elapsed() >= Duration::from_millis(200));
}

/// The count of a series with these labels.
fn count(scrape: &str, labels: [&str; 3]) -> u64 {
    let line = scrape.lines().filter(|line| line.starts_with("ratelimits_decisions_total"));
    let line = line.filter(|line| labels.iter().all(|label| line.contains(label)));
    line.map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum()
}

#[tokio::test]
async fn scraped_metrics_match_the_traffic() {
    let service = Service::start("10.0.0.0/8");
    let (reads, _) = until_limited(async || service.client.get("/articles/7", &[]).await).await;
    let (searches, _) = until_limited(async || service.client.get("/search?cats", &[BOB]).await).await;
    let scrape = service.client.get("/metrics", &[]).await.body;
    let of = |policy, outcome| count(&scrape, [policy, outcome, "source=\"memory\""]);
    let [admitted, limited] = ["outcome=\"admitted\"", "outcome=\"limited\""];
    assert_eq!((of("policy=\"reads\"", admitted), of("policy=\"reads\"", limited)), (reads, 1), "{scrape}");
    assert_eq!(
        (of("policy=\"searches\"", admitted), of("policy=\"searches\"", limited)),
        (searches, 1),
        "{scrape}"
    );
    // Scrapes are not limited.
    assert_eq!(
        (of("policy=\"flood\"", admitted), of("policy=\"flood\"", limited)),
        (reads + searches + 2, 0),
        "{scrape}"
    );
    for line in ["ratelimits_store_up 1", "ratelimits_limit{policy=\"reads\"} 20"] {
        assert!(scrape.lines().any(|found| found == line), "{line} in {scrape}");
    }
    assert!(!scrape.contains("bob") && !scrape.contains("127.0.0.1"), "{scrape}");
}
