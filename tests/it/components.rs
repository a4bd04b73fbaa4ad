//! Components from outside: which are loaded, which are refused, and every limit with a guest that trips it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use runtime::inspect::Capability;
use runtime::{
    CallReport, Component, ComponentOrigin, EngineConfig, Limit, Limits, LoadError, Note, Outcome, Runtime, ToolCall,
    ToolComponent, ToolError, inspect,
};
use tokio_util::sync::CancellationToken;

const MAX_BYTES: u64 = 64 << 20;

fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| {
        let config = EngineConfig {
            cache: Some(tests::cache()),
            compile_worker: Some(PathBuf::from(env!("CARGO_BIN_EXE_compile-worker"))),
            ..EngineConfig::default()
        };
        Runtime::new(config).unwrap()
    })
}

fn load(name: &str) -> ToolComponent {
    let component =
        tests::block_on(Component::load(runtime(), &tests::hostile_guest(name), ComponentOrigin::Untrusted)).unwrap();
    ToolComponent::link(runtime(), &component).unwrap()
}

fn hostile() -> &'static ToolComponent {
    static HOSTILE: OnceLock<ToolComponent> = OnceLock::new();
    HOSTILE.get_or_init(|| load("hostile"))
}

fn benign() -> &'static ToolComponent {
    static BENIGN: OnceLock<ToolComponent> = OnceLock::new();
    BENIGN.get_or_init(|| load("benign"))
}

fn call_with(
    component: &ToolComponent,
    tool: &str,
    arguments: &str,
    workspace: &Path,
    limits: Limits,
    cancel: CancellationToken,
) -> (CallReport<String, ToolError>, Vec<Note>) {
    let notes = Arc::new(Mutex::new(Vec::new()));
    let sink = notes.clone();
    let finished = tests::block_on(component.call(ToolCall {
        name: tool,
        arguments,
        run_id: "run_test",
        step: 1,
        idempotency_key: "key",
        workspace: Some(workspace.to_owned().into()),
        network: None,
        scripts: None,
        environment: Vec::new(),
        seeded: None,
        limits,
        notes: Arc::new(move |note| sink.lock().unwrap().push(note)),
        cancel,
    }));
    let notes = std::mem::take(&mut *notes.lock().unwrap());
    (finished, notes)
}

fn attack(tool: &str, limits: Limits) -> CallReport<String, ToolError> {
    let workspace = tempfile::tempdir().unwrap();
    let (finished, _) = call_with(hostile(), tool, "{}", workspace.path(), limits, CancellationToken::new());
    assert_benign_works();
    finished
}

/// The twin of every attack: the host lives on, and the next call works.
fn assert_benign_works() {
    let workspace = tempfile::tempdir().unwrap();
    let arguments = r#"{"below":1000}"#;
    let limits = Limits::default();
    let (finished, _) = call_with(benign(), "primes", arguments, workspace.path(), limits, CancellationToken::new());
    assert_eq!(finished.outcome, Outcome::Returned("168".to_owned()), "{}", finished.stdio);
}

#[track_caller]
fn assert_exceeds(tool: &str, limits: Limits, limit: Limit) {
    let finished = attack(tool, limits);
    match finished.outcome {
        Outcome::Exceeded(exceeded) => assert_eq!(exceeded.limit, limit, "{tool}"),
        other => panic!("{tool}: {other:?} {}", finished.stdio),
    }
}

fn quick() -> Limits {
    Limits { deadline_ms: 2_000, ..Limits::default() }
}

/// Attacks that a test below names; a guest without a test would go unwatched.
const TESTED: [&str; 29] = [
    "spin",
    "bulk_fill",
    "recurse",
    "trap",
    "panic",
    "exit_zero",
    "exit_three",
    "sleeper",
    "grow_step",
    "grow_slow",
    "allocate",
    "big_output",
    "log_flood",
    "log_bytes",
    "progress_flood",
    "progress_bytes",
    "host_call_flood",
    "stdout_flood",
    "stderr_flood",
    "random_flood",
    "random_huge",
    "fill_disk",
    "sparse_file",
    "many_files",
    "deep_directories",
    "table_bomb",
    "straight_line",
    "listing_bomb",
    "escape",
];

