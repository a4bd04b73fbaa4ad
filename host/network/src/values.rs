//! The values a run has been given, and where each value of an outgoing request came from (SPEC APPR-1, TAINT-1).
//!
//! A card that asks for consent marks every field of a request: it stands in the user's words, it was first seen in a
//! response, or it is the model's own. The same memory counts how many bytes a read carries beyond the values that the run was given.
//! Only keyed hashes of responses are kept, never their text. Nothing here knows tools, models or how consent is asked.
//!
//! The attacker writes responses and, through an obedient model, requests. Every bound therefore fails closed: a value that
//! is not remembered counts as the model's own and as carried.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use base::{ContentHasher, Random};
use http::HeaderMap;
use parking_lot::Mutex;
use percent_encoding::percent_decode_str;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64_with_seed;

mod body;
mod carried;
mod collect;
mod json;
mod show;
#[cfg(test)]
mod tests;
mod words;

pub(crate) use collect::Collector;

pub(crate) use body::essence;
use body::{Leaf, Leaves};

/// Bytes of the user's words that are kept; words beyond it are not known as the user's.
const MAX_USER_BYTES: usize = 256 << 10;
/// Values remembered for their origin, and as many again for the hosts that gave them.
const MAX_VALUES: usize = 100_000;
/// Places that values are remembered from. A value from a later place has no source.
const MAX_SOURCES: usize = 16_384;
/// Bytes by which a value may be longer than its normal form and still be the user's: white space and zeros carry data.
const MAX_PADDING: usize = 16;
/// Name of the key in a map of shown values. A random key keeps attackers from preparing two values with one hash.
const SALT: &str = "@salt";

/// A field of a request, as the owner sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Field {
    /// Dotted name, at most 120 characters: `items[0].amount`, `?limit` for a query parameter, `to#2` for the second of
    /// two fields with one name, `destination:` for a header, `body` for a body without fields, `…` for the fields that are
    /// not listed.
    pub name: String,
    /// The value, at most 200 characters, with control and invisible characters replaced.
    pub value: String,
    /// Where the value came from.
    pub origin: Origin,
}

/// Where a value of a request came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "from", rename_all = "snake_case")]
pub enum Origin {
    /// It stands in the user's words.
    User,
    /// It, or a telling part of it, was first seen in a response.
    Response {
        /// Host, path and place of the response: `127.0.0.1:1234/inbox messages[2]`.
        source: String,
    },
    /// Neither: the model's own.
    Model,
}

/// The parts of a request that carry values, before placeholders are filled in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sent<'a> {
    /// The authority, as the gate writes it.
    pub(crate) host: &'a str,
    /// Path and query of the request.
    pub(crate) path_and_query: &'a str,
    /// The guest's headers without the neutral ones.
    pub(crate) headers: &'a HeaderMap,
    /// The body of the request.
    pub(crate) body: &'a [u8],
    /// The content type of the body.
    pub(crate) content_type: Option<&'a str>,
    /// The fixed part of a granted wildcard (`example.com`): the labels before it are the guest's choice.
    pub(crate) wide_pattern_suffix: Option<&'a str>,
}

/// Bytes that a request without a body carries beyond the user's words and the values its own host gave.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct CarriedBytes {
    /// Bytes that count for the request alone.
    pub(crate) request: u64,
    /// Bytes that count for the run: a choice of the host's words is free once, and tells something in a series.
    pub(crate) run: u64,
}

/// The values a run has been given, by source. Bounded; the oldest are kept. Cheap to clone; clones share.
#[derive(Clone)]
pub struct GivenValues(Arc<Mutex<Memory>>);

struct Memory {
    seed: u64,
    salt: u64,
    /// The user's words in normal form, one text per line.
    words: String,
    /// The texts those came from.
    told: HashSet<u64>,
    /// Tokens and links of the user's words, and the words of every API.
    user: HashSet<u64>,
    sources: Vec<Box<str>>,
    /// The first source of a value or token.
    origins: HashMap<u64, u32>,
    /// Tokens and links, mixed with the host that gave them.
    by_host: HashSet<u64>,
}

