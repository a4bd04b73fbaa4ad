//! Results of programs, each in an engine of its own (a test is a thread, and the engine is per thread).

use super::*;
use crate::engine;

fn report(source: &str) -> Report {
    report_with(source, 7, 1000)
}

fn report_with(source: &str, seed: u64, max_bytes: u32) -> Report {
    let program = Program {
        source: source.to_owned(),
        seed,
        now_ms: 1_700_000_000_000,
        max_result_bytes: max_bytes,
        max_console_bytes: 40,
        grants: interpreter::Grants::empty(),
    };
    report_of(program)
}

fn report_of(program: Program) -> Report {
    let in_thread = std::thread::spawn(move || {
        crate::init();
        engine::with(|engine| run(engine, program))
    });
    in_thread.join().unwrap()
}

fn check(source: &str, expected: &str) {
    match report(source).outcome {
        Ok(value) => assert_eq!(value.json, expected, "{source}"),
        Err(fault) => panic!("{source}: {fault:?}"),
    }
}

/// `expected` is `Name: message` and, when known, ` @line:column`.
fn check_fault(source: &str, expected: &str) {
    let fault = report(source).outcome.map(|value| value.json).unwrap_err();
    let place = fault.line.zip(fault.column).map_or(String::new(), |(line, column)| format!(" @{line}:{column}"));
    assert_eq!(format!("{}: {}{place}", fault.name, fault.message), expected, "{source}");
}

fn check_console(source: &str, expected: &str) {
    let report = report(source);
    assert!(report.outcome.is_ok(), "{source}: {:?}", report.outcome);
    assert_eq!(report.console, expected, "{source}");
}

#[test]
fn results() {
    check("1 + 1", "2");
    check("return 1 + 1", "2");
    check("const p=10000, r=0.05, n=10; return p*Math.pow(1+r,n)", "16288.94626777442");
    check("function f() { return 1 }; f()", "1");
    check("function f() { return 1 }\nif (f()) return 'x'\nreturn 'y' // last", "\"x\"");
    check("let x = await Promise.resolve(4); x * 2", "8");
    check("async function main() { return 5 }\nmain()", "5");
    check("return (async () => 6)()", "6");
    check("const a = 1;", "null");
    check("undefined", "null");
    check("return [NaN, undefined, () => 1, -0]", "[null,null,null,0]");
    check("2n ** 70n", "\"1180591620717411303424\"");
    check("return 'é\\ud800'", "\"é\\ud800\"");
}

#[test]
fn nothing_runs_twice() {
    check("globalThis.n = (globalThis.n ?? 0) + 1; return n", "1");
    // A `return` that only shows at run time is the program's own error, not a reason to try again.
    check_fault(
        "globalThis.n = (globalThis.n ?? 0) + 1; if (n > 1) throw 'twice'; eval('return 1')",
        "SyntaxError: return not in a function @1:66",
    );
}

#[test]
fn faults_have_places_in_the_source() {
    check_fault("const a = 1;\nnull.x", "TypeError: cannot read property 'x' of null @2:1");
    check_fault("return x.y", "ReferenceError: x is not defined @1:8");
    check_fault("const z = ;", "SyntaxError: unexpected token in expression: ';' @1:11");
    check_fault("let q = 1;\nreturn q +* 2", "SyntaxError: unexpected token in expression: '*' @2:11");
    check_fault(
        "JSON.parse('{')",
        "SyntaxError: Expected property name or '}' in JSON at position 1 (line 1 column 2) @1:5",
    );
    check_fault("const odd = new Error('no');\nodd.name = 'Odd'; throw odd", "Odd: no @1:17");
    check_fault("throw 's'", "Error: the program threw a value that is not an error: \"s\"");
    check_fault("throw undefined", "Error: the program threw a value that is not an error: undefined");
    check_fault("const o = {}; o.o = o; throw o", "Error: the program threw a value that is not an error: object");
    check_fault("queueMicrotask(() => { throw new Error('late') }); 5", "Error: late @1:34");
}

#[test]
fn lost_rejections_are_faults_and_handled_ones_are_not() {
    check_fault("Promise.reject(new TypeError('lost')); return 1", "TypeError: lost @1:20");
    check("Promise.reject(new TypeError('kept')).catch(() => {}); return 1", "1");
    check("const late = Promise.reject(1); await null; try { await late } catch (e) { return e }", "1");
}

#[test]
fn promises_that_never_settle_are_faults() {
    let message =
        "Error: the program waits for a promise that never settles: nothing is left to run that could settle it";
    check_fault("await new Promise(() => {})", message);
    check_fault("return new Promise(() => {})", message);
    check_fault("new Promise(() => {})", message);
    check("await new Promise((resolve) => queueMicrotask(() => resolve(3)))", "3");
}

