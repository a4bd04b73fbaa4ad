//! Scripts of skills in Python (SPEC CODE-9): `python3` in the shell of a run is the engine of the `code` tool, with the run's
//! files and domains, and with the rest of the call's limits.

use std::path::Path;
use std::sync::Arc;

use network::RunNetwork;
use runtime::{
    CallReport, Language, Limit, LimitExceeded, Limits, Outcome, ScriptEngine, ScriptSandbox, ToolCall, ToolError,
};
use serde_json::{Value, json};
use tests::block_on;
use tests::network::{Reply, Site};
use tokio_util::sync::CancellationToken;
use toolbox::CompileTurn;

use super::{engine, pool};
use crate::skills_scenarios::world::{MAIL, World, call, calls, manifest, says};

const REPORT: &str = "#!/usr/bin/env python3\nimport csv, sys\nfrom helper import total\n\n\
                      rows = list(csv.DictReader(open(sys.argv[1])))\nopen('total.txt', 'w').write(str(total(rows)))\n\
                      print(f'{total(rows):.2f}')\nif '--strict' in sys.argv:\n    sys.exit(3)\n";
const HELPER: &str = "def total(rows):\n    return sum(float(row['amount']) for row in rows)\n";

/// The output of each call of the only run.
fn outputs(world: &World) -> Vec<String> {
    let trace = world.trace();
    calls(&trace).iter().map(|call| call["result"]["output"].as_str().unwrap_or_default().to_owned()).collect()
}

fn bash(script: &str) -> Value {
    call("bash", json!({ "script": script }))
}

#[test]
fn a_skill_runs_its_scripts_in_python() {
    if engine(true).is_none() {
        return;
    }
    let scripts: &[(&str, &str)] = &[
        ("printf 'item,amount\\ntea,120.5\\ncups,80\\n' >sales.csv; python3 scripts/report.py sales.csv", "200.50\n"),
        ("cat total.txt; ls scripts", "200.5helper.py\nreport.py\n"),
        ("python scripts/report.py sales.csv --strict; echo \"status $?\"", "200.50\nstatus 3\n"),
        ("chmod +x scripts/report.py; ./scripts/report.py sales.csv", "200.50\n"),
        ("cd scripts && python3 report.py ../sales.csv", "200.50\n"),
        (
            "cat sales.csv | python3 -c 'import sys; print(len(sys.stdin.readlines()), sys.argv[1:])' a b",
            "3 ['a', 'b']\n",
        ),
        ("python3 - x <<'X'\nimport sys\nprint(sys.argv, __name__)\nX", "['-', 'x'] __main__\n"),
        ("echo 'print(input().upper())' >/tmp/up.py; echo hi | python3 /tmp/up.py", "HI\n"),
        ("echo '{\"a\": 1}' | python3 -m json.tool --compact", "{\"a\":1}\n"),
        ("A=1; export B=2; python3 -c 'import os; print(os.environ.get(\"A\"), os.environ[\"B\"])'", "None 2\n"),
        ("for n in 1 2 3; do python3 -c \"print($n * 2)\"; done | paste -sd+ | bc", "12\n"),
        ("python3 -c '1 + 1'", "[no output]"),
        ("python3 -c 'import sys; sys.stdout.buffer.write(bytes([0, 255]))' | xxd -p", "00ff\n"),
    ];
    let fails = "python3 -c 'import sys\nprint(\"out\")\nraise ValueError(\"no\")'";
    let mut turns: Vec<_> = scripts.iter().map(|(script, _)| bash(script)).collect();
    turns.extend([bash(fails), says("done")]);
    let world = World::new(turns);
    world.motor.configure("[energy]\nenabled = false\n");
    let text = manifest(MAIL, "Run `python3 scripts/report.py FILE`.");
    world.drop_in(MAIL, &[("SKILL.md", &text), ("scripts/report.py", REPORT), ("scripts/helper.py", HELPER)]);
    let review = world.review(MAIL);
    assert!(review["unavailable"].is_null(), "{review:#}");
    world.approve(&[MAIL, "--tools", "bash"]);
    world.act(MAIL, &[]).succeeded();
    let outputs = outputs(&world);
    for ((script, expected), output) in scripts.iter().zip(&outputs) {
        assert_eq!(output, expected, "{script}");
    }
    let failed = outputs.last().unwrap();
    assert!(failed.starts_with("out\n[stderr]\nTraceback (most recent call last):\n"), "{failed}");
    assert!(failed.contains("File \"<string>\", line 3, in <module>"), "{failed}");
    assert!(failed.ends_with("ValueError: no\n[exit code: 1]"), "{failed}");
    assert_eq!(calls(&world.trace())[0]["result"]["provenance"], "internal");
}

