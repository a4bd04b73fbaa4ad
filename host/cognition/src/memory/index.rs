//! The index of an agent's memories: full-text search by BM25, the order of their ages, and the memories of each source.
//!
//! It finds ids and has no texts, so that only records are ever shown. Its answers depend on the memories in it and not on the order of
//! its changes: an index that was kept up to date answers as one that was just built from the records.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use base::Timestamp;
use bm25::{Embedder, EmbedderBuilder, Embedding, Scorer, Tokenizer};

/// Tokens of a typical memory, about 15 words. Longer ones count as less specific. A fixed number, because the true average would depend
/// on the history of the index.
const TYPICAL_TOKENS: f32 = 30.0;
/// Characters of a word that have to be the same: `invoice` finds `invoices`.
const STEM: usize = 5;

/// A place in the list of memories: the newest first, then by id.
type Place = (Reverse<Timestamp>, Arc<str>);

/// The index of one agent's memories.
pub(crate) struct MemoryIndex {
    embedder: Embedder<u64, Words>,
    scorer: Scorer<u32, u64>,
    /// The numbers of the memories in the scorer.
    numbers: BTreeMap<Place, u32>,
    places: HashMap<u32, Place>,
    of_source: HashMap<String, BTreeSet<Place>>,
    next: u32,
    removed: usize,
}

impl Default for MemoryIndex {
    fn default() -> Self {
        let embedder = EmbedderBuilder::with_avgdl(TYPICAL_TOKENS).build();
        let (scorer, numbers, places, of_source) = (Scorer::new(), BTreeMap::new(), HashMap::new(), HashMap::new());
        Self { embedder, scorer, numbers, places, of_source, next: 0, removed: 0 }
    }
}

impl MemoryIndex {
    /// Number of memories in the index.
    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    /// Whether so many memories were removed that it should be built again: the scorer keeps an entry for each of their words.
    pub fn is_worn(&self) -> bool {
        self.removed > self.numbers.len()
    }

    /// Adds a memory, or sources to a memory that it has: its text never changes, and until it is removed none of its sources loses its
    /// name.
    pub fn insert(&mut self, id: &str, at: Timestamp, text: &str, sources: &[String]) {
        let place = (Reverse(at), Arc::from(id));
        if !self.numbers.contains_key(&place) {
            let embedding = self.embedding(text);
            self.scorer.upsert(&self.next, embedding);
            self.places.insert(self.next, place.clone());
            self.numbers.insert(place.clone(), self.next);
            self.next = self.next.wrapping_add(1);
        }
        for source in sources {
            self.of_source.entry(source.clone()).or_default().insert(place.clone());
        }
    }

    /// Removes a memory with its sources.
    pub fn remove(&mut self, id: &str, at: Timestamp, sources: &[String]) {
        let place = (Reverse(at), Arc::from(id));
        let Some(number) = self.numbers.remove(&place) else { return };
        self.scorer.remove(&number);
        self.places.remove(&number);
        self.removed = self.removed.saturating_add(1);
        for source in sources {
            if let Some(places) = self.of_source.get_mut(source) {
                places.remove(&place);
                if places.is_empty() {
                    self.of_source.remove(source);
                }
            }
        }
    }

    /// The ids of the memories with these words, best match first, or of all, the newest first; only those with the source, if one is
    /// given.
    pub fn find(&self, search: Option<&str>, source: Option<&str>, limit: usize) -> Vec<Arc<str>> {
        let of_source = source.map(|source| self.of_source.get(source));
        let id = |(_, id): &Place| id.clone();
        let Some(search) = search else {
            return match of_source {
                Some(places) => places.into_iter().flatten().take(limit).map(id).collect(),
                None => self.numbers.keys().take(limit).map(id).collect(),
            };
        };
        let has_source =
            |place: &Place| of_source.is_none_or(|places| places.is_some_and(|places| places.contains(place)));
        let matches = self.scorer.matches(&self.embedding(search)).into_iter();
        let mut scores: Vec<(f32, &Place)> = matches
            .filter_map(|found| Some((found.score, self.places.get(&found.id)?)))
            .filter(|(_, place)| has_source(place))
            .collect();
        scores.sort_by(|(score, one), (better, other)| better.total_cmp(score).then_with(|| one.cmp(other)));
        scores.into_iter().take(limit).map(|(_, place)| id(place)).collect()
    }

