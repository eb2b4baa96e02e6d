//! Process-wide state: each test runs again in a child process.

use std::future::Future;
use std::pin::pin;
use std::process::Command;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use ratelimits::error::InstallError;
use ratelimits::{DecidedBy, Error, FixedWindow, Registry, TokenBucket, count_limit, install};

use crate::support::log_capture::LogCapture;
use crate::support::server::Server;

const CHILD: &str = "RATELIMITS_TEST_CHILD";

/// Runs this test in a child process with these variables. Returns its output.
fn run_in_child(test: &str, variables: &[(&str, &str)]) -> String {
    let mut command = Command::new(std::env::current_exe().expect("the test has a path"));
    command.args([&format!("process::{test}"), "--exact", "--nocapture"]).env(CHILD, "1");
    command.env_remove("RATELIMITS_URL").env_remove("RATELIMITS_OFF");
    let output = command.envs(variables.iter().copied()).output().expect("the test runs again");
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
async fn installed_registry_is_used_and_final() {
    if !is_child() {
        let server = Server::start();
        run_in_child("installed_registry_is_used_and_final", &[("RATELIMITS_URL", &server.url())]);
        return;
    }
    let registry = Registry::from_env().await.unwrap();
    install(registry.clone()).unwrap();
    once().await.unwrap();
    let policy = FixedWindow::new(1, Duration::from_secs(86_400));
    let decision = registry.limiter("process.once", policy).unwrap().peek(()).await.unwrap();
    assert_eq!((decision.source, decision.remaining), (DecidedBy::Redis, 0));
    assert_eq!(install(Registry::in_memory()), Err(InstallError::AlreadyInstalled));
    assert!(Registry::in_memory().scope(once()).await.is_ok());
    assert!(once().await.unwrap_err().is_limited());
}

#[tokio::test]
async fn install_fails_after_a_decision() {
    if !is_child() {
        run_in_child("install_fails_after_a_decision", &[]);
        return;
    }
    once().await.unwrap();
    assert!(once().await.unwrap_err().is_limited());
    assert_eq!(install(Registry::in_memory()), Err(InstallError::AlreadyInUse));
}

#[tokio::test]
async fn ratelimits_off_disables_limits_and_warns() {
    if !is_child() {
        let text = run_in_child("ratelimits_off_disables_limits_and_warns", &[("RATELIMITS_OFF", "1")]);
        assert_eq!(text.matches("RATELIMITS_OFF=1 is set: all limits are off").count(), 1, "{text}");
        return;
    }
    for _ in 0..3 {
        once().await.unwrap();
        Registry::in_memory().scope(once()).await.unwrap();
    }
    install(Registry::connect_lazy("redis://127.0.0.1:1").unwrap()).unwrap_err();
}

#[tokio::test]
async fn ratelimits_off_has_several_spellings() {
    if !is_child() {
        let test = "ratelimits_off_has_several_spellings";
        for value in ["true", "YES", "On"] {
            let text = run_in_child(test, &[("RATELIMITS_OFF", value)]);
            assert!(text.contains(&format!("RATELIMITS_OFF={value} is set: all limits are off")), "{text}");
        }
        for value in ["0", "false", "No", "off", ""] {
            let text = run_in_child(test, &[("RATELIMITS_OFF", value), ("RATELIMITS_TEST_LIMITED", "1")]);
            assert!(!text.contains("RATELIMITS_OFF"), "{text}");
        }
        return;
    }
    let is_limited = std::env::var_os("RATELIMITS_TEST_LIMITED").is_some();
    once().await.unwrap();
    assert_eq!(once().await.is_err_and(|error| error.is_limited()), is_limited);
}

#[tokio::test]
async fn unclear_ratelimits_off_is_an_error_and_limits_stay_on() {
    if !is_child() {
        let text = run_in_child(
            "unclear_ratelimits_off_is_an_error_and_limits_stay_on",
            &[("RATELIMITS_OFF", "maybe")],
        );
        assert_eq!(text.matches("RATELIMITS_OFF=maybe is neither yes nor no").count(), 1, "{text}");
        assert!(text.contains("limits stay on"), "{text}");
        return;
    }
    for _ in 0..3 {
        let _ = once().await;
        assert!(once().await.unwrap_err().is_limited());
        let registry = Registry::in_memory();
        registry.scope(once()).await.unwrap();
        assert!(registry.scope(once()).await.unwrap_err().is_limited());
    }
    for registry in [
        Registry::connect_lazy("redis://127.0.0.1:1"),
        Registry::connect_lazy("memory://"),
        Registry::connect("memory://").await,
        Registry::from_env().await,
    ] {
        let error = registry.unwrap_err();
        assert!(matches!(error, Error::Store(_)), "{error}");
        assert!(error.to_string().contains("write 1, true, yes or on"), "{error}");
    }
}

#[tokio::test]
async fn subscriber_may_call_limited_functions() {
    if !is_child() {
        let test = "subscriber_may_call_limited_functions";
        run_in_child(test, &[("RATELIMITS_OFF", "1")]);
        return;
    }
    let log = LogCapture::then(|| {
        let passed = pin!(once()).poll(&mut Context::from_waker(Waker::noop()));
        assert!(matches!(passed, Poll::Ready(Ok(()))));
    });
    tracing::subscriber::set_global_default(log.clone()).unwrap();
    once().await.unwrap();
    let _ = Registry::from_env().await.unwrap();
    let _ = Registry::connect_lazy("redis://127.0.0.1:1").unwrap();
    let off = "RATELIMITS_OFF=1 is set: all limits are off";
    assert_eq!(log.events(), [(String::new(), off.to_owned())]);
}

#[count_limit(1000, "1d", name = "process.many")]
async fn many() -> Result<(), Error> {
    Ok(())
}

#[tokio::test]
async fn default_registry_is_logged_once() {
    if !is_child() {
        run_in_child("default_registry_is_logged_once", &[]);
        return;
    }
    // A subscriber may call limited functions.
    let log = LogCapture::then(|| {
        let passed = pin!(many()).poll(&mut Context::from_waker(Waker::noop()));
        assert!(matches!(passed, Poll::Ready(Ok(()))));
    });
    tracing::subscriber::set_global_default(log.clone()).unwrap();
    for _ in 0..3 {
        many().await.unwrap();
    }
    assert_eq!(log.messages(), ["limits are decided in this process"]);
    assert!(log.text().contains("reason=no registry is installed\n"), "{}", log.text());
}

#[tokio::test]
async fn installed_registry_is_logged_once() {
    if !is_child() {
        run_in_child("installed_registry_is_logged_once", &[]);
        return;
    }
    let log = LogCapture::default();
    tracing::subscriber::set_global_default(log.clone()).unwrap();
    install(Registry::in_memory()).unwrap();
    many().await.unwrap();
    // The other tests of this binary have policies whose names clash.
    let (problems, others): (Vec<_>, Vec<_>) =
        log.messages().into_iter().partition(|message| message == "policies have a problem");
    assert_eq!(others, ["limits are decided in this process"]);
    assert_eq!(problems.len(), ratelimits::check_policies().unwrap_err().problems().count());
}

#[tokio::test]
async fn from_env_without_a_url_is_in_memory() {
    if !is_child() {
        run_in_child("from_env_without_a_url_is_in_memory", &[]);
        return;
    }
    let log = LogCapture::default();
    tracing::subscriber::set_global_default(log.clone()).unwrap();
    for registry in [Registry::from_env().await, Registry::from_env_lazy()] {
        let limiter = registry.unwrap().limiter("a", TokenBucket::per_second(1)).unwrap();
        assert_eq!(limiter.try_acquire(()).await.unwrap().source, DecidedBy::Memory);
    }
    let unset = "RATELIMITS_URL is not set: limits are decided in this process alone";
    assert_eq!(log.messages(), [unset, unset]);
}

#[tokio::test]
async fn from_env_names_the_variable_of_an_invalid_url() {
    if !is_child() {
        for url in ["", "redis//localhost"] {
            run_in_child("from_env_names_the_variable_of_an_invalid_url", &[("RATELIMITS_URL", url)]);
        }
        return;
    }
    for registry in [Registry::from_env().await, Registry::from_env_lazy()] {
        let error = registry.unwrap_err().to_string();
        assert!(error.contains("RATELIMITS_URL: a store URL starts with redis://"), "{error}");
    }
}

#[cfg(feature = "tls")]
#[tokio::test]
async fn from_env_blames_no_variable_for_invalid_certificates() {
    if !is_child() {
        let url = [("RATELIMITS_URL", "rediss://localhost")];
        run_in_child("from_env_blames_no_variable_for_invalid_certificates", &url);
        return;
    }
    let error = Registry::builder().ca_certificates("").from_env().await.unwrap_err();
    assert_eq!(error.to_string(), "invalid TLS certificates: there is none in PEM");
}

#[tokio::test]
async fn from_env_lazy_needs_no_server() {
    if !is_child() {
        run_in_child("from_env_lazy_needs_no_server", &[("RATELIMITS_URL", "redis://127.0.0.1:1")]);
        return;
    }
    let log = LogCapture::default();
    tracing::subscriber::set_global_default(log.clone()).unwrap();
    assert!(Registry::from_env().await.is_err());
    assert_eq!(log.messages(), [""; 0]);
    let registry = Registry::from_env_lazy().unwrap();
    assert_eq!(log.messages(), ["limits are decided in Redis"]);
    let limiter = registry.limiter("a", TokenBucket::per_second(1)).unwrap();
    assert_eq!(limiter.try_acquire(()).await.unwrap().source, DecidedBy::Local);
}

#[tokio::test]
async fn from_env_of_a_builder_keeps_its_settings() {
    if !is_child() {
        let server = Server::start();
        run_in_child("from_env_of_a_builder_keeps_its_settings", &[("RATELIMITS_URL", &server.url())]);
        return;
    }
    for (namespace, remaining) in [("one", 1), ("one", 0), ("two", 1)] {
        let registry = Registry::builder().namespace(namespace).from_env().await.unwrap();
        let limiter = registry.limiter("a", FixedWindow::new(2, Duration::from_secs(86_400))).unwrap();
        let decision = limiter.try_acquire(()).await.unwrap();
        assert_eq!((decision.source, decision.remaining), (DecidedBy::Redis, remaining));
    }
}