impl Default for GivenValues {
    fn default() -> Self {
        let random = Random::from_system();
        let (seed, salt) = (random.next_u64(), random.next_u64());
        Self(Arc::new(Mutex::new(Memory {
            seed,
            salt,
            words: String::new(),
            told: HashSet::new(),
            user: carried::COMMON.split(' ').map(|word| words::key(seed, word)).collect(),
            sources: Vec::new(),
            origins: HashMap::new(),
            by_host: HashSet::new(),
        })))
    }
}

impl std::fmt::Debug for GivenValues {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Given")
    }
}

impl GivenValues {
    /// Remembers words of the user: the task, an answer, guidance. At most 256 KiB in all; words that are told again take no
    /// room.
    pub fn user(&self, text: &str) {
        let mut memory = self.0.lock();
        let told = words::spelling(memory.seed, text);
        if !memory.told.insert(told) {
            return;
        }
        memory.add_words(text);
        let decoded = percent_decode_str(text).decode_utf8_lossy();
        if decoded != text {
            memory.add_words(&decoded);
        }
    }

    /// Begins to remember the values of a response. `path` may have a query, which is not shown.
    pub(crate) fn response(&self, host: &str, path: &str) -> Collector {
        let mut memory = self.0.lock();
        let host_key = memory.host_key(host);
        memory.remember_for_host(host_key);
        drop(memory);
        Collector::new(self.clone(), host_key, &format!("{host}{}", path.split('?').next().unwrap_or_default()))
    }

    /// The fields of a request, those to look at first in front, each with its origin. At most 64, then one that stands
    /// for the others. Secrets are not scrubbed here.
    pub(crate) fn fields(&self, sent: &Sent<'_>) -> Vec<Field> {
        let memory = self.0.lock();
        let mut leaves = Leaves::of(sent, memory.salt);
        leaves.add_headers(sent.headers);
        show::fields(leaves, |leaf| memory.origin(leaf))
    }

    /// The hash of every value of a request by the name of its field, for [`GivenValues::covers`].
    pub(crate) fn shown(&self, sent: &Sent<'_>) -> BTreeMap<String, u64> {
        let salt = self.0.lock().salt;
        let leaves = Leaves::of(sent, salt);
        let special = leaves.special(sent);
        let hashes = leaves.kept.iter().map(|leaf| (leaf.name.clone(), leaf.hash(salt)));
        hashes.chain(special.into_iter().map(|(name, hash)| (name.to_owned(), hash))).collect()
    }

    /// Whether a request has the fields of one that was shown, each with the shown value or one from the user's words.
    /// Headers, and a body that fields do not represent, are equal to the shown ones.
    pub(crate) fn covers(&self, allowed: &BTreeMap<String, u64>, sent: &Sent<'_>) -> bool {
        let Some(&salt) = allowed.get(SALT) else { return false };
        let memory = self.0.lock();
        let leaves = Leaves::of(sent, salt);
        let special = leaves.special(sent);
        leaves.kept.len() + special.len() == allowed.len()
            && special.iter().all(|(name, hash)| allowed.get(*name) == Some(hash))
            && leaves.kept.iter().all(|leaf| {
                // A filter that is emptied takes everything: an empty value is never the user's word for another.
                let is_users = || leaf.bytes() > 0 && leaf.text() != Some("") && memory.is_users(leaf);
                allowed.get(&leaf.name).is_some_and(|hash| *hash == leaf.hash(salt) || is_users())
            })
    }

    /// Bytes that a request without a body carries beyond the user's words and the values its own host gave: in path and
    /// query, headers, and the labels of the host that a wildcard leaves open.
    pub(crate) fn carried(&self, sent: &Sent<'_>) -> CarriedBytes {
        self.0.lock().carried(sent)
    }
}

