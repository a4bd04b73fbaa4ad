//! Programs in Python (SPEC CODE-9): the same answers as the interpreter of this machine gives, the same contract and the same
//! limits as programs in JavaScript. Skipped, with a line that says so, where the engines were not built
//! (`cargo xtask python`).

mod attacked;
mod connected;
mod requests;
mod scripts;

use std::fs;
use std::process::Command;
use std::sync::{Once, OnceLock};
use std::time::Duration;

use runtime::{
    Access, CodeAccess, CodeErrorCode, CodeReport, CodeSandbox, EngineConfig, Language, Limits, Program, Runtime,
};
use serde_json::{Value, json};
use tests::binary::Motor;
use tests::model_server::ModelServer;
use tests::network::{Reply, Site};
use tests::{block_on, report};
use tokio_util::sync::CancellationToken;
use toolbox::{CompileTurn, SandboxPool};

/// The beginnings of errors that end a program without end or measure. A program with a mistake of its own has none of them.
const TIME: &str = "EXECUTION_TIMEOUT: ";
const MEMORY: &str = "EXECUTION_LIMIT: `memory_bytes` ";
const STACK: &str = "EXECUTION_LIMIT: `stack_bytes` ";
const RECURSION: &str = "EXECUTION_ERROR: RecursionError: ";

fn pool() -> &'static SandboxPool {
    static POOL: OnceLock<SandboxPool> = OnceLock::new();
    POOL.get_or_init(|| {
        let config = EngineConfig { cache: Some(tests::cache()), ..EngineConfig::default() };
        SandboxPool::new(Runtime::new(config).unwrap(), Vec::new())
    })
}

/// Whether this host has the engines.
pub(crate) fn has_python() -> bool {
    pool().python(true).is_some()
}

/// The engine, or `None` where it was not built, which is reported once.
fn engine(connected: bool) -> Option<&'static CodeSandbox> {
    static REPORTED: Once = Once::new();
    if pool().python(connected).is_none() {
        REPORTED.call_once(|| report("python: skipped: the engines are not built (`cargo xtask python`)"));
        return None;
    }
    Some(block_on(pool().code(Language::Python, connected, CompileTurn::ONLY)).unwrap())
}

fn program(source: &str) -> Program {
    Program { source: source.into(), timeout: Duration::from_secs(5), guard: false, seed: 7, now_ms: 1_767_323_045_000 }
}

fn run(sandbox: &CodeSandbox, source: &str) -> CodeReport {
    block_on(sandbox.execute(&program(source), &Limits::default(), &CancellationToken::new()))
}

fn value(sandbox: &CodeSandbox, source: &str) -> String {
    run(sandbox, source).outcome.unwrap_or_else(|error| panic!("{source}: {error}")).json
}

/// Programs as models write them: data cleaning, dates, text, statistics, small algorithms. They print the same as the
/// interpreter of this machine prints.
#[test]
fn programs_print_what_they_print_elsewhere() {
    let Some(sandbox) = engine(false) else { return };
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/python/programs.txt");
    let text = fs::read_to_string(path).unwrap();
    let programs: Vec<(&str, &str)> = text.split("### ").filter_map(|part| part.split_once('\n')).collect();
    assert!(programs.len() >= 100, "{}", programs.len());
    let mut differ = Vec::new();
    for (name, source) in &programs {
        let Ok(here) = Command::new("python3").args(["-c", source]).output() else {
            report("python: 0 programs compared, skipped: there is no `python3` to compare with");
            return;
        };
        assert!(here.status.success(), "{name}: {}", String::from_utf8_lossy(&here.stderr));
        let report = run(sandbox, source);
        let (expected, printed) = (String::from_utf8(here.stdout).unwrap(), report.console);
        if report.outcome.is_err() || printed != expected {
            differ.push(format!("{name}: {:?}\n{expected}\n-- but\n{printed}", report.outcome.err()));
        }
    }
    assert!(differ.is_empty(), "{} of {} differ\n{}", differ.len(), programs.len(), differ.join("\n"));
    report(&format!("python: {} programs print what `python3` prints here", programs.len()));
}