#[test]
fn every_attack_has_a_test() {
    let finished = tests::block_on(hostile().describe(Limits::default()));
    let Outcome::Returned(tools) = finished.outcome else { panic!("{:?}", finished.outcome) };
    let offered: BTreeSet<_> = tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(offered, TESTED.into_iter().collect());
    // It does not import the network, so nothing of it reaches outside, even if it says so.
    let worst = runtime::Effects { open_world: false, ..runtime::Effects::default() };
    assert!(tools.iter().all(|tool| tool.effects == worst), "the worst case unless it says otherwise");
}

#[test]
fn loops_end_at_their_deadline() {
    for tool in ["spin", "bulk_fill", "sleeper", "straight_line"] {
        let started = Instant::now();
        assert_exceeds(tool, Limits { deadline_ms: 100, ..Limits::default() }, Limit::DeadlineMs);
        assert!(started.elapsed() < tests::AT_ONCE, "{tool}: {:?}", started.elapsed());
    }
    assert_exceeds("spin", Limits { fuel: 1_000_000, ..Limits::default() }, Limit::Fuel);
    assert_exceeds("bulk_fill", Limits { fuel: 100_000_000, ..Limits::default() }, Limit::Fuel);
}

#[test]
fn a_waiting_and_a_computing_guest_are_cancelled_at_once() {
    // Loading compiles, and compilation is not measured here.
    let guest = hostile();
    for tool in ["spin", "sleeper", "bulk_fill"] {
        let workspace = tempfile::tempdir().unwrap();
        let cancel = CancellationToken::new();
        let later = cancel.clone();
        let canceller = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(50));
            later.cancel();
            Instant::now()
        });
        let (finished, _) = call_with(guest, tool, "{}", workspace.path(), Limits::default(), cancel);
        let ended = Instant::now();
        assert_eq!(finished.outcome, Outcome::Cancelled, "{tool}");
        let took = ended.duration_since(canceller.join().unwrap());
        assert!(took < tests::AT_ONCE, "{tool}: {took:?}");
    }
}

#[test]
fn memory_is_limited_in_one_step_and_in_small_ones() {
    for tool in ["grow_step", "grow_slow", "allocate"] {
        assert_exceeds(tool, quick(), Limit::MemoryBytes);
    }
    let small = Limits { memory_bytes: 8 << 20, ..quick() };
    let finished = attack("grow_slow", small);
    assert!(finished.usage.peak_memory_bytes <= 8 << 20, "{:?}", finished.usage);
}

#[test]
fn floods_are_limited() {
    assert_exceeds("log_flood", quick(), Limit::LogLines);
    assert_exceeds("progress_flood", quick(), Limit::LogLines);
    assert_exceeds("stdout_flood", quick(), Limit::StdioBytes);
    assert_exceeds("stderr_flood", quick(), Limit::StdioBytes);
    assert_exceeds("random_flood", Limits { deadline_ms: 30_000, ..Limits::default() }, Limit::RandomBytes);
    assert_exceeds("random_huge", quick(), Limit::RandomBytes);
    assert_exceeds("host_call_flood", Limits { host_calls: 10_000, ..quick() }, Limit::HostCalls);
    assert_exceeds("table_bomb", quick(), Limit::Handles);
    assert_exceeds("listing_bomb", quick(), Limit::Handles);
    for tool in ["log_bytes", "progress_bytes", "big_output"] {
        let finished = attack(tool, Limits { memory_bytes: 64 << 20, ..quick() });
        let Outcome::Exceeded(exceeded) = finished.outcome else { panic!("{tool}: {:?}", finished.outcome) };
        assert!(
            matches!(exceeded.limit, Limit::HostcallBytes | Limit::LogBytes | Limit::OutputBytes | Limit::MemoryBytes),
            "{tool}: {exceeded}"
        );
    }
}

#[test]
fn the_disk_is_limited() {
    for (tool, limit) in [
        ("fill_disk", Limit::WorkspaceBytes),
        ("sparse_file", Limit::WorkspaceBytes),
        ("many_files", Limit::WorkspaceFiles),
        ("deep_directories", Limit::WorkspaceFiles),
    ] {
        let workspace = tempfile::tempdir().unwrap();
        let limits = Limits { workspace_bytes: 1 << 20, workspace_files: 50, deadline_ms: 20_000, ..Limits::default() };
        let (finished, _) = call_with(hostile(), tool, "{}", workspace.path(), limits, CancellationToken::new());
        let Outcome::Exceeded(exceeded) = finished.outcome else { panic!("{tool}: {:?}", finished.outcome) };
        assert_eq!(exceeded.limit, limit, "{tool}");
        let usage = capabilities::workspace::QuotaUsage::of(workspace.path(), 1_000).unwrap();
        assert!(usage.bytes <= 1 << 20 && usage.files <= 50, "{tool}: {usage:?}");
    }
}

