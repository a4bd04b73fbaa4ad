//! Cases that the layers of C, JavaScript and Python pass alike: files that are read, arguments that are left out or `null`, a body
//! that is longer than the host holds before it is sent, and an HMAC. Then the errors of requests, and those that are the author's.

use std::fs;
use std::net::TcpListener;
use std::path::Path;

use super::*;

/// HMAC-SHA-256 of the data in the sources with the key `key`, by Python's `hmac`.
pub(crate) const MAC: &str = "f7bc83f430538424b13298e6aa6fb143ef4d59a14946175997479dbc2d1a3cd8";

const JAVASCRIPT: &str = r#"
import { hmacSha256, reveal, sign } from "./motor/credentials.js";
import { readFile, readText } from "./motor/files.js";
import { request } from "./motor/network.js";
import { encode } from "./motor/text.js";
import { tool } from "./motor/tool.js";
export { tools } from "./motor/tool.js";

const text = { type: "string" };
const optional = (type) => ({ type, optional: true });

tool({ name: "length", description: "Reads.", arguments: { path: text } }, ({ path }) => {
  const { length } = readFile(path);
  return readText(path).length === length && length;
});
tool({ name: "send", description: "Sends.", arguments: { url: text, size: { type: "integer" } } }, ({ url, size }) => {
  const response = request("POST", url, { body: "x".repeat(size) });
  return `${response.status} ${response.text()}`;
});
tool(
  {
    name: "given",
    description: "Tells its arguments.",
    arguments: { text: optional("string"), count: optional("integer"), share: optional("number"), flag: optional("boolean") },
  },
  ({ text = "none", count = 7, share = 0.25, flag = true }) => `${text} ${count} ${share > 0.25} ${flag}`,
);
tool({ name: "compute", description: "Computes.", arguments: { name: text, how: text } }, ({ name, how }) => {
  const data = encode("The quick brown fox jumps over the lazy dog");
  if (how === "reveal") return reveal(name);
  return (how === "mac" ? hmacSha256(name, data) : sign(name, "ed25519", data)).toHex();
});
tool({ name: "again", description: "Whether to try again.", arguments: { url: text } }, ({ url }) => {
  try {
    return request("GET", url).headers["x-name"] ?? "answered";
  } catch ({ tag, retryable }) {
    return `${tag} ${retryable}`;
  }
});
tool({ name: "header", description: "Sends a header.", arguments: { url: text, name: text } }, ({ url, name }) => {
  return request("GET", url, { headers: { [name]: "x" } }).status;
});
tool({ name: "say", description: "Logs." }, () => {
  const circle = {};
  circle.circle = circle;
  console.log(1n, circle, undefined, { a: 1 });
  console.error(new Error("broken"));
  return "said";
});
"#;

const PYTHON: &str = r#"
import logging
from datetime import datetime

import motor
from componentize_py_types import Err
from motor import Tools
from wit_world.imports import types


@motor.tool
def length(path: str):
    with open(f"/workspace/{path}") as file:
        return len(file.read())


@motor.tool
def send(url: str, size: int):
    status, body = motor.request("POST", url, body=b"x" * size)
    return f"{status} {body.decode()}"


@motor.tool
def given(text: str = "none", count: int = 7, share: float = 0.25, flag: bool = True):
    return f"{text} {count} {str(share > 0.25).lower()} {str(flag).lower()}"


@motor.tool
def compute(name: str, how: str):
    data = b"The quick brown fox jumps over the lazy dog"
    if how == "reveal":
        return motor.reveal(name)
    return (motor.hmac_sha256(name, data) if how == "mac" else motor.sign(name, "ED25519", data)).hex()


@motor.tool
def again(url: str):
    try:
        motor.request("GET", url)
        return "answered"
    except motor.Failed as error:
        return f"failed {str(error.retryable).lower()}"


@motor.tool
def header(url: str, name: str):
    return motor.request("GET", url, {name: "x"})[0]


@motor.tool
def say():
    motor.progress("half of it", 0.5)
    logging.info("a line with %s", "values")
    logging.getLogger("other").error("broken")
    return f"{motor.exists('example_key')}"


@motor.tool
def year():
    return datetime.now().year


