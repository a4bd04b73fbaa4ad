//! Arguments against schemas: valid, mended and refused values, and the messages.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "path": {"type": "string"},
            "limit": {"type": "integer", "minimum": 1},
            "ratio": {"type": "number"},
            "all": {"type": "boolean"},
            "names": {"type": "array", "items": {"type": "string"}},
            "options": {"$ref": "#/$defs/options"},
            "maybe": {"type": ["string", "null"]},
            "any": {},
        },
        "required": ["path"],
        "additionalProperties": false,
        "$defs": {"options": {"type": "object", "properties": {"depth": {"type": "integer"}}}},
    })
}

fn mends(given: Value, expected: Value) {
    assert_eq!(check_arguments(&schema(), given.clone()), Ok(expected), "{given}");
}

fn refuses(given: Value, part: &str) {
    let error = check_arguments(&schema(), given.clone()).unwrap_err();
    assert!(error.contains(part), "{given}: {error}");
}

#[test]
fn names_beside_a_reference_are_named_in_a_refusal() {
    let schema = json!({ "$ref": "#/$defs/any", "$defs": { "any": {} }, "required": ["path"] });
    assert_eq!(check_arguments(&schema, json!({ "path": 1 })), Ok(json!({ "path": 1 })));
    let error = check_arguments(&schema, json!({ "other": 1 })).unwrap_err();
    assert!(error.contains("path"), "{error}");
}

#[test]
fn obvious_slips_are_mended() {
    mends(json!({"path": "a", "limit": "5"}), json!({"path": "a", "limit": 5}));
    mends(json!({"path": "a", "ratio": " 0.5 "}), json!({"path": "a", "ratio": 0.5}));
    mends(json!({"path": "a", "all": "True"}), json!({"path": "a", "all": true}));
    mends(json!({"path": 7}), json!({"path": "7"}));
    mends(json!({"path": "a", "names": "x"}), json!({"path": "a", "names": ["x"]}));
    mends(json!({"path": "a", "names": "[\"x\",\"y\"]"}), json!({"path": "a", "names": ["x", "y"]}));
    mends(json!({"path": "a", "options": "{\"depth\":\"3\"}"}), json!({"path": "a", "options": {"depth": 3}}));
    mends(json!({"path": "a", "limit": null}), json!({"path": "a"}));
    mends(json!("{\"path\":\"a\"}"), json!({"path": "a"}));
}

#[test]
fn what_fits_is_left_alone() {
    mends(json!({"path": "5", "maybe": null, "any": "5"}), json!({"path": "5", "maybe": null, "any": "5"}));
    mends(json!({"path": "a", "limit": 5.0}), json!({"path": "a", "limit": 5.0}));
}

#[test]
fn what_is_no_slip_is_explained() {
    refuses(json!({"file_path": "a"}), "unknown parameter `file_path`; did you mean `path`?");
    refuses(json!({"file_path": "a"}), "required: `path`");
    refuses(json!({"path": "a", "limt": 3}), "did you mean `limit`?");
    refuses(json!({"path": "a", "zzz": 3}), "unknown parameter `zzz`");
    refuses(json!({}), "missing: `path`");
    refuses(json!({"path": "a", "limit": "many"}), "`limit`");
    refuses(json!({"path": "a", "limit": 0}), "`limit`");
    refuses(json!({"path": null}), "`path`");
    refuses(json!({"path": {"x": 1}}), "`path`");
    refuses(json!([1, 2]), "the arguments");
    refuses(json!({"path": "a", "limit": "5.5"}), "`limit`");
}

#[test]
fn an_open_schema_also_names_the_parameter_that_was_meant() {
    let open = json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]});
    let error = check_arguments(&open, json!({"filePath": "a"})).unwrap_err();
    assert!(error.contains("did you mean `path`?"), "{error}");
    assert!(check_arguments(&open, json!({"path": "a", "extra": 1})).is_ok());
}

