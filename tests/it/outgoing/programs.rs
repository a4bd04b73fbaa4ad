//! Programs with surroundings: the connected sandbox reaches the resources its run was granted (SPEC CODE-6, CODE-7).

use std::io::Read as _;

use super::*;

/// The engine of the tests' own language, linked as the connected JavaScript engine is.
fn programs() -> &'static CodeSandbox {
    static PROGRAMS: OnceLock<CodeSandbox> = OnceLock::new();
    PROGRAMS.get_or_init(|| {
        let bytes = tests::hostile_guest("programs");
        let component = tests::block_on(Component::load(runtime(), &bytes, ComponentOrigin::Untrusted)).unwrap();
        assert!(CodeSandbox::link(runtime(), &component).is_err(), "the isolated engine's linker is empty");
        CodeSandbox::link_connected(runtime(), &component).unwrap()
    })
}

async fn run(source: &str, surroundings: CodeAccess, cancel: &CancellationToken) -> CodeReport {
    let program =
        Program { source: source.to_owned(), timeout: Duration::from_secs(30), guard: false, seed: 1, now_ms: 1 };
    programs().execute_in(&program, surroundings, &Limits::default(), cancel).await
}

#[test]
fn a_program_reaches_what_is_around_it_and_nothing_else() {
    programs();
    test(async {
        let site = Site::start().await.with("/", Reply::text("hello")).with("/secret", Reply::text(SECRET));
        let workspace = tempfile::tempdir().unwrap();
        std::fs::write(workspace.path().join("a.txt"), "a file").unwrap();
        let never = CancellationToken::new();
        let source = format!("get {}\nread /workspace/a.txt\nwrite /workspace/b.txt\nlist", site.url("/"));
        let lines = |report: &CodeReport| report.console.lines().map(str::to_owned).collect::<Vec<_>>();

        let report = run(&source, CodeAccess::default(), &never).await;
        let reached = lines(&report);
        assert!(reached.iter().all(|line| line.starts_with("error: ")), "{reached:?}");
        assert!(reached[0].contains("HttpRequestDenied"), "{reached:?}");
        assert_eq!(report.last_refusal.as_ref().map(|blocked| blocked.rule), Some(Rule::DomainNotAllowed));
        assert_eq!((report.requests.len(), site.connections()), (1, 0));

        let files = CodeAccess { workspace: Some(workspace.path().to_owned().into()), ..CodeAccess::default() };
        let reached = lines(&run(&source, files.clone(), &never).await);
        assert_eq!((reached[1].as_str(), reached[3].as_str()), ("a file", "a.txt"), "{reached:?}");
        assert!(reached[0].starts_with("error: ") && reached[2].starts_with("error: "), "{reached:?}");
        assert_eq!(site.connections(), 0);

        let address = site.address().to_string();
        let network = way_to(&address, &[("token", SECRET, false)]);
        let all = CodeAccess { network: Some(network), access: Access::ReadWrite, ..files };
        let report = run(&source, all.clone(), &never).await;
        assert_eq!(lines(&report)[..3], ["hello", "a file", "written"], "{report:?}");
        assert_eq!((report.requests.len(), report.last_refusal.is_none()), (1, true));
        assert!(report.usage.fuel > 0 && report.usage.host_calls > 0 && report.usage.peak_memory_bytes > 0);

        // A secret does not come back with any response.
        let report = run(&format!("get {}", site.url("/secret")), all, &never).await;
        assert_eq!(report.console, "<credential:token>\n");
    });
}

#[test]
fn a_connected_program_is_ended_like_any_other() {
    programs();
    let (listener, address) = silent();
    let cancel = CancellationToken::new();
    let later = cancel.clone();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.read_exact(&mut [0; 1]).unwrap();
        later.cancel();
        stream.read_to_end(&mut Vec::new()).ok();
    });
    test(async {
        let surroundings = CodeAccess { network: Some(way_to(&address, &[])), ..CodeAccess::default() };
        let report = run(&format!("get http://{address}/"), surroundings, &cancel).await;
        assert_eq!(report.outcome.unwrap_err().code, CodeErrorCode::Cancelled);
        server.join().unwrap();
        let program = Program {
            source: "spin".to_owned(),
            timeout: Duration::from_millis(100),
            guard: false,
            seed: 1,
            now_ms: 1,
        };
        let report = programs().execute(&program, &Limits::default(), &CancellationToken::new()).await;
        assert_eq!(report.outcome.unwrap_err().code, CodeErrorCode::Timeout);
        let missing =
            CodeAccess { workspace: Some(std::path::PathBuf::from("/nowhere/at/all").into()), ..CodeAccess::default() };
        let told = run("list", missing, &CancellationToken::new()).await.outcome.unwrap_err().to_string();
        assert!(told.contains("workspace") && !told.contains("nowhere"), "{told}");
    });
}
