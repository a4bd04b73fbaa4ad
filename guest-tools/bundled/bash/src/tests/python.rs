//! `python3` in scripts of the shell, with a host that answers with the script that it was given.

use motor_sdk::Context;
use motor_sdk::serde_json::json;

use crate::python::{Ended, Origin, Script};

/// Prints the script that it was given; the status of the text `exit N` is N.
fn echo(script: &Script) -> Result<Ended, String> {
    let origin = match script.origin {
        Origin::Command => "command",
        Origin::Input => "input",
        Origin::File => "file",
        Origin::Module => "module",
    };
    if script.text == "refuse" {
        return Err("no engine".into());
    }
    let status = script.text.trim().strip_prefix("exit ").and_then(|code| code.parse().ok()).unwrap_or_default();
    let stdout = format!(
        "{origin} {} {:?} {:?} in {} from {} < {:?}\n",
        script.name,
        script.text,
        script.arguments,
        script.directory,
        script.search,
        String::from_utf8_lossy(&script.stdin)
    );
    assert!(script.timeout_ms > 0 && script.timeout_ms <= 20_000, "{}", script.timeout_ms);
    let stderr = if status == 0 { Vec::new() } else { b"failed\n".to_vec() };
    Ok(Ended { stdout: stdout.into_bytes(), stderr, status })
}

#[track_caller]
fn check(allowed: Option<&str>, script: &str, expected: &str) {
    let root = tempfile::tempdir().unwrap();
    let (root, allowed) = (root.path().to_str().unwrap().to_owned(), allowed.map(str::to_owned));
    let arguments = json!({ "script": script, "timeout_ms": 20_000 }).to_string();
    let shell = std::thread::Builder::new().stack_size(256 << 20).spawn(move || {
        let context = Context { run_id: String::new(), step: 0, deadline_ms: 60_000, idempotency_key: String::new() };
        let host = crate::Host { send: crate::curl::through_the_host, python: Ok(echo) };
        motor_sdk::call(&crate::tools_over(&root, allowed, host), "bash", &arguments, &context)
    });
    assert_eq!(shell.unwrap().join().unwrap().unwrap(), expected, "{script}");
}

#[test]
fn a_script_gets_its_arguments_its_input_and_its_place() {
    check(
        None,
        "mkdir s; echo body >s/x.py; echo in | python3 s/x.py a 'b c'",
        "file /workspace/s/x.py \"body\\n\" [\"s/x.py\", \"a\", \"b c\"] in /workspace from /workspace/s < \"in\\n\"\n",
    );
    check(
        None,
        "python -c 'print(1)' x",
        "command <string> \"print(1)\" [\"-c\", \"x\"] in /workspace from /workspace < \"\"\n",
    );
    check(
        None,
        "python3 - a <<'X'\nprint(2)\nX",
        "input <stdin> \"print(2)\\n\" [\"-\", \"a\"] in /workspace from /workspace < \"\"\n",
    );
    check(
        None,
        "mkdir d; cd d; echo t | python3 -m json.tool",
        "module json.tool \"\" [\"json.tool\"] in /workspace/d from /workspace/d < \"t\\n\"\n",
    );
    // A script in memory is read by the shell.
    check(None, "echo m >/tmp/m.py; python3 /tmp/m.py | cut -d' ' -f1-3", "file /tmp/m.py \"m\\n\"\n");
    check(
        None,
        "printf '#!/usr/bin/env python3\\nx\\n' >x.py; chmod +x x.py; ./x.py a | cut -d'\"' -f3-",
        " [\"./x.py\", \"a\"] in /workspace from /workspace < \"\"\n",
    );
}

#[test]
fn the_status_of_a_script_is_that_of_the_command() {
    check(None, "python3 -c 'exit 3' >/dev/null", "[stderr]\nfailed\n[exit code: 3]");
    check(None, "python3 -c 'exit 3' >/dev/null 2>&1 || echo \"failed with $?\"", "failed with 3\n");
    check(None, "python3 -c refuse", "[stderr]\npython3: no engine\n[exit code: 1]");
    check(None, "cd /tmp; python3 -c 1 2>&1 | grep -c 'cd /workspace'", "1\n");
    check(None, "python3 gone.py 2>&1 | grep -c \"can't open file '/workspace/gone.py'\"", "1\n");
    check(None, "command -v python3 >/dev/null && echo here", "here\n");
}

#[test]
fn an_allow_list_narrows_it() {
    check(
        Some("cat"),
        "python3 -c 1",
        "[stderr]\nbash: python3: not allowed in this run: allowed are cat\n[exit code: 126]",
    );
    check(Some("python3"), "python3 -c 1", "command <string> \"1\" [\"-c\"] in /workspace from /workspace < \"\"\n");
}
