//! Inputs: faults are named, hostile schemas are refused, nothing takes long.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn mail() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {
            "to": { "$ref": "#/$defs/address" },
            "count": { "type": "integer", "minimum": 1 },
            "tone": { "enum": ["kind", "plain"] },
            "attachments": { "type": "array", "items": { "type": "object", "required": ["path"] } },
        },
        "required": ["to"],
        "additionalProperties": false,
        "$defs": { "address": { "type": "string", "pattern": "^[^@]+@[^@]+$" } },
    })
}

#[track_caller]
fn check_mail(inputs: Value, expected: Result<(), &str>) {
    let found = check(Some(&mail()), Some(&inputs));
    assert_eq!(found, expected.map_err(str::to_owned));
}

#[test]
fn what_is_wrong_is_named_with_what_would_be_right() {
    check_mail(json!({ "to": "a@b" }), Ok(()));
    check_mail(json!({ "to": "a@b", "count": 2, "tone": "kind", "attachments": [{ "path": "x" }] }), Ok(()));
    check_mail(json!({}), Err("input `to` is required"));
    check_mail(json!({ "to": 7 }), Err(r#"input `to` is `7`: it is not of type "string""#));
    check_mail(json!({ "to": "a" }), Err(r#"input `to` is `\"a\"`: it does not match "^[^@]+@[^@]+$""#));
    check_mail(json!({ "to": "a@b", "count": 0 }), Err("input `count` is `0`: it is less than the minimum of 1"));
    check_mail(
        json!({ "to": "a@b", "tone": "rude" }),
        Err(r#"input `tone` is `\"rude\"`: it is not one of "kind" or "plain""#),
    );
    check_mail(
        json!({ "to": "a@b", "cc": "c@d" }),
        Err("there is no input `cc`: there are `to`, `count`, `tone`, `attachments`"),
    );
    check_mail(json!({ "to": "a@b", "attachments": [{}] }), Err("input `attachments.0` needs `path`"));
    check_mail(json!([]), Err("the inputs have to be a JSON object"));
    check_mail(json!(null), Err("the inputs have to be a JSON object"));
}

#[test]
fn a_skill_without_inputs_takes_none() {
    assert_eq!(check(None, None), Ok(()));
    assert_eq!(check(None, Some(&json!({}))), Ok(()));
    assert_eq!(check(None, Some(&json!({ "x": 1 }))), Err("this skill takes no inputs: leave them out".to_owned()));
    assert_eq!(check(Some(&mail()), None), Err("input `to` is required".to_owned()));
    assert!(check(None, Some(&json!("x"))).is_err());
}

#[test]
fn values_are_not_quoted_at_length() {
    let canary = format!("{}canary", "x".repeat(60));
    for inputs in [
        json!({ "to": [canary, canary, canary] }),
        json!({ "to": canary }),
        json!({ "to": "a@b", "tone": canary }),
        json!({ "to": "a@b", canary.clone(): 1 }),
        json!({ "to": "a@b", "attachments": [{ "deep": canary }] }),
        json!({ "to": "a@b", "attachments": vec![canary.clone(); 100] }),
    ] {
        let problem = check(Some(&mail()), Some(&inputs)).unwrap_err();
        assert!(!problem.contains("canary") && problem.len() < 1_500, "{problem}");
    }
    let with_escapes = check(Some(&mail()), Some(&json!({ "to": "\u{1b}[2J\n\u{202e}" }))).unwrap_err();
    assert!(!with_escapes.chars().any(char::is_control) && !with_escapes.contains('\u{202e}'), "{with_escapes}");
    let long = json!({ "to": "a@b", "tone": "x".repeat(40_000) });
    assert!(check(Some(&mail()), Some(&long)).unwrap_err().contains("more than 32 KiB"));
}

#[track_caller]
fn check_refused(schema: Value, expected: &str) {
    let problem = check_schema(&schema).unwrap_err();
    assert!(problem.contains(expected), "{problem}");
    assert!(problem.len() < 400 && !problem.chars().any(char::is_control), "{problem}");
}

fn object(field: &str, value: Value) -> Value {
    json!({ "type": "object", field: value })
}

#[test]
fn schemas_that_reach_out_or_run_in_circles_are_refused() {
    check_schema(&mail()).unwrap();
    check_schema(&object("properties", json!({ "$ref": { "type": "string" }, "pattern": { "type": "string" } })))
        .unwrap();
    for reference in [
        "https://evil.example/schema",
        "file:///etc/passwd",
        "other.json",
        "other.json#/$defs/a",
        "",
        "#anchor",
        "#/%24defs/a",
        "http://json-schema.org/draft-07/schema#",
    ] {
        let schema = json!({ "type": "object", "properties": { "a": { "$ref": reference } }, "$defs": { "a": {} } });
        check_refused(schema, "within the schema itself");
    }
    check_refused(object("properties", json!({ "a": { "$ref": "#/$defs/a" } })), "nothing there");
    check_refused(object("properties", json!({ "a": { "$ref": "#" } })), "within the schema itself");
    let circle = json!({ "a": { "$ref": "#/$defs/b" }, "b": { "allOf": [{ "$ref": "#/$defs/a" }] } });
    check_refused(json!({ "type": "object", "$ref": "#/$defs/a", "$defs": circle }), "leads back to itself");
    let tree = json!({ "a": { "properties": { "left": { "$ref": "#/$defs/a" } } } });
    check_refused(json!({ "type": "object", "$ref": "#/$defs/a", "$defs": tree }), "leads back to itself");
    for name in ["$id", "$dynamicRef", "$recursiveRef"] {
        check_refused(object("properties", json!({ "a": { name: "#" } })), name);
    }
    check_refused(object("$schema", json!("https://evil.example/draft")), "$schema");
    check_refused(object("$schema", json!("http://json-schema.org/draft-04/schema#")), "$schema");
    check_refused(
        object("properties", json!({ "a": { "$schema": "http://json-schema.org/draft-07/schema#" } })),
        "$schema",
    );
}

#[test]
fn schemas_that_would_take_long_are_refused() {
    // Each of fourteen definitions refers to the next twice: sixteen thousand ways to the last.
    let doubling: Map<String, Value> = (0..14)
        .map(|number| {
            let next = json!({ "$ref": format!("#/$defs/d{}", number + 1) });
            (format!("d{number}"), json!({ "allOf": [next, next] }))
        })
        .chain([("d14".to_owned(), json!({ "type": "object" }))])
        .collect();
    check_refused(json!({ "type": "object", "$ref": "#/$defs/d0", "$defs": doubling }), "refers to more than");
    // Each of a thousand refers to the next, from the first and from the last: a stack as deep would overflow.
    for reversed in [false, true] {
        let link = |number: usize| {
            let next = json!({ "$ref": format!("#/$defs/{}", number + 1) });
            (number.to_string(), if number == 999 { json!({}) } else { next })
        };
        let chain: Map<String, Value> =
            if reversed { (0..1_000).rev().map(link).collect() } else { (0..1_000).map(link).collect() };
        check_refused(json!({ "type": "object", "$defs": chain, "$ref": "#/$defs/0" }), "deeper than 64");
    }
    check_refused(object("description", json!("x".repeat(33_000))), "larger than 32 KiB");
    let mut deep = json!({});
    for _ in 0..100 {
        deep = json!({ "not": deep });
    }
    check_refused(object("not", deep), "deeper than 64");
    let patterns: Vec<Value> = (0..51).map(|number| json!({ "pattern": format!("a{number}") })).collect();
    check_refused(object("allOf", json!(patterns)), "more than 50 patterns");
    let by_pattern: Map<String, Value> = (0..51).map(|number| (format!("a{number}"), json!({}))).collect();
    check_refused(object("patternProperties", Value::Object(by_pattern)), "more than 50 patterns");
    check_refused(object("propertyNames", json!({ "pattern": "(a{1000}){1000}" })), "no valid JSON Schema");
    check_refused(object("propertyNames", json!({ "pattern": "(a)\\1" })), "no valid JSON Schema");
    check_refused(object("propertyNames", json!({ "pattern": "(" })), "no valid JSON Schema");
    check_refused(object("properties", json!(7)), "no valid JSON Schema");
    check_refused(object("required", json!("to")), "no valid JSON Schema");
    // A pattern that takes a backtracking engine for ever takes a linear one no time.
    let evil = object("properties", json!({ "a": { "pattern": "^(a+)+$" } }));
    assert!(check(Some(&evil), Some(&json!({ "a": format!("{}b", "a".repeat(30_000)) }))).is_err());
}

proptest! {
    #[test]
    fn no_schema_and_no_input_is_a_panic(field in "[$a-zA-Z]{0,12}", text in any::<String>(), number in any::<f64>(), key in any::<String>()) {
        let values = [json!(text), json!(number), json!([text, number]), json!({ key.clone(): text }), json!({ "$ref": text })];
        for value in &values {
            for field in [field.as_str(), "properties", "$ref", "allOf", "pattern", "multipleOf", "required", "$defs"] {
                let schema = object(field, value.clone());
                for inputs in &values {
                    if let Err(problem) = check(Some(&schema), Some(inputs)) {
                        prop_assert!(problem.len() < 4_000 && !problem.chars().any(char::is_control), "{:?}", problem);
                    }
                }
            }
        }
    }
}
