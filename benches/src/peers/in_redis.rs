//! Whole libraries on one server, and what a bare command costs there.

use std::rc::Rc;
use std::sync::Arc;

use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use redis::{Client, cmd};
use trypema::redis::{RedisKey, RedisRateLimiterProvider};
use trypema::{BucketSize, RateLimit, RateLimiterBuilder, WindowSize};

use crate::redis::{Bench, Bucket, Operation, operation};
use crate::table::Line;

const TASKS: usize = 64;

pub(super) fn lines() -> Result<Vec<Line>, String> {
    let bench = Bench::new()?;
    let ours = bench.by_limiter(&Bucket::BUSY);
    let throughput = |operation: &Operation| {
        let (load, operation) = (Rc::clone(&bench.load), Rc::clone(operation));
        move || load.throughput(TASKS, &operation)
    };
    let line = |peer: &str, theirs: Operation| {
        Line::new("limiter", "/s", throughput(&ours)).against(peer, throughput(&theirs))
    };
    Ok(vec![
        line("INCR", incr(&bench)),
        line("textbook GCRA script", bench.by_textbook("peer", &Bucket::BUSY)),
        line("trypema", trypema(&bench)?).at_least(6.0),
    ])
}

fn incr(bench: &Bench) -> Operation {
    let connection = bench.load.connection.clone();
    operation(move |key| {
        let mut connection = connection.clone();
        async move {
            let key = format!("incr:user:{key:05}");
            let _: i64 = cmd("INCR").arg(key).query_async(&mut connection).await.expect("INCR succeeds");
        }
    })
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