#[test]
fn traps_and_exits_are_the_guests_own() {
    for (tool, says) in [("trap", "unreachable"), ("panic", ""), ("exit_zero", ""), ("exit_three", "")] {
        let finished = attack(tool, quick());
        let Outcome::Trapped(trap) = &finished.outcome else { panic!("{tool}: {:?}", finished.outcome) };
        assert!(trap.message.contains(says), "{tool}: {trap:?}");
    }
    let finished = attack("recurse", quick());
    let Outcome::Exceeded(exceeded) = finished.outcome else { panic!("{:?}", finished.outcome) };
    // The guest's own stack lies in its memory; whichever of the two ends first is a limit, or a trap below.
    assert_eq!(exceeded.limit, Limit::StackBytes);
    let finished = attack("panic", quick());
    assert!(finished.stdio.contains("a panic on purpose"), "{}", finished.stdio);
}

#[test]
fn no_way_out_of_the_workspace() {
    let parent = tempfile::tempdir().unwrap();
    let workspace = parent.path().join("workspace");
    std::fs::create_dir(&workspace).unwrap();
    std::fs::write(parent.path().join("secret"), "canary").unwrap();
    let (finished, _) = call_with(hostile(), "escape", "{}", &workspace, quick(), CancellationToken::new());
    let Outcome::Returned(report) = finished.outcome else { panic!("{:?} {}", finished.outcome, finished.stdio) };
    assert!(report.lines().count() > 20, "{report}");
    assert!(!report.contains("REACHED") && !report.contains("canary"), "{report}");
    let beside: Vec<_> = std::fs::read_dir(parent.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(beside.len(), 2, "{beside:?}");
    assert!(!Path::new("/escaped").exists());
    // The twin: files inside are in reach.
    let arguments = r#"{"path":"a.txt","line":"x"}"#;
    let limits = Limits::default();
    let (finished, _) = call_with(benign(), "append_line", arguments, &workspace, limits, CancellationToken::new());
    assert_eq!(finished.outcome, Outcome::Returned("appended".into()));
    assert_eq!(std::fs::read_to_string(workspace.join("a.txt")).unwrap(), "x\n");
}

#[test]
fn a_result_longer_than_its_memory_is_the_guests_fault() {
    let component = load("fake-huge-output");
    let workspace = tempfile::tempdir().unwrap();
    let finished = tests::block_on(component.describe(quick()));
    let tool = match &finished.outcome {
        Outcome::Returned(tools) => tools[0].name.clone(),
        _ => "any".to_owned(),
    };
    let (finished, _) = call_with(&component, &tool, "{}", workspace.path(), quick(), CancellationToken::new());
    assert!(matches!(finished.outcome, Outcome::Trapped(_) | Outcome::Exceeded(_)), "{:?}", finished.outcome);
    assert_benign_works();
}

#[test]
fn bad_descriptions_refuse_the_component() {
    let finished = tests::block_on(load("bad-descriptions").describe(quick()));
    assert!(
        matches!(finished.outcome, Outcome::Refused(ToolError::Failed { .. }) | Outcome::Exceeded(_)),
        "{finished:?}"
    );
}

#[test]
fn sockets_are_refused_before_anything_runs() {
    let error = inspect(&tests::hostile_guest("sockets"), MAX_BYTES).unwrap_err();
    assert!(
        matches!(&error, LoadError::ForbiddenImport { import, .. } if import.starts_with("wasi:sockets/")),
        "{error}"
    );
    assert!(error.to_string().contains("std::net"), "{error}");
}

/// The component with a section that gives these capabilities up.
fn giving_up(mut component: Vec<u8>, words: &str) -> Vec<u8> {
    let section = [&[19], b"unused-capabilities".as_slice(), words.as_bytes()].concat();
    component.extend([&[0, u8::try_from(section.len()).unwrap()], section.as_slice()].concat());
    component
}

/// Each of them is linked to an error, which has to be bounded in number and size.
#[test]
fn a_component_that_gives_up_thousands_of_functions_is_not_linked() {
    for (count, is_linked) in [(1_000, true), (3_000, false)] {
        let functions: String = (0..count).map(|number| format!("(export \"f{number}\" (func)) ")).collect();
        let text = format!(
            r#"(component (import "wasi:clocks/{}@0.2.0" (instance $i {functions}))
                (core func $f (canon lower (func $i "f7")))
                (core module $m (import "" "f" (func)) (func (export "g") call 0))
                (core instance $c (instantiate $m (with "" (instance (export "f" (func $f))))))
                (func (export "g") (canon lift (core func $c "g"))))"#,
            "a".repeat(1_000)
        );
        let bytes = giving_up(wat::parse_str(&text).unwrap(), "clock");
        let component = tests::block_on(Component::load(runtime(), &bytes, ComponentOrigin::Untrusted)).unwrap();
        let linked = ToolComponent::link(runtime(), &component);
        let linked = match linked {
            Ok(linked) => linked,
            Err(error) => {
                assert!(!is_linked && error.to_string().contains("more than 2000"), "{count}: {error}");
                continue;
            }
        };
        assert!(is_linked, "{count}");
        let workspace = tempfile::tempdir().unwrap();
        let (finished, _) = call_with(&linked, "g", "{}", workspace.path(), quick(), CancellationToken::new());
        let Outcome::Trapped(trap) = finished.outcome else { panic!("{:?}", finished.outcome) };
        assert!(trap.message.contains("called its `f7`") && trap.message.len() < 1_000, "{}", trap.message.len());
    }
}

