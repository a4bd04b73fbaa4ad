//! The layer of JavaScript and TypeScript: arguments that are checked, errors with their place, the clock, and types that are
//! stripped.

use std::fs;
use std::path::Path;

use super::*;

/// Tools in TypeScript that is not JavaScript, in two modules; the types are those that `motor/tool.d.ts` infers.
const CONVERT: &str = r#"
import { Missing } from "./motor/tool.js";
import "./motor/clock.js";
import { exists, hmacSha256 } from "./motor/credentials.js";
import "./motor/random.js";
import { factor } from "./units";

enum Unit { Metre = "m", Foot = "ft" }

tool(
  {
    name: "convert",
    description: "Converts a length.",
    arguments: {
      length: { type: "number" },
      to: { type: "string", enum: ["m", "ft"] },
      digits: { type: "integer", optional: true },
    },
  },
  ({ length, to, digits = 1 }) => {
    const metric: boolean = (to as Unit) === Unit.Metre;
    return { value: (metric ? length * factor : length / factor).toFixed(digits) };
  },
);
tool({ name: "fail", description: "Fails.", arguments: { how: { type: "string" } } }, ({ how }): unknown => {
  if (how === "missing") throw new Missing("there is no such length");
  if (how === "promise") return Promise.resolve(1);
  return (undefined as unknown as { length: number }).length;
});
tool({ name: "sign", description: "Signs." }, () => !exists("example_key") && hmacSha256("example_key", new Uint8Array(1)));
tool({ name: "now", description: "The year, and a random number." }, () => {
  console.log("now");
  return [new Date().getFullYear(), Math.random()];
});
"#;
const UNITS: &str = "export const factor: number = 0.3048;\n";

/// The same in JavaScript.
fn without_types() -> String {
    let mut source = CONVERT.replace("\"./units\"", "\"./units.js\"");
    for (typed, plain) in [
        ("enum Unit { Metre = \"m\", Foot = \"ft\" }", "const Unit = { Metre: \"m\" };"),
        ("const metric: boolean = (to as Unit)", "const metric = to"),
        ("({ how }): unknown =>", "({ how }) =>"),
        ("(undefined as unknown as { length: number })", "undefined"),
    ] {
        assert!(source.contains(typed), "{typed}");
        source = source.replace(typed, plain);
    }
    source
}

