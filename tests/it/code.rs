//! The code sandbox: the interfaces of programs, the limits of their reach, and their ends.

use std::sync::OnceLock;
use std::time::Duration;

use runtime::{
    CodeErrorCode, CodeReport, CodeSandbox, Component, ComponentOrigin, EngineConfig, Limits, Program, Runtime,
};
use tokio_util::sync::CancellationToken;

fn sandbox() -> &'static CodeSandbox {
    static SANDBOX: OnceLock<CodeSandbox> = OnceLock::new();
    SANDBOX.get_or_init(|| {
        let runtime = Runtime::new(EngineConfig { cache: Some(tests::cache()), ..EngineConfig::default() }).unwrap();
        let component =
            tests::block_on(Component::load(&runtime, &tests::bundled("code-js"), ComponentOrigin::Bundled)).unwrap();
        CodeSandbox::link(&runtime, &component).unwrap()
    })
}

fn program(source: &str) -> Program {
    Program { source: source.into(), timeout: Duration::from_secs(5), guard: false, seed: 7, now_ms: 1_000_000 }
}

fn execute(program: &Program) -> CodeReport {
    execute_with(program, &Limits::default())
}

fn execute_with(program: &Program, limits: &Limits) -> CodeReport {
    tests::block_on(sandbox().execute(program, limits, &CancellationToken::new()))
}

#[track_caller]
fn check(source: &str, expected: &str) {
    let report = execute(&program(source));
    assert_eq!(
        report.outcome.map(|value| value.json).map_err(|error| error.to_string()),
        Ok(expected.to_owned()),
        "{source}"
    );
}

#[track_caller]
fn error(source: &str) -> runtime::CodeError {
    execute(&program(source)).outcome.expect_err(source)
}

