//! The form of a usage in outputs. Stored events keep their own names; outputs of earlier versions are still read.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Usage;

/// Tokens and cost of model calls, as the providers reported them.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Usage")]
pub struct ShownUsage {
    /// Number of tokens in the prompt.
    #[serde(alias = "input_tokens")]
    input_tokens: u64,
    /// Those of them that the provider had in its cache.
    #[serde(default, alias = "cached_input_tokens", skip_serializing_if = "Option::is_none")]
    cached_input_tokens: Option<u64>,
    /// Those of them that the provider put into its cache.
    #[serde(default, alias = "cache_write_tokens", skip_serializing_if = "Option::is_none")]
    cache_write_tokens: Option<u64>,
    /// Number of tokens in the reply.
    #[serde(alias = "output_tokens")]
    output_tokens: u64,
    /// US dollars, if the provider or the configuration gives a price.
    #[serde(default, alias = "cost_usd", skip_serializing_if = "Option::is_none")]
    cost_usd: Option<f64>,
}

/// Writes a usage as outputs show it, for `#[serde(with)]`.
///
/// # Errors
/// Those of the serializer.
pub fn serialize<S: Serializer>(usage: &Usage, serializer: S) -> Result<S::Ok, S::Error> {
    let counted = |tokens: u64| (tokens > 0).then_some(tokens);
    let shown = ShownUsage {
        input_tokens: usage.input_tokens,
        cached_input_tokens: counted(usage.cached_input_tokens),
        cache_write_tokens: counted(usage.cache_write_tokens),
        output_tokens: usage.output_tokens,
        cost_usd: usage.cost_usd,
    };
    shown.serialize(serializer)
}

/// Reads a usage from an output, also with the names of earlier versions.
///
/// # Errors
/// Those of the deserializer.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Usage, D::Error> {
    let shown = ShownUsage::deserialize(deserializer)?;
    Ok(Usage {
        input_tokens: shown.input_tokens,
        cached_input_tokens: shown.cached_input_tokens.unwrap_or_default(),
        cache_write_tokens: shown.cache_write_tokens.unwrap_or_default(),
        output_tokens: shown.output_tokens,
        cost_usd: shown.cost_usd,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[derive(Serialize, Deserialize)]
    struct Output(#[serde(with = "super")] Usage);

    #[test]
    fn outputs_are_camel_case_and_older_ones_are_read() {
        let usage = Usage {
            input_tokens: 3,
            cached_input_tokens: 2,
            output_tokens: 4,
            cost_usd: Some(0.5),
            ..Usage::default()
        };
        let shown = json!({ "inputTokens": 3, "cachedInputTokens": 2, "outputTokens": 4, "costUsd": 0.5 });
        assert_eq!(serde_json::to_value(Output(usage)).unwrap(), shown);
        // The stored form stays as it was.
        let stored = json!({ "input_tokens": 3, "cached_input_tokens": 2, "output_tokens": 4, "cost_usd": 0.5 });
        assert_eq!(serde_json::to_value(usage).unwrap(), stored);
        for form in [shown, stored] {
            assert_eq!(serde_json::from_value::<Output>(form).unwrap().0, usage);
        }
    }
}
