//! A certificate authority of the tests, and the certificates that no client may take.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd};
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

/// A certificate authority, and the file with its certificate for those who are to trust it.
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    directory: tempfile::TempDir,
}

/// The certificate and key with which a site speaks TLS.
#[derive(Debug, Clone)]
pub struct ServerTls(pub(super) Arc<ServerConfig>);

impl Default for Authority {
    fn default() -> Self {
        Self::new()
    }
}

impl Authority {
    /// Makes a new certificate authority.
    ///
    /// # Panics
    /// If there is no randomness or no temporary directory.
    #[must_use]
    pub fn new() -> Self {
        let mut parameters = CertificateParams::new(Vec::new()).expect("no names");
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        parameters.distinguished_name.push(DnType::CommonName, "authority of the tests");
        let issuer = CertifiedIssuer::self_signed(parameters, key()).expect("a certificate");
        let directory = tempfile::Builder::new().prefix("motor-it-ca-").tempdir().expect("a temporary directory");
        std::fs::write(directory.path().join("ca.pem"), issuer.pem()).expect("a file");
        Self { issuer, directory }
    }

    /// The file with its certificate, in PEM.
    #[must_use]
    pub fn file(&self) -> PathBuf {
        self.directory.path().join("ca.pem")
    }

    /// The directory of that file.
    #[must_use]
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// A good certificate for names and addresses.
    ///
    /// # Panics
    /// If a name is invalid.
    #[must_use]
    pub fn certificate(&self, names: &[&str]) -> ServerTls {
        self.sign(parameters(names))
    }

    /// A certificate that has expired.
    ///
    /// # Panics
    /// If a name is invalid.
    #[must_use]
    pub fn expired(&self, names: &[&str]) -> ServerTls {
        let mut parameters = parameters(names);
        (parameters.not_before, parameters.not_after) = (date_time_ymd(2001, 1, 1), date_time_ymd(2002, 1, 1));
        self.sign(parameters)
    }

    fn sign(&self, parameters: CertificateParams) -> ServerTls {
        let key = key();
        let certificate = parameters.signed_by(&key, &self.issuer).expect("a certificate");
        server(certificate.der(), &key)
    }
}

impl ServerTls {
    /// A certificate that only its owner vouches for.
    ///
    /// # Panics
    /// If a name is invalid.
    #[must_use]
    pub fn self_signed(names: &[&str]) -> Self {
        let key = key();
        let certificate = parameters(names).self_signed(&key).expect("a certificate");
        server(certificate.der(), &key)
    }
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Authority").field("file", &self.file()).finish_non_exhaustive()
    }
}

fn key() -> KeyPair {
    KeyPair::generate().expect("randomness")
}

fn parameters(names: &[&str]) -> CertificateParams {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    CertificateParams::new(names).expect("names")
}

fn server(certificate: &CertificateDer<'static>, key: &KeyPair) -> ServerTls {
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let builder = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().expect("versions").with_no_client_auth();
    ServerTls(Arc::new(builder.with_single_cert(vec![certificate.clone()], key).expect("a key that fits")))
}