    /// The weight of each token of a text, once.
    fn embedding(&self, text: &str) -> Embedding<u64> {
        let mut embedding = self.embedder.embed(text);
        embedding.0.sort_unstable_by_key(|token| token.index);
        embedding.0.dedup_by_key(|token| token.index);
        embedding.0.shrink_to_fit();
        embedding
    }
}

/// Splits a text of any language into words, each with its beginning; scripts without spaces into signs.
#[derive(Default)]
struct Words;

impl Tokenizer for Words {
    fn tokenize(&self, text: &str) -> Vec<String> {
        let mut tokens = Vec::new();
        for word in text.to_lowercase().split(|sign: char| !sign.is_alphanumeric()).filter(|word| !word.is_empty()) {
            if word.chars().any(|sign| sign >= '\u{2e80}') {
                tokens.extend(word.chars().map(String::from));
            } else {
                let stem = word.char_indices().nth(STEM).and_then(|(end, _)| word.get(..end));
                tokens.extend(stem.map(str::to_owned));
                tokens.push(word.to_owned());
            }
        }
        tokens
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    /// An index of these texts, which are their own ids.
    fn index(texts: &[&str]) -> MemoryIndex {
        let mut index = MemoryIndex::default();
        for text in texts {
            index.insert(text, at(0), text, &[]);
        }
        index
    }

    #[test]
    fn words_are_found_in_any_form_and_script() {
        let all =
            ["The owner's birthday is in May", "Invoices go to accounts@example.com", "会議は月曜日です", "Über Öl"];
        let cases = [
            ("birthday", vec![0]),
            ("BIRTHDAYS", vec![0]),
            ("an invoice", vec![1]),
            ("accounts example", vec![1]),
            ("月曜", vec![2]),
            ("öl", vec![3]),
            ("zebra", vec![]),
            ("", vec![]),
            ("'; -- \u{0} * OR", vec![]),
        ];
        for (search, expected) in cases {
            let found = index(&all).find(Some(search), None, 10);
            let expected: Vec<&str> = expected.into_iter().map(|index: usize| all[index]).collect();
            assert_eq!(found.iter().map(|id| &**id).collect::<Vec<_>>(), expected, "{search}");
        }
        // More matching words are better, and equal matches are in the order of the list.
        let found = index(&["red 2", "blue", "red car", "red 1"]).find(Some("red car"), None, 10);
        assert_eq!(found.iter().map(|id| &**id).collect::<Vec<_>>(), ["red car", "red 1", "red 2"]);
    }

    /// A change: the number of the memory, whether it is removed, and its source.
    fn changes() -> impl Strategy<Value = Vec<(usize, bool, usize)>> {
        proptest::collection::vec((0..12_usize, any::<bool>(), 0..3_usize), 0..60)
    }

    proptest! {
        #[test]
        fn an_index_that_is_kept_up_to_date_answers_as_a_new_one(changes in changes()) {
            let words = ["red", "green", "blue", "invoice"];
            let text = |number: usize| format!("{} {} {number}", words[number % 4], words[number / 3]);
            let id = |number: usize| format!("mem_{number}");
            let mut kept = MemoryIndex::default();
            let mut memories: BTreeMap<usize, BTreeSet<String>> = BTreeMap::new();
            for (number, is_removed, source) in changes {
                // Several have the same time.
                let time = at(number as u64 / 4);
                if is_removed {
                    let sources = memories.remove(&number).unwrap_or_default();
                    kept.remove(&id(number), time, &sources.into_iter().collect::<Vec<_>>());
                } else {
                    let sources = memories.entry(number).or_default();
                    sources.insert(format!("{source}.example"));
                    kept.insert(&id(number), time, &text(number), &sources.iter().cloned().collect::<Vec<_>>());
                }
            }
            let mut new = MemoryIndex::default();
            for (number, sources) in &memories {
                let sources: Vec<String> = sources.iter().cloned().collect();
                new.insert(&id(*number), at(*number as u64 / 4), &text(*number), &sources);
            }
            prop_assert_eq!(kept.len(), memories.len());
            for search in [None, Some("red"), Some("green invoices"), Some("7")] {
                for source in [None, Some("0.example"), Some("1.example"), Some("9.example")] {
                    for limit in [2, 100] {
                        prop_assert_eq!(kept.find(search, source, limit), new.find(search, source, limit));
                    }
                }
            }
            let of = |source: &str| memories.values().filter(|sources| sources.contains(source)).count();
            prop_assert_eq!(kept.find(None, Some("1.example"), 100).len(), of("1.example"));
        }
    }
}
