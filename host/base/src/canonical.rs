//! JSON text that is the same for the same value, as input of hashes and signatures.

use serde_json::Value;

use crate::ContentHash;

/// Compact JSON with the keys of every object in order of their bytes.
#[must_use]
pub fn text(value: &Value) -> String {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_by_key(|(key, _)| *key);
            let parts: Vec<_> = entries
                .into_iter()
                .map(|(key, value)| format!("{}:{}", Value::from(key.as_str()), text(value)))
                .collect();
            format!("{{{}}}", parts.join(","))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(text).collect::<Vec<_>>().join(",")),
        plain => plain.to_string(),
    }
}

/// The hash of a value, independent of the order of its keys.
#[must_use]
pub fn hash(value: &Value) -> ContentHash {
    ContentHash::of(text(value).as_bytes())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_order_of_keys_counts_for_nothing_and_everything_else_counts() {
        let value = json!({"b": [1, {"y": null, "x": "ä\n"}], "a": 1.5});
        assert_eq!(text(&value), r#"{"a":1.5,"b":[1,{"x":"ä\n","y":null}]}"#);
        assert_eq!(hash(&value), hash(&serde_json::from_str(r#"{"a":1.5,"b":[1,{"x":"ä\n","y":null}]}"#).unwrap()));
        assert_ne!(hash(&json!([1, 2])), hash(&json!([2, 1])));
        assert_ne!(hash(&json!("1")), hash(&json!(1)));
    }
}
