//! The integration tests, one binary: each links the engine, and linking is what costs.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::print_stdout, reason = "tests")]

mod architecture;
mod asking;
mod bad_input;
mod cli;
mod code;
mod components;
mod consent;
mod crash;
mod deliver;
mod demo;
mod disk;
mod exfiltration;
mod explain;
mod fetch;
mod gate;
mod homes;
mod killed;
mod models;
mod outgoing;
mod parked;
mod parsers;
mod receipts;
mod replies;
mod runs;
mod screens;
mod secrets;
mod shell;
mod side_by_side;
mod skills_attack;
mod skills_cli;
mod skills_scenarios;
mod skills_shipped;
mod toolboxes;
