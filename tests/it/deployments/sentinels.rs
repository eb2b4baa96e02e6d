//! Sentinels, of whom some may be gone, and who may want a password.

use super::{refused_at, works_at};
use crate::support::server::Server;
use crate::support::server::ports;
use crate::support::server::sentinels::{NAME, Sentinels};

fn url(login: &str, addresses: &[String], master: &str) -> String {
    format!("redis+sentinel://{login}{}/{master}", addresses.join(","))
}

async fn ask(address: &str, command: &[&str]) {
    let client = redis::Client::open(format!("redis://{address}")).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let asked: Result<redis::Value, _> =
        redis::cmd(command[0]).arg(&command[1..]).query_async(&mut connection).await;
    asked.unwrap();
}

#[tokio::test]
async fn the_master_is_found_by_any_sentinel() {
    let sentinels = Sentinels::start().await;
    let addresses = sentinels.addresses();
    works_at(&url("", &addresses, NAME)).await;
    works_at(&url("", &addresses[1..2], NAME)).await;
    works_at(&format!("{}/2", url("", &addresses, NAME))).await;

    let nobody = format!("127.0.0.1:{}", ports::free());
    works_at(&url("", &[nobody.clone(), addresses[0].clone()], NAME)).await;
    let told = refused_at(&url(":secret@", std::slice::from_ref(&nobody), NAME)).await;
    assert!(told.contains("refused"), "{told}");

    // Some that never answer stand before one that does.
    let silent = Server::start();
    silent.pause();
    let mut some = vec![silent.address(); 4];
    some.push(addresses[0].clone());
    works_at(&url("", &some, NAME)).await;

    let some = [nobody.clone(), addresses[0].clone(), nobody];
    for some in [&addresses[..], &some] {
        let told = refused_at(&url(":secret@", some, "another")).await;
        assert!(told.contains("knows no master of this name"), "{told}");
    }
}

#[tokio::test]
async fn a_server_that_is_no_sentinel_is_told() {
    let server = Server::start();
    let told = refused_at(&url("", &[server.address()], NAME)).await;
    assert!(told.contains("'SENTINEL'"), "{told}");
}

/// The servers have a user. The Sentinels have none at first, then the same one.
#[tokio::test]
async fn the_login_is_for_the_servers_and_for_sentinels_that_want_one() {
    let sentinels = Sentinels::start().await;
    let master = sentinels.master().await;
    master.set_user("app", "s3cret", &["~*", "+@all"]).await;
    let addresses = sentinels.addresses();
    works_at(&url("app:s3cret@", &addresses, NAME)).await;
    refused_at(&url("app:secret@", &addresses, NAME)).await;
    for address in &addresses {
        ask(address, &["ACL", "SETUSER", "app", "on", ">s3cret", "+@all"]).await;
    }
    works_at(&url("app:s3cret@", &addresses, NAME)).await;
    for address in &addresses {
        ask(address, &["ACL", "SETUSER", "default", "off"]).await;
    }
    works_at(&url("app:s3cret@", &addresses, NAME)).await;
}

#[tokio::test]
async fn a_password_alone_is_tried_at_the_sentinels_and_not_needed_there() {
    let sentinels = Sentinels::start().await;
    let master = sentinels.master().await;
    let addresses = sentinels.addresses();
    // The users without a password take any.
    works_at(&url(":s3cret@", &addresses, NAME)).await;
    master.set_user("default", "s3cret", &["~*", "&*", "+@all"]).await;
    works_at(&url(":s3cret@", &addresses, NAME)).await;
    refused_at(&url(":secret@", &addresses, NAME)).await;
}
