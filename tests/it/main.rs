//! The integration tests, one binary: each links the engine, and linking is what costs.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::print_stdout, reason = "tests")]

mod architecture;
mod cli;
mod code;
mod components;
mod crash;
mod models;
mod runs;
mod side_by_side;
