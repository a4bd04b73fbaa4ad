//! Linking: an interface exists for a component only when it imports it and the call grants it.

use std::collections::BTreeSet;

use bindings::{credentials, log, outbound, progress};
use capabilities::credentials::HasCredentials;
use capabilities::http;
use capabilities::log::HasLog;
use capabilities::outbound::HasOutbound;
use capabilities::progress::HasProgress;
use capabilities::random::HasRandom;
use capabilities::workspace::HasWorkspace;
use wasmtime::Engine;
use wasmtime::component::{HasData, Linker, ResourceTable};
use wasmtime_wasi::cli::WasiCli;
use wasmtime_wasi::clocks::WasiClocks;
use wasmtime_wasi::p2::bindings::{cli, clocks, filesystem, io, random};

use crate::inspect::Capability;
use crate::state::CallState;

struct HasTable;

impl HasData for HasTable {
    type Data<'a> = &'a mut ResourceTable;
}

/// Offers the interfaces of `capabilities`, and nothing else.
pub(crate) fn linker(engine: &Engine, capabilities: &BTreeSet<Capability>) -> wasmtime::Result<Linker<CallState>> {
    type S = CallState;
    let mut linker = Linker::new(engine);
    let l = &mut linker;
    for capability in capabilities {
        match capability {
            Capability::Streams => {
                io::error::add_to_linker::<S, HasTable>(l, |s| &mut s.table)?;
                io::poll::add_to_linker::<S, HasTable>(l, |s| &mut s.table)?;
                io::streams::add_to_linker::<S, HasTable>(l, |s| &mut s.table)?;
            }
            Capability::Clock => {
                clocks::wall_clock::add_to_linker::<S, WasiClocks>(l, S::clocks)?;
                clocks::monotonic_clock::add_to_linker::<S, WasiClocks>(l, S::clocks)?;
            }
            Capability::Random => {
                random::random::add_to_linker::<S, HasRandom>(l, S::random)?;
                random::insecure::add_to_linker::<S, HasRandom>(l, S::random)?;
                random::insecure_seed::add_to_linker::<S, HasRandom>(l, S::random)?;
            }
            Capability::Workspace => {
                filesystem::preopens::add_to_linker::<S, HasWorkspace>(l, S::workspace)?;
                filesystem::types::add_to_linker::<S, HasWorkspace>(l, S::workspace)?;
            }
            Capability::Log => {
                log::add_to_linker::<S, HasLog>(l, S::log)?;
                progress::add_to_linker::<S, HasProgress>(l, S::progress)?;
            }
            Capability::Network => {
                http::add_to_linker(l, S::http)?;
                outbound::add_to_linker::<S, HasOutbound>(l, S::outbound)?;
            }
            Capability::Credentials => credentials::add_to_linker::<S, HasCredentials>(l, S::credentials)?,
            Capability::CommandLine => {
                cli::exit::add_to_linker::<S, WasiCli>(l, S::cli)?;
                cli::environment::add_to_linker::<S, WasiCli>(l, S::cli)?;
                cli::stdin::add_to_linker::<S, WasiCli>(l, S::cli)?;
                cli::stdout::add_to_linker::<S, WasiCli>(l, S::cli)?;
                cli::stderr::add_to_linker::<S, WasiCli>(l, S::cli)?;
                cli::terminal_input::add_to_linker::<S, WasiCli>(l, S::cli)?;
                cli::terminal_output::add_to_linker::<S, WasiCli>(l, S::cli)?;
                cli::terminal_stdin::add_to_linker::<S, WasiCli>(l, S::cli)?;
                cli::terminal_stdout::add_to_linker::<S, WasiCli>(l, S::cli)?;
                cli::terminal_stderr::add_to_linker::<S, WasiCli>(l, S::cli)?;
            }
            // Types have no functions to link, and sockets are never given.
            Capability::Types | Capability::Sockets => (),
        }
    }
    Ok(linker)
}
