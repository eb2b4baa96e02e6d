//! A server with TLS, and certificates made for the test.

use std::ops::Deref;
use std::path::Path;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, KeyUsagePurpose};

use super::{Server, ports, process};

/// A certificate authority.
pub(crate) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    pub(crate) fn new() -> Authority {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "test authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let issuer = CertifiedIssuer::self_signed(params, key()).expect("the authority is valid");
        Authority { issuer }
    }

    /// The authority's certificate, for clients, as PEM.
    pub(crate) fn pem(&self) -> String {
        self.issuer.pem()
    }

    /// Returns a client's certificate and key, as PEM.
    #[allow(dead_code, reason = "the tests that present it need the feature `tls`")]
    pub(crate) fn client(&self) -> (String, String) {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "test client");
        params.use_authority_key_identifier_extension = true;
        let key = key();
        let certificate = params.signed_by(&key, &self.issuer).expect("the authority signs");
        (certificate.pem(), key.serialize_pem())
    }

    /// Writes a server's certificate and key and the authority's certificate to this directory, and returns the arguments
    /// that name them.
    fn write(&self, dir: &Path) -> [(&'static str, String); 3] {
        let mut params =
            CertificateParams::new(["localhost".into(), "127.0.0.1".into()]).expect("the names are valid");
        params.distinguished_name.push(DnType::CommonName, "test server");
        params.use_authority_key_identifier_extension = true;
        let key = key();
        let certificate = params.signed_by(&key, &self.issuer).expect("the authority signs");
        let files = [
            ("--tls-cert-file", "server.crt", certificate.pem()),
            ("--tls-key-file", "server.key", key.serialize_pem()),
            ("--tls-ca-cert-file", "ca.crt", self.pem()),
        ];
        files.map(|(option, file, text)| {
            let path = dir.join(file);
            std::fs::write(&path, text).expect("the directory is writable");
            (option, path.display().to_string())
        })
    }
}

/// A server with a TLS port beside the plain one that the tests use to control it.
#[derive(Debug)]
pub(crate) struct TlsServer {
    server: Server,
}

impl TlsServer {
    pub(crate) fn start(authority: &Authority) -> TlsServer {
        TlsServer::start_with(authority, &[])
    }

    /// As a TLS client, for replication, the server trusts the authority that signed its own certificate.
    pub(crate) fn start_with(authority: &Authority, more: &[&str]) -> TlsServer {
        let server = Server::start_by(|port, dir| {
            let mut arguments = process::plain(port, dir);
            let port = (port + ports::SECOND).to_string();
            arguments.extend(["--tls-port", &port, "--tls-auth-clients", "no"].map(str::to_owned));
            for (option, path) in authority.write(dir) {
                arguments.extend([option.to_owned(), path]);
            }
            arguments.extend(more.iter().map(|argument| (*argument).to_owned()));
            arguments
        });
        TlsServer { server }
    }

    pub(crate) fn tls_port(&self) -> u16 {
        self.port() + ports::SECOND
    }

    pub(crate) fn tls_url(&self) -> String {
        format!("rediss://localhost:{}", self.tls_port())
    }
}

impl Deref for TlsServer {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.server
    }
}

fn key() -> KeyPair {
    KeyPair::generate().expect("the system provides randomness")
}
