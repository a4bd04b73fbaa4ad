//! Linking: an interface exists for a component only if it imports it and the call grants it.

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
use wasmtime::component::types::ComponentItem;
use wasmtime::component::{Component, HasData, Linker, ResourceTable, ResourceType};
use wasmtime_wasi::cli::WasiCli;
use wasmtime_wasi::clocks::WasiClocks;
use wasmtime_wasi::p2::bindings::{cli, clocks, filesystem, io, random};

use crate::code::script;
use crate::inspect::Capability;
use crate::state::CallState;

/// The error of a call to a socket.
const NO_SOCKETS: &str = "sockets are never given to a component: make requests through `wasi:http`";

/// The resources of `wasi:sockets` 0.2.
const SOCKET_RESOURCES: [&str; 6] = [
    "network",
    "tcp-socket",
    "udp-socket",
    "incoming-datagram-stream",
    "outgoing-datagram-stream",
    "resolve-address-stream",
];

struct HasTable;

impl HasData for HasTable {
    type Data<'a> = &'a mut ResourceTable;
}

/// A linker with the interfaces of `capabilities`, and no others.
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
            Capability::Scripts => script::add_to_linker(l)?,
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
            // Types have no functions to link, and sockets are never granted.
            Capability::Types | Capability::Sockets => (),
        }
    }
    Ok(linker)
}

/// Defines the sockets that a component imports so that a call to one ends it. Only the socket types are defined: the
/// types that sockets share with `wasi:io` are linked already.
pub(crate) fn refuse_sockets(linker: &mut Linker<CallState>, component: &Component) -> wasmtime::Result<()> {
    let engine = component.engine();
    for (interface, item) in component.component_type().imports(engine) {
        let ComponentItem::ComponentInstance(instance) = item.ty else { continue };
        if !interface.starts_with("wasi:sockets/") {
            continue;
        }
        let mut linker = linker.instance(interface)?;
        for (name, item) in instance.exports(engine) {
            match item.ty {
                ComponentItem::ComponentFunc(_) => {
                    linker.func_new(name, |_, _, _, _| Err(wasmtime::Error::msg(NO_SOCKETS)))?;
                }
                ComponentItem::Resource(_) if SOCKET_RESOURCES.contains(&name) => {
                    linker.resource(name, ResourceType::host::<()>(), |_, _| Ok(()))?;
                }
                _ => (),
            }
        }
    }
    Ok(())
}