@motor.tool
def fail(how: str):
    if how == "error of the interface":
        raise Err(types.ToolError_Missing("gone"))
    return {1, 2} if how == "result" else int(how)
"#;

/// The bytes of a body. The host holds two writes of a layer, of 4 KiB each, before the request is sent.
const SIZE: usize = 20_000;

/// Writes the cases that all layers pass, and returns their number.
pub(crate) fn write_cases(project: &Path) -> usize {
    fs::remove_dir_all(project.join("cases")).unwrap();
    for directory in ["cases", "sites"] {
        fs::create_dir_all(project.join(directory)).unwrap();
    }
    let url = "https://api.example.com/items";
    let exchange = json!({
        "request": { "method": "POST", "url": url, "body": "x".repeat(SIZE) },
        "response": { "status": 201, "body": "stored" },
    });
    fs::write(project.join("sites/items.json"), json!([exchange]).to_string()).unwrap();
    let files = json!({ "empty.txt": "", "large.txt": "x".repeat(70_000) });
    let bad_input = || json!({ "error": "bad_input" });
    let length = |path: Value, expect: Value| json!({ "tool": "length", "arguments": { "path": path }, "files": files, "expect": expect });
    let given = |arguments: Value, expect: Value| json!({ "tool": "given", "arguments": arguments, "expect": expect });
    let send = |url: &str, size: usize, expect: Value| json!({ "tool": "send", "arguments": { "url": url, "size": size }, "domains": ["api.example.com"], "site": "items", "expect": expect });
    let cases = [
        length(json!("empty.txt"), json!({ "output": "0" })),
        length(json!("large.txt"), json!({ "output": "70000" })),
        length(Value::Null, bad_input()),
        given(json!({}), json!({ "output": "none 7 false true" })),
        given(
            json!({ "text": null, "count": null, "share": null, "flag": null }),
            json!({ "output": "none 7 false true" }),
        ),
        given(json!({ "text": "a", "count": 2, "share": 0.5, "flag": false }), json!({ "output": "a 2 true false" })),
        given(json!({ "flag": 1 }), bad_input()),
        given(json!({ "other": null }), bad_input()),
        send(url, SIZE, json!({ "output": "201 stored" })),
        send(url, SIZE + 1, json!({ "error": "denied" })),
        // Refused before its body is written.
        send("https://other.example/", 10 * SIZE, json!({ "error": "denied" })),
        send("ftp://api.example.com/items", 1, bad_input()),
        send("api.example.com/items", 1, bad_input()),
        send("https:///items", 1, bad_input()),
    ];
    write(project, "all", &cases);
    cases.len()
}

/// Writes cases, named by their number.
pub(crate) fn write(project: &Path, name: &str, cases: &[Value]) {
    for (number, case) in cases.iter().enumerate() {
        fs::write(project.join(format!("cases/{name}-{number}.json")), case.to_string()).unwrap();
    }
}

/// A case of computing with a granted credential.
pub(crate) fn computes(how: &str, name: &str, expect: &Value) -> Value {
    json!({
        "tool": "compute",
        "arguments": { "how": how, "name": name },
        "domains": ["api.example.com"],
        "site": "items",
        "credentials": { "example_key": "key" },
        "expect": expect,
    })
}

/// Python's own looks for the time and for lines of sources, in a component that can use neither clock nor files.
pub(super) fn without_files(world: &World, project: &Path) {
    let path = project.join("src/app.py");
    let scaffold = fs::read_to_string(&path).unwrap();
    let more = r#"

@motor.tool
def explain():
    try:
        [][1]
    except IndexError:
        logging.exception("caught")
        warnings.warn("careful")
        return traceback.format_exc().splitlines()[-1]
"#;
    fs::write(&path, format!("import logging, traceback, warnings\n{scaffold}{more}")).unwrap();
    motor(&world.motor, &["build", "greeter"]);
    let component = project.join("build/greeter.wasm");
    let said = world.motor.run(&["call", component.to_str().unwrap(), "explain", "{}"]).succeeded();
    assert_eq!(said.stdout.trim(), "IndexError: list index out of range", "{said:?}");
    assert!(said.stderr.contains("error: caught"), "{said:?}");
    fs::write(path, scaffold).unwrap();
}

