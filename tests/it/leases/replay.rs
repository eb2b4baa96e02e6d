//! Four processes share the permits of a few keys, while Redis forgets its scripts and closes connections. Their log is
//! replayed: leases cost no more than they say.

use std::time::{Duration, Instant};

use ratelimits::Registry;

use crate::support::leased_load::{AdmittedCall, LeasedReport};
use crate::support::processes::{self, Child};
use crate::support::random::Random;
use crate::support::server::Server;

const PROCESSES: usize = 4;
const TIME: Duration = Duration::from_millis(2500);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_keep_the_promise_of_leases() {
    if let Some(child) = Child::from_env() {
        let registry = Registry::connect_lazy(&child.url).unwrap();
        let (random, deadline) = (Random::new(u64::from(std::process::id())), Instant::now() + TIME);
        let report = LeasedReport::of(&registry, &random, move || Instant::now() < deadline).await;
        return child.report(lines(&report));
    }
    let server = Server::start();
    let children = processes::run(&server, PROCESSES, module_path!(), "processes_keep_the_promise_of_leases");
    let faults = async {
        loop {
            tokio::time::sleep(Duration::from_millis(50)).await;
            server.command::<()>(&["SCRIPT", "FLUSH"]).await;
            tokio::time::sleep(Duration::from_millis(50)).await;
            server.kill_clients().await;
        }
    };
    let lines = tokio::select! { lines = children => lines.concat(), () = faults => unreachable!() };
    let mut report = LeasedReport::default();
    for line in lines {
        let [function, start, end] =
            line.split(' ').map(|number| number.parse().unwrap()).collect::<Vec<i128>>()[..]
        else {
            panic!("{line}")
        };
        report.admitted[function as usize].push(AdmittedCall { start, end });
    }
    report.assert_promises_held(&[]);
}

/// A line for each admitted call: its function, start and end.
fn lines(report: &LeasedReport) -> impl Iterator<Item = String> {
    let functions = report.admitted.iter().enumerate();
    functions.flat_map(|(function, calls)| {
        calls.iter().map(move |call| format!("{function} {} {}", call.start, call.end))
    })
}
