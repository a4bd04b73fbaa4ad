//! A connection to an address that was checked, with TLS when the URL says so.
//!
//! Knows no names but the one in the certificate. Trusts the authorities of the system and of the owner, and nothing in
//! the environment: no proxies, no key log; only the path of the system's authorities (`SSL_CERT_FILE`). Each request has a connection and a handshake of its own, so nothing ties one run
//! to another.
#![expect(clippy::disallowed_types, reason = "the gate connects")]

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use base::Refusal;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::OnceCell;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsConnector;

use crate::GateError;
use crate::config::wrong;
use crate::target::{Host, Scheme, Target, shown};

/// Addresses of one name that are tried. An answer can hold thousands.
const MAX_TRIED: usize = 8;

/// A connection, encrypted or not.
pub(crate) trait GateConnection: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> GateConnection for T {}

/// Whom to trust, and how to connect.
pub(crate) struct Connector {
    /// The owner's authorities, read when the host starts: a wrong file is told at once.
    authorities: Vec<CertificateDer<'static>>,
    /// Made at the first encrypted request: reading the system's authorities takes longer than a host's start may.
    tls: OnceCell<TlsConnector>,
}

impl Connector {
    pub(crate) fn new(files: &[PathBuf]) -> Result<Self, Refusal> {
        let mut authorities = Vec::new();
        for file in files {
            let bad = |error: &dyn std::fmt::Display| {
                wrong("authorities", &format!("`{}` cannot be read as PEM certificates: {error}", file.display()))
            };
            let text = std::fs::read(file).map_err(|error| bad(&error))?;
            let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
            let certificates = certificates.map_err(|error| bad(&error))?;
            if certificates.is_empty() {
                return Err(bad(&"it holds none"));
            }
            // An invalid authority is found now and not at the first request.
            for certificate in &certificates {
                RootCertStore::empty().add(certificate.clone()).map_err(|error| bad(&error))?;
            }
            authorities.extend(certificates);
        }
        Ok(Self { authorities, tls: OnceCell::new() })
    }

    /// Connects to the first of these addresses that answers.
    pub(crate) async fn connect(
        &self,
        target: &Target,
        addresses: &[SocketAddr],
        deadline: Instant,
    ) -> Result<Box<dyn GateConnection>, GateError> {
        let stream = tcp(target, addresses, deadline).await?;
        match target.scheme() {
            Scheme::Http => Ok(Box::new(stream)),
            Scheme::Https => {
                let connector = self.tls.get_or_try_init(|| load(&self.authorities)).await;
                let failed = |message: String| GateError::Tls { host: target.authority(), message };
                let name = server_name(target.host()).map_err(failed)?;
                let stream = connector.map_err(failed)?.connect(name, stream).await;
                Ok(Box::new(stream.map_err(|error| failed(refused(&error)))?))
            }
        }
    }
}

/// Tries the addresses one after another. None may use up the others' time.
async fn tcp(target: &Target, addresses: &[SocketAddr], deadline: Instant) -> Result<TcpStream, GateError> {
    let addresses = addresses.get(..MAX_TRIED).unwrap_or(addresses);
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for (position, address) in addresses.iter().enumerate() {
        let left = u32::try_from(addresses.len() - position).unwrap_or(u32::MAX);
        let share = deadline.saturating_duration_since(Instant::now()) / left;
        match timeout_at(Instant::now() + share, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => {
                // One small request, then reading: waiting to fill a packet only costs time. Failing costs nothing else.
                stream.set_nodelay(true).unwrap_or_default();
                return Ok(stream);
            }
            Ok(Err(error)) => last = error,
            Err(_) => last = io::Error::from(io::ErrorKind::TimedOut),
        }
    }
    Err(GateError::Connect { host: target.authority(), message: last.kind().to_string() })
}

fn server_name(host: &Host) -> Result<ServerName<'static>, String> {
    match host {
        Host::Name(name) => ServerName::try_from(name.clone()).map_err(|error| error.to_string()),
        Host::Address(IpAddr::V4(address)) => Ok(ServerName::IpAddress((*address).into())),
        Host::Address(IpAddr::V6(address)) => Ok(ServerName::IpAddress((*address).into())),
    }
}

/// Why there is no TLS, in words of ours where the library's would quote the server's certificate to the model.
fn refused(error: &io::Error) -> String {
    use rustls::CertificateError::{NotValidForName, NotValidForNameContext};
    let cause = error.get_ref().and_then(|cause| cause.downcast_ref::<rustls::Error>());
    match cause {
        Some(rustls::Error::InvalidCertificate(NotValidForName | NotValidForNameContext { .. })) => {
            "its certificate is for another name".to_owned()
        }
        Some(cause) => shown(&cause.to_string()),
        None => error.kind().to_string(),
    }
}

async fn load(authorities: &[CertificateDer<'static>]) -> Result<TlsConnector, String> {
    let system = tokio::task::spawn_blocking(rustls_native_certs::load_native_certs);
    let system = system.await.map_err(|_| "reading the authorities of this machine broke off".to_owned())?;
    for error in &system.errors {
        tracing::debug!(%error, "an authority of the system cannot be read");
    }
    let mut roots = RootCertStore::empty();
    // Systems carry some that this library does not take; the others do.
    roots.add_parsable_certificates(system.certs);
    for certificate in authorities {
        roots.add(certificate.clone()).map_err(|error| error.to_string())?;
    }
    if roots.is_empty() {
        return Err("this machine trusts no certificate authority; install its package of CA certificates".to_owned());
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let mut config = config.map_err(|error| error.to_string())?.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    config.resumption = rustls::client::Resumption::disabled();
    Ok(TlsConnector::from(Arc::new(config)))
}
