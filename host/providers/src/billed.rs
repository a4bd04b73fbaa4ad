//! Checks of the counts of tokens on the wire, and of the money that they cost (SPEC EN-4).

use llm::{MicroUsd, ModelPrice, ModelRef};
use serde_json::Value;

use crate::receive::Assembly;
use crate::remedy::RequestOrigin;

/// Dollars for a million tokens: 2, from the cache 0.20, into the cache 2.50, of the reply 10.
const PRICE: ModelPrice = ModelPrice {
    input: MicroUsd::from_micros(2_000_000),
    cached: Some(MicroUsd::from_micros(200_000)),
    cache_write: Some(MicroUsd::from_micros(2_500_000)),
    output: MicroUsd::from_micros(10_000_000),
};

pub(crate) fn origin(model: &str) -> RequestOrigin {
    let model: ModelRef = model.parse().unwrap();
    RequestOrigin { model, key_variable: "K", url_variable: "U" }
}

/// Takes these events of one reply. `expected`: tokens of the prompt, of them read from and written to the cache, of the reply;
/// and the cost in millionths of a dollar.
#[track_caller]
pub(crate) fn check(mut assembly: impl Assembly, events: &[Value], expected: ([u64; 4], u64)) {
    for event in events {
        assembly.take(event, &mut |_| {}).unwrap();
    }
    let usage = assembly.finish(crate::receive::ReplyEnd::Marked).unwrap().usage;
    let counts = [usage.input_tokens, usage.cached_input_tokens, usage.cache_write_tokens, usage.output_tokens];
    assert_eq!((counts, PRICE.cost(&usage)), (expected.0, Some(MicroUsd::from_micros(expected.1))), "{events:?}");
}
