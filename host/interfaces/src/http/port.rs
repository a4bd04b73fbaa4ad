//! The TCP port that the owner asked for. Its connections come in: nothing here connects to anything.
#![expect(clippy::disallowed_types, reason = "a listener of the owner's, and its connections")]

use std::io;
use std::net::SocketAddr;

use base::{Refusal, RefusalCode};
use tokio::net::{TcpListener, TcpStream};

use super::listen::{Listener, wait_for_descriptors};

/// A TCP port to serve.
#[derive(Debug, Clone, Copy)]
pub struct TcpPort {
    /// Address and port; port 0 lets the system choose.
    pub address: SocketAddr,
    /// Whether other machines may reach it. Without this only addresses of the loopback interface are taken.
    pub allow_remote: bool,
}

impl TcpPort {
    /// Takes the port.
    ///
    /// # Errors
    /// If the address is not one of the loopback interface and remote access is not allowed, or the port is taken.
    pub(super) async fn bind(self) -> Result<TcpListener, Refusal> {
        let Self { address, allow_remote } = self;
        if !address.ip().is_loopback() && !allow_remote {
            let reason = format!("`{address}` can be reached from other machines");
            let remedy = "take `127.0.0.1:PORT`, or add `--allow-remote`: then tokens cross the network in plain text \
                          unless a proxy in front encrypts them";
            return Err(Refusal::new(RefusalCode::InvalidRequest, reason).with_remedy(remedy));
        }
        TcpListener::bind(address).await.map_err(|error| self.failed(&error))
    }

    pub(super) fn failed(self, error: &io::Error) -> Refusal {
        Refusal::new(RefusalCode::Failed, format!("cannot listen on `{}`: {error}", self.address))
            .with_remedy("take another port: `--listen 127.0.0.1:PORT`")
    }
}

impl Listener for TcpListener {
    type Stream = TcpStream;

    async fn accept(&self) -> TcpStream {
        loop {
            match Self::accept(self).await {
                Ok((stream, _)) => {
                    // An event must not wait for the acknowledgement of the one before it. Without the option it only comes later.
                    if let Err(error) = stream.set_nodelay(true) {
                        tracing::debug!(%error, "a connection keeps back small segments");
                    }
                    return stream;
                }
                Err(error) => wait_for_descriptors(&error).await,
            }
        }
    }
}
