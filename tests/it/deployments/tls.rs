//! TLS: the server's certificate and name are verified against the given authorities, or else those of the system.

use super::{builder, connect_error, connect_error_of, works_as};
use crate::support::server::Server;
use crate::support::server::tls::{Authority, TlsServer};

#[tokio::test]
async fn trusted_server_works() {
    let authority = Authority::new();
    let server = TlsServer::start(&authority);
    let trusting = |builder: ratelimits::RegistryBuilder| builder.ca_certificates(authority.pem());
    works_as(&server.tls_url(), trusting).await;
    server.set_user("app", "s3cret", &["~*", "+@all"]).await;
    works_as(&format!("rediss://app:s3cret@127.0.0.1:{}/2", server.tls_port()), trusting).await;
}

#[tokio::test]
async fn any_of_several_authorities_is_trusted() {
    let [authority, other] = [Authority::new(), Authority::new()];
    let server = TlsServer::start(&authority);
    let both = format!("{}{}", other.pem(), authority.pem());
    works_as(&server.tls_url(), |builder| builder.ca_certificates(&both)).await;
}

#[tokio::test]
async fn server_of_another_authority_is_refused() {
    let [authority, other] = [Authority::new(), Authority::new()];
    let server = TlsServer::start(&authority);
    let url = server.tls_url().replace("rediss://", "rediss://app:secret@");
    // Neither does the system trust it.
    let with_other = connect_error_of(builder().ca_certificates(other.pem()), &url).await;
    for error in [connect_error(&url).await, with_other] {
        assert!(error.contains("certificate"), "{error}");
    }
}

#[tokio::test]
async fn server_under_another_name_is_refused() {
    let authority = Authority::new();
    let server = TlsServer::start_with(&authority, &["--bind", "127.0.0.1", "127.0.0.2"]);
    let trusting = || builder().ca_certificates(authority.pem());
    let url = format!("rediss://:secret@127.0.0.2:{}", server.tls_port());
    let error = connect_error_of(trusting(), &url).await;
    assert!(error.contains("certificate"), "{error}");
    // Verification cannot be disabled.
    let error = connect_error_of(trusting(), &format!("{url}/#insecure")).await;
    assert!(error.contains("insecure"), "{error}");
}

#[tokio::test]
async fn invalid_ca_certificates_are_an_error() {
    let server = TlsServer::start(&Authority::new());
    for pem in ["", "secret", "-----BEGIN CERTIFICATE-----\nsecret\n-----END CERTIFICATE-----\n"] {
        let error = connect_error_of(builder().ca_certificates(pem), &server.tls_url()).await;
        assert!(error.contains("certificate") || error.contains("trust anchors"), "{pem:?}: {error}");
    }
}

#[tokio::test]
async fn server_without_tls_is_refused() {
    let server = Server::start();
    let authority = Authority::new();
    let url = server.url().replace("redis://", "rediss://:secret@");
    connect_error_of(builder().ca_certificates(authority.pem()), &url).await;
}
