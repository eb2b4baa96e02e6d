//! Sentinels, some of which may be down, and which may require a password.

use super::{connect_error, works_at};
use crate::support::server::sentinels::{NAME, Sentinels};
use crate::support::server::{Server, ports};

fn url(login: &str, addresses: &[String], master: &str) -> String {
    format!("redis+sentinel://{login}{}/{master}", addresses.join(","))
}

#[tokio::test]
async fn any_sentinel_names_the_master() {
    let sentinels = Sentinels::start().await;
    let addresses = sentinels.addresses();
    works_at(&sentinels.url()).await;
    works_at(&url("", &addresses[1..2], NAME)).await;
    works_at(&format!("{}/2", sentinels.url())).await;

    let absent = format!("127.0.0.1:{}", ports::free());
    works_at(&url("", &[absent.clone(), addresses[0].clone()], NAME)).await;
    let error = connect_error(&url(":secret@", std::slice::from_ref(&absent), NAME)).await;
    assert!(error.contains("refused"), "{error}");

    let silent = Server::start();
    silent.pause();
    let mut some = vec![silent.address(); 4];
    some.push(addresses[0].clone());
    works_at(&url("", &some, NAME)).await;

    let some = [absent.clone(), addresses[0].clone(), absent];
    for some in [&addresses[..], &some] {
        let error = connect_error(&url(":secret@", some, "another")).await;
        assert!(error.contains("knows no master of this name"), "{error}");
    }
}

#[tokio::test]
async fn server_that_is_no_sentinel_is_an_error() {
    let server = Server::start();
    let error = connect_error(&url("", &[server.address()], NAME)).await;
    assert!(error.contains("SENTINEL"), "{error}");
}

/// The sentinels have no user at first, then the same as the servers.
#[tokio::test]
async fn login_applies_to_servers_and_to_sentinels_that_require_it() {
    let sentinels = Sentinels::start().await;
    let master = sentinels.master().await;
    master.set_user("app", "s3cret", &["~*", "+@all"]).await;
    let addresses = sentinels.addresses();
    works_at(&url("app:s3cret@", &addresses, NAME)).await;
    connect_error(&url("app:secret@", &addresses, NAME)).await;
    for sentinel in sentinels.sentinels() {
        sentinel.command::<()>(&["ACL", "SETUSER", "app", "on", ">s3cret", "+@all"]).await;
    }
    works_at(&url("app:s3cret@", &addresses, NAME)).await;
    for sentinel in sentinels.sentinels() {
        sentinel.command::<()>(&["ACL", "SETUSER", "default", "off"]).await;
    }
    works_at(&url("app:s3cret@", &addresses, NAME)).await;
}

#[tokio::test]
async fn password_alone_is_optional_at_sentinels() {
    let sentinels = Sentinels::start().await;
    let master = sentinels.master().await;
    let addresses = sentinels.addresses();
    // The default user without a password accepts any.
    works_at(&url(":s3cret@", &addresses, NAME)).await;
    master.set_user("default", "s3cret", &["~*", "&*", "+@all"]).await;
    works_at(&url(":s3cret@", &addresses, NAME)).await;
    connect_error(&url(":secret@", &addresses, NAME)).await;
}
