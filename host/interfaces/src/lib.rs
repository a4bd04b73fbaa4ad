//! The surfaces of the product: the `motor` command line, the HTTP API, and the MCP server.
//!
//! Architecture invariant: no decision about runs, tools, energy or state is made here. A surface turns words into a
//! request for [`agent::Host`] and its answer into words; logic that two surfaces share lives in the facade. The
//! command line is a client of the HTTP API like any other, even if it is its own host.
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests"))]

pub mod cli;
pub mod client;
pub mod duration;
pub mod exit;
pub mod http;
pub mod mcp;
pub mod output;
pub mod session;
mod words;
