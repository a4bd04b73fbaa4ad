//! The shell as a component: its effects against those of `bash`, the commands of a run, the reach of its requests,
//! and the end of a script that never ends (SPEC TOOL-2, TOOL-3).

mod git;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use network::{Gate, NetworkConfig, Policy, RunNetwork, Taint, TaintedWrite};
use runtime::{
    CallReport, Component, ComponentOrigin, EngineConfig, Limit, Limits, Outcome, Runtime, ToolCall, ToolComponent,
    ToolError,
};
use serde_json::json;
use tests::network::{Reply, Site};
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;
use vault::{RunSecrets, Scrubber};

/// The programs that scripts of the comparison use, and `bash` itself.
const PROGRAMS: [&str; 9] = ["bash", "jq", "awk", "column", "xargs", "find", "diff", "tar", "gzip"];

/// A component's memory for a script that is not about memory.
const MEMORY_BYTES: u64 = 24 << 20;

async fn shell() -> &'static ToolComponent {
    static SHELL: OnceCell<ToolComponent> = OnceCell::const_new();
    let load = async || {
        let config = EngineConfig { cache: Some(tests::cache()), ..EngineConfig::default() };
        let runtime = Runtime::new(config).unwrap();
        let bytes = std::fs::read(tests::target_directory().join("guests/bundled/bash.wasm")).unwrap();
        let component = Component::load(&runtime, &bytes, ComponentOrigin::Bundled).await.unwrap();
        ToolComponent::link(&runtime, &component).unwrap()
    };
    SHELL.get_or_init(load).await
}

struct Call<'a> {
    workspace: &'a Path,
    allowed: Option<&'a str>,
    network: Option<RunNetwork>,
    deadline_ms: u64,
}

impl<'a> Call<'a> {
    fn over(workspace: &'a Path) -> Self {
        Self { workspace, allowed: None, network: None, deadline_ms: 30_000 }
    }

    async fn make(self, script: &str) -> CallReport<String, ToolError> {
        let allowed = self.allowed.map(|list| ("MOTOR_COMMANDS".to_owned(), list.to_owned()));
        let call = ToolCall {
            name: "bash",
            arguments: &json!({ "script": script }).to_string(),
            run_id: "run_test",
            step: 1,
            idempotency_key: "key",
            workspace: Some(self.workspace.to_owned().into()),
            network: self.network,
            scripts: None,
            environment: allowed.into_iter().collect(),
            seeded: None,
            limits: Limits { deadline_ms: self.deadline_ms, ..Limits::default() },
            notes: Arc::new(|_| ()),
            cancel: CancellationToken::new(),
        };
        shell().await.call(call).await
    }

    #[track_caller]
    fn text(self, script: &str) -> String {
        text(tests::block_on(self.make(script)), script)
    }
}

#[track_caller]
fn text(finished: CallReport<String, ToolError>, script: &str) -> String {
    match finished.outcome {
        Outcome::Returned(text) => text,
        other => panic!("{script}: {other:?} {}", finished.stdio),
    }
}

fn run(script: &str) -> String {
    Call::over(tempfile::tempdir().unwrap().path()).text(script)
}

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/shell")
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// Standard output and exit code; a line end at the very end counts for nothing, as the tool's answer adds one.
type Result = (String, i32);

