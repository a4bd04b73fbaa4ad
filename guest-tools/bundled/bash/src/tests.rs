//! The shell over a directory of its own, on the machine that builds it.

mod allowed;
mod files;
mod git;
mod hostile;
mod python;

use std::path::Path;

use motor_sdk::Context;
use motor_sdk::serde_json::json;

/// A host without Python.
fn host() -> crate::Host {
    crate::Host { send: crate::curl::through_the_host, python: Err("no engine here".into()) }
}

/// Runs a script as the host would, and returns the model's text.
fn run(root: &Path, allowed: Option<&str>, timeout_ms: u64, script: &str) -> String {
    let (root, allowed) = (root.to_str().unwrap().to_owned(), allowed.map(str::to_owned));
    let arguments = json!({ "script": script, "timeout_ms": timeout_ms }).to_string();
    // The interpreter's frames are large without optimisation; a component's stack is the host's to bound.
    let shell = std::thread::Builder::new().stack_size(256 << 20).spawn(move || {
        let context = Context { run_id: String::new(), step: 0, deadline_ms: 60_000, idempotency_key: String::new() };
        motor_sdk::call(&crate::tools_over(&root, allowed, host()), "bash", &arguments, &context)
    });
    shell.unwrap().join().unwrap().unwrap()
}

fn run_alone(script: &str) -> String {
    run(tempfile::tempdir().unwrap().path(), None, 20_000, script)
}

#[track_caller]
fn check(script: &str, expected: &str) {
    assert_eq!(run_alone(script), expected, "{script}");
}

#[test]
fn the_answer_is_output_then_errors_then_the_exit_code() {
    check("echo hi", "hi\n");
    check("true", "[no output]");
    check("echo out; echo err >&2; exit 3", "out\n[stderr]\nerr\n[exit code: 3]");
    check(
        "if true; then echo unclosed",
        "[stderr]\nbash: parse error at line 2, column 1: syntax error: unexpected end of file\n[exit code: 2]",
    );
}

#[test]
fn nothing_of_the_machine_is_in_the_environment() {
    check("env | sort", "HOME=/workspace\nPATH=/usr/bin:/bin\nPWD=/workspace\nUSER=agent\n");
    check("pwd; whoami; hostname; echo \"[$MOTOR_COMMANDS]\"", "/workspace\nagent\nsandbox\n[]\n");
}

#[test]
fn what_is_not_here_is_not_found_and_says_where_to_turn() {
    for (name, hint) in [
        ("node", "`code`"),
        ("python3", "no engine here"),
        ("pip", "installed"),
        ("npx", "`code`"),
        ("wget", "`curl`"),
        ("ssh", "process"),
    ] {
        let text = run_alone(&format!("{name} --version; echo \"code $?\"; command -v {name} || echo absent"));
        assert!(text.starts_with("code 127\nabsent\n"), "{text}");
        assert!(text.contains(&format!("bash: {name}: command not found: ")) && text.contains(hint), "{text}");
    }
    let text = run_alone("frobnicate");
    assert!(text.contains("frobnicate: command not found") && text.ends_with("[exit code: 127]"), "{text}");
}

#[test]
fn both_names_of_the_argument_work() {
    let tools = crate::tools_over("/nowhere", None, host());
    let context = Context { run_id: String::new(), step: 0, deadline_ms: 60_000, idempotency_key: String::new() };
    assert_eq!(motor_sdk::call(&tools, "bash", r#"{"command":"echo hi"}"#, &context).unwrap(), "hi\n");
    assert!(motor_sdk::call(&tools, "bash", "{}", &context).is_err());
}