/// Checks the layer of JavaScript or of Python in the project of its worked example.
pub(super) fn check(world: &World, project: &Path, language: &str, site: &Site) {
    javascript::take(&project.join("wit/project.wit"), &["credentials"]);
    let mac = json!({ "output": MAC });
    let refused =
        [("mac", "other_key", "missing"), ("reveal", "example_key", "denied"), ("sign", "example_key", "failed")];
    let own = refused.map(|(how, name, error)| computes(how, name, &json!({ "error": error })));
    let (path, source) = if language == "python" { ("src/app.py", PYTHON) } else { ("src/tool.js", JAVASCRIPT) };
    fs::write(project.join(path), source).unwrap();
    let mut count = write_cases(project) + own.len();
    write(project, "own", &own);
    let requests = requests(world, language, site);
    count += requests.len() + 1;
    write(project, "requests", &requests);
    write(project, "mac", &[computes("mac", "example_key", &mac)]);
    motor(&world.motor, &["build", "greeter"]);
    let tested = motor(&world.motor, &["test", "greeter"]);
    assert!(tested.contains(&format!("{count} passed, 0 failed")), "{language}: {tested}");

    let component = project.join("build/greeter.wasm");
    let call = |tool: &str, arguments: Value| {
        world.motor.run(&["call", component.to_str().unwrap(), tool, &arguments.to_string()])
    };
    if language == "python" {
        for (how, words) in [
            ("x", &["failed:", "ValueError: invalid literal", "app.py:"][..]),
            ("result", &["failed:", "TypeError", "not JSON serializable"]),
            ("error of the interface", &["missing:", "gone"]),
        ] {
            let ended = call("fail", json!({ "how": how }));
            assert!(
                ended.code == Some(1) && words.iter().all(|word| ended.stderr.contains(word)),
                "{how}: {words:?}: {ended:?}"
            );
        }
        assert_eq!(call("fail", json!({ "how": "7" })).succeeded().stdout.trim(), "7");
        // CPython imports the clock all the same. The world does not, until its comment is taken off.
        let refused = call("year", json!({}));
        assert!(refused.stderr.contains("import what it uses of `wasi:clocks` in `wit/project.wit`"), "{refused:?}");
        javascript::take(&project.join("wit/project.wit"), &["wasi:clocks"]);
        motor(&world.motor, &["build", "greeter"]);
        assert!(call("year", json!({})).succeeded().stdout.starts_with("20"));
    }
    let lines = match language {
        "python" => ["half of it", "info: a line with values", "error: broken", ""],
        _ => ["info: 1 (TypeError: circular", "undefined {\"a\":1}", "error: Error: broken", "tool.js:"],
    };
    let said = call("say", json!({})).succeeded();
    for words in lines {
        assert!(said.stderr.contains(words), "{words}: {said:?}");
    }
}

/// Cases of requests that fail: those that may work later, and others.
fn requests(world: &World, language: &str, site: &Site) -> Vec<Value> {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let open = site.address().to_string();
    world.motor.configure(&format!("[network]\nprivate = [{open:?}, {closed:?}]\n"));
    site.route("/garbage", Reply::raw("no HTTP at all\r\n\r\n"));
    site.route("/half", Reply::Sized { said: 10, sent: 5 });
    site.route(
        "/latin",
        Reply::raw(b"HTTP/1.1 200 OK\r\nx-name: caf\xe9 \xc3\xbc\r\ncontent-length: 2\r\n\r\nok".to_vec()),
    );
    let case = |tool: &str, arguments: Value, expect: Value| json!({ "tool": tool, "arguments": arguments, "domains": [open, closed], "expect": expect });
    let again = |url: String, output: &str| case("again", json!({ "url": url }), json!({ "output": output }));
    let header = |name: &str, expect: Value| case("header", json!({ "url": site.url("/page"), "name": name }), expect);
    vec![
        again(format!("http://{closed}/"), "failed true"),
        again(site.url("/garbage"), "failed false"),
        again(site.url("/half"), "failed false"),
        // The layer of Python gives no headers.
        again(site.url("/latin"), if language == "python" { "answered" } else { "caf\u{fffd} ü" }),
        header("x-name", json!({ "output": "200" })),
        header("no name", json!({ "error": "bad_input" })),
    ]
}
