//! The layer of tools in C beyond its worked example (SPEC HOST-9): the log, progress, and computing with credentials, each with its
//! refusal; files that are read, bodies, and arguments as in the other layers; JSON; `stdio`, which is not there, is named.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};
use tests::binary::Motor;
use tests::report;

use crate::scaffolds::layers::{self, MAC, computes};
use crate::scaffolds::{equip, motor, run};

const SOURCE: &str = r#"#include <string.h>

#include "motor.h"

static motor_result_t compute(const motor_arguments_t *arguments) {
    static const char DATA[] = "The quick brown fox jumps over the lazy dog";
    const char *name = motor_string(arguments, "name"), *how = motor_string(arguments, "how");
    motor_log("computing");
    motor_progress("computing", -1);
    motor_progress("computing", 0.5);
    if (!motor_has_credential(name)) motor_log("not granted");
    motor_computed_t computed = !strcmp(how, "mac")      ? motor_hmac_sha256(name, DATA, strlen(DATA))
                                : !strcmp(how, "reveal") ? motor_reveal(name)
                                                         : motor_sign(name, MOTOR_ED25519, DATA, strlen(DATA));
    if (computed.error.kind) return computed.error;
    text_t hex = {0};
    for (size_t i = 0; i < computed.length; i++) {
        static const char DIGITS[] = "0123456789abcdef";
        const char pair[] = {DIGITS[computed.bytes[i] >> 4], DIGITS[computed.bytes[i] & 15], 0};
        text_add(&hex, pair);
    }
    return (motor_result_t){MOTOR_OK, hex.at};
}

static const motor_parameter_t COMPUTE[] = {{"name", "string", "The credential."}, {"how", "string", "The way."}, {0}};
const motor_tool_t motor_tools[] = {{"compute", "Computes with a credential.", COMPUTE, 0, compute}, {0}};
"#;

/// The tools of the cases that all layers pass, and one that reads JSON.
const SAME: &str = r#"#include <string.h>

#include "motor.h"

static motor_result_t length(const motor_arguments_t *arguments) {
    const char *content = motor_read_file(motor_string(arguments, "path"));
    if (!content) return (motor_result_t){MOTOR_MISSING, "there is no such file"};
    text_t said = {0};
    text_add_number(&said, strlen(content));
    return (motor_result_t){MOTOR_OK, said.at};
}
static motor_result_t send(const motor_arguments_t *arguments) {
    text_t body = {0}, said = {0};
    for (double size = motor_number(arguments, "size", 0); size > 0; size--) text_add(&body, "x");
    motor_response_t response = motor_request("POST", motor_string(arguments, "url"), NULL, body.at);
    if (response.error.kind) return response.error;
    text_add_number(&said, response.status);
    return (motor_result_t){MOTOR_OK, text_concat(said.at, " ", response.body, NULL)};
}
static motor_result_t given(const motor_arguments_t *arguments) {
    const char *text = motor_string(arguments, "text");
    text_t count = {0};
    text_add_number(&count, (uint64_t)motor_number(arguments, "count", 7));
    return (motor_result_t){MOTOR_OK, text_concat(text ? text : "none", " ", count.at, motor_number(arguments, "share", 0.25) > 0.25 ? " true" : " false",
                                                  motor_boolean(arguments, "flag", true) ? " true" : " false", NULL)};
}
static motor_result_t json(const motor_arguments_t *arguments) {
    return (motor_result_t){MOTOR_OK, json_read(motor_string(arguments, "text")) ? "read" : "refused"};
}

static const motor_parameter_t LENGTH[] = {{"path", "string", "", false}, {0}};
static const motor_parameter_t SEND[] = {{"url", "string", "", false}, {"size", "integer", "", false}, {0}};
static const motor_parameter_t GIVEN[] = {{"text", "string", "", true}, {"count", "integer", "", true}, {"share", "number", "", true}, {"flag", "boolean", "", true}, {0}};
static const motor_parameter_t JSON[] = {{"text", "string", "", false}, {0}};
const motor_tool_t motor_tools[] = {
    {"length", "Reads.", LENGTH, 0, length}, {"send", "Sends.", SEND, 0, send}, {"given", "Tells its arguments.", GIVEN, 0, given}, {"json", "Reads JSON.", JSON, 0, json}, {0},
};
"#;

