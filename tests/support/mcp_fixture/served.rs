//! The fixture on a port of this machine, served by the product's own code.

use std::net::{Ipv4Addr, SocketAddr};

use interfaces::http::port::TcpPort;
use interfaces::http::serve_fixture;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::McpFixture;

/// A running fixture server. It stops when dropped.
#[derive(Debug)]
pub struct Served {
    /// The address of the endpoint.
    pub url: String,
    _closing: DropGuard,
}

impl Served {
    /// Starts it on a free port.
    ///
    /// # Panics
    /// If no port is free.
    pub async fn start() -> Self {
        let closing = CancellationToken::new();
        let port = TcpPort { address: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), allow_remote: false };
        let fixture = McpFixture::new();
        let served = serve_fixture(port, move || fixture.clone(), closing.clone()).await;
        let (address, _) = served.unwrap_or_else(|refusal| panic!("{refusal:?}"));
        Self { url: format!("http://{address}/mcp"), _closing: closing.drop_guard() }
    }
}