#[test]
fn a_script_reaches_the_domains_of_its_run_and_no_others() {
    if engine(true).is_none() {
        return;
    }
    let site = block_on(Site::at("127.0.0.1:0"));
    site.route("/rates", Reply::text("{\"eur\": 2}"));
    let script =
        |url: &str| bash(&format!("python3 -c 'import requests; print(requests.get(\"{url}\").json()[\"eur\"])'"));
    let granted = site.url("/rates");
    let other = granted.replace("127.0.0.1", "127.0.0.9");
    let world = World::new(vec![script(&granted), script(&other), says("done")]).beside(&[&site]);
    let domain = site.address().to_string();
    world.motor.run(&["act", "look", "--tools", "bash", "--domains", &domain]).succeeded();
    let trace = world.trace();
    let outputs = outputs(&world);
    assert!(outputs[0].contains("2\n") && !outputs[0].contains("exit code"), "{trace:#}");
    assert_eq!(calls(&trace)[0]["result"]["provenance"], "web", "{trace:#}");
    assert!(outputs[1].contains("domain_not_allowed") && outputs[1].contains("[exit code: 1]"), "{}", outputs[1]);
    assert_eq!(site.requests().len(), 1);
}

/// One call of the shell, with the engine for scripts or without it.
async fn shell(
    workspace: &Path,
    with_python: bool,
    network: Option<RunNetwork>,
    limits: Limits,
    script: &str,
) -> CallReport<String, ToolError> {
    let toolset = pool().tools("bash", CompileTurn::ONLY).await.unwrap();
    let scripts = ScriptEngine::new(7, 1_767_323_045_000, || async {
        let sandbox = pool().code(Language::Python, true, CompileTurn::ONLY).await.map_err(|refusal| refusal.reason)?;
        Ok(ScriptSandbox { sandbox: sandbox.clone(), component: sandbox.component().hash() })
    });
    let call = ToolCall {
        name: "bash",
        arguments: &json!({ "script": script }).to_string(),
        run_id: "run_test",
        step: 1,
        idempotency_key: "key",
        workspace: Some(workspace.to_owned().into()),
        network,
        scripts: with_python.then_some(scripts),
        seeded: None,
        environment: Vec::new(),
        limits,
        notes: Arc::new(|_| ()),
        cancel: CancellationToken::new(),
    };
    toolset.component.call(call).await
}

fn report(with_python: bool, limits: Limits, script: &str) -> CallReport<String, ToolError> {
    block_on(shell(tempfile::tempdir().unwrap().path(), with_python, None, limits, script))
}

fn long() -> Limits {
    Limits { deadline_ms: 60_000, ..Limits::default() }
}

#[test]
fn without_the_engine_the_shell_says_so_in_one_line() {
    let script = "python3 -c 'print(1)'; echo \"status $?\"; python --version";
    let Outcome::Returned(text) = report(false, long(), script).outcome else { panic!("no answer") };
    assert!(
        text.starts_with("status 127\n[stderr]\nbash: python3: command not found: there is no Python here"),
        "{text}"
    );
    assert!(text.contains("cargo xtask python") && text.ends_with("[exit code: 127]"), "{text}");
    if engine(true).is_some() {
        let Outcome::Returned(text) = report(true, long(), script).outcome else { panic!("no answer") };
        assert!(text.starts_with("1\nstatus 0\nPython 3.14"), "{text}");
    }
}

#[test]
fn a_script_without_end_is_stopped_and_the_next_call_works() {
    if engine(true).is_none() {
        return;
    }
    let brief = Limits { deadline_ms: 3_000, ..Limits::default() };
    let Outcome::Returned(text) = report(true, brief, "python3 -c 'while True: pass'; echo after").outcome else {
        panic!("no answer")
    };
    // The script and the shell have the same deadline: either one reports it.
    assert!(text.contains("exceeded its limit of") || text.contains("timed out after"), "{text}");
    let Outcome::Returned(text) = report(true, brief, "python3 -c 'print(1)'; echo after").outcome else {
        panic!("no answer")
    };
    assert_eq!(text, "1\nafter\n");
    // A script that takes all memory ends alone; the shell goes on.
    let bomb = "python3 -c 'x = []\nwhile True: x.append(\"x\" * 1_000_000)'; echo \"status $?\" | tr 1-9 n";
    let Outcome::Returned(text) = report(true, long(), bomb).outcome else { panic!("no answer") };
    assert!(text.starts_with("status n"), "{text}");
}

#[test]
fn scripts_spend_the_limits_of_their_call() {
    if engine(true).is_none() {
        return;
    }
    let idle = report(true, long(), "true").usage;
    let busy = report(true, long(), "python3 -c 'sum(n for n in range(200_000))'").usage;
    assert!(busy.fuel > idle.fuel + 200_000 && busy.peak_memory_bytes >= idle.peak_memory_bytes, "{busy:?} {idle:?}");
    assert!(busy.host_calls < 1_000_000, "{busy:?}");
    // Many scripts have the fuel of one: the loop ends, and so would a single script with that work.
    let fuel = idle.fuel + 8 * (busy.fuel - idle.fuel);
    let limits = Limits { fuel, ..long() };
    let spend = |times: u32| {
        let script = format!("for n in $(seq {times}); do python3 -c 'sum(n for n in range(200_000))'; done; echo end");
        report(true, limits, &script).outcome
    };
    assert_eq!(spend(60), Outcome::Exceeded(LimitExceeded { limit: Limit::Fuel, value: fuel }));
    assert_eq!(spend(1), Outcome::Returned("end\n".into()));
}

