//! JSON Schema (2020-12) of types: for a model's arguments, and for the output.
//!
//! Kept small, because a model reads it on every turn. [`super::read`] refuses some values that the schema accepts:
//! integers of 64 bits as digits, whose range a schema of strings cannot express.

use serde_json::{Map, Value, json};

use super::{Field, Integer, Type};

/// The schema of a value.
pub(crate) fn of(ty: &Type) -> Value {
    match ty {
        Type::Bool => json!({ "type": "boolean" }),
        Type::Integer(integer) => whole(*integer),
        // JSON has no numbers for these three.
        Type::F32 | Type::F64 => json!({ "type": ["number", "string"], "pattern": "^(NaN|-?Infinity)$" }),
        Type::Char => json!({ "type": "string", "minLength": 1, "maxLength": 1 }),
        Type::String => json!({ "type": "string" }),
        Type::List(element) if ty.is_bytes() => {
            json!({ "type": ["string", "array"], "contentEncoding": "base64", "items": of(element) })
        }
        Type::List(element) => json!({ "type": "array", "items": of(element) }),
        Type::Record(fields) => object(fields),
        Type::Tuple(types) => {
            let items: Vec<Value> = types.iter().map(of).collect();
            json!({ "type": "array", "prefixItems": items, "items": false, "minItems": types.len() })
        }
        Type::Variant(cases) => {
            let bare: Vec<&str> =
                cases.iter().filter(|case| case.ty.is_none()).map(|case| case.name.as_str()).collect();
            let mut forms = Vec::new();
            if !bare.is_empty() {
                forms.push(json!({ "enum": bare }));
            }
            forms.extend(cases.iter().filter_map(|case| Some(single(&case.name, of(case.ty.as_ref()?)))));
            one_of(forms)
        }
        Type::Enum(names) => json!({ "enum": names }),
        Type::Flags(names) => json!({ "type": "array", "items": { "enum": names }, "uniqueItems": true }),
        Type::Option(some) if some.is_option() => one_of(vec![null(), single("some", of(some))]),
        Type::Option(some) => nullable(of(some)),
        Type::Result { ok, error } => one_of(vec![
            single("ok", ok.as_deref().map_or_else(null, of)),
            single("error", error.as_deref().map_or_else(null, of)),
        ]),
    }
}

/// The schema of an object with these fields and no others; those that are options may be left out.
pub(crate) fn object(fields: &[Field]) -> Value {
    let properties: Map<String, Value> = fields
        .iter()
        .map(|field| {
            let mut schema = of(&field.ty);
            if let (Some(docs), Some(schema)) = (&field.docs, schema.as_object_mut()) {
                schema.insert("description".into(), docs.clone().into());
            }
            (field.name.clone(), schema)
        })
        .collect();
    let required: Vec<&str> =
        fields.iter().filter(|field| !field.ty.is_option()).map(|field| field.name.as_str()).collect();
    let mut schema = json!({ "type": "object", "properties": properties });
    if let Some(schema) = schema.as_object_mut() {
        if !required.is_empty() {
            schema.insert("required".into(), required.into());
        }
        schema.insert("additionalProperties".into(), false.into());
    }
    schema
}

pub(crate) fn null() -> Value {
    json!({ "type": "null" })
}

fn whole(integer: Integer) -> Value {
    let (least, greatest) = integer.range();
    if integer.is_wide() {
        let pattern = if least < 0 { "^-?[0-9]{1,19}$" } else { "^[0-9]{1,20}$" };
        json!({ "type": ["integer", "string"], "minimum": least, "maximum": greatest, "pattern": pattern })
    } else {
        json!({ "type": "integer", "minimum": least, "maximum": greatest })
    }
}

fn single(name: &str, schema: Value) -> Value {
    json!({ "type": "object", "properties": { name: schema }, "required": [name], "additionalProperties": false })
}

fn one_of(mut forms: Vec<Value>) -> Value {
    match forms.pop() {
        Some(only) if forms.is_empty() => only,
        last => {
            forms.extend(last);
            json!({ "oneOf": forms })
        }
    }
}

/// The schema with `null` as one more value. Simple types list it in `type`, the form models know best.
fn nullable(mut schema: Value) -> Value {
    if let Some(object) = schema.as_object_mut()
        && !object.contains_key("enum")
    {
        match object.get_mut("type") {
            Some(Value::Array(types)) => {
                types.push("null".into());
                return schema;
            }
            Some(ty @ Value::String(_)) => {
                *ty = json!([ty.take(), "null"]);
                return schema;
            }
            _ => (),
        }
    }
    one_of(vec![null(), schema])
}
