//! What holds for a whole process, each in a process of its own: this test binary again, asked for one test.

use std::future::Future;
use std::pin::pin;
use std::process::Command;
use std::task::{Context, Poll, Waker};

use ratelimits::{Error, Registry, Source, count_limit, install};

use crate::support::server::Server;
use crate::support::told::Told;

const CHILD: &str = "RATELIMITS_TEST_CHILD";

/// Runs the test again in a process with these variables, where it does its part and must succeed.
fn in_a_process_of_its_own(test: &str, variables: &[(&str, &str)]) -> String {
    let mut command = Command::new(std::env::current_exe().expect("the test has a path"));
    command.args([&format!("process::{test}"), "--exact", "--nocapture"]).env(CHILD, "1");
    let output = command.envs(variables.iter().copied()).output().expect("it can run again");
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
    text
}

fn is_child() -> bool {
    std::env::var_os(CHILD).is_some()
}

#[count_limit(1, "1d", name = "process.once")]
async fn once() -> Result<(), Error> {
    Ok(())
}

#[tokio::test]
async fn an_installed_registry_decides_and_stays() {
    if !is_child() {
        let server = Server::start();
        in_a_process_of_its_own(
            "an_installed_registry_decides_and_stays",
            &[("RATELIMITS_URL", &server.url())],
        );
        return;
    }
    let registry = Registry::from_env().await.unwrap();
    install(registry.clone()).unwrap();
    once().await.unwrap();
    let limiter = registry
        .limiter("process.once", ratelimits::FixedWindow::new(1, std::time::Duration::from_secs(86_400)));
    let seen = limiter.unwrap().peek(()).await.unwrap();
    assert_eq!((seen.source, seen.remaining), (Source::Redis, 0));
    let error = install(Registry::in_memory()).unwrap_err();
    assert!(error.to_string().contains("installed already"), "{error}");
    assert!(Registry::in_memory().scope(once()).await.is_ok());
    assert!(once().await.unwrap_err().is_limited());
}

#[tokio::test]
async fn after_a_decision_without_a_registry_none_can_be_installed() {
    if !is_child() {
        in_a_process_of_its_own("after_a_decision_without_a_registry_none_can_be_installed", &[]);
        return;
    }
    once().await.unwrap();
    assert!(once().await.unwrap_err().is_limited());
    let error = install(Registry::in_memory()).unwrap_err();
    assert!(error.to_string().contains("before a registry was installed"), "{error}");
}

#[tokio::test]
async fn ratelimits_off_limits_nothing_and_says_so() {
    if !is_child() {
        let text =
            in_a_process_of_its_own("ratelimits_off_limits_nothing_and_says_so", &[("RATELIMITS_OFF", "1")]);
        assert_eq!(text.matches("RATELIMITS_OFF=1 is set: nothing is limited").count(), 1, "{text}");
        return;
    }
    for _ in 0..3 {
        once().await.unwrap();
        Registry::in_memory().scope(once()).await.unwrap();
    }
    install(Registry::connect_lazy("redis://127.0.0.1:1").unwrap()).unwrap_err();
}

#[tokio::test]
async fn whoever_hears_that_limits_are_off_may_be_limited_too() {
    if !is_child() {
        let test = "whoever_hears_that_limits_are_off_may_be_limited_too";
        in_a_process_of_its_own(test, &[("RATELIMITS_OFF", "1")]);
        return;
    }
    let told = Told::then(|| {
        let passed = pin!(once()).poll(&mut Context::from_waker(Waker::noop()));
        assert!(matches!(passed, Poll::Ready(Ok(()))));
    });
    tracing::subscriber::set_global_default(told.clone()).unwrap();
    once().await.unwrap();
    let off = "RATELIMITS_OFF=1 is set: nothing is limited";
    assert_eq!(told.events(), [(String::new(), off.to_owned())]);
}

#[tokio::test]
async fn without_a_url_in_the_environment_the_registry_is_in_process() {
    if !is_child() {
        in_a_process_of_its_own("without_a_url_in_the_environment_the_registry_is_in_process", &[]);
        return;
    }
    let registry = Registry::from_env().await.unwrap();
    let limiter = registry.limiter("a", ratelimits::TokenBucket::per_second(1)).unwrap();
    assert_eq!(limiter.try_acquire((), 1).await.unwrap().source, Source::Memory);
}
