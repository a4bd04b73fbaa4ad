//! Certificates: the right one passes, every other is refused.

use std::io::Write as _;
use std::sync::Arc;

use network::{CallNetwork, GateError};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, date_time_ymd};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tempfile::NamedTempFile;
use tokio_rustls::TlsAcceptor;

use crate::dns::Dns;
use crate::server::Server;
use crate::setup::{Setup, get};

type Authority = CertifiedIssuer<'static, KeyPair>;

fn authority() -> Authority {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// A server's side of TLS for a name, from an authority.
fn acceptor(authority: &Authority, name: &str, expired: bool) -> TlsAcceptor {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    if expired {
        params.not_before = date_time_ymd(2001, 1, 1);
        params.not_after = date_time_ymd(2002, 1, 1);
    }
    let certificate = params.signed_by(&key, authority).unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_no_client_auth().with_single_cert(vec![certificate.der().clone()], key).unwrap();
    TlsAcceptor::from(Arc::new(config))
}

fn file(authority: &Authority) -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(authority.pem().as_bytes()).unwrap();
    file
}

async fn call(server: &Server, trusted: &NamedTempFile) -> CallNetwork {
    let dns = Dns::answering(&[&["127.0.0.1"]]).await;
    let hosts = ["site", "a.site", "a.b.site"].map(|name| format!("{name}.example:{}", server.port()));
    let hosts = hosts.each_ref().map(String::as_str);
    let mut setup = Setup::default().reaching(server.address).domains(&hosts).dns(&dns);
    setup.config.authorities = vec![trusted.path().to_owned()];
    setup.call()
}

#[tokio::test]
async fn only_a_trusted_certificate_of_that_name_passes() {
    let (ours, theirs) = (authority(), authority());
    let trusted = file(&ours);
    for (signer, name, expired, host, passes) in [
        (&ours, "site.example", false, "site.example", true),
        (&ours, "*.site.example", false, "a.site.example", true),
        (&ours, "127.0.0.1", false, "127.0.0.1", true),
        (&ours, "other.example", false, "site.example", false),
        (&ours, "127.0.0.1", false, "site.example", false),
        (&ours, "site.example", false, "127.0.0.1", false),
        (&ours, "*.site.example", false, "a.b.site.example", false),
        (&ours, "site.example", true, "site.example", false),
        (&theirs, "site.example", false, "site.example", false),
    ] {
        let server = Server::tls(acceptor(signer, name, expired), "hello").await;
        let call = call(&server, &trusted).await;
        let outcome = get(&call, &format!("https://{host}:{}/", server.port())).await;
        if passes {
            assert_eq!(outcome.unwrap(), "hello", "{name} {host}");
        } else {
            let error = outcome.unwrap_err();
            assert!(matches!(error, GateError::Tls { .. }), "{name} {host}: {error:?}");
            assert!(server.requests().is_empty(), "{name} {host}");
        }
    }
}

#[tokio::test]
async fn a_server_that_does_not_speak_tls_is_told() {
    let trusted = file(&authority());
    let server = Server::speaking_first(b"220 mail.example ready\r\n").await;
    let call = call(&server, &trusted).await;
    let error = get(&call, &format!("https://site.example:{}/", server.port())).await.unwrap_err();
    assert!(matches!(error, GateError::Tls { .. }), "{error:?}");
}

#[test]
fn a_file_without_certificates_is_told_at_once() {
    for text in ["", "no certificate", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
        let mut file = NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        let config =
            network::NetworkConfig { authorities: vec![file.path().to_owned()], ..network::NetworkConfig::default() };
        let refusal = network::Gate::new(&config).err().unwrap();
        assert!(refusal.reason.contains("network.authorities"), "{refusal}");
    }
}
