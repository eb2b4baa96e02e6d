//! Authentication and permissions that are withdrawn.

use ratelimit_runtime::store::RedisStore;

use super::errors::assert_refused;
use super::fixture::{CountingClient, Fixture, PASSWORD, USER};

async fn set_user(fixture: &Fixture, rules: &[&str]) {
    fixture.server.command::<()>(&[&["ACL", "SETUSER", USER], rules].concat()).await;
}

#[tokio::test]
async fn wrongpass_after_password_change() {
    let fixture = Fixture::start().await;
    let begin = async || {
        set_user(&fixture, &["resetpass", ">another-one"]).await;
        fixture.server.kill_clients().await;
    };
    let password = format!(">{PASSWORD}");
    assert_refused(&fixture, "WRONGPASS", begin, async || set_user(&fixture, &[&password]).await).await;
    fixture.assert_one_connection().await;
}

#[tokio::test]
async fn noauth_after_password_is_introduced() {
    let mut fixture = Fixture::start().await;
    let without_password = CountingClient::new(&fixture.proxy.url(), RedisStore::DEADLINE);
    fixture.replace_client(without_password).await;
    let begin = async || {
        fixture.server.configure("requirepass", "another-one").await;
        fixture.server.kill_clients().await;
    };
    assert_refused(&fixture, "NOAUTH", begin, async || fixture.server.configure("requirepass", "").await)
        .await;
}

#[tokio::test]
async fn noperm_for_scripts() {
    let fixture = Fixture::start().await;
    let begin = async || set_user(&fixture, &["-evalsha", "-eval"]).await;
    assert_refused(&fixture, "NOPERM", begin, async || set_user(&fixture, &["+@all"]).await).await;
}

/// There is no common error code.
const DENIED_IN_SCRIPT: &str = "CAN'T RUN|MAY NOT RUN|NO PERMISSIONS TO RUN";

#[tokio::test]
async fn noperm_for_writes_in_scripts() {
    let fixture = Fixture::start().await;
    let begin = async || set_user(&fixture, &["-@write", "+evalsha", "+eval"]).await;
    assert_refused(&fixture, DENIED_IN_SCRIPT, begin, async || set_user(&fixture, &["+@all"]).await).await;
}

#[tokio::test]
async fn noperm_for_keys() {
    let fixture = Fixture::start().await;
    let begin = async || set_user(&fixture, &["resetkeys", "~other:*"]).await;
    assert_refused(&fixture, "NOPERM", begin, async || set_user(&fixture, &["~*"]).await).await;
}
