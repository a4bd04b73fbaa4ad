//! Linking: an interface exists for a component only if it imports it and the call grants it.

use std::collections::BTreeSet;
use std::sync::Arc;

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
use wasmtime::component::{HasData, Linker, ResourceTable, ResourceType};
use wasmtime_wasi::cli::WasiCli;
use wasmtime_wasi::clocks::WasiClocks;
use wasmtime_wasi::p2::bindings::{cli, clocks, filesystem, io, random};

use crate::code::script;
use crate::inspect::Capability;
use crate::load::Component;
use crate::load_error::shown;
use crate::state::CallState;

/// The functions and types of a component's imports together, if it is not granted all of them: linking takes the square of that.
const MAX_ITEMS: usize = 2_000;

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
            // Types have no functions to link.
            Capability::Types | Capability::Unused => (),
        }
    }
    Ok(linker)
}

/// Defines the interfaces that a component imports without being granted them ([`Capability::Unused`]) so that a call to one ends it.
pub(crate) fn refuse_unused(linker: &mut Linker<CallState>, component: &Component) -> wasmtime::Result<()> {
    let unused: BTreeSet<&str> = component.inspection().unused().collect();
    if unused.is_empty() {
        return Ok(());
    }
    let engine = component.compiled.engine();
    // Types that an interface takes from an earlier one belong to that one.
    let (mut earlier, mut items) = (Vec::new(), 0_usize);
    for (interface, item) in component.compiled.component_type().imports(engine) {
        let ComponentItem::ComponentInstance(instance) = item.ty else { continue };
        items = items.saturating_add(instance.exports(engine).len());
        if items > MAX_ITEMS {
            return Err(wasmtime::Error::msg(format!("it imports more than {MAX_ITEMS} functions and types")));
        }
        // Looked up once: its name may be long, and its items many.
        let mut refused = match unused.contains(interface) {
            true => Some((linker.instance(interface)?, Arc::<str>::from(shown(interface)))),
            false => None,
        };
        for (name, item) in instance.exports(engine) {
            match (item.ty, &mut refused) {
                (ComponentItem::ComponentFunc(_), Some((linker, interface))) => {
                    let (interface, function) = (interface.clone(), shown(name));
                    linker.func_new(name, move |_, _, _, _| Err(refusal(&interface, &function)))?;
                }
                (ComponentItem::Resource(resource), refused) if !earlier.contains(&resource) => {
                    earlier.push(resource);
                    if let Some((linker, _)) = refused {
                        linker.resource(name, ResourceType::host::<()>(), |_, _| Ok(()))?;
                    }
                }
                _ => (),
            }
        }
    }
    Ok(())
}

/// The error of a call to an interface that is not granted.
fn refusal(interface: &str, function: &str) -> wasmtime::Error {
    if interface.starts_with("wasi:sockets/") {
        return wasmtime::Error::msg("sockets are never given to a component: make requests through `wasi:http`");
    }
    let package = interface.split_once('/').map_or(interface, |(package, _)| package);
    wasmtime::Error::msg(format!(
        "the component gave up `{interface}`, and called its `{function}`: import what it uses of `{package}` in `wit/project.wit`, and \
         build again"
    ))
}
