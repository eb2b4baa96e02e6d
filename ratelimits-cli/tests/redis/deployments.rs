//! Every way to connect.

use std::fs;
use std::path::PathBuf;

use serde_json::json;

use crate::command::{registry, run, slow_bucket};
use crate::support::server::cluster::Cluster;
use crate::support::server::sentinels::Sentinels;
use crate::support::server::tls::{Authority, TlsServer};
use crate::support::server::{Server, ports};

/// Makes 40 keys at one URL, and uses each command at another.
async fn works(program_url: &str, url: &str, options: &[&str]) {
    let limiter = registry(program_url, "deployments").await.limiter("app::send", slow_bucket(3)).unwrap();
    for key in 0..40 {
        limiter.try_acquire_n(key, if key < 10 { 3 } else { 1 }).await.unwrap();
    }
    let run = |arguments: &[&str]| run(url, &[arguments, &["--namespace", "deployments"], options].concat());
    let listed = run(&["list", "--json"]).json();
    let policy = &listed["policies"][0];
    assert_eq!((&policy["keys"], &policy["limited"]), (&json!(40), &json!(10)), "{listed}");
    assert_eq!(run(&["top", "--json"]).json()["keys"].as_array().unwrap().len(), 10);
    assert_eq!(run(&["peek", "app::send", "11", "--json"]).json()["states"][0]["used"], 1);
    run(&["reset", "app::send", "11"]).success();
    assert_eq!(run(&["reset", "app::send", "--all", "--yes", "--json"]).json(), json!({"deleted": 39}));
}

#[tokio::test]
async fn commands_work_on_a_cluster() {
    let cluster = Cluster::start().await;
    works(&cluster.url(), &cluster.url(), &[]).await;
    // Any of its nodes will do.
    let seed = format!("redis+cluster://{}", cluster.addresses()[4]);
    works(&cluster.url(), &seed, &[]).await;
}

#[tokio::test]
async fn commands_work_over_tls() {
    let authority = Authority::new();
    let server = TlsServer::start_with(&authority, &["--tls-auth-clients", "yes"]);
    let (certificate, key) = authority.client();
    let file = |name: &str, text: &str| {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}.pem", server.port()));
        fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let [ca, cert, key] =
        [("ca", authority.pem()), ("cert", certificate), ("key", key)].map(|(name, text)| file(name, &text));
    works(&server.url(), &server.tls_url(), &["--cacert", &ca, "--cert", &cert, "--cert-key", &key]).await;

    let untrusted = run(&server.tls_url(), &["list", "--cert", &cert, "--cert-key", &key]);
    assert_eq!(untrusted.code, 3, "{untrusted:?}");
    assert!(untrusted.err.contains("certificate") && untrusted.err.contains("localhost"), "{untrusted:?}");
    let unreadable = run(&server.tls_url(), &["list", "--cacert", "/no/such/file"]);
    assert_eq!(unreadable.code, 2, "{unreadable:?}");
    assert!(unreadable.err.contains("cannot read /no/such/file"), "{unreadable:?}");
}

#[tokio::test]
async fn commands_work_on_the_master_that_sentinels_watch() {
    let sentinels = Sentinels::start().await;
    works(&sentinels.url(), &sentinels.url(), &[]).await;
}

#[tokio::test]
async fn commands_work_over_a_socket() {
    let server = Server::start_with_socket();
    works(&server.url(), &server.socket_url(), &[]).await;
}

#[test]
fn errors_name_the_server_and_no_password() {
    let absent = format!("127.0.0.1:{}", ports::free());
    let failed = run(&format!("redis://ann:secret@{absent}"), &["list"]);
    assert_eq!(failed.code, 3, "{failed:?}");
    assert!(failed.err.contains(&absent) && !failed.err.contains("secret"), "{failed:?}");
    let silent = Server::start();
    silent.pause();
    let failed = run(&silent.url(), &["peek", "app::send"]);
    assert_eq!(failed.code, 3, "{failed:?}");
    assert!(failed.err.contains(&silent.address()), "{failed:?}");
    for (url, problem) in
        [("memory://", "only the program reaches it"), ("http://x", "a store URL starts with")]
    {
        let failed = run(url, &["list"]);
        assert!(failed.code == 2 && failed.err.contains(problem), "{failed:?}");
    }
}
