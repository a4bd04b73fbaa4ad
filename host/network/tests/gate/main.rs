//! The gate against real servers and a real DNS responder on loopback addresses. The guard on addresses is on in every test:
//! the addresses of the tests are on the owner's list.
#![allow(clippy::disallowed_types, reason = "tests")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::print_stdout, reason = "tests")]

mod carried;
mod consent;
mod credentials;
mod dns;
mod given;
mod hostile;
mod limits;
mod requests;
mod server;
mod setup;
mod staged;
mod taint;
mod tls;
