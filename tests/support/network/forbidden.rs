//! A listener that no program may reach.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicUsize, Ordering};

/// A listener that no program may reach, and that counts the connections that did. It never answers.
#[derive(Debug)]
pub struct Forbidden {
    listener: TcpListener,
    connections: AtomicUsize,
}

impl Forbidden {
    /// Listens at an address; port 0 is a free one.
    ///
    /// # Panics
    /// If the address is not this machine's or taken.
    #[must_use]
    pub fn listen(address: &str) -> Self {
        Self::try_listen(address).unwrap_or_else(|error| panic!("{address}: {error}"))
    }

    /// The same for an address that another program may have.
    ///
    /// # Errors
    /// If the address is not this machine's or taken.
    pub fn try_listen(address: &str) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        Ok(Self { listener, connections: AtomicUsize::new(0) })
    }

    /// Where it listens.
    ///
    /// # Panics
    /// If the listener is gone.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.listener.local_addr().expect("a listener")
    }

    /// The number of connections. The kernel completes connections by itself and keeps them, so none is missed and
    /// there is nothing to wait for.
    ///
    /// # Panics
    /// If the listener is gone.
    pub fn connections(&self) -> usize {
        loop {
            match self.listener.accept() {
                Ok(_) => self.connections.fetch_add(1, Ordering::Relaxed),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => break,
                Err(error) => panic!("{error}"),
            };
        }
        self.connections.load(Ordering::Relaxed)
    }

    /// Checks that no connection came.
    ///
    /// # Panics
    /// If a connection came.
    #[track_caller]
    pub fn untouched(&self) {
        assert_eq!(self.connections(), 0, "somebody reached {}", self.address());
    }
}