#[test]
fn what_json_cannot_hold() {
    check_fault("(() => 1)", "TypeError: the result is a function, which JSON cannot hold: return what it gives");
    check_fault("return Symbol()", "TypeError: the result is a symbol, which JSON cannot hold: return what it gives");
    check_fault("const o = {}; o.o = o; return o", "TypeError: circular reference");
    check_fault("({ toJSON() { throw new RangeError('mine') } })", "RangeError: mine @1:25");
}

#[test]
fn hostile_errors_are_reported_all_the_same() {
    check_fault(
        "const e = new Error('m'); Object.defineProperty(e, 'stack', { get() { throw 1 } }); throw e",
        "Error: m",
    );
    check_fault("const e = new Error('m'); e.name = 5; e.message = { a: 1 }; throw e", "Error:  @1:15");
    check_fault(
        "throw new Proxy(new Error('m'), { get() { throw 1 } })",
        "Error: the program threw a value that is not an error: proxy",
    );
    check_fault("a\0b", "SyntaxError: the program contains a NUL character: write it as `\\0`");
}

#[test]
fn there_is_nothing_ambient() {
    for name in
        ["require", "process", "fetch", "module", "Deno", "std", "os", "scriptArgs", "XMLHttpRequest", "WebAssembly"]
    {
        check(&format!("typeof {name}"), "\"undefined\"");
    }
    check_fault("require('fs')", "ReferenceError: require is not defined @1:1");
    assert!(report("await import('fs')").outcome.is_err());
}

#[test]
fn recursion_ends_in_an_error_that_can_be_caught() {
    check("function f() { return 1 + f() }; try { f() } catch (e) { return e.name }", "\"RangeError\"");
    check("function f(n) { return n ? 1 + f(n - 1) : 0 }; return f(20)", "20");
}

#[test]
fn console_lines() {
    check_console("console.log('a', 1, null)", "a 1 null\n");
    check_console("console.error({ a: [1, 'x'], 'b-c': undefined })", "{ a: [ 1, 'x' ], 'b-c': undefined }\n");
    check_console("console.info(new Map([[1, new Set([2])]]))", "Map(1) { 1 => Set(1) { 2 } }\n");
    check_console("const o = {}; o.o = o; console.warn(o)", "{ o: [Circular] }\n");
    check_console("console.debug('%s=%d%%', 'a', 5, 'rest')", "a=5% rest\n");
    check_console("console.log(new TypeError('no'), [,1])", "TypeError: no [ <empty>, 1 ]\n");
    check_console("console.log(class A {}, Symbol('s'), 5n, -0)", "[Function: A] Symbol(s) 5n -0\n");
    check_console("console.log({ get x() { throw 1 } })", "{ x: [Getter] }\n");
    check_console("String.prototype.toWellFormed = null; console.log('\\ud800')", "\u{fffd}\n");
}

#[test]
fn output_is_cut() {
    let report = report_with("console.log('é'.repeat(30)); console.log('more'); 'é'.repeat(200)", 1, 100);
    assert_eq!((report.console.as_str(), report.console_truncated), ("é".repeat(20).as_str(), true));
    let value = report.outcome.unwrap();
    assert!(
        value.truncated && value.json.len() <= 100 && value.json.ends_with("é…[truncated: 402 bytes]"),
        "{}",
        value.json
    );
    let whole = report_with("'é'.repeat(49)", 1, 100).outcome.unwrap();
    assert!(!whole.truncated && whole.json.len() == 100);
}

#[test]
fn randomness_is_the_seed() {
    let run = |seed| report_with("[Math.random(), Math.random()]", seed, 1000).outcome.unwrap().json;
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn a_plain_return_is_told_from_the_word_in_another_place() {
    for source in [
        "return 1",
        "const a = 1, b = a - 2;\nreturn a",
        "if (x) return 1",
        " return",
        "return;",
        "(a) ? 1 : 2; return(3)",
    ] {
        assert!(super::plainly_returns(source), "{source}");
    }
    for source in [
        "1",
        "returned",
        "a.return",
        "a?. return",
        "'return 1'",
        "`return`",
        "// return",
        "/return/.test(x)",
        "() => { return 1 }",
        "({ return: 1 })",
        "#! return",
        "<!-- return",
        "\n--> return",
        "$return",
        "ä_return",
        "\\u0061return",
    ] {
        assert!(!super::plainly_returns(source), "{source}");
    }
    check("const returned = 2; returned", "2");
    check("const s = 'return 1'; s", "\"return 1\"");
    check("if (true) return 3; 4", "3");
}

#[test]
fn nothing_is_there_that_was_not_granted() {
    check("[typeof fetch, typeof workspace, typeof Headers]", r#"["undefined","undefined","undefined"]"#);
}

#[cfg(feature = "connected")]
mod connected;