#[test]
fn a_capability_that_a_component_gives_up_is_not_granted() {
    let bytes = tests::hostile_guest("benign");
    // A name that is unknown, and one of a capability that it does not import, change nothing.
    for (words, gives_up) in [("workspace", true), ("clock\nworkspace", true), ("work\n\nnetwork\n", false)] {
        let bytes = giving_up(bytes.clone(), words);
        let component = tests::block_on(Component::load(runtime(), &bytes, ComponentOrigin::Untrusted)).unwrap();
        let found = component.inspection().capabilities();
        assert_eq!(
            (found.contains(&Capability::Workspace), found.contains(&Capability::Unused)),
            (!gives_up, gives_up)
        );
        let component = ToolComponent::link(runtime(), &component).unwrap();
        let workspace = tempfile::tempdir().unwrap();
        let call = |tool, arguments| {
            call_with(&component, tool, arguments, workspace.path(), Limits::default(), CancellationToken::new())
                .0
                .outcome
        };
        let written = call("append_line", r#"{"path":"a","line":"x"}"#);
        match &written {
            Outcome::Trapped(trap) if gives_up => {
                assert!(trap.message.contains("gave up `wasi:filesystem/"), "{words}: {trap:?}");
            }
            outcome => assert_eq!((outcome, gives_up), (&Outcome::Returned("appended".to_owned()), false), "{words}"),
        }
        assert_eq!(workspace.path().join("a").exists(), !gives_up, "{words}");
        assert_eq!(call("primes", r#"{"below":1000}"#), Outcome::Returned("168".to_owned()), "{words}");
    }
}

#[test]
fn a_guests_own_errors_keep_their_kinds() {
    let workspace = tempfile::tempdir().unwrap();
    for how in ["denied", "missing", "bad-input", "limit", "failed", "failed-for-now"] {
        let arguments = format!(r#"{{"how":"{how}"}}"#);
        let (finished, _) =
            call_with(benign(), "fail", &arguments, workspace.path(), quick(), CancellationToken::new());
        let Outcome::Refused(error) = finished.outcome else { panic!("{:?}", finished.outcome) };
        let found = match error {
            ToolError::Denied(_) => "denied",
            ToolError::Missing(_) => "missing",
            ToolError::BadInput(_) => "bad-input",
            ToolError::Limit(_) => "limit",
            ToolError::Failed { retryable: false, .. } => "failed",
            ToolError::Failed { retryable: true, .. } => "failed-for-now",
        };
        assert_eq!(found, how);
    }
}

#[test]
fn a_broken_component_is_a_clear_error_and_nothing_else_stops() {
    let whole = tests::hostile_guest("benign");
    for cut in [9, 100, whole.len() / 2, whole.len() - 1] {
        let error = inspect(&whole[..cut], MAX_BYTES).unwrap_err();
        assert!(matches!(error, LoadError::Corrupt { .. }), "{cut}: {error}");
    }
    let mut flipped = 0;
    for position in (8..whole.len()).step_by(whole.len() / 40) {
        let mut bytes = whole.clone();
        bytes[position] ^= 0xff;
        flipped += usize::from(inspect(&bytes, MAX_BYTES).is_err());
    }
    assert!(flipped > 0);
    assert!(matches!(inspect(&whole, 1_000), Err(LoadError::TooLarge { .. })));
    assert!(inspect(&whole, MAX_BYTES).is_ok());
}

#[test]
fn many_guests_run_side_by_side_and_each_has_its_own_deadline() {
    let (hostile, benign) = (hostile(), benign());
    tests::block_on(async {
        let calls: Vec<_> = (0..100_u32)
            .map(|index| {
                tokio::spawn(async move {
                    let endless = index % 10 == 0;
                    let (component, tool, arguments) =
                        if endless { (hostile, "spin", "{}") } else { (benign, "primes", r#"{"below":100}"#) };
                    let deadline_ms = if endless { 50 } else { 30_000 };
                    let finished = component.call(ToolCall {
                        name: tool,
                        arguments,
                        run_id: "",
                        step: 0,
                        idempotency_key: "",
                        workspace: None,
                        network: None,
                        scripts: None,
                        environment: Vec::new(),
                        seeded: None,
                        limits: Limits { deadline_ms, ..Limits::default() },
                        notes: Arc::new(|_| ()),
                        cancel: CancellationToken::new(),
                    });
                    (endless, finished.await.outcome)
                })
            })
            .collect();
        for call in calls {
            match call.await.unwrap() {
                (true, Outcome::Exceeded(exceeded)) => assert_eq!(exceeded.limit, Limit::DeadlineMs),
                (false, Outcome::Returned(text)) => assert_eq!(text, "25"),
                other => panic!("{other:?}"),
            }
        }
    });
}

#[test]
fn code_is_kept_for_later_starts_and_a_broken_file_is_made_again() {
    let cache = tempfile::tempdir().unwrap();
    let load = |compile_seconds| {
        let config = EngineConfig {
            cache: Some(cache.path().to_owned()),
            compile_worker: Some(PathBuf::from(env!("CARGO_BIN_EXE_compile-worker"))),
            compile_seconds,
            ..EngineConfig::default()
        };
        let bytes = tests::hostile_guest("benign");
        tests::block_on(Component::load(&Runtime::new(config).unwrap(), &bytes, ComponentOrigin::Untrusted)).map(drop)
    };
    let compiles = || load(60).unwrap();
    let takes_kept_code = || load(0).is_ok();
    compiles();
    assert!(takes_kept_code());
    let files = || std::fs::read_dir(cache.path().join("compiled")).unwrap().map(|file| file.unwrap().path());
    let file = files().next().unwrap();
    let whole = std::fs::read(&file).unwrap();
    for broken in [&whole[..whole.len() / 2], b"", &[0; 4_096]] {
        std::fs::write(&file, broken).unwrap();
        assert!(!takes_kept_code(), "{} bytes", broken.len());
        compiles();
        assert!(takes_kept_code(), "{} bytes", broken.len());
    }
    assert_eq!(files().count(), 1);
}

#[test]
fn compiling_what_nobody_vouches_for_is_bounded() {
    let bytes = tests::hostile_guest("benign");
    let worker = PathBuf::from(env!("CARGO_BIN_EXE_compile-worker"));
    let load = |config: EngineConfig| {
        let runtime = Runtime::new(config).unwrap();
        tests::block_on(Component::load(&runtime, &bytes, ComponentOrigin::Untrusted)).map(|component| component.hash())
    };
    let with_worker = || EngineConfig { compile_worker: Some(worker.clone()), ..EngineConfig::default() };

    let starved = load(EngineConfig { compile_memory_bytes: 4 << 20, ..with_worker() });
    assert!(matches!(&starved, Err(LoadError::CompileLimit { limit }) if limit.contains("4 MiB")), "{starved:?}");
    let late = load(EngineConfig { compile_seconds: 0, ..with_worker() });
    assert!(matches!(late, Err(LoadError::CompileLimit { .. } | LoadError::WorkerTimeout { .. })), "{late:?}");
    let nobody = load(EngineConfig::default());
    assert!(matches!(nobody, Err(LoadError::NoCompileWorker)), "{nobody:?}");
    let liar = load(EngineConfig { compile_worker: Some("/bin/true".into()), ..EngineConfig::default() });
    assert!(matches!(liar, Err(LoadError::CompileLimit { .. } | LoadError::Worker { .. })), "{liar:?}");
    // The twin: with room and time it compiles.
    assert_eq!(load(with_worker()).unwrap(), base::ContentHash::of(&bytes));
}
