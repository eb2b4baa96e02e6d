//! Attributes on functions that are not async.

use std::sync::{Arc, Mutex};

use ratelimits::observe::CallOutcome;
use ratelimits::{RequestContext, concurrency_limit, count_limit, funnel_limit, rate_limit, window_limit};

use super::*;

#[rate_limit("1/min", burst = 1, key = key)]
fn bucket(key: &str) -> Result<(), Error> {
    Ok(())
}

#[count_limit(1, "1m", key = key)]
fn window(key: &str) -> Result<(), Error> {
    Ok(())
}

#[funnel_limit(1, "1/min", key = key)]
fn funnel(key: &str) -> Result<(), Error> {
    Ok(())
}

#[window_limit(1, "1m", key = key)]
fn sliding(key: &str) -> Result<(), Error> {
    Ok(())
}

#[count_limit(1, "1m", key_type = USER)]
#[concurrency_limit(1, key = "<@ip>")]
fn stacked(key: &str) -> Result<(), Error> {
    assert_eq!(RequestContext::current().user(), Some(key));
    Ok(())
}

#[rate_limit("1/min", burst = limit, key = key, bind = decision, fallback = |error| Err(error.to_string()))]
#[count_limit(limit = limit, period = "1m", key = key, shadow)]
fn source(key: &str, limit: u64) -> Result<DecidedBy, String> {
    assert_eq!(decision.policies().len(), 2);
    Ok(decision.source)
}

#[test]
fn functions_decide_like_async_ones() {
    on_each_registry(|registry, decided_by| {
        registry.sync_scope(|| {
            for function in [bucket, window, funnel, sliding] {
                function("a").unwrap();
                let refused = function("a").unwrap_err();
                assert!(refused.is_limited() && refused.retry_after().is_some());
                function("b").unwrap();
            }
            let context = RequestContext::new().with_ip([192, 0, 2, 1]).with_user("ann");
            context.sync_scope(|| {
                stacked("ann").unwrap();
                assert!(stacked("ann").unwrap_err().is_limited());
            });
            assert!(matches!(stacked("ann"), Err(Error::MissingKey(_))));
            assert_eq!(source("a", 1), Ok(decided_by));
            assert!(source("a", 1).unwrap_err().contains("functions::source"));
        });
    });
    Registry::unlimited().sync_scope(|| (0..3).for_each(|_| window("a").unwrap()));
}

#[count_limit(1, "50ms", key = key, timeout = "1m")]
fn waits_for_a_window(key: &str) -> Result<(), Error> {
    Ok(())
}

#[funnel_limit(10, "1/50ms", key = key, queue)]
fn queues(key: &str) -> Result<(), Error> {
    Ok(())
}

#[rate_limit("1/50ms", burst = 1, key = key, timeout = "forever")]
#[count_limit(1, "50ms", key = key, timeout = "forever")]
fn waits_for_two(key: &str) -> Result<(), Error> {
    Ok(())
}

#[test]
fn functions_wait_without_a_runtime() {
    on_each_registry(|registry, _| {
        for function in [waits_for_a_window, queues, waits_for_two] {
            thread::scope(|scope| {
                let call = || registry.sync_scope(|| function("a"));
                let calls: Vec<_> = (0..CALLS).map(|_| scope.spawn(call)).collect();
                calls.into_iter().for_each(|call| call.join().unwrap().unwrap());
            });
        }
    });
}

#[count_limit(2, "1m", key = key, timeout = "1m", on_store_error = allow)]
fn in_async_code(key: &str) -> Result<(), Error> {
    Ok(())
}

#[count_limit(1, "1m", key = key, shadow)]
fn in_shadow(key: &str) -> Result<&str, Error> {
    Ok(key)
}

#[count_limit(2, "1m", key = key, timeout = "1m", fallback = |error| error.to_string())]
fn with_fallback(key: &str) -> String {
    String::from(key)
}

