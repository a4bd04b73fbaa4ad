//! Components, the values that go into them, and signed receipts.

use std::sync::LazyLock;

use receipts::SignedReceipt;
use runtime::FunctionTool;
use serde_json::{Value, json};

/// More bytes than any input has.
const MAX_BYTES: u64 = 1 << 20;

/// The bytes of a component: an accepted one is bound to exactly these bytes, and its functions describe themselves.
pub(crate) fn inspect(bytes: &[u8]) {
    match runtime::inspect(bytes, MAX_BYTES) {
        Ok(inspection) => {
            assert_eq!(inspection.hash, base::ContentHash::of(bytes));
            for function in &inspection.functions {
                assert!(!function.tool.name.is_empty() && function.tool.parameters.is_object());
                assert!(function.check_arguments("{").is_err());
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// A function with a parameter of every kind of type.
static FUNCTION: LazyLock<FunctionTool> = LazyLock::new(|| {
    let field = |name: &str, ty: Value| json!({"name": name, "ty": ty, "docs": null});
    let parameters = json!([
        field("a", json!("Bool")),
        field("b", json!({"Integer": "S8"})),
        field("c", json!({"Integer": "U64"})),
        field("d", json!("F32")),
        field("e", json!("F64")),
        field("f", json!("Char")),
        field("g", json!("String")),
        field("h", json!({"List": {"Integer": "U8"}})),
        field("i", json!({"Record": [field("x", json!({"Integer": "S64"}))]})),
        field("j", json!({"Tuple": [{"Integer": "U16"}, "String"]})),
        field("k", json!({"Variant": [{"name": "no", "ty": null}, {"name": "yes", "ty": {"Option": "Char"}}]})),
        field("l", json!({"Enum": ["red", "green"]})),
        field("m", json!({"Flags": ["left", "right"]})),
        field("n", json!({"Option": {"Option": {"List": "F64"}}})),
        field("o", json!({"Result": {"ok": "String", "error": null}})),
    ]);
    let options = parameters.as_array().map(|fields| fields.iter().map(option).collect::<Vec<_>>());
    let function = json!({
        "name": "every",
        "description": "",
        "parameters": {},
        "effects": {"read_only": false, "destructive": true, "idempotent": false, "open_world": true},
        "export": "",
        "function": "every",
        "signature": "",
        "shape": {"Function": {"parameters": options, "result": null}},
    });
    serde_json::from_value(function).expect("the function is written as it is stored")
});

/// The same field, which may be left out: so that an input needs only one of them.
fn option(field: &Value) -> Value {
    json!({"name": field["name"], "ty": {"Option": field["ty"]}, "docs": null})
}

/// Arguments of a function with WIT types.
pub(crate) fn wit_values(bytes: &[u8]) {
    let Some(json) = crate::text(bytes) else { return };
    if let Err(message) = FUNCTION.check_arguments(json) {
        assert!(!message.is_empty());
        // An untrusted name is shown in part.
        assert!(message.len() < 4_096, "{}", message.len());
    }
}

/// Signed receipts: an accepted one is exactly the bytes that were signed.
pub(crate) fn receipt(bytes: &[u8]) {
    match SignedReceipt::read(bytes) {
        Ok(signed) => assert_eq!(signed.text().expect("a receipt that was read").as_bytes(), bytes),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    if let Ok(value) = serde_json::from_slice(bytes)
        && let Ok(signed) = SignedReceipt::of_value(&value)
    {
        assert_eq!(signed.text().expect("a receipt that was read").parse::<Value>().ok(), Some(value));
    }
}
