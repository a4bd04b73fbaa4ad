//! Inspecting valid and hostile components.

use super::*;

fn refusal(bytes: &[u8]) -> String {
    inspect(bytes, 1_000).unwrap_err().to_string()
}

#[test]
fn says_what_is_wrong_with_what_is_no_component() {
    assert_eq!(refusal(b""), "the file is empty");
    assert!(refusal(b"hello").contains("a text file"), "{}", refusal(b"hello"));
    assert!(refusal(b"\x7fELF\x02").contains("native program"));
    assert!(refusal(b"\0asm\x01\0\0\0").contains("core module"));
    assert!(refusal(b"\0asm\x0d\0\x01\0garbage").contains("corrupt"));
    assert!(refusal(&[0; 2_000]).contains("2000 bytes"));
}

#[test]
fn an_empty_component_needs_nothing() {
    let inspection = inspect(b"\0asm\x0d\0\x01\0", 1_000).unwrap();
    assert!(inspection.imports.is_empty() && inspection.exports.is_empty());
}

/// A component of some types and functions, all of which share one core function. Everything is passed as a list, so
/// that its core form does not depend on the types.
fn component(types: &str, functions: &str) -> Vec<u8> {
    let text = format!(
        r#"(component
            (core module $m
                (memory (export "memory") 1)
                (func (export "realloc") (param i32 i32 i32 i32) (result i32) i32.const 0)
                (func (export "one") (param i32) (result i32) local.get 0)
                (func (export "list") (param i32 i32) (result i32) i32.const 0))
            (core instance $i (instantiate $m))
            {types}
            {functions})"#
    );
    wat::parse_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// A function from a list of `ty` to one.
fn over(name: &str, ty: &str) -> String {
    format!(
        r#"(func ${name} (param "all" (list {ty})) (result (list {ty}))
            (canon lift (core func $i "list") (memory $i "memory") (realloc (func $i "realloc"))))"#
    )
}