/// Calls, and a part of the result or of the error.
const CALLS: [(&str, &str, bool, &[&str]); 11] = [
    ("convert", r#"{"length":10,"to":"m"}"#, true, &[r#"{"value":"3.0"}"#]),
    ("convert", r#"{"length":10,"to":"ft","digits":0}"#, true, &[r#"{"value":"33"}"#]),
    (
        "convert",
        r#"{"length":"10","to":"m"}"#,
        false,
        &["bad_input:", "`length` has another type; `convert` takes `length`"],
    ),
    ("convert", r#"{"length":10,"to":"m","digits":1.5}"#, false, &["bad_input:", "`digits` has another type"]),
    ("convert", r#"{"length":10}"#, false, &["bad_input:", "`to` is missing"]),
    ("convert", r#"{"length":10,"to":"m","scale":2}"#, false, &["bad_input:", "unknown argument `scale`"]),
    ("convert", r#"{"length":10,"to":"yd"}"#, false, &["bad_input:", r#"`to` is none of ["m","ft"]"#]),
    ("fail", r#"{"how":"missing"}"#, false, &["missing:", "there is no such length"]),
    ("fail", r#"{"how":"promise"}"#, false, &["failed:", "`fail` returned a promise"]),
    ("sign", "{}", false, &["missing:", "example_key"]),
    ("fail", r#"{"how":"type"}"#, false, &["failed:", "TypeError", "/tool.js:"]),
];

/// Checks the layer in a project whose scaffold was built.
pub(super) fn check(world: &World, project: &Path, language: &str) {
    let motor = &world.motor;
    let path = project.join(format!("src/tool.{language}"));
    let scaffold = fs::read_to_string(&path).unwrap();
    let wit = project.join("wit/project.wit");
    let powers = fs::read_to_string(&wit).unwrap();
    take(&wit, &["wasi:clocks", "wasi:random", "credentials"]);
    let (source, units) = match language {
        "ts" => (CONVERT.to_owned(), UNITS.to_owned()),
        _ => (without_types(), UNITS.replace(": number", "")),
    };
    fs::write(&path, format!("{scaffold}{source}")).unwrap();
    fs::write(project.join(format!("src/units.{language}")), units).unwrap();
    super::motor(motor, &["build", "greeter"]);
    if language == "ts" {
        check_types(motor, project);
        let wrong = "export const length: number = \"1\";\n";
        fs::write(project.join("src/wrong.ts"), wrong).unwrap();
        let said = text(&tsc(motor, project));
        assert!(said.contains("src/wrong.ts(1,14): error TS2322"), "{said}");
        fs::remove_file(project.join("src/wrong.ts")).unwrap();
    }
    let component = project.join("build/greeter.wasm");
    let call = |tool: &str, arguments: &str| motor.run(&["call", component.to_str().unwrap(), tool, arguments]);
    for (tool, arguments, succeeds, words) in CALLS {
        let ended = call(tool, arguments);
        let said = if succeeds { &ended.stdout } else { &ended.stderr };
        assert_eq!(ended.code == Some(0), succeeds, "{language}: {tool} {arguments}: {ended:?}");
        assert!(words.iter().all(|word| said.contains(word)), "{language}: {tool} {arguments}: {ended:?}");
    }
    let now = || serde_json::from_str::<Value>(&call("now", "{}").succeeded().stdout).unwrap();
    let (first, second) = (now(), now());
    assert!(first[0].as_i64() > Some(2025) && first[1] != second[1], "{language}: {first} {second}");

    // A mistake is named with its line; the message of a tool that is declared wrongly says the fix.
    let lines = scaffold.lines().count() + 1;
    for (mistake, words) in [
        ("tool(;\n", vec![format!("src/tool.{language}:{lines}:6")]),
        (
            "tool({ name: \"x\", description: \"\", arguments: { a: { type: \"text\" } } }, () => 1);\n",
            vec!["`x`: `a` needs a `type`, one of string, number".to_owned()],
        ),
        ("import \"./motor/network.js\";\n", vec!["http/outgoing-handler@".to_owned()]),
    ] {
        fs::write(&path, format!("{scaffold}{mistake}")).unwrap();
        let ended = run(motor, program_file(), &["build", "greeter"]);
        let said = text(&ended);
        assert!(
            !ended.status.success() && words.iter().all(|word| said.contains(word)),
            "{language}: {mistake}: {said}"
        );
    }
    fs::write(path, scaffold).unwrap();
    fs::write(wit, powers).unwrap();
}

fn tsc(motor: &Motor, project: &Path) -> Output {
    let program = project.join("node_modules/.bin/tsc");
    run(motor, &program, &["--pretty", "false", "--project", project.to_str().unwrap()])
}

/// Checks the types of a project in TypeScript, which no build does.
#[track_caller]
pub(super) fn check_types(motor: &Motor, project: &Path) {
    let ended = tsc(motor, project);
    assert!(ended.status.success(), "{}", text(&ended));
}

/// Scaffolds are built with installed toolchains, so their own versions and those of the pages are never installed: they are the same.
#[test]
fn the_versions_that_authors_install_are_those_that_are_tested() {
    let table = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    let tested = table(include_str!("../../toolchains/javascript/package.json"))["dependencies"].take();
    let scaffold = table(include_str!("../../../host/authoring/templates/javascript/package.json.txt"));
    let packages = scaffold["devDependencies"].as_object().unwrap();
    assert_eq!(packages.len(), 2, "{packages:?}");
    for (name, version) in packages {
        assert_eq!(version, &tested[name], "{name}");
    }
    let typescript = format!("`npx -p typescript@{} tsc`", tested["typescript"].as_str().unwrap());
    assert!(include_str!("../../../docs/authoring-javascript.md").contains(&typescript), "{typescript}");
    let toolchains = include_str!("../../../xtask/src/toolchains.rs");
    for page in [include_str!("../../../docs/authoring-python.md"), include_str!("../../../docs/authoring-c.md")] {
        let install = commands(page, "motor new tool").into_iter().find(|line| installs(line)).unwrap();
        let package = install.rsplit(' ').next().unwrap();
        assert!(package.contains("==") && toolchains.contains(package), "{package}");
    }
}

/// Takes the comments off imports in `wit/project.wit`.
pub(super) fn take(path: &Path, imports: &[&str]) {
    let wit = fs::read_to_string(path).unwrap();
    let line = |line: &str| match line.trim().strip_prefix("// import ") {
        Some(rest) if imports.iter().any(|import| rest.starts_with(import)) => format!("    import {rest}\n"),
        _ => format!("{line}\n"),
    };
    fs::write(path, wit.lines().map(line).collect::<String>()).unwrap();
}

/// A request that the network gate refuses, and URLs that no request can have.
pub(super) fn refusals(world: &World, project: &Path, url: &str) {
    let component = project.join("build/greeter.wasm");
    let arguments = json!({ "url": url }).to_string();
    let ended = world.motor.run(&["call", component.to_str().unwrap(), "save_page", &arguments]);
    let says = |word: &str| ended.stderr.contains(word);
    assert!(ended.code == Some(1) && says("denied:") && says("domain_not_allowed"), "{ended:?}");
    for arguments in [r#"{"url":"ftp://x"}"#, r#"{"url":"api.example.com/page"}"#] {
        let ended = world.motor.run(&["call", component.to_str().unwrap(), "save_page", arguments]);
        assert!(ended.code == Some(1) && ended.stderr.contains("bad_input:"), "{arguments}: {ended:?}");
    }
}