#[test]
fn a_program_has_the_value_of_its_last_expression_or_return() {
    let Some(sandbox) = engine(false) else { return };
    for (source, expected) in [
        ("1 + 1", "2"),
        ("return 5\nprint('never')", "5"),
        ("for n in range(9):\n    if n == 4:\n        return {'n': n}", r#"{"n": 4}"#),
        ("x = 1", "null"),
        ("", "null"),
        ("import asyncio\nawait asyncio.sleep(9)\n'slept'", r#""slept""#),
        ("async def f():\n    return 3\nawait f()", "3"),
        ("[1, 2.5, None, True, 'ä', (1,), {2: 'b'}]", r#"[1, 2.5, null, true, "ä", [1], {"2": "b"}]"#),
        ("float('nan'), 2**64, {3, 1}, b'x'", r#"[null, "18446744073709551616", [1, 3], "x"]"#),
        ("import datetime, decimal\ndatetime.date(2024, 1, 2), decimal.Decimal('1.10')", r#"["2024-01-02", "1.10"]"#),
        ("from dataclasses import dataclass\n@dataclass\nclass P:\n    x: int\nP(3)", r#"{"x": 3}"#),
        ("import sys\nsys.exit()", "null"),
        ("def f():\n    return 1\nf()", "1"),
        // The last statement begins in the last line without a margin, or before it.
        ("x = '''\nline\n'''\nlen(x)", "6"),
        ("'''a\nb\n'''", r#""a\nb\n""#),
        ("(1 +\n2\n)", "3"),
        ("x = [\n1,\n2,\n]\nsum(x)", "3"),
        ("1 + \\\n2", "3"),
        ("1 \\\n- 2", "-1"),
        ("a = 1; a + 1", "2"),
        ("a = 2\na;", "2"),
        ("6 * 7\n# the answer\n\n", "42"),
        ("x = 5\r\nx + 1\r\n", "6"),
        ("if True:\n    y = 1\nelse:\n    y = 2\n", "null"),
        ("def f():\n    return 2\nx = f()\nif x:\n    return x", "2"),
        ("from __future__ import annotations\ndef f(x: Missing): pass\nf.__annotations__['x']", r#""Missing""#),
    ] {
        assert_eq!(value(sandbox, source), expected, "{source}");
    }
    // A warning is printed once, however often its line is compiled.
    for source in
        ["import re\nre.sub('\\d', 'b', '1')", "import re\nx = re.sub('\\d', 'b', '1')", "x = [\n'\\d',\n]\nx"]
    {
        let printed = run(sandbox, source).console;
        assert_eq!(printed.matches("SyntaxWarning").count(), 1, "{source}: {printed}");
    }
    let long = run(sandbox, "'x' * 100_000").outcome.unwrap();
    assert!(long.truncated && long.json.len() <= 32 * 1024 + 64 && long.json.ends_with("bytes]"));
    let console = run(sandbox, "for n in range(5000):\n    print(n)\n'end'");
    assert!(console.console_truncated && console.console.len() <= 8 * 1024 && console.console.starts_with("0\n1\n"));
    assert_eq!(console.outcome.unwrap().json, "\"end\"");
}

#[test]
fn an_error_names_its_line() {
    let Some(sandbox) = engine(false) else { return };
    for (source, line, words) in [
        ("x = 1\n1 / 0", 2, "ZeroDivisionError: division by zero"),
        ("def f():\n    raise ValueError('no')\n\nf()", 2, "ValueError: no"),
        ("x = (\n", 1, "SyntaxError"),
        ("if True:\nprint(1)", 2, "IndentationError"),
        ("import json\njson.loads('{')", 2, "JSONDecodeError"),
        ("\n\nimport numpy", 3, "it is not in the standard library, which is all the sandbox has"),
        ("open('data.csv')", 1, "this program was given no files"),
        ("import sys\nsys.exit('gave up')", 2, "SystemExit: gave up"),
        ("assert 1 == 2, 'differs'", 1, "AssertionError: differs"),
        (
            "class E(Exception):\n    def __str__(self):\n        return 1 / 0\nraise E()",
            4,
            "E: an error that cannot be shown",
        ),
        ("def f(n):\n    return f(n + 1)\nf(0)", 2, "RecursionError"),
        ("x = 0\n\n\n1 / x", 4, "ZeroDivisionError"),
        ("x = '''\n\n'''\ny = 2\nif y:\n    return 1 / 0", 6, "ZeroDivisionError"),
    ] {
        let error = run(sandbox, source).outcome.unwrap_err();
        assert_eq!((error.code, error.line), (CodeErrorCode::Error, Some(line)), "{source}: {error}");
        assert!(error.message.contains(words), "{source}: {error}");
    }
}

/// The engine imports nothing, so that whichever way a program takes, there is nothing at its end.
#[test]
fn nothing_is_reached_from_the_isolated_engine() {
    let Some(sandbox) = engine(false) else { return };
    assert_eq!(sandbox.component().inspection().imports.len(), 0);
    for (attack, words, twin, expected) in [
        (
            "open('/etc/passwd').read()",
            &["given no files"][..],
            "import io\nwith io.StringIO('root') as f:\n    text = f.read()\ntext",
            r#""root""#,
        ),
        (
            "import os\nos.listdir('/')",
            &["given no files"],
            "import os\nos.path.split('/etc/passwd')",
            r#"["/etc", "passwd"]"#,
        ),
        (
            "import os\nos.system('id')",
            &["module 'os' has no attribute 'system'"],
            "import os\nos.fspath('id')",
            r#""id""#,
        ),
        (
            "import subprocess\nsubprocess.run(['id'])",
            &["does not support processes", "has no processes"],
            "import subprocess\nsubprocess.list2cmdline(['a b', 'c'])",
            r#""\"a b\" c""#,
        ),
        (
            "import socket\nsocket.create_connection(('1.1.1.1', 53))",
            &["has no sockets"],
            "import socket\nsocket.inet_aton('1.1.1.1').hex()",
            r#""01010101""#,
        ),
        (
            "import urllib.request\nurllib.request.urlopen('http://example.com')",
            &["has no sockets"],
            "import urllib.request\nurllib.request.Request('http://example.com').host",
            r#""example.com""#,
        ),
        ("import ctypes", &["No module named 'ctypes'"], "import struct\nstruct.calcsize('<HQ')", "10"),
        (
            "import posix\nposix.open('/etc/passwd', 0)",
            &["given no files"],
            "import posix\nposix.fspath('/etc/passwd')",
            r#""/etc/passwd""#,
        ),
        (
            "import _io\n_io.FileIO('/etc/passwd')",
            &["given no files"],
            "import _io\n_io.BytesIO(b'x').read()",
            r#""x""#,
        ),
        (
            "import io\nio.open_code('/etc/passwd')",
            &["given no files"],
            "import io\nio.TextIOWrapper(io.BytesIO(b'x')).read()",
            r#""x""#,
        ),
        (
            "import pathlib\npathlib.Path('/etc/passwd').read_text()",
            &["given no files", "nothing for `open`"],
            "import pathlib\npathlib.Path('a/b.csv').suffix",
            r#"".csv""#,
        ),
        (
            "import os\nos.environ['PATH']",
            &["KeyError: 'PATH'"],
            "import os\nos.environ.get('PATH', 'none')",
            r#""none""#,
        ),
        (
            "import os\nos.kill(1, 9)",
            &["module 'os' has no attribute 'kill'"],
            "import signal\nsignal.Signals(9).name",
            r#""SIGKILL""#,
        ),
        (
            "import os\nos.fork()",
            &["module 'os' has no attribute 'fork'", "has no processes"],
            "import os\nos.name",
            r#""posix""#,
        ),
        (
            "import threading\nthreading.Thread(target=print).start()",
            &["can't start new thread"],
            "import threading\nthreading.Thread(target=print).is_alive()",
            "false",
        ),
        (
            "import _thread\n_thread.start_new_thread(print, ())",
            &["can't start new thread"],
            "import _thread\n_thread.allocate_lock().acquire()",
            "true",
        ),
        (
            "import importlib\nimportlib.import_module('sqlite3')",
            &["No module named 'sqlite3'"],
            "import importlib\nimportlib.import_module('math').gcd(6, 4)",
            "2",
        ),
        ("input()", &["nothing can be typed in"], "import sys\nsys.stdin.read()", r#""""#),
        // A function that the surroundings replaced is found again: a call of it has no answer.
        (
            "import io\nkinds = io.RawIOBase.__mro__[1].__subclasses__()\n\
             next(k for k in kinds if k.__name__ == 'FileIO')('/etc/passwd')",
            &["nothing for `open`"],
            "import io\nkinds = io.BufferedIOBase.__mro__[1].__subclasses__()\n\
             next(k for k in kinds if k.__name__ == 'BytesIO')(b'x').read()",
            r#""x""#,
        ),
        (
            "import os\nos.stat.__globals__['posix'].__loader__.load_module('posix').stat('/')",
            &["given no files", "the engine stopped"],
            "import os\nos.stat.__globals__['posix'].__loader__.load_module('posix').fspath('/')",
            r#""/""#,
        ),
    ] {
        let report = run(sandbox, attack);
        let error = report.outcome.expect_err(attack);
        assert_eq!(error.code, CodeErrorCode::Error, "{attack}: {error}");
        assert!(words.iter().any(|words| error.to_string().contains(words)), "{attack}: {error}");
        assert!(report.requests.is_empty(), "{attack}");
        assert_eq!(value(sandbox, twin), expected, "{twin}");
    }
}

#[test]
fn bombs_end_at_their_limits() {
    let Some(sandbox) = engine(false) else { return };
    // A megabyte of zeros in a kilobyte, which any number of times in a row is again a stream.
    let zeros = "import zlib\nc = zlib.compressobj(wbits=-15)\n\
                 part = c.compress(b'0' * (1 << 20)) + c.flush(zlib.Z_FULL_FLUSH)\n\
                 len(zlib.decompressobj(-15).decompress(part * 256MOST))";
    for (attack, ends, twin, expected) in [
        ("while True:\n    pass", &[TIME][..], "n = 0\nwhile n < 1000:\n    n += 1\nn", "1000"),
        (
            "x = []\nwhile True:\n    x.append('x' * 1_000_000)",
            &[MEMORY],
            "x = []\nfor _ in range(4):\n    x.append('x' * 1_000_000)\nsum(map(len, x))",
            "4000000",
        ),
        (
            "x = b'x' * (1 << 31)",
            &["EXECUTION_ERROR: OverflowError: cannot fit 'int'"],
            "x = b'x' * (1 << 20)\nlen(x)",
            "1048576",
        ),
        ("10 ** 10 ** 10", &[TIME, MEMORY], "10 ** 10", "10000000000"),
        (
            "import re\nre.match(r'(a+)+$', 'a' * 40 + 'b')",
            &[TIME],
            "import re\nlen(re.match(r'(a+)+$', 'a' * 40)[0])",
            "40",
        ),
        (
            "s = '['\nimport json\njson.loads(s * 200_000)",
            &[RECURSION, STACK],
            "s = '['\nimport json\nlen(json.dumps(json.loads(s * 50 + ']' * 50)))",
            "100",
        ),
        (
            "def f():\n    try:\n        f()\n    finally:\n        f()\nf()",
            &[TIME, MEMORY],
            "seen = []\ndef f(n):\n    try:\n        n and f(n - 1)\n    finally:\n        seen.append(n)\nf(3)\nseen",
            "[0, 1, 2, 3]",
        ),
        (&zeros.replace("MOST", ""), &[MEMORY], &zeros.replace("MOST", ", 1 << 20"), "1048576"),
        (
            "class A:\n    def __del__(self):\n        while True: pass\nA()\n1",
            &[TIME],
            "seen = []\nclass A:\n    def __del__(self):\n        seen.append(1)\nA()\nseen",
            "[1]",
        ),
        (
            "eval('(' * 5000 + ')' * 5000)",
            &["EXECUTION_ERROR: SyntaxError: too many nested parentheses", STACK],
            "eval('(' * 50 + '1' + ')' * 50)",
            "1",
        ),
    ] {
        let hurried = Program { timeout: Duration::from_secs(1), ..program(attack) };
        let report = block_on(sandbox.execute(&hurried, &Limits::default(), &CancellationToken::new()));
        let error = report.outcome.expect_err(attack);
        assert!(ends.iter().any(|end| error.to_string().starts_with(end)), "{attack}: {error}");
        assert!(report.usage.peak_memory_bytes <= Limits::default().memory_bytes, "{attack}");
        assert_eq!(value(sandbox, twin), expected, "{twin}");
    }
}

#[test]
fn no_state_is_left_for_the_next_program() {
    let Some(sandbox) = engine(false) else { return };
    let leave = "import builtins, json, sys, random\nbuiltins.leak = 1\njson.leak = 2\nsys.modules['leak'] = json\nleaked = 3\n\
                 sys.setrecursionlimit(200)\nrandom.seed(99)\nprint = None";
    assert!(run(sandbox, leave).outcome.is_ok());
    let look = "import builtins, json, sys\n[hasattr(builtins, 'leak'), hasattr(json, 'leak'), 'leak' in sys.modules, \
                'leaked' in globals(), sys.getrecursionlimit() > 500, callable(print)]";
    assert_eq!(value(sandbox, look), "[false, false, false, false, true, true]");
    // The twin: within one program all of it is seen.
    assert_eq!(value(sandbox, &format!("{leave}\n{look}")), "[true, true, true, true, false, false]");
}

#[test]
fn the_same_seed_and_clock_give_the_same_run() {
    let Some(sandbox) = engine(false) else { return };
    let source = "import random, uuid, secrets, time, datetime, os\n[random.random(), str(uuid.uuid4()), secrets.token_hex(4), \
                  time.time(), datetime.datetime.now(), datetime.date.today(), os.urandom(4).hex(), random.Random().random()]";
    let first = value(sandbox, source);
    assert_eq!(first, value(sandbox, source));
    assert!(first.contains("2026-01-02T03:04:05") && first.contains("\"2026-01-02\""), "{first}");
    let other = block_on(sandbox.execute(
        &Program { seed: 8, ..program(source) },
        &Limits::default(),
        &CancellationToken::new(),
    ));
    assert_ne!(other.outcome.unwrap().json, first);
    // Waiting takes no time.
    assert_eq!(value(sandbox, "import time\na = time.time()\ntime.sleep(3600)\nround(time.time() - a)"), "3600");
}

#[test]
fn files_are_those_of_the_workspace_and_as_they_were_granted() {
    let Some(sandbox) = engine(true) else { return };
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("data.csv"), "item,amount\ntea,120.5\ncups,80\n").unwrap();
    let given = |access: Option<Access>| CodeAccess {
        workspace: access.map(|_| directory.path().to_owned().into()),
        access: access.unwrap_or_default(),
        ..CodeAccess::default()
    };
    let run = |source: &str, access: Option<Access>| {
        let limits = Limits { memory_bytes: 256 << 20, ..Limits::default() };
        block_on(sandbox.execute_in(&program(source), given(access), &limits, &CancellationToken::new())).outcome
    };
    let adds = "import csv\nwith open('data.csv') as f:\n    total = sum(float(r['amount']) for r in csv.DictReader(f))\ntotal";
    assert_eq!(run(adds, Some(Access::ReadOnly)).unwrap().json, "200.5");
    assert_eq!(run(adds, Some(Access::ReadWrite)).unwrap().json, "200.5");
    let writes = "import pathlib, os\npathlib.Path('out').mkdir()\nopen('/workspace/out/a.txt', 'w').write('hi')\n\
                  sorted(os.listdir('.'))";
    assert!(run(writes, Some(Access::ReadOnly)).is_err());
    assert_eq!(run(writes, Some(Access::ReadWrite)).unwrap().json, r#"["data.csv", "out"]"#);
    assert_eq!(fs::read_to_string(directory.path().join("out/a.txt")).unwrap(), "hi");
    for source in
        ["open('/etc/passwd')", "open('../secret')", "import os\nos.symlink('/etc', 'etc')\nopen('etc/passwd')"]
    {
        assert!(run(source, Some(Access::ReadWrite)).is_err(), "{source}");
    }
    assert!(run(adds, None).unwrap_err().message.contains("no files"));
}

/// The whole way: a run whose model writes Python, with files and a domain, and with neither.
#[test]
fn a_run_writes_python() {
    if engine(true).is_none() {
        return;
    }
    let site = block_on(Site::at("127.0.0.1:0"));
    site.route("/rates", Reply::text("{\"eur\": 2}"));
    let source = format!(
        "import csv, requests, urllib.request, json\nrate = requests.get('{url}').json()['eur']\n\
         again = json.load(urllib.request.urlopen('{url}'))['eur']\n\
         total = sum(float(r['amount']) for r in csv.DictReader(open('sales.csv')))\n\
         open('total.txt', 'w').write(str(total * rate))\n[total, rate, again]",
        url = site.url("/rates"),
    );
    let refused = format!("import requests\nrequests.get('{}')", site.url("/rates").replace("127.0.0.1", "127.0.0.9"));
    let call = |code: &str| {
        let arguments = json!({ "code": code, "language": "python" });
        json!({ "tool_calls": [{ "name": "code", "arguments": arguments }] })
    };
    let turns = json!([call(&source), call(&refused), { "text": "done" }]);
    let model = block_on(ModelServer::scripted(json!({ "turns": turns })));
    let motor = Motor::with_model(&model);
    motor.configure(&format!("[network]\nprivate = [\"{}\"]\n", site.address()));
    let file = motor.file("sales.csv", "item,amount\ntea,120.5\ncups,80\n");
    let domain = site.address().to_string();
    let arguments = ["--tools", "code,filesystem", "--domains", &domain, "--file", file.to_str().unwrap()];
    motor.run(&[&["act", "add up"], &arguments[..]].concat()).succeeded();
    let run = motor.only_run();
    let trace = motor.json(&["task", "status", &run]);
    let result = |step: usize| trace["steps"][step]["toolCalls"][0].clone();
    assert_eq!(
        result(0)["result"]["output"].as_str().map(|text| text.contains("[200.5, 2, 2]")),
        Some(true),
        "{trace:#}"
    );
    assert_eq!(fs::read_to_string(motor.workspace(&run).join("total.txt")).unwrap(), "401.0");
    let second = result(1)["result"]["output"].to_string();
    assert!(second.contains("domain_not_allowed"), "{second}");
    // The record names the component that ran it.
    let hash = pool().python(true).unwrap().to_string();
    assert_eq!(result(0)["component"], Value::String(hash), "{trace:#}");
    // Outside runs, and only where it is asked for.
    assert_eq!(motor.stdout(&["execute", "--language", "python", "sum(range(5))"]).trim(), "10");
    let script = motor.file("sum.py", "print('hi')\n{'a': [1, 2]}\n");
    assert_eq!(motor.stdout(&["execute", "--file", script.to_str().unwrap()]).trim(), r#"{"a": [1, 2]}"#);
    for (language, source, code) in
        [("javascript", "sum(range(5))", "EXECUTION_ERROR"), ("python", "import subprocess", "EXECUTION_BLOCKED")]
    {
        let ended = motor.run(&["execute", "--language", language, source]);
        assert!(ended.code == Some(1) && ended.stderr.contains(code), "{ended:?}");
    }
}