fn exported(name: &str) -> String {
    format!(r#"(export "{name}" (func ${name}))"#)
}

fn read(bytes: &[u8]) -> Inspection {
    inspect(bytes, 1 << 24).unwrap_or_else(|error| panic!("{error}"))
}

fn tool_names(inspection: &Inspection) -> Vec<&str> {
    inspection.functions.iter().map(|function| function.tool.name.as_str()).collect()
}

fn reasons(inspection: &Inspection) -> Vec<(&str, &str)> {
    inspection.unmapped.iter().map(|function| (function.export.as_str(), function.why.as_str())).collect()
}

#[test]
fn functions_become_tools_and_nothing_is_compiled_for_it() {
    let types = r#"(type $p (record (field "x-at" f64) (field "name" (option string))))
        (export $point "point" (type $p))"#;
    let functions = over("move", "$point") + &exported("move");
    let inspection = read(&component(types, &functions));
    assert_eq!((inspection.kind, tool_names(&inspection)), (Kind::Functions, vec!["move"]));
    let tool = &inspection.functions[0].tool;
    assert_eq!(
        tool.description,
        "Calls `move(all: list<record{x-at: f64, name: option<string>}>) -> list<record{x-at: f64, name: option<string>}>`."
    );
    assert_eq!(
        tool.parameters,
        serde_json::json!({
            "type": "object",
            "properties": { "all": { "type": "array", "items": {
                "type": "object",
                "properties": {
                    "x-at": { "type": ["number", "string"], "pattern": "^(NaN|-?Infinity)$" },
                    "name": { "type": ["string", "null"] },
                },
                "required": ["x-at"],
                "additionalProperties": false,
            } } },
            "required": ["all"],
            "additionalProperties": false,
        })
    );
    // Without imports a call cannot change anything.
    assert!(tool.effects.read_only && tool.effects.idempotent && !tool.effects.open_world);
    assert_eq!(inspection.cannot(), ["network", "files", "credentials", "clock", "random numbers"]);
}

#[test]
fn functions_of_interfaces_are_found_and_names_do_not_collide() {
    let one = r#"(func $one (param "value" u32) (result u32) (canon lift (core func $i "one")))"#;
    let functions = format!(
        r#"{one}
        (instance $both (export "scale" (func $one)) (export "turn" (func $one)))
        (export "scale" (func $one))
        (export "a:flat/area@1.0.0" (instance $both))
        (export "a:solid/area@1.0.0" (instance $both))"#
    );
    let inspection = read(&component("", &functions));
    assert_eq!(
        tool_names(&inspection),
        ["scale", "flat_area_scale", "flat_area_turn", "solid_area_scale", "solid_area_turn"]
    );
    let scale = &inspection.functions[1];
    assert_eq!((scale.export.as_str(), scale.function.as_str()), ("a:flat/area@1.0.0", "scale"));
    assert_eq!(scale.tool.description, "Calls `scale(value: u32) -> u32` of `a:flat/area@1.0.0`.");
    assert_eq!(inspection.functions, read(&component("", &functions)).functions, "the same each time");
}

#[test]
fn what_cannot_be_a_tool_says_why_and_the_rest_works() {
    let tuples: String = (1..=14).map(|n| format!("(type $t{n} (tuple $t{0} $t{0}))", n - 1)).collect();
    let types = format!(
        r#"(type $r (resource (rep i32))) (export $thing "thing" (type $r))
        (type $t0 (tuple u8 u8)) {tuples}
        (type $wide (tuple {}))
        (type $n0 (option u8)) {}"#,
        "u8 ".repeat(3_000),
        (1..=80).map(|n| format!("(type $n{n} (option $n{}))", n - 1)).collect::<String>()
    );
    let own = r#"(func $take (param "it" (own $thing)) (result u32) (canon lift (core func $i "one")))
        (export "take" (func $take))"#;
    let mut functions = own.to_owned();
    for (name, ty) in [("bomb", "$t14"), ("wide", "$wide"), ("deep", "$n80"), ("fine", "$n60")] {
        functions += &(over(name, ty) + &exported(name));
    }
    let inspection = read(&component(&types, &functions));
    assert_eq!(tool_names(&inspection), ["fine"]);
    assert_eq!(
        reasons(&inspection),
        [
            ("take", "uses a resource"),
            ("bomb", "its types are too large"),
            ("wide", "its schema is longer than 32768 bytes"),
            ("deep", "its types are nested deeper than 64"),
        ]
    );
}

#[test]
fn a_component_has_no_more_tools_and_no_longer_lists_than_are_read() {
    let one = r#"(func $one (param "value" u32) (result u32) (canon lift (core func $i "one")))"#;
    let exports: String = (0..500).map(|n| format!(r#"(export "f{n}" (func $one))"#)).collect();
    let inspection = read(&component("", &format!("{one}{exports}")));
    assert_eq!((inspection.functions.len(), inspection.unmapped.len()), (64, 256));
    assert_eq!(inspection.unmapped[0].why, "a component offers at most 64 tools");
}

#[test]
fn documentation_is_used_and_hostile_documentation_is_not() {
    let functions = over("greet", "string") + &exported("greet");
    let with = |section: &[u8]| {
        let mut bytes = component("", &functions);
        let name = b"package-docs";
        let mut body = vec![u8::try_from(name.len()).unwrap()];
        body.extend_from_slice(name);
        body.extend_from_slice(section);
        bytes.push(0);
        let mut size = body.len();
        while size >= 0x80 {
            bytes.push(u8::try_from(size & 0x7f).unwrap() | 0x80);
            size >>= 7;
        }
        bytes.push(u8::try_from(size).unwrap());
        bytes.extend_from_slice(&body);
        read(&bytes)
    };
    let documented = with(br#"_{"worlds":{"w":{"docs":"Says hello.","func_exports":{"greet":{"docs":"Greets."}}}}}"#);
    assert!(documented.functions[0].tool.description.starts_with("Calls `greet"), "the version is not known");
    let documented = with(
        b"\x01{\"worlds\":{\"w\":{\"docs\":\"Says hello.\",\"func_exports\":{\"greet\":{\"docs\":\"Greets.\"}}}}}",
    );
    assert_eq!(documented.functions[0].tool.description, "Greets.");
    assert_eq!(documented.docs.as_deref(), Some("Says hello."));
    for section in [&b"\x01{"[..], b"", b"\x01\xff\xfe", b"\x01{\"worlds\":[[[[[", &[b'['; 100_000]] {
        let inspection = with(section);
        assert!(inspection.functions[0].tool.description.starts_with("Calls `greet"), "{:?}", inspection.functions);
        assert_eq!(inspection.docs, None);
    }
}

#[test]
fn imports_of_more_than_any_host_has_are_refused_before_they_are_linked() {
    let import = |count: usize, interface_bytes: usize, item_bytes: usize| {
        let (interface, item) = ("a".repeat(interface_bytes), "a".repeat(item_bytes));
        // One type for all functions: inline, the text form needs the square of their number.
        let functions: String =
            (0..count).map(|number| format!(r#"(export "f{number}{item}" (func (type $t)))"#)).collect();
        let text = format!(
            r#"(component (type $i (instance (type $t (func)) {functions}))
                (import "wasi:clocks/{interface}@0.2.0" (instance (type $i))))"#
        );
        inspect(&wat::parse_str(&text).unwrap(), 1 << 24)
    };
    for (count, interface_bytes, item_bytes, why) in [
        (100_000, 50_000, 0, "more than 10000 functions and types"),
        (10_001, 1, 0, "more than 10000 functions and types"),
        (3, 1, 90_000, "more than 262144 bytes of names"),
    ] {
        let error = import(count, interface_bytes, item_bytes).unwrap_err().to_string();
        assert!(error.contains(why) && error.contains("split it"), "{count}: {error}");
    }
    let inspection = import(2_000, 50_000, 20).unwrap();
    assert_eq!(inspection.imports[0].capability, Capability::Clock);
}

#[test]
fn interfaces_within_an_imported_one_are_counted_too() {
    let functions: String = (0..6_000).map(|number| format!(r#"(export "f{number}" (func (type $t)))"#)).collect();
    let with = |nested: &str| {
        let text = format!(
            r#"(component (type $i (instance (type $n (instance (type $t (func)) {functions})) {nested}))
                (import "wasi:clocks/a@0.2.0" (instance (type $i))))"#
        );
        inspect(&wat::parse_str(&text).unwrap(), 1 << 24)
    };
    let (one, two) = (r#"(export "a" (instance (type $n)))"#, r#"(export "b" (instance (type $n)))"#);
    with(one).unwrap();
    assert!(with(&format!("{one}{two}")).unwrap_err().to_string().contains("more than 10000 functions and types"));
}

#[test]
fn function_bodies_of_bundled_components_are_left_to_the_compiler() {
    let component = |body: &str| {
        let text =
            format!(r#"(component (core module (func (result i32) {body})) (import "wasi:io/poll@0.2.0" (instance)))"#);
        wat::parse_str(&text).unwrap()
    };
    let valid = component("i32.const 1");
    assert_eq!(inspect_bundled(&valid, 1_000).unwrap(), inspect(&valid, 1_000).unwrap());
    let invalid = component("");
    assert!(inspect(&invalid, 1_000).is_err());
    inspect_bundled(&invalid, 1_000).unwrap();
    let runtime = crate::Runtime::new(crate::EngineConfig::default()).unwrap();
    let compiled = crate::compile::compile_bundled(&runtime, &invalid);
    assert!(matches!(compiled, Err(LoadError::NotCompiled { .. })));
    // The rest is read in either case.
    assert!(inspect_bundled(&valid[..valid.len() - 1], 1_000).is_err());
}
