//! The tool `count` in Rust.

use std::collections::BTreeMap;

wit_bindgen::generate!({ world: "text", path: "../../wit" });

struct Words;

impl exports::toolchains::text::words::Guest for Words {
    fn count(text: String) -> Result<Vec<(String, u32)>, String> {
        let mut counts = BTreeMap::new();
        for word in text.to_lowercase().split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
            *counts.entry(word.to_owned()).or_insert(0) += 1;
        }
        let mut counts: Vec<_> = counts.into_iter().collect();
        // Stable, so that equal counts stay in the order of the words.
        counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        if counts.is_empty() { Err("there are no words".to_owned()) } else { Ok(counts) }
    }
}

export!(Words);