#[test]
fn a_program_has_the_value_of_its_return_or_its_last_expression() {
    check("const p=10000, r=0.05, n=10; return p*Math.pow(1+r,n)", "16288.94626777442");
    check("1 + 1", "2");
    check("const f = x => { return x * 2 }; f(21)", "42");
    check("return await Promise.all([1, Promise.resolve(2)])", "[1,2]");
    check("await new Promise(done => done('x'))", "\"x\"");
    check(
        "return { a: [1, null, undefined, NaN], b: undefined, c: new Date(0) }",
        r#"{"a":[1,null,null,null],"c":"1970-01-01T00:00:00.000Z"}"#,
    );
    check("return undefined", "null");
    check("", "null");
    check("const m = new Map([[1, 2]]); return [...m.entries()].flat()", "[1,2]");
    check("return 'ä€😀\\u0000'.length", "5");
    check("return [2n ** 64n, () => 1]", r#"["18446744073709551616",null]"#);
    check("return [3,1,2].toSorted().at(-1)", "3");
}

#[test]
fn the_console_is_captured_up_to_its_limit() {
    let report = execute(&program("console.log('a', 1, {x: [1]}); console.error('b'); return 1"));
    assert!(report.console.contains('a') && report.console.contains('1') && report.console.contains('b'), "{report:?}");
    assert!(!report.console_truncated);
    let report = execute(&program("for (let i = 0; i < 10000; i++) console.log('ä'.repeat(100)); return 1"));
    assert!(report.console_truncated && report.console.len() <= 8 * 1024, "{}", report.console.len());
    assert_eq!(report.outcome.unwrap().json, "1");
}

#[test]
fn errors_have_a_class_a_line_and_a_column() {
    let fault = error("const a = 1;\nnull.x;\nreturn a");
    assert_eq!((fault.code, fault.line), (CodeErrorCode::Error, Some(2)), "{fault}");
    assert!(fault.message.starts_with("TypeError"), "{fault}");
    let fault = error("let x = 1;\nlet y = ;\n");
    assert_eq!(fault.line, Some(2), "{fault}");
    assert!(fault.message.starts_with("SyntaxError"), "{fault}");
    let fault = error("x.y");
    assert_eq!((fault.line, fault.column.is_some()), (Some(1), true), "{fault}");
    assert!(error("throw 'plain'").message.contains("plain"));
    assert!(error("await new Promise(() => {})").to_string().starts_with("EXECUTION_ERROR: "));
    let cyclic = error("const a = {}; a.a = a; return a").message;
    assert!(cyclic.to_lowercase().contains("circular"), "{cyclic}");
}

#[test]
fn the_guard_is_a_courtesy_and_the_sandbox_the_boundary() {
    let mut guarded = program("return require('fs')");
    guarded.guard = true;
    let blocked = execute(&guarded).outcome.unwrap_err();
    assert_eq!(blocked.code, CodeErrorCode::Blocked);
    assert!(blocked.to_string().starts_with("EXECUTION_BLOCKED: "));
    let plain = error("return require('fs')");
    assert_eq!(plain.code, CodeErrorCode::Error);
    assert!(plain.to_string().contains("require"), "{plain}");
}

/// The proof that a program cannot reach network, files or environment: the engine is given nothing to reach them with.
#[test]
fn the_engine_imports_nothing() {
    assert_eq!(sandbox().component().inspection().imports, []);
}

#[test]
fn nothing_of_a_host_is_in_reach() {
    for name in [
        "require",
        "process",
        "module",
        "exports",
        "fetch",
        "XMLHttpRequest",
        "WebSocket",
        "Deno",
        "Bun",
        "window",
        "importScripts",
        "std",
        "os",
        "scriptArgs",
        "setTimeout",
        "WebAssembly",
    ] {
        check(&format!("return typeof {name}"), "\"undefined\"");
    }
    for escape in [
        "(() => {}).constructor('return typeof process')()",
        "this?.constructor?.constructor?.('return typeof process')() ?? 'undefined'",
        "[].constructor.constructor('return typeof require')()",
        "new Function('return typeof fetch')()",
        "(0, eval)('typeof process')",
        "Reflect.construct(Function, ['return typeof process'])()",
    ] {
        check(&format!("return {escape}"), "\"undefined\"");
    }
    assert!(error("await import('fs')").to_string().starts_with("EXECUTION_ERROR"));
    assert!(error("await import('/etc/passwd')").to_string().starts_with("EXECUTION_ERROR"));
}

#[test]
fn no_state_passes_from_one_program_to_the_next() {
    check("globalThis.leak = 1; Array.prototype.leak = 2; Object.freeze(Math); return 1", "1");
    check(
        "return [typeof globalThis.leak, typeof [].leak, Object.isFrozen(Math)]",
        r#"["undefined","undefined",false]"#,
    );
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let source = "return [Math.random(), Math.random(), Date.now(), new Date().toISOString()]";
    let first = execute(&program(source)).outcome.unwrap().json;
    assert_eq!(execute(&program(source)).outcome.unwrap().json, first);
    let other = execute(&Program { seed: 8, ..program(source) }).outcome.unwrap().json;
    assert_ne!(first, other);
    check("return new Date().getFullYear()", "1970");
}

#[test]
fn a_long_result_is_cut_and_marked() {
    let report = execute(&program("return 'ä'.repeat(100000)"));
    let value = report.outcome.unwrap();
    assert!(
        value.truncated && value.json.len() <= 33 * 1024 && value.json.contains("truncated"),
        "{}",
        value.json.len()
    );
    let whole = execute(&program("return 'x'.repeat(32000)")).outcome.unwrap();
    assert!(!whole.truncated);
    assert_eq!(whole.json.len(), 32002);
}

#[test]
fn an_endless_loop_ends_at_its_limit() {
    for source in [
        "while (true) {}",
        "for (;;) { try { throw 1 } catch {} }",
        "(function f() { try { f() } finally { f() } })()",
        "await (async function f() { while (true) await null })()",
        "/(a+)+$/.test('a'.repeat(60) + 'b')",
        "new Array(2**31).fill(0).map(x => x); while (true);",
    ] {
        let started = std::time::Instant::now();
        let fault = execute(&Program { timeout: Duration::from_millis(100), ..program(source) }).outcome.unwrap_err();
        assert!(
            matches!(fault.code, CodeErrorCode::Timeout | CodeErrorCode::Limit | CodeErrorCode::Error),
            "{source}: {fault}"
        );
        assert!(started.elapsed() < tests::AT_ONCE, "{source}: {:?}", started.elapsed());
    }
    let fault =
        execute(&Program { timeout: Duration::from_millis(100), ..program("while (true) {}") }).outcome.unwrap_err();
    assert_eq!(fault.to_string(), "EXECUTION_TIMEOUT: code exceeded its limit of 100 ms");
}

#[test]
fn memory_and_fuel_are_limited() {
    for source in [
        "const a = []; while (true) a.push(new Uint8Array(1 << 20).fill(1))",
        "let s = 'x'; while (true) s += s",
        "new ArrayBuffer(1 << 30).byteLength",
        "const a = []; while (true) a.push({})",
    ] {
        let fault = error(source);
        assert!(
            matches!(fault.code, CodeErrorCode::Limit | CodeErrorCode::Error | CodeErrorCode::Timeout),
            "{source}: {fault}"
        );
        check("return 'the next program works'", "\"the next program works\"");
    }
    let limits = Limits { fuel: 100_000, ..Limits::default() };
    let fault = execute_with(&program("while (true) {}"), &limits).outcome.unwrap_err();
    assert_eq!(fault.to_string(), "EXECUTION_LIMIT: `fuel` is limited to 100000");
    let report = execute(&program("return 1"));
    assert!(report.usage.fuel > 0 && report.usage.peak_memory_bytes > 0, "{:?}", report.usage);
}

#[test]
fn recursion_is_deep_enough_and_ends() {
    check("function f(n) { return n === 0 ? 0 : 1 + f(n - 1) } return f(500)", "500");
    let fault = error("function f() { return f() + 1 } return f()");
    assert_eq!(fault.to_string(), "EXECUTION_LIMIT: `stack_bytes` is limited to 524288");
    // With a larger stack the engine's own limit comes first, and the program may catch it.
    let config = EngineConfig { stack_bytes: 1 << 20, cache: Some(tests::cache()), ..EngineConfig::default() };
    let runtime = Runtime::new(config).unwrap();
    let component =
        tests::block_on(Component::load(&runtime, &tests::bundled("code-js"), ComponentOrigin::Bundled)).unwrap();
    let sandbox = CodeSandbox::link(&runtime, &component).unwrap();
    let caught = program("try { (function f() { return f() + 1 })() } catch (e) { return e instanceof RangeError }");
    let report = tests::block_on(sandbox.execute(&caught, &Limits::default(), &CancellationToken::new()));
    assert_eq!(report.outcome.unwrap().json, "true");
}

#[test]
fn a_program_is_cancelled_while_it_runs() {
    let sandbox = sandbox();
    let cancel = CancellationToken::new();
    let later = cancel.clone();
    let started = std::time::Instant::now();
    let report = tests::block_on(async {
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(30)).await;
            later.cancel();
        });
        sandbox.execute(&program("while (true) {}"), &Limits::default(), &cancel).await
    });
    assert_eq!(report.outcome.unwrap_err().code, CodeErrorCode::Cancelled);
    assert!(started.elapsed() < Duration::from_secs(5), "before its own deadline");
}

