//! Linking: an interface exists for a component only when it imports it and the call grants it.

use std::collections::BTreeSet;

use bindings::{log, progress};
use capabilities::log::{HasLog, LogCtx, LogView};
use capabilities::progress::{HasProgress, ProgressView};
use capabilities::random::{HasRandom, RandomCtx, RandomView};
use capabilities::stdio::BoundedOutput;
use capabilities::workspace::{HasWorkspace, WorkspaceCtx, WorkspaceView};
use capabilities::{NoteSink, limit::Budget};
use wasmtime::component::{HasData, Linker, ResourceTable};
use wasmtime::{CallHook, Engine, Store};
use wasmtime_wasi::cli::{WasiCli, WasiCliCtxView};
use wasmtime_wasi::clocks::{WasiClocks, WasiClocksCtxView};
use wasmtime_wasi::p2::bindings::{cli, clocks, filesystem, io, random};
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};

use crate::Limit;
use crate::inspect::Capability;
use crate::limits::Limits;
use crate::meter::Meter;

/// What a store holds during one call: one context for each capability, and the limits' counters.
pub(crate) struct CallState {
    pub meter: Meter,
    table: ResourceTable,
    wasi: WasiCtx,
    random: RandomCtx,
    workspace: WorkspaceCtx,
    log: LogCtx,
    host_calls: Budget,
}

impl CallState {
    pub fn new(limits: &Limits, workspace: WorkspaceCtx, notes: NoteSink, stdio: &BoundedOutput) -> Self {
        let mut table = ResourceTable::new();
        table.set_max_capacity(usize::try_from(limits.handles).unwrap_or(usize::MAX));
        Self {
            meter: Meter::new(limits),
            table,
            wasi: WasiCtx::builder().stdout(stdio.clone()).stderr(stdio.clone()).build(),
            random: RandomCtx::new(limits.random_bytes),
            workspace,
            log: LogCtx::new(limits.log_lines, limits.log_bytes, notes),
            host_calls: Budget::new(Limit::HostCalls, limits.host_calls),
        }
    }

    pub fn host_calls(&self) -> u64 {
        self.host_calls.used()
    }
}

/// Makes a store that counts every call into the host.
pub(crate) fn store(engine: &Engine, state: CallState, limits: &Limits) -> wasmtime::Result<Store<CallState>> {
    let mut store = Store::new(engine, state);
    store.limiter(|state| &mut state.meter);
    store.set_hostcall_fuel(usize::try_from(limits.hostcall_bytes).unwrap_or(usize::MAX));
    store.call_hook(|mut store, hook| match hook {
        CallHook::CallingHost => Ok(store.data_mut().host_calls.spend(1)?),
        _ => Ok(()),
    });
    Ok(store)
}

impl WasiView for CallState {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

impl CallState {
    fn cli(&mut self) -> WasiCliCtxView<'_> {
        WasiCliCtxView { ctx: self.wasi.cli(), table: &mut self.table }
    }

    fn clocks(&mut self) -> WasiClocksCtxView<'_> {
        WasiClocksCtxView { ctx: self.wasi.clocks(), table: &mut self.table }
    }

    fn random(&mut self) -> RandomView<'_> {
        RandomView(&mut self.random)
    }

    fn workspace(&mut self) -> WorkspaceView<'_> {
        WorkspaceView { ctx: &mut self.workspace, table: &mut self.table }
    }
}

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
                log::add_to_linker::<S, HasLog>(l, |s| LogView(&mut s.log))?;
                progress::add_to_linker::<S, HasProgress>(l, |s| ProgressView(&mut s.log))?;
            }
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
            Capability::Types => (),
        }
    }
    Ok(linker)
}
