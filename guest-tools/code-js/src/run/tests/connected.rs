//! The parts of `fetch` and `workspace` that show without a host: their grants and their arguments.

use super::*;
use crate::bindings::exports::motor::host::interpreter::Grants;

#[track_caller]
fn check_with(grants: Grants, source: &str, expected: &str) {
    let program = Program {
        source: source.to_owned(),
        seed: 7,
        now_ms: 0,
        max_result_bytes: 4096,
        max_console_bytes: 4096,
        grants,
    };
    match report_of(program).outcome {
        Ok(value) => assert_eq!(value.json, expected, "{source}"),
        Err(fault) => assert_eq!(format!("{}: {}", fault.name, fault.message), expected, "{source}"),
    }
}

#[test]
fn each_grant_gives_its_own() {
    let seen = "[typeof fetch, typeof workspace, Object.keys(globalThis).includes('fetch')]";
    check_with(Grants::empty(), seen, r#"["undefined","undefined",false]"#);
    check_with(Grants::NETWORK, seen, r#"["function","undefined",false]"#);
    check_with(Grants::FILES, seen, r#"["undefined","object",false]"#);
    check_with(Grants::all(), seen, r#"["function","object",false]"#);
}

#[test]
fn failures_are_errors_that_can_be_caught() {
    let caught = "try { await fetch('http://example.com/x') } catch (error) { return [error instanceof TypeError, error.code, error.message] }";
    check_with(Grants::NETWORK, caught, r#"[true,"connect","cannot reach `example.com` outside a component"]"#);
    let caught =
        "try { await workspace.readText('a') } catch (error) { return [error.name, error.code, error.message] }";
    check_with(Grants::FILES, caught, r#"["Error","denied","the program was given no files"]"#);
    check_with(
        Grants::NETWORK,
        "(await Promise.allSettled([fetch('file:///etc/passwd'), fetch('http://a:b@c/')])).map((each) => each.reason.code)",
        r#"["bad_request","bad_request"]"#,
    );
    check_with(
        Grants::NETWORK,
        "await fetch('nonsense')",
        "TypeError: `nonsense` is not a URL: relative URL without a base; use `https://HOST/PATH`",
    );
}

#[test]
fn arguments_are_checked() {
    for (options, expected) in [
        ("1", "TypeError: the second argument of fetch must be an object"),
        ("{body: 'x'}", "TypeError: a GET request has no body"),
        (
            "{method: 'POST', body: {}}",
            "TypeError: the body must be a string, an ArrayBuffer or a typed array: use JSON.stringify for objects",
        ),
        ("{redirect: 'x'}", "TypeError: redirect must be 'follow', 'error' or 'manual'"),
        ("{headers: [['a']]}", "TypeError: each header must be a pair of name and value"),
        ("{headers: {'a b': 'c'}}", "TypeError: `a b` is not the name of a header"),
        ("{headers: {a: 'b\\r\\nc: d'}}", "TypeError: the header `a` holds a control character"),
        ("{method: 'G T'}", "TypeError: the method is not one: use `GET`, `POST` or another HTTP method"),
    ] {
        check_with(Grants::NETWORK, &format!("await fetch('http://example.com', {options})"), expected);
    }
    for (call, expected) in [
        ("readText(1)", "TypeError: the path must be a string"),
        ("readText('../x')", "Error: `../x` contains `..`: use a path relative to the workspace"),
        ("writeText('.motor-output/x', '')", "Error: `.motor-output` is written by the host only: choose another path"),
        ("writeText('x', {})", "TypeError: the text must be a string: use JSON.stringify for objects"),
        (
            "writeBytes('x', [1])",
            "TypeError: the content must be a string, an ArrayBuffer or a typed array: use JSON.stringify for objects",
        ),
        ("readBytes('x', {offset: -1})", "TypeError: offset and length must be numbers, 0 or more"),
    ] {
        check_with(Grants::FILES, &format!("await workspace.{call}"), expected);
    }
}

#[test]
fn headers_behave() {
    check_with(
        Grants::NETWORK,
        "const h = new Headers({B: '2', a: ' 1 '}); h.append('b', '3'); const seen = []; h.forEach((v, k) => seen.push(k + v)); \
         [h.get('A'), h.get('b'), h.has('c'), h.get('c'), seen, [...h.keys()], new Headers([...h]).get('B'), h]",
        r#"["1","2, 3",false,null,["a1","b2, 3"],["a","b"],"2, 3",{"a":"1","b":"2, 3"}]"#,
    );
}

#[test]
fn what_a_program_does_to_globals_stays_its_own() {
    check_with(
        Grants::NETWORK,
        "JSON.parse = String.prototype.toWellFormed = Object.entries = null; try { await fetch('x') } catch (error) { return error.code }",
        r#""bad_request""#,
    );
}
