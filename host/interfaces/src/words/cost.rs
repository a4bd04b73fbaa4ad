//! Money in words: an unknown price is said, and never shown as nothing.

use llm::MicroUsd;

/// The cost of `replies` replies, of which `unpriced` have no known price.
pub(crate) fn shown(known: Option<MicroUsd>, unpriced: u64, replies: u64) -> String {
    match (known.unwrap_or_default(), unpriced) {
        (known, 0) => known.to_string(),
        (_, unpriced) if unpriced >= replies => "unknown".to_owned(),
        (known, unpriced) => format!("{known}, with {unpriced} of {replies} replies of unknown price"),
    }
}

/// In a narrow column: `$0.25`, `$0.25+` if a part is unknown, `unknown`, or nothing before the first reply.
pub(crate) fn brief(usd: Option<f64>, unpriced: u64) -> String {
    match (usd.and_then(MicroUsd::from_usd), unpriced) {
        (None, 0) => String::new(),
        (None, _) => "unknown".to_owned(),
        (Some(known), 0) => known.to_string(),
        (Some(known), _) => format!("{known}+"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_is_not_nothing() {
        let known = MicroUsd::from_usd(0.25);
        for (known, unpriced, replies, expected) in [
            (known, 0, 2, "$0.25"),
            (known, 1, 3, "$0.25, with 1 of 3 replies of unknown price"),
            (known, 2, 3, "$0.25, with 2 of 3 replies of unknown price"),
            (None, 2, 2, "unknown"),
            (None, 0, 0, "$0.00"),
        ] {
            assert_eq!(shown(known, unpriced, replies), expected);
        }
        let told = [(None, 0), (None, 1), (Some(0.25), 0), (Some(0.25), 1)].map(|(usd, unpriced)| brief(usd, unpriced));
        assert_eq!(told, ["", "unknown", "$0.25", "$0.25+"]);
    }
}
