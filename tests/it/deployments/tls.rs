//! TLS: the server's certificate and name are verified against the given authorities, or else those of the system.

use ratelimits::RegistryBuilder;

use super::{builder, connect_error, connect_error_of, works_as};
use crate::support::server::Server;
use crate::support::server::tls::{Authority, TlsServer};

#[tokio::test]
async fn trusted_server_works() {
    let authority = Authority::new();
    let server = TlsServer::start(&authority);
    let trusting = |builder: RegistryBuilder| builder.ca_certificates(authority.pem());
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

/// A server that asks its clients for certificates, as it does by default.
fn start_with_client_certificates(authority: &Authority) -> TlsServer {
    TlsServer::start_with(authority, &["--tls-auth-clients", "yes"])
}

#[tokio::test]
async fn client_certificate_is_presented() {
    let authority = Authority::new();
    let server = start_with_client_certificates(&authority);
    let (certificate, key) = authority.client();
    let with_certificate = |builder: RegistryBuilder| {
        builder.ca_certificates(authority.pem()).client_certificate(&certificate, &key)
    };
    works_as(&server.tls_url(), with_certificate).await;
    let shown = format!("{:?}", with_certificate(builder()));
    let registry = with_certificate(builder()).connect_lazy(&server.tls_url()).unwrap();
    let secret = key.lines().nth(1).expect("the key has lines");
    for shown in [shown, format!("{registry:?}")] {
        assert!(!shown.contains(secret) && !shown.contains("45, 45, 45"), "{shown}");
    }
}

#[tokio::test]
async fn client_without_the_right_certificate_is_refused() {
    let [authority, other] = [Authority::new(), Authority::new()];
    let server = start_with_client_certificates(&authority);
    let url = server.tls_url().replace("rediss://", "rediss://app:secret@");
    let trusting = || builder().ca_certificates(authority.pem());
    let error = connect_error_of(trusting(), &url).await;
    assert!(error.contains("ertificate"), "{error}");
    let (certificate, key) = other.client();
    connect_error_of(trusting().client_certificate(certificate, key), &url).await;
}

#[tokio::test]
async fn invalid_client_certificates_are_errors() {
    let authority = Authority::new();
    let server = start_with_client_certificates(&authority);
    let [(certificate, key), (_, another_key)] = [authority.client(), authority.client()];
    let trusting = || builder().ca_certificates(authority.pem());
    for (certificate, key) in [("secret", &*key), (&*certificate, "secret"), (&*certificate, &*certificate)] {
        let builder = trusting().client_certificate(certificate, key);
        let error = builder.connect_lazy(&server.tls_url()).unwrap_err().to_string();
        assert!(error.contains("certificate or key") || error.contains("certificates"), "{error}");
        assert!(!error.contains("secret"), "{error}");
    }
    let error =
        connect_error_of(trusting().client_certificate(certificate, another_key), &server.tls_url()).await;
    assert!(error.contains("key"), "{error}");
}