fn by_bash(script: &Path) -> Result {
    let workspace = tempfile::tempdir().unwrap();
    copy(&fixtures().join("files"), workspace.path());
    let output = Command::new("bash")
        .arg(script)
        .current_dir(workspace.path())
        .env_clear()
        .envs([("PATH", "/usr/local/bin:/usr/bin:/bin"), ("LC_ALL", "C")])
        .env("HOME", workspace.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    (String::from_utf8_lossy(&output.stdout).trim_end_matches('\n').to_owned(), output.status.code().unwrap())
}

fn by_the_component(script: &Path) -> Result {
    let workspace = tempfile::tempdir().unwrap();
    copy(&fixtures().join("files"), workspace.path());
    let source = std::fs::read_to_string(script).unwrap();
    let finished = tests::block_on(Call::over(workspace.path()).make(&source));
    assert!(finished.usage.peak_memory_bytes <= MEMORY_BYTES, "{}: {:?}", script.display(), finished.usage);
    parts(&text(finished, &source))
}

/// Takes the tool's answer apart.
fn parts(answer: &str) -> Result {
    let (rest, code) = match answer.strip_suffix(']').and_then(|rest| rest.rsplit_once("[exit code: ")) {
        Some((rest, code)) if rest.is_empty() || rest.ends_with('\n') => (rest, code.parse().unwrap()),
        _ => (answer, 0),
    };
    let stdout = match rest.rfind("[stderr]\n") {
        Some(0) => "",
        Some(index) if rest[..index].ends_with('\n') => &rest[..index],
        _ => rest,
    };
    let stdout = if stdout == "[no output]" { "" } else { stdout };
    (stdout.trim_end_matches('\n').to_owned(), code)
}

/// The scripts that `deviations.md` names, each as a heading.
fn deviations() -> Vec<String> {
    let text = std::fs::read_to_string(fixtures().join("deviations.md")).unwrap();
    text.lines().filter_map(|line| line.strip_prefix("## ")).map(str::to_owned).collect()
}

#[test]
fn scripts_do_what_bash_does_with_them() {
    for program in PROGRAMS {
        let found = Command::new("sh").args(["-c", &format!("command -v {program}")]).output().unwrap();
        assert!(found.status.success(), "`{program}` is not on this machine: run `cargo xtask setup`");
    }
    let mut scripts: Vec<_> = std::fs::read_dir(fixtures())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "sh"))
        .collect();
    scripts.sort();
    assert!(scripts.len() >= 100, "{} scripts", scripts.len());
    let known = deviations();
    assert!(known.len() <= 5, "too many deviations: {known:?}");
    let mut wrong = String::new();
    for script in &scripts {
        let name = script.file_stem().unwrap().to_string_lossy();
        let (expected, found) = (by_bash(script), by_the_component(script));
        match (expected == found, known.iter().any(|known| *known == name)) {
            (true, false) | (false, true) => {}
            (true, true) => wrong.push_str(&format!("{name}: is the same now: take it off the list of deviations\n")),
            (false, false) => wrong.push_str(&format!("{name}:\n  bash {expected:?}\n  here {found:?}\n")),
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn a_run_uses_the_commands_it_was_granted() {
    let workspace = tempfile::tempdir().unwrap();
    std::fs::write(workspace.path().join("secret"), "canary\n").unwrap();
    let with = |allowed, script: &str| Call { allowed: Some(allowed), ..Call::over(workspace.path()) }.text(script);
    for script in [
        "cat secret",
        "echo x | sort | cat - secret",
        "echo \"$(cat secret)\"",
        "echo `cat secret`",
        "for x in 1; do cat secret; done",
        "echo() { cat secret; }; echo",
        "x=cat; $x secret",
        "\\cat secret; c'a't secret; /bin/cat secret",
        "eval 'cat secret'",
        "command cat secret",
        "exec cat secret",
        "bash -c 'cat secret'",
        "echo 'cat secret' > s; source ./s",
        "trap 'cat secret' EXIT",
        "echo secret | xargs cat",
        "find . -name secret -exec cat {} +",
        "env cat secret",
        "timeout 5 cat secret",
        "awk 'BEGIN { system(\"cat secret\") }'",
        "sort <<END\n$(cat secret)\nEND",
        "time cat secret",
    ] {
        let hostile = with("echo,sort,xargs,find,env,timeout,awk", script);
        assert!(hostile.contains("bash: cat: not allowed in this run: allowed are "), "{script}: {hostile}");
        assert!(!hostile.contains("canary"), "{script}: {hostile}");
        let benign = with("cat,echo,sort,xargs,find,env,timeout,awk", script);
        assert!(benign.contains("canary") && !benign.contains("not allowed"), "{script}: {benign}");
    }
    assert_eq!(
        with("", "cat secret"),
        "[stderr]\nbash: cat: not allowed in this run: allowed is only what the shell does itself\n[exit code: 126]"
    );
    assert!(!with("echo", "MOTOR_COMMANDS=cat; export MOTOR_COMMANDS; cat secret").contains("canary"));
    assert_eq!(with("echo", "echo \"[$MOTOR_COMMANDS]\""), "[]\n", "the list is not the script's to see");
}

#[test]
fn scripts_without_an_end_come_back_with_what_they_printed() {
    let workspace = tempfile::tempdir().unwrap();
    let mut wrong = String::new();
    for script in [
        "while :; do :; done",
        "awk 'BEGIN { while (1) i++ }'",
        "echo x | sed ':a; ba'",
        "sleep 50",
        "f() { f; }; f",
        ":(){ :|:& };:",
        "x=x; while :; do x=$x$x; done",
        "printf '%999999999d' 1",
        "seq 1000000000",
        "yes > /dev/null",
        "cat /dev/zero",
        "jq -n '\"x\" * 1000000000 | length'",
    ] {
        let call = Call { deadline_ms: 2_000, ..Call::over(workspace.path()) };
        let source = format!("echo first; {script}; echo last");
        match tests::block_on(call.make(&source)).outcome {
            Outcome::Returned(text) if text.starts_with("first\n") => {
                let told = ["[stderr]\n", "last", "is cut here"].iter().any(|words| text.contains(words));
                assert!(told, "{script}: {text:.300}");
            }
            other => wrong.push_str(&format!("{script}: {other:.300?}\n")),
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    let call = Call { deadline_ms: 1_000, ..Call::over(workspace.path()) };
    assert_eq!(
        call.text("echo first; while :; do :; done"),
        "first\n[stderr]\nbash: timed out after 850 ms\n[exit code: 124]"
    );
    // Some loops never look at the time; then it is the host that ends the call.
    for (script, limit) in [
        ("jq -n 'def f: f; f'", Limit::DeadlineMs),
        ("awk 'BEGIN { s = \"x\"; while (length(s) < 1e9) s = s s }'", Limit::MemoryBytes),
    ] {
        let call = Call { deadline_ms: 2_000, ..Call::over(workspace.path()) };
        match tests::block_on(call.make(script)).outcome {
            Outcome::Exceeded(exceeded) => assert_eq!(exceeded.limit, limit, "{script}"),
            other => panic!("{script}: {other:?}"),
        }
    }
    let range = run("echo {1..1000000000}");
    assert!(range.contains("brace range too large"), "{range}");
    // The twin: a script that ends, ends well.
    assert_eq!(run("for i in {1..2000}; do ((s += i)); done; echo $s"), "2001000\n");
}

#[test]
fn deep_scripts_end_with_a_limit() {
    let many = |text: &str, times: usize| text.repeat(times);
    let mut wrong = String::new();
    for script in [
        "f() { echo $1; f $(($1 + 1)); }; f 1".to_owned(),
        "f() { local x; x=$(f $(($1 + 1))); echo $x; }; f 1".to_owned(),
        format!("{}echo hi{}", many("(", 3_000), many(")", 3_000)),
        format!("{}echo hi{}", many("(", 30), many(")", 30)),
        format!("echo {}hi{}", many("$(echo ", 1_000), many(")", 1_000)),
        format!("echo {}hi{}", many("$(echo ", 31), many(")", 31)),
        format!("{}:{}", many("if :; then ", 1_000), many("; fi", 1_000)),
        format!("{}:{}", many("if :; then ", 90), many("; fi", 90)),
        format!("echo $(({}1{}))", many("(", 10_000), many(")", 10_000)),
        format!("echo {}x{}", many("${a:-", 1_000), many("}", 1_000)),
        format!("echo '{}' | jq .", many("[", 100_000)),
        format!("jq -n '{}1{}'", many("(", 5_000), many(")", 5_000)),
        format!("awk 'BEGIN {{ print {}1{} }}'", many("(", 5_000), many(")", 5_000)),
        format!("echo x | grep -E '{}x{}'", many("(", 5_000), many(")", 5_000)),
        format!("eval \"{}echo hi\"", many("eval ", 1_000)),
        format!("bash -c '{}'", many("bash -c ", 100)),
    ] {
        let workspace = tempfile::tempdir().unwrap();
        let source = format!("echo first\n{script}");
        match tests::block_on(Call::over(workspace.path()).make(&source)).outcome {
            Outcome::Returned(text) if text.starts_with("first\n") || text.contains("bash: ") => {}
            // A few parsers have no depth of their own; then it is the host that says which limit it was.
            Outcome::Exceeded(exceeded) if exceeded.limit == Limit::StackBytes => {}
            // Nor has `eval`, whose levels are on the heap.
            Outcome::Exceeded(exceeded) if exceeded.limit == Limit::MemoryBytes && script.starts_with("eval") => {}
            other => wrong.push_str(&format!("{script:.80}: {other:.300?}\n")),
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    // The twin: as deep as people write.
    for (script, expected) in [
        ("f() { (( $1 == 0 )) && return; f $(($1 - 1)); echo $1; }; f 12 | tail -1", "12\n"),
        ("echo $(echo $(echo $(echo $(echo $(echo $(echo $(echo $(echo deep))))))))", "deep\n"),
        ("( ( ( ( (echo deep) ) ) ) )", "deep\n"),
        (
            "if :; then if :; then if :; then for x in 1; do case x in x) { (echo deep); };; esac; done; fi; fi; fi",
            "deep\n",
        ),
        ("bash -c 'bash -c \"bash -c \\\"echo deep\\\"\"'", "deep\n"),
        ("jq -cn '[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]'", "[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]\n"),
    ] {
        assert_eq!(run(script), expected, "{script}");
    }
}

/// A way out to one site of this machine.
pub(crate) fn way_to(site: &Site) -> RunNetwork {
    let address = site.address().to_string();
    let config = NetworkConfig { private: vec![address.clone()], ..NetworkConfig::default() };
    let policy =
        Policy { domains: vec![address.parse().unwrap()], tainted_write: TaintedWrite::Allow, ..Policy::default() };
    let scrubber = Arc::new(Scrubber::new(Vec::new()));
    let secrets = Arc::new(RunSecrets::new(Vec::new(), scrubber));
    Gate::new(&config).unwrap().run(policy, secrets, Taint::default())
}

#[test]
fn curl_goes_through_the_gate() {
    let workspace = tempfile::tempdir().unwrap();
    std::fs::write(workspace.path().join("body.txt"), "a\nb\n").unwrap();
    tests::block_on(async {
        let site = Site::start()
            .await
            .with("/data", Reply::text("{\"a\": 7}"))
            .with("/none", Reply::Whole { status: 404, headers: Vec::new(), body: b"none".to_vec() });
        let network = way_to(&site);
        let url = site.url("");
        let call = |script: &str, network: Option<RunNetwork>| {
            let script = script.replace("URL", url.trim_end_matches('/'));
            let workspace = workspace.path();
            async move { text(Call { network, ..Call::over(workspace) }.make(&script).await, &script) }
        };
        let open = |script| call(script, Some(network.clone()));
        assert_eq!(open("curl -s URL/data | jq .a").await, "7\n");
        assert_eq!(
            open("curl -sfo /dev/null -w '%{http_code} %{exitcode}\\n' URL/none; echo $?").await,
            "404 22\n22\n"
        );
        assert_eq!(open("curl -s -o out.json URL/data && cat out.json").await, "{\"a\": 7}");
        open("curl -s -X PUT -H 'X-Thing: 1' -d @body.txt -d c=d URL/data").await;
        let received = site.last_request();
        assert_eq!((received.method.as_str(), received.text().as_str()), ("PUT", "ab&c=d"));
        assert_eq!(received.header("x-thing").as_deref(), Some("1"));
        // Another site, no site, and a run without a network.
        let blocked = open("curl -s http://198.51.100.1/; echo $?").await;
        assert!(blocked.starts_with("7\n[stderr]\ncurl: network_blocked: "), "{blocked}");
        let closed = call("curl URL/data; echo $?", None).await;
        assert!(closed.starts_with("7\n[stderr]\ncurl: network_blocked: "), "{closed}");
        let proxy = open("curl -x http://127.0.0.1:1 URL/data").await;
        assert!(proxy.contains("is not available here") && proxy.ends_with("[exit code: 2]"), "{proxy}");
    });
}