#[test]
fn hostile_sources_get_an_answer() {
    let long = "x".repeat((1 << 20) + 1);
    assert_eq!(error(&long).code, CodeErrorCode::Limit);
    for source in [
        "\0",
        "\u{feff}1",
        "return }",
        "}) ; (() => {",
        "'use strict'; with (a) {}",
        "return\u{2028}1",
        "/*",
        "`",
        "<!-- x",
    ] {
        execute(&program(source));
    }
    assert_eq!(error("}); globalThis.x = 1; (() => {").code, CodeErrorCode::Error);
    let nested = format!("return {}1{}", "[".repeat(20_000), "]".repeat(20_000));
    execute(&program(&nested));
    check("return 1", "1");
}

#[test]
fn one_programs_deadline_never_ends_another() {
    let sandbox = sandbox();
    tests::block_on(async {
        let long = tokio::spawn(async {
            let program = program("const end = Date.now(); let n = 0; while (n < 3e6) n++; return n");
            sandbox.execute(&program, &Limits::default(), &CancellationToken::new()).await
        });
        for _ in 0..5 {
            let endless = Program { timeout: Duration::from_millis(20), ..program("while (true) {}") };
            let report = sandbox.execute(&endless, &Limits::default(), &CancellationToken::new()).await;
            assert_eq!(report.outcome.unwrap_err().code, CodeErrorCode::Timeout);
        }
        assert_eq!(long.await.unwrap().outcome.unwrap().json, "3000000");
    });
}