#[test]
fn requests_of_scripts_are_requests_of_their_call() {
    if engine(true).is_none() {
        return;
    }
    let site = block_on(Site::start()).with("/a", Reply::text("a"));
    let url = site.url("/a");
    let script = format!(
        "for n in 1 2 3; do python3 -c 'import urllib.request as u; print(u.urlopen(\"{url}\").read().decode())'; done\ncurl -s {url}"
    );
    let ask = |most: u64| {
        let (workspace, limits) = (tempfile::tempdir().unwrap(), Limits { outgoing_requests: most, ..long() });
        let network = Some(crate::shell::way_to(&site));
        block_on(shell(workspace.path(), true, network, limits, &script))
    };
    let whole = ask(4);
    assert_eq!(whole.outcome, Outcome::Returned("a\na\na\na".into()));
    assert_eq!(whole.requests.len(), 4);
    let Outcome::Returned(text) = ask(3).outcome else { panic!("no answer") };
    assert!(text.starts_with("a\na\na\n") && text.contains("[exit code: "), "{text}");
    assert_eq!(site.requests().len(), 7);
}

#[test]
fn files_of_scripts_count_with_those_of_the_shell() {
    if engine(true).is_none() {
        return;
    }
    let script = "echo hi >a; python3 -c 'open(\"b\", \"w\").write(\"x\" * 700)'; echo $?; seq 200 >c; wc -c <b";
    let write = |most: u64| report(true, Limits { workspace_bytes: most, ..long() }, script).outcome;
    assert_eq!(write(10_000), Outcome::Returned("0\n700\n".into()));
    let value = 1_000;
    assert_eq!(write(value), Outcome::Exceeded(LimitExceeded { limit: Limit::WorkspaceBytes, value }));
}

#[test]
fn no_state_passes_from_one_script_to_the_next_but_files() {
    if engine(true).is_none() {
        return;
    }
    let script = "python3 -c 'import builtins, os\nbuiltins.leak = 1\nos.environ[\"LEAK\"] = \"1\"\nopen(\"kept\", \"w\").write(\"k\")'\n\
                  python3 -c 'import builtins, os\nprint(hasattr(builtins, \"leak\"), \"LEAK\" in os.environ, open(\"kept\").read())'\n\
                  cat kept; echo \"${LEAK-unset}\"";
    let Outcome::Returned(text) = report(true, long(), script).outcome else { panic!("no answer") };
    assert_eq!(text, "False False k\nkunset\n");
}

#[test]
fn a_script_stays_in_the_workspace() {
    if engine(true).is_none() {
        return;
    }
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("secret"), "s3cret").unwrap();
    let secret = outside.path().join("secret");
    for (attack, twin) in [
        (format!("open(\"{}\").read()", secret.display()), "open(\"/workspace/in\").read()"),
        ("open(\"../secret\").read()".to_owned(), "open(\"./in\").read()"),
        (
            "__import__(\"os\").symlink(\"/etc\", \"etc\") or open(\"etc/passwd\").read()".to_owned(),
            "__import__(\"os\").listdir(\".\")",
        ),
        ("__import__(\"subprocess\").run([\"id\"])".to_owned(), "__import__(\"shlex\").split(\"id\")"),
        (
            "__import__(\"socket\").create_connection((\"127.0.0.1\", 1))".to_owned(),
            "__import__(\"ipaddress\").ip_address(\"127.0.0.1\")",
        ),
        ("__import__(\"os\").environ[\"OPENAI_API_KEY\"]".to_owned(), "__import__(\"os\").environ[\"HOME\"]"),
    ] {
        let workspace = tempfile::tempdir().unwrap();
        std::fs::write(workspace.path().join("in"), "inside").unwrap();
        let run = |expression: &str| {
            let script = format!("python3 -c 'print({expression})' >out 2>err; echo $?");
            match block_on(shell(workspace.path(), true, None, long(), &script)).outcome {
                Outcome::Returned(text) => text,
                other => panic!("{expression}: {other:?}"),
            }
        };
        assert_eq!(run(&attack), "1\n", "{attack}");
        let err = std::fs::read_to_string(workspace.path().join("err")).unwrap();
        assert!(!err.contains("s3cret") && err.contains("Error"), "{attack}: {err}");
        assert_eq!(run(twin), "0\n", "{twin}");
    }
}