#[test]
fn a_hostile_schema_reaches_nothing_and_ends() {
    for (schema, part) in [
        (json!({"$ref": "http://127.0.0.1:1/schema"}), "not valid"),
        (json!({"$ref": "file:///etc/passwd"}), "not valid"),
        (json!({"type": 7}), "not valid"),
        (json!({"description": "x".repeat(300 << 10)}), "larger than"),
    ] {
        let error = check_arguments(&schema, json!({})).unwrap_err();
        assert!(error.contains(part) && !error.contains("root:"), "{error}");
    }
    let looping = json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}});
    let start = std::time::Instant::now();
    check_arguments(&looping, json!({"a": "5"})).ok();
    let backtracking = json!({"type": "object", "properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}});
    assert!(check_arguments(&backtracking, json!({"a": format!("{}!", "a".repeat(50_000))})).is_err());
    assert!(start.elapsed() < std::time::Duration::from_secs(5));
}

#[test]
fn a_schema_that_multiplies_ends_and_its_twin_is_checked() {
    let next = |number: usize| json!({"$ref": format!("#/$defs/n{}", number + 1)});
    let levels = |part: &dyn Fn(Value) -> Value| -> Value {
        let mut parts: Map<String, Value> = (0..30).map(|number| (format!("n{number}"), part(next(number)))).collect();
        parts.insert("n30".to_owned(), json!({"type": "object"}));
        json!({"type": "object", "$ref": "#/$defs/n0", "$defs": parts})
    };
    let nested = |depth: usize| (0..depth).fold(json!(7), |inner, _| json!({"a": inner}));
    let under_a = |part: Value| json!({"properties": {"a": part}});
    // The whole schema for the same member by two branches: errors double with each level of the value.
    let tree = |branches: usize| json!({"type": "object", "allOf": vec![under_a(json!({"$ref": "#"})); branches]});
    let start = std::time::Instant::now();
    for (schema, value) in [
        (levels(&|next| json!({"allOf": [next, next]})), json!({})),
        (levels(&|next| json!({"anyOf": [next, {"not": next}]})), json!({})),
        (levels(&|next| json!({"allOf": [under_a(next.clone()), under_a(next)]})), nested(30)),
        (tree(2), nested(30)),
        (tree(1), nested(110)),
        // The value nests only once it is mended.
        (tree(2), json!(nested(30).to_string())),
        (
            json!({"properties": {"a": {"items": {"required": vec!["b"; 1_000]}}}}),
            json!({"a": vec![json!({}); 10_000]}),
        ),
        (
            json!({"properties": {"a": {"allOf": vec![json!({"pattern": "b"}); 100]}}}),
            json!({"a": "c".repeat(1 << 20)}),
        ),
    ] {
        let error = check_arguments(&schema, value).unwrap_err();
        assert!(error.contains("too many steps"), "{error}");
    }
    assert!(start.elapsed() < std::time::Duration::from_secs(20));

    for (schema, value) in [
        (levels(&|next| json!({"allOf": [next]})), json!({})),
        (levels(&under_a), json!({"a": {"a": {}}})),
        (tree(2), json!({"a": {"a": {}}})),
        (json!({"properties": {"a": {"items": {"type": "integer"}}}}), json!({"a": vec![7; 100_000]})),
    ] {
        assert_eq!(check_arguments(&schema, value.clone()).as_ref(), Ok(&value));
    }
    let error = check_arguments(&tree(1), nested(3)).unwrap_err();
    assert!(error.contains("`a.a.a`"), "{error}");
}

#[test]
fn a_regular_expression_is_bounded() {
    let schema = |pattern: &str| json!({"type": "object", "properties": {"a": {"type": "string", "pattern": pattern}}});
    let error = check_arguments(&schema(r"^(\p{L}{1000}){100}$"), json!({"a": "b"})).unwrap_err();
    assert!(error.contains("not valid"), "{error}");
    assert!(check_arguments(&schema(r"^[\p{L}\w.+-]+@[a-z]+$"), json!({"a": "grün@b"})).is_ok());
}

#[test]
fn a_message_does_not_repeat_a_huge_value() {
    let error = check_arguments(&schema(), json!({"path": ["x".repeat(100_000)], "y".repeat(5_000): 1})).unwrap_err();
    assert!(error.len() < 2_000, "{}", error.len());
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1e6..1e6f64).prop_map(Value::from),
        "(5|true|null|\\[1\\]|\\{\\}|[a-z]{0,4})".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::hash_map("(path|limit|names|options|depth|x)", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// A reference is relative to the whole schema: within another it would not resolve.
fn without_reference() -> Value {
    let mut schema = schema();
    schema["properties"]["options"] = schema["$defs"]["options"].clone();
    schema
}

fn any_schema() -> impl Strategy<Value = Value> {
    let kind = prop::sample::select(vec!["string", "integer", "number", "boolean", "array", "object", "null"]);
    let leaf = prop_oneof![kind.prop_map(|kind| json!({"type": kind})), Just(json!({})), Just(without_reference())];
    leaf.prop_recursive(2, 12, 3, |inner| {
        prop_oneof![
            inner.clone().prop_map(|item| json!({"type": "array", "items": item})),
            (inner.clone(), inner).prop_map(|(a, b)| json!({
                "type": "object", "properties": {"path": a, "limit": b}, "required": ["path"],
            })),
        ]
    })
}

proptest! {
    #[test]
    fn a_value_that_fits_is_never_changed(schema in any_schema(), value in any_json()) {
        if jsonschema::is_valid(&schema, &value) {
            prop_assert_eq!(check_arguments(&schema, value.clone()), Ok(value));
        }
    }

    #[test]
    fn what_comes_back_fits(schema in any_schema(), value in any_json()) {
        if let Ok(mended) = check_arguments(&schema, value) {
            prop_assert!(jsonschema::is_valid(&schema, &mended));
        }
    }
}
