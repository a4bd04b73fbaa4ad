//! The state of a store during one call: a context for each capability, and the limits' counters.
//!
//! Everything is per call and is dropped with it. When a call has ended, none of its operations is still running: see
//! [`end`].

use std::time::Duration;

use capabilities::credentials::{CredentialsCtx, CredentialsView};
use capabilities::http::{HttpCtx, HttpView};
use capabilities::log::{LogCtx, LogView};
use capabilities::outbound::OutboundView;
use capabilities::progress::ProgressView;
use capabilities::random::{RandomCtx, RandomView};
use capabilities::stdio::BoundedOutput;
use capabilities::workspace::{Access, Quota, QuotaUsage as WorkspaceUsage, Workspace, WorkspaceCtx, WorkspaceView};
use capabilities::{Egress, NoteSink, limit::CallCounter, note};
use network::{BlockReason, CallLimits, RequestTrace, RunNetwork};
use wasmtime::component::ResourceTable;
use wasmtime::{CallHook, Engine, Store};
use wasmtime_wasi::cli::WasiCliCtxView;
use wasmtime_wasi::clocks::WasiClocksCtxView;
use wasmtime_wasi::p2::pipe::MemoryInputPipe;
use wasmtime_wasi::{HostWallClock, WasiCtx, WasiCtxView, WasiView};

use crate::Limit;
use crate::code::script::Scripts;
use crate::limits::Limits;
use crate::limits::YIELD_INTERVAL;
use crate::meter::Meter;
use crate::outcome::CallUsage;

/// Random numbers and a clock that are the same for each call with the same values. The monotonic clock stays the system's:
/// timeouts need one that moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seeded {
    /// Seed of the random numbers, those for secrets included.
    pub seed: u64,
    /// The wall clock, in milliseconds since the epoch. It stands still during the call.
    pub now_ms: u64,
}

/// The inputs and resources of a call. A component reaches only those whose interfaces it imports.
pub(crate) struct CallInputs {
    pub workspace: WorkspaceCtx,
    /// `None`: every request is refused, and no credential is granted.
    pub network: Option<RunNetwork>,
    /// The network access of the call that this one belongs to, instead of one of its own.
    pub egress: Option<Egress>,
    /// The engine for scripts; if `None`, there is none.
    pub scripts: Option<Scripts>,
    pub idempotency_key: Option<String>,
    pub environment: Vec<(String, String)>,
    /// `None`: the system's random numbers and clock.
    pub seeded: Option<Seeded>,
    pub notes: NoteSink,
    /// Standard error, and standard output if it is not the result.
    pub stdio: BoundedOutput,
    /// The command line of a program; if `None`, there are no arguments and no input.
    pub command: Option<CommandLine>,
}

/// The command line of a program, and the buffer of its standard output.
pub(crate) struct CommandLine {
    pub arguments: Vec<String>,
    pub stdin: bytes::Bytes,
    pub stdout: BoundedOutput,
}

impl CallInputs {
    /// No resources except bounded standard streams.
    pub fn nothing(limits: &Limits) -> Self {
        Self {
            workspace: WorkspaceCtx::default(),
            network: None,
            egress: None,
            scripts: None,
            idempotency_key: None,
            environment: Vec::new(),
            seeded: None,
            notes: note::ignore(),
            stdio: BoundedOutput::new(limits.stdio_bytes),
            command: None,
        }
    }
}

/// Opens the files behind `/workspace`, with their quota.
pub(crate) fn open_workspace(
    workspace: Option<&Workspace>,
    access: Access,
    limits: &Limits,
) -> Result<WorkspaceCtx, String> {
    let Some(workspace) = workspace else { return Ok(WorkspaceCtx::default()) };
    let most = WorkspaceUsage { bytes: limits.workspace_bytes, files: limits.workspace_files };
    // The error names a host path: it is for the host's log, and must be shortened before a model sees it.
    WorkspaceCtx::open(workspace, access, most)
        .map_err(|error| format!("cannot open the workspace: {}", error.root_cause()))
}

const NANOS_PER_MILLISECOND: u64 = 1_000_000;

/// A wall clock that stands still.
struct StandingClock(Duration);

impl HostWallClock for StandingClock {
    fn resolution(&self) -> Duration {
        Duration::from_nanos(1)
    }

    fn now(&self) -> Duration {
        self.0
    }
}

/// The contexts of one call.
pub(crate) struct CallState {
    meter: Meter,
    pub(crate) table: ResourceTable,
    wasi: WasiCtx,
    random: RandomCtx,
    workspace: WorkspaceCtx,
    http: HttpCtx,
    credentials: CredentialsCtx,
    log: LogCtx,
    host_calls: CallCounter,
    pub(crate) scripts: Option<Scripts>,
}

