//! TLS: the server is verified, its name too, by the authorities that are given or else by those of the system.

use super::{builder, refused, refused_at, works_as};
use crate::support::server::Server;
use crate::support::server::tls::{Authority, TlsServer};

#[tokio::test]
async fn a_server_of_the_trusted_authority_works() {
    let authority = Authority::new();
    let server = TlsServer::start(&authority);
    let trusting = |builder: ratelimits::RegistryBuilder| builder.ca_certificates(authority.pem());
    works_as(&server.tls_url(), trusting).await;
    server.set_user("app", "s3cret", &["~*", "+@all"]).await;
    works_as(&format!("rediss://app:s3cret@127.0.0.1:{}/2", server.tls_port()), trusting).await;
}

#[tokio::test]
async fn one_of_several_authorities_is_enough() {
    let [authority, stranger] = [Authority::new(), Authority::new()];
    let server = TlsServer::start(&authority);
    let both = format!("{}{}", stranger.pem(), authority.pem());
    works_as(&server.tls_url(), |builder| builder.ca_certificates(&both)).await;
}

#[tokio::test]
async fn a_server_of_another_authority_is_refused() {
    let [authority, stranger] = [Authority::new(), Authority::new()];
    let server = TlsServer::start(&authority);
    let url = server.tls_url().replace("rediss://", "rediss://app:secret@");
    // The system knows neither.
    for told in [refused_at(&url).await, refused(builder().ca_certificates(stranger.pem()), &url).await] {
        assert!(told.contains("certificate"), "{told}");
    }
}

#[tokio::test]
async fn a_server_under_another_name_is_refused() {
    let authority = Authority::new();
    let server = TlsServer::start_with(&authority, &["--bind", "127.0.0.1", "127.0.0.2"]);
    let trusting = || builder().ca_certificates(authority.pem());
    let url = format!("rediss://:secret@127.0.0.2:{}", server.tls_port());
    let told = refused(trusting(), &url).await;
    assert!(told.contains("certificate"), "{told}");
    // Nobody can be told to look away.
    let told = refused(trusting(), &format!("{url}/#insecure")).await;
    assert!(told.contains("insecure"), "{told}");
}

#[tokio::test]
async fn certificates_that_are_none_are_told() {
    let server = TlsServer::start(&Authority::new());
    for pem in ["", "secret", "-----BEGIN CERTIFICATE-----\nsecret\n-----END CERTIFICATE-----\n"] {
        let told = refused(builder().ca_certificates(pem), &server.tls_url()).await;
        assert!(told.contains("certificate") || told.contains("trust anchors"), "{pem:?}: {told}");
    }
}

#[tokio::test]
async fn a_server_without_tls_is_refused() {
    let server = Server::start();
    let authority = Authority::new();
    let url = server.url().replace("redis://", "rediss://:secret@");
    refused(builder().ca_certificates(authority.pem()), &url).await;
}
