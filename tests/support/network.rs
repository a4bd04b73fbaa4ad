//! A small internet on this machine: sites that behave and sites that do not, a DNS server whose answers change,
//! listeners that no program may reach, an authority of its own for TLS, and a network namespace in which public
//! addresses are local.
//!
//! Everything is real: sockets, datagrams, handshakes. Each part counts the requests that reach it, so that a test can
//! tell "refused" from "sent and thrown away".

pub mod authority;
pub mod dns;
pub mod encoding;
pub mod forbidden;
pub mod namespace;
pub mod reply;
pub mod repository;
pub mod site;

pub use authority::{Authority, ServerTls};
pub use dns::{Answer, Dns};
pub use encoding::Encoding;
pub use forbidden::Forbidden;
pub use reply::Reply;
pub use repository::BareRepository;
pub use site::{Received, Site};