impl Memory {
    fn add_words(&mut self, text: &str) {
        let room = MAX_USER_BYTES.saturating_sub(self.words.len());
        let kept = if text.len() <= room {
            text
        } else {
            // A word that is cut is another word.
            let cut = text.get(..text.floor_char_boundary(room)).unwrap_or_default();
            cut.rsplit_once(char::is_whitespace).map_or("", |(whole, _)| whole)
        };
        if kept.is_empty() {
            return;
        }
        self.words.push('\n');
        self.words.push_str(&words::normal(kept));
        let (seed, user) = (self.seed, &mut self.user);
        words::keys(seed, kept, &mut |_, key| {
            user.insert(key);
        });
    }

    /// Remembers a text of a response: its tokens, and with `whole` the text as one value.
    fn remember(&mut self, host: u64, source: Option<u32>, text: &str, whole: bool) {
        let (seed, origins, by_host) = (self.seed, &mut self.origins, &mut self.by_host);
        let mut add_origin = |key| {
            if let Some(source) = source
                && origins.len() < MAX_VALUES
            {
                origins.entry(key).or_insert(source);
            }
        };
        if whole {
            add_origin(words::key(seed, &words::normal(text)));
        }
        words::keys(seed, text, &mut |kind, key| {
            if kind == words::WordKind::Token {
                add_origin(key);
            }
            if by_host.len() < MAX_VALUES {
                by_host.insert(key ^ host);
            }
        });
    }

    fn remember_for_host(&mut self, key: u64) {
        if self.by_host.len() < MAX_VALUES {
            self.by_host.insert(key);
        }
    }

    fn add_source(&mut self, source: &str) -> Option<u32> {
        let source = base::text::Foreign(source).visible(show::MAX_NAME_CHARS);
        if self.sources.last().is_none_or(|last| **last != *source) {
            if self.sources.len() >= MAX_SOURCES {
                return None;
            }
            self.sources.push(source.into());
        }
        u32::try_from(self.sources.len() - 1).ok()
    }

    fn host_key(&self, host: &str) -> u64 {
        xxh3_64_with_seed(host.as_bytes(), !self.seed)
    }

    /// Whether a value stands wholly in the user's words. Numbers compare by value.
    fn is_users(&self, leaf: &Leaf<'_>) -> bool {
        let Some(text) = leaf.text() else { return false };
        if text.is_empty() {
            return true;
        }
        if text.len() > self.words.len() + MAX_PADDING {
            return false;
        }
        let normal = words::normal(text);
        match words::number(&normal) {
            Some(number) => {
                text.len() <= number.len() + MAX_PADDING && self.user.contains(&words::key(self.seed, &number))
            }
            None => {
                !normal.is_empty() && text.len() <= normal.len() + MAX_PADDING && words::stands_in(&self.words, &normal)
            }
        }
    }

    fn origin(&self, leaf: &Leaf<'_>) -> Origin {
        if self.is_users(leaf) {
            return Origin::User;
        }
        let Some(text) = leaf.text() else { return Origin::Model };
        let mut source = self.origins.get(&words::key(self.seed, &words::normal(text))).copied();
        let (mut weak, mut all_known) = (None, true);
        words::tokens(text, |token, folded| {
            let key = words::key(self.seed, folded);
            if source.is_some() || self.user.contains(&key) {
                return;
            }
            match self.origins.get(&key) {
                Some(&found) if words::is_strong(token) => source = Some(found),
                Some(&found) => weak = weak.or(Some(found)),
                None => all_known = false,
            }
        });
        let source = source.or(weak.filter(|_| all_known));
        source
            .and_then(|index| self.sources.get(index as usize))
            .map_or(Origin::Model, |source| Origin::Response { source: source.to_string() })
    }
}

/// The first 64 bits of SHA-256 over parts that cannot run into each other.
fn digest(salt: u64, parts: &[&[u8]]) -> u64 {
    let mut hasher = ContentHasher::default();
    hasher.update(&salt.to_le_bytes());
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    hasher.finish().as_bytes().first_chunk().copied().map_or(0, u64::from_le_bytes)
}