#[test]
fn functions_in_async_code_are_errors_where_they_would_block() {
    on_each_registry(|registry, source| {
        let is_remote = source == DecidedBy::Redis;
        let current_thread = Builder::new_current_thread().enable_all().build().unwrap();
        for (i, runtime) in [current_thread, runtime()].iter().enumerate() {
            let key = i.to_string();
            if !is_remote {
                // Decided at once.
                let twice = async { in_async_code(&key).and_then(|()| in_async_code(&key)) };
                runtime.block_on(registry.scope(twice)).unwrap();
            }
            let refused = || is_refused_as_async(in_async_code(&key));
            assert!(runtime.block_on(registry.scope(async { refused() })));
            assert!(LocalSet::new().block_on(runtime, registry.scope(async { refused() })));
            let (task_registry, task_key) = (registry.clone(), key.clone());
            let task = async move {
                let call = async { (in_async_code(&task_key), in_shadow(&task_key).map(str::to_owned)) };
                task_registry.scope(call).await
            };
            let (refused, shadow) = runtime.block_on(async { runtime.spawn(task).await.unwrap() });
            let message = refused.unwrap_err().to_string();
            for part in
                ["blocking::functions::in_async_code`", "write `async fn`", "`tokio::task::spawn_blocking`"]
            {
                assert!(message.contains(part), "{message}");
            }
            // It never refuses.
            assert_eq!(shadow.unwrap(), key);
            if is_remote {
                let answer = runtime.block_on(registry.scope(async { with_fallback(&key) }));
                assert!(answer.contains("not async"), "{answer}");
                // Nothing was charged.
                registry.sync_scope(|| in_async_code(&key).and_then(|()| in_async_code(&key))).unwrap();
            }
        }
    });
}

#[test]
fn functions_on_threads_that_may_block_decide() {
    on_each_registry(|registry, decided_by| {
        let call = {
            let registry = registry.clone();
            move || registry.sync_scope(|| source("a", 1000))
        };
        let current_thread = Builder::new_current_thread().enable_all().build().unwrap();
        {
            let _entered = current_thread.enter();
            assert_eq!(call(), Ok(decided_by));
        }
        for runtime in [&current_thread, &runtime()] {
            let blocking = call.clone();
            assert_eq!(runtime.block_on(async { spawn_blocking(blocking).await.unwrap() }), Ok(decided_by));
        }
        runtime().block_on(async { assert_eq!(block_in_place(&call), Ok(decided_by)) });
        let task = call.clone();
        let in_a_task =
            runtime().block_on(async { tokio::spawn(async { block_in_place(task) }).await.unwrap() });
        assert_eq!(in_a_task, Ok(decided_by));
    });
}

/// The only thread of a runtime waits for calls that run on threads for blocking code, as they wait for each other.
#[test]
fn one_thread_runtimes_do_not_deadlock() {
    on_each_registry(|registry, _| {
        let runtime = Builder::new_current_thread().enable_all().max_blocking_threads(1).build().unwrap();
        runtime.block_on(async {
            let calls: Vec<_> = (0..CALLS)
                .map(|_| {
                    let registry = registry.clone();
                    spawn_blocking(move || registry.sync_scope(|| waits_for_two("one thread")))
                })
                .collect();
            for call in calls {
                call.await.unwrap().unwrap();
            }
        });
    });
}

#[count_limit(1000, "1m", key = key, lease = 10)]
fn leased(key: &str) -> Result<(), Error> {
    Ok(())
}

#[test]
fn threads_share_leases() {
    on_each_registry(|registry, _| {
        thread::scope(|scope| {
            let calls = || (0..250).for_each(|_| registry.sync_scope(|| leased("a")).unwrap());
            (0..4).for_each(|_| drop(scope.spawn(calls)));
        });
        assert!(registry.sync_scope(|| leased("a")).unwrap_err().is_limited());
    });
}

#[test]
fn observers_see_each_call_once() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let builder = || {
        let seen = Arc::clone(&seen);
        Registry::builder().deadline(LONG_DEADLINE).observer(move |observation| {
            seen.lock().unwrap().push((observation.outcome, observation.key().join(",")));
        })
    };
    let redis = builder().namespace("functions").connect_lazy(&Server::shared().url()).unwrap();
    for registry in [builder().in_memory(), redis.clone()] {
        registry.sync_scope(|| (window("a").unwrap(), window("a").unwrap_err()));
        let seen: Vec<_> = seen.lock().unwrap().drain(..).collect();
        assert_eq!(seen, [(CallOutcome::Admitted, "a".into()), (CallOutcome::Limited, "a".into())]);
    }
    runtime().block_on(redis.scope(async { window("b") })).unwrap_err();
    assert_eq!(*seen.lock().unwrap(), [(CallOutcome::StoreError, "b".into())]);
}

#[test]
fn policies_of_functions_are_known() {
    let policies = ratelimits::policies();
    let known = |name: &str| policies.iter().any(|policy| *policy.name == *name);
    assert!(known(concat!(module_path!(), "::window")));
    assert!(known(concat!(module_path!(), "::stacked#2")));
}
