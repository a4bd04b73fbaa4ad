//! JSON Schemas of the types that requests and answers are made of.

use schemars::generate::{SchemaGenerator, SchemaSettings};
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value, json};

/// The schemas of one document. A type is read and written by different rules: a field with a default may be missing in a
/// request and never in an answer. So requests have a generator of their own, which writes every schema out where it is used.
pub(crate) struct Schemas {
    requests: SchemaGenerator,
    answers: SchemaGenerator,
}

impl Default for Schemas {
    fn default() -> Self {
        let requests = SchemaSettings::draft2020_12().with(|settings| {
            settings.meta_schema = None;
            settings.inline_subschemas = true;
        });
        let answers = SchemaSettings::draft2020_12().for_serialize().with(|settings| {
            settings.meta_schema = None;
            settings.definitions_path = "/components/schemas".into();
        });
        Self { requests: requests.into_generator(), answers: answers.into_generator() }
    }
}

impl Schemas {
    /// The schema of something that is read.
    pub(super) fn request<T: JsonSchema>(&mut self) -> Value {
        let mut schema = self.requests.subschema_for::<T>();
        schema.insert("title".to_owned(), T::schema_name().into());
        schema.to_value()
    }

    /// The schema of something that is written, or a reference to it.
    pub(super) fn answer<T: JsonSchema>(&mut self) -> Schema {
        self.answers.subschema_for::<T>()
    }

    /// The schemas that answers refer to, by name.
    pub(super) fn into_named(mut self) -> Map<String, Value> {
        self.answers.take_definitions(true)
    }
}

/// Adds to each integer the bounds of its type.
pub(super) fn limit_integers(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            let most = match fields.get("format").and_then(Value::as_str) {
                Some("uint64" | "uint") => Some(u64::MAX),
                Some("uint32") => Some(u64::from(u32::MAX)),
                Some("uint16") => Some(u64::from(u16::MAX)),
                _ => None,
            };
            if let Some(most) = most {
                fields.entry("maximum").or_insert_with(|| json!(most));
            }
            fields.values_mut().for_each(limit_integers);
        }
        Value::Array(values) => values.iter_mut().for_each(limit_integers),
        _ => {}
    }
}
