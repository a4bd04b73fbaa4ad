//! The layer of tools in C beyond its worked example (SPEC HOST-9): the log, progress, and computing with credentials, each with its
//! refusal; `stdio`, which is not there, is named.

use std::fs;

use serde_json::{Value, json};
use tests::binary::Motor;
use tests::report;

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

/// HMAC-SHA-256 of the data in `SOURCE` with the key `key`, by Python's `hmac`.
const MAC: &str = "f7bc83f430538424b13298e6aa6fb143ef4d59a14946175997479dbc2d1a3cd8";

#[test]
fn a_tool_in_c_reports_and_computes_with_credentials() {
    let home = Motor::new();
    let project = home.directory().join("greeter");
    motor(&home, &["new", "tool", "greeter", "--lang", "c"]);
    if let Err(reason) = equip(&home, "c", &project) {
        report(&format!("the layer of C: skipped: {reason}"));
        return;
    }
    fs::remove_dir_all(project.join("cases")).unwrap();
    for directory in ["cases", "sites"] {
        fs::create_dir(project.join(directory)).unwrap();
    }
    fs::write(project.join("sites/none.json"), "[]").unwrap();
    let case = |how: &str, name: &str, expect: Value| {
        let arguments = json!({ "how": how, "name": name });
        let granted = json!({ "example_key": "key" });
        let case = json!({ "tool": "compute", "arguments": arguments, "domains": ["api.example.com"], "site": "none", "credentials": granted, "expect": expect });
        fs::write(project.join(format!("cases/{how}-{name}.json")), case.to_string()).unwrap();
    };
    case("mac", "example_key", json!({ "output": MAC }));
    case("mac", "other_key", json!({ "error": "missing" }));
    case("reveal", "example_key", json!({ "error": "denied" }));
    case("sign", "example_key", json!({ "error": "failed" }));
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
