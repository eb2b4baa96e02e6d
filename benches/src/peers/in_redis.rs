//! Whole libraries on one server, and what a bare command costs there.

use std::rc::Rc;
use std::sync::Arc;

use redis::Client;
use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use trypema::redis::{RedisKey, RedisRateLimiterProvider};
use trypema::{BucketSize, RateLimit, RateLimiterBuilder, WindowSize};

use super::programs::Program;
use crate::redis::bench::{Bench, Bucket};
use crate::redis::load::{Operation, operation};
use crate::table::Line;

const TASKS: usize = 64;

pub(super) fn lines() -> Result<Vec<Line>, String> {
    let bench = Bench::new()?;
    let ours = bench.by_limiter(&Bucket::BUSY);
    let throughput = |operation: &Operation| {
        let (load, operation) = (Rc::clone(&bench.load), Rc::clone(operation));
        move || load.measure(TASKS, &operation).throughput()
    };
    let line = |peer: &str, theirs: Operation| {
        Line::new("limiter", "k/s", throughput(&ours)).against(peer, throughput(&theirs))
    };
    let mut lines = vec![
        line("INCR", bench.incr()),
        line("textbook GCRA script", bench.by_textbook("peer", &Bucket::BUSY)),
        line("trypema", trypema(&bench)?).at_least(6.0),
    ];
    let mut add = |peer: &str, budget: f64, started: Result<Program, String>| match started {
        Ok(mut program) => lines.push(
            Line::new("limiter", "k/s", throughput(&ours))
                .against(peer, move || program.throughput())
                .at_least(budget),
        ),
        Err(error) => eprintln!("{peer} is left out: {error}"),
    };
    add("rate-limiter-flexible, Node", 3.0, Program::rate_limiter_flexible(&bench.load, TASKS));
    add("limits, Python async", 18.0, Program::limits(&bench.load, TASKS));
    Ok(lines)
}

fn trypema(bench: &Bench) -> Result<Operation, String> {
    let configuration = ConnectionManagerConfig::new().set_response_timeout(None);
    let provider = bench.load.block_on(async {
        let client = Client::open(bench.load.url()).map_err(|error| error.to_string())?;
        let connection = ConnectionManager::new_with_config(client, configuration).await;
        RedisRateLimiterProvider::builder(connection.map_err(|error| error.to_string())?)
            .window_size(WindowSize::seconds_or_panic(10))
            .bucket_size(BucketSize::milliseconds_or_panic(100))
            .build()
            .map_err(|error| error.to_string())
    })?;
    let rate = RateLimit::per_second_or_panic(100_000.0);
    Ok(operation(move |key| {
        let provider = Arc::clone(&provider);
        async move {
            let key = RedisKey::try_from(format!("user{key:05}")).expect("a valid key");
            provider.absolute().inc(&key, &rate, 1).await.expect("the server answers");
        }
    }))
}