/// Texts that are JSON.
const READ: &[&str] = &[
    "0",
    "-0",
    "10",
    "-0.5",
    "1.50",
    "1e5",
    "1E+2",
    "1.5e-3",
    "[0,-1.0]",
    "{\"a\":1}",
    "\"a\\tb\\u00e9\"",
    "\"\"",
    " true ",
];
/// Texts that are nearly JSON.
const REFUSED: &[&str] = &[
    "",
    "01",
    "-01",
    "00",
    "1.",
    "-.5",
    ".5",
    "+1",
    "-",
    "1e",
    "1e+",
    "1.e5",
    "1.5.5",
    "0x10",
    "inf",
    "nan",
    "[01]",
    "{\"a\":1.}",
    "\"a\tb\"",
    "\"a\nb\"",
    "\"a\u{1}b\"",
    "{\"a\nb\":1}",
    "\"a",
    "1 2",
];

/// A project in C with its toolchain, if that is installed.
fn project(home: &Motor) -> Option<PathBuf> {
    let project = home.directory().join("greeter");
    motor(home, &["new", "tool", "greeter", "--lang", "c"]);
    if let Err(reason) = equip(home, "c", &project) {
        report(&format!("the layer of C: skipped: {reason}"));
        return None;
    }
    Some(project)
}

#[test]
fn a_tool_in_c_reads_files_and_arguments_and_sends_bodies_as_in_the_other_layers() {
    let home = Motor::new();
    let Some(project) = project(&home) else { return };
    let shared = layers::write_cases(&project);
    let reads = |text: &&str, output: &str| json!({ "tool": "json", "arguments": { "text": text }, "expect": { "output": output } });
    let read: Vec<Value> = READ.iter().map(|text| reads(text, "read")).collect();
    let refused: Vec<Value> = REFUSED.iter().map(|text| reads(text, "refused")).collect();
    layers::write(&project, "read", &read);
    layers::write(&project, "refused", &refused);
    fs::write(project.join("src/tools.c"), SAME).unwrap();
    motor(&home, &["build", "greeter"]);
    let tested = motor(&home, &["test", "greeter"]);
    let passed = format!("{} passed, 0 failed", shared + read.len() + refused.len());
    assert!(tested.contains(&passed), "{passed}: {tested}");
}

#[test]
fn a_tool_in_c_reports_and_computes_with_credentials() {
    let home = Motor::new();
    let Some(project) = project(&home) else { return };
    fs::remove_dir_all(project.join("cases")).unwrap();
    for directory in ["cases", "sites"] {
        fs::create_dir(project.join(directory)).unwrap();
    }
    fs::write(project.join("sites/items.json"), "[]").unwrap();
    let cases = [
        computes("mac", "example_key", &json!({ "output": MAC })),
        computes("mac", "other_key", &json!({ "error": "missing" })),
        computes("reveal", "example_key", &json!({ "error": "denied" })),
        computes("sign", "example_key", &json!({ "error": "failed" })),
    ];
    layers::write(&project, "compute", &cases);
    fs::write(project.join("src/tools.c"), SOURCE).unwrap();
    motor(&home, &["build", "greeter"]);
    let tested = motor(&home, &["test", "greeter"]);
    assert!(tested.contains("4 passed, 0 failed"), "{tested}");
    let component = project.join("build/greeter.wasm");
    let imports = home.json(&["inspect", component.to_str().unwrap()])["imports"].to_string();
    for (interface, is_used) in
        [("credentials", true), ("progress", true), ("log", true), ("outbound", false), ("wasi:", false)]
    {
        assert_eq!(imports.contains(interface), is_used, "{interface}: {imports}");
    }

    let with_stdio = SOURCE.replace("#include <string.h>", "#include <stdio.h>\n#include <string.h>");
    let with_stdio = with_stdio.replace("motor_log(\"computing\")", "puts(\"computing\")");
    fs::write(project.join("src/tools.c"), with_stdio).unwrap();
    let ended = run(&home, tests::binary::program_file(), &["build", "greeter"]);
    let all = String::from_utf8_lossy(&ended.stderr);
    assert!(!ended.status.success() && all.contains("wasi_snapshot_preview1") && all.contains("`stdio`"), "{all}");
}