impl CallState {
    pub fn new(limits: &Limits, given: CallInputs) -> Self {
        let mut table = ResourceTable::new();
        table.set_max_capacity(usize::try_from(limits.handles).unwrap_or(usize::MAX));
        let secrets = given.network.as_ref().map(|network| network.secrets().clone());
        let egress = match (given.egress, given.network) {
            (Some(egress), _) => egress,
            (None, Some(network)) => Egress::open(network.call(CallLimits {
                requests: limits.outgoing_requests,
                request_bytes: limits.request_bytes,
                response_bytes: limits.response_bytes,
                idempotency_key: given.idempotency_key.filter(|key| !key.is_empty()),
            })),
            (None, None) => Egress::closed(limits.outgoing_requests),
        };
        let mut wasi = WasiCtx::builder();
        wasi.stdout(given.stdio.clone()).stderr(given.stdio).envs(&given.environment);
        if let Some(line) = given.command {
            wasi.args(&line.arguments).stdin(MemoryInputPipe::new(line.stdin)).stdout(line.stdout);
        }
        if let Some(seeded) = given.seeded {
            // Programs seed themselves by the nanoseconds of the clock: those come from the seed.
            let fraction = Duration::from_nanos(seeded.seed % NANOS_PER_MILLISECOND);
            wasi.wall_clock(StandingClock(Duration::from_millis(seeded.now_ms) + fraction));
        }
        Self {
            meter: Meter::new(limits),
            table,
            wasi: wasi.build(),
            random: match given.seeded {
                Some(seeded) => RandomCtx::seeded(limits.random_bytes, seeded.seed),
                None => RandomCtx::new(limits.random_bytes),
            },
            workspace: given.workspace,
            http: HttpCtx::new(limits.http_header_bytes, egress),
            credentials: CredentialsCtx::new(secrets),
            log: LogCtx::new(limits.log_lines, limits.log_bytes, given.notes),
            host_calls: CallCounter::new(Limit::HostCalls, limits.host_calls),
            scripts: given.scripts,
        }
    }

    pub fn cli(&mut self) -> WasiCliCtxView<'_> {
        WasiCliCtxView { ctx: self.wasi.cli(), table: &mut self.table }
    }

    pub fn clocks(&mut self) -> WasiClocksCtxView<'_> {
        WasiClocksCtxView { ctx: self.wasi.clocks(), table: &mut self.table }
    }

    pub fn random(&mut self) -> RandomView<'_> {
        RandomView(&mut self.random)
    }

    pub fn workspace(&mut self) -> WorkspaceView<'_> {
        WorkspaceView { ctx: &mut self.workspace, table: &mut self.table }
    }

    pub fn http(&mut self) -> HttpView<'_> {
        self.http.view(&mut self.table)
    }

    pub fn outbound(&mut self) -> OutboundView<'_> {
        OutboundView(self.http.egress())
    }

    pub fn quota(&self) -> Quota {
        self.workspace.quota()
    }

    pub fn egress(&mut self) -> &Egress {
        self.http.egress()
    }

    pub fn credentials(&mut self) -> CredentialsView<'_> {
        CredentialsView(&mut self.credentials)
    }

    pub fn log(&mut self) -> LogView<'_> {
        LogView(&mut self.log)
    }

    pub fn progress(&mut self) -> ProgressView<'_> {
        ProgressView(&mut self.log)
    }
}

impl WasiView for CallState {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

/// Creates a store that counts every call into the host.
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

/// The record of a call after all of its operations have ended.
pub(crate) struct EndedCall {
    pub usage: CallUsage,
    pub requests: Vec<RequestTrace>,
    pub last_refusal: Option<BlockReason>,
}

/// Ends a call whose guest has ended. `usage` is the usage measured so far.
pub(crate) async fn end(store: Store<CallState>, usage: CallUsage) -> EndedCall {
    let state = store.data();
    // A guest that yields crosses into the host too, once for each slice of fuel: that is not a host call.
    let scripts = state.scripts.as_ref().map(Scripts::used).unwrap_or_default();
    let own_fuel = usage.fuel.saturating_sub(scripts.fuel);
    let host_calls = state.host_calls.used().saturating_sub(own_fuel / YIELD_INTERVAL);
    let usage = CallUsage {
        peak_memory_bytes: state.meter.memory_peak().max(scripts.peak_memory_bytes),
        host_calls: host_calls.saturating_add(scripts.host_calls),
        ..usage
    };
    let egress = state.http.egress().clone();
    // The guest's handles are dropped with the store, and with them all of its pending requests.
    drop(store);
    egress.settled().await;
    EndedCall { usage, requests: egress.traces(), last_refusal: egress.last_refusal() }
}
