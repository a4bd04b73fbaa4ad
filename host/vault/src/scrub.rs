//! Finds secrets in incoming and outgoing data, in every encoding that has a name, and replaces them with their
//! placeholders.
//!
//! Knows no vault and no network. It survives a server that sends a secret back encoded, split at any byte, or both,
//! and one that sends near matches of a secret, piece by piece, to have it compared again and again.
//! `docs/credentials.md` lists the encodings. It cannot find a secret that was encrypted, compressed, cut into parts or
//! encoded in another way.

mod bits;
mod escape;
mod index;
mod placeholder;
mod references;
mod stream;
#[cfg(test)]
mod tests;
mod variants;

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use base::{ContentHash, CredentialName, Secret};
use serde_json::Value;
use zeroize::{Zeroize as _, Zeroizing};

use escape::TextEnd;
use index::{Finder, Index, NextMatch};
use placeholder::Within;

pub use stream::{FalseStarts, ScrubStream};

#[cfg(test)]
mod table;

/// Knows secrets by name. Cheap to share; rebuilt when a secret changes.
#[derive(Default)]
pub struct Scrubber {
    index: Index,
    known: Vec<KnownSecret>,
    secrets: Vec<(CredentialName, Secret<String>)>,
    /// The same with a secret more: it takes the place of this one for all of its users.
    next: OnceLock<Box<Scrubber>>,
}

/// A secret that the scrubber knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownSecret {
    /// Name of the credential it belongs to.
    pub name: CredentialName,
    /// The hash of its value ([`KnownSecret::hash_of`]): several credentials may have the same value.
    pub value: ContentHash,
    placeholder: String,
}

impl KnownSecret {
    /// The hash of a value without white space at its ends.
    #[must_use]
    pub fn hash_of(value: &Secret<String>) -> ContentHash {
        ContentHash::of(value.expose().trim().as_bytes())
    }
}

impl Scrubber {
    /// Builds a scrubber for these secrets. Those under eight bytes are ignored: they would be found everywhere.
    #[must_use]
    pub fn new(secrets: Vec<(CredentialName, Secret<String>)>) -> Self {
        // Servers cut white space off the ends of a value and send the rest back.
        let trimmed = secrets.iter().enumerate().map(|(owner, (_, secret))| (owner, secret.expose().trim()));
        let forms = trimmed
            .filter(|(_, secret)| secret.len() >= index::KEY_BYTES)
            .flat_map(|(owner, secret)| variants::of(secret).into_iter().map(move |form| (form, owner)));
        let index = Index::new(forms);
        let known = secrets.iter().map(|(name, value)| KnownSecret {
            placeholder: name.placeholder(),
            value: KnownSecret::hash_of(value),
            name: name.clone(),
        });
        Self { index, known: known.collect(), secrets, next: OnceLock::new() }
    }

    /// Adds a secret for all users of this scrubber, also for streams that are being read. A secret that is known under
    /// this name already is not added again.
    pub fn learn(&self, name: &CredentialName, value: &Secret<String>) {
        let hash = KnownSecret::hash_of(value);
        loop {
            let latest = self.latest();
            if latest.known.iter().any(|known| known.name == *name && known.value == hash) {
                return;
            }
            let mut secrets = latest.secrets.clone();
            // At the end: a stream remembers a secret by its place.
            secrets.push((name.clone(), value.clone()));
            if latest.next.set(Box::new(Self::new(secrets))).is_ok() {
                return;
            }
        }
    }

    fn latest(&self) -> &Self {
        let mut latest = self;
        while let Some(next) = latest.next.get() {
            latest = next;
        }
        latest
    }

    /// Whether there are no secrets to find.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.latest().index.is_empty()
    }

    /// The secrets in a text, each once, except those within another secret or in the placeholder of another.
    #[must_use]
    pub fn secrets_in(&self, text: &[u8]) -> Vec<&KnownSecret> {
        let latest = self.latest();
        let (mut matches, mut found, mut done) = (latest.matches(text, 0, TextEnd::Final), Vec::new(), 0);
        while let NextMatch::Found(owner, range) = matches.next() {
            if range.end > done {
                found.extend(latest.known.get(owner).filter(|secret| !found.contains(secret)));
                done = range.end;
            }
        }
        found
    }

    /// The text with every secret replaced.
    #[must_use]
    pub fn text(&self, text: String) -> String {
        match self.replaced(text.as_bytes()) {
            None => text,
            Some(replaced) => {
                Zeroizing::new(text).zeroize();
                // A secret may have been cut out in the middle of a character.
                String::from_utf8(replaced)
                    .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
            }
        }
    }

    /// The bytes with every secret replaced.
    #[must_use]
    pub fn bytes(&self, bytes: Vec<u8>) -> Vec<u8> {
        match self.replaced(&bytes) {
            None => bytes,
            Some(replaced) => {
                Zeroizing::new(bytes).zeroize();
                replaced
            }
        }
    }

    /// The value with every secret replaced, in texts, names of fields, numbers (which become texts), and structures
    /// that are a secret only as a whole, such as a list of numbers.
    #[must_use]
    pub fn json(&self, value: Value) -> Value {
        if self.is_empty() { value } else { self.whole(self.fields(value)) }
    }

    /// Converts the smallest parts of the value that are a secret only as a whole to texts.
    fn whole(&self, value: Value) -> Value {
        let is_clean = |value: &Value| self.secrets_in(value.to_string().as_bytes()).is_empty();
        if is_clean(&value) {
            return value;
        }
        let value = match value {
            Value::Array(items) => Value::Array(items.into_iter().map(|item| self.whole(item)).collect()),
            Value::Object(fields) => {
                Value::Object(fields.into_iter().map(|(name, value)| (name, self.whole(value))).collect())
            }
            other => other,
        };
        if is_clean(&value) {
            return value;
        }
        let text = self.text(value.to_string());
        serde_json::from_str(&text).unwrap_or(Value::String(text))
    }

    fn fields(&self, value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(text)),
            Value::Array(items) => Value::Array(items.into_iter().map(|item| self.fields(item)).collect()),
            Value::Object(fields) => {
                Value::Object(fields.into_iter().map(|(name, value)| (self.text(name), self.fields(value))).collect())
            }
            Value::Number(number) => match self.replaced(number.to_string().as_bytes()) {
                Some(replaced) => Value::String(String::from_utf8_lossy(&replaced).into_owned()),
                None => Value::Number(number),
            },
            other @ (Value::Null | Value::Bool(_)) => other,
        }
    }

    /// A scrubber for one stream, with false starts of its own.
    #[must_use]
    pub fn stream(self: &Arc<Self>) -> ScrubStream {
        ScrubStream::new(self.clone(), Arc::default())
    }

    /// Returns `None` if there is nothing to replace.
    fn replaced(&self, text: &[u8]) -> Option<Vec<u8>> {
        let mut matches = self.matches(text, 0, TextEnd::Final);
        let mut written = Replaced::default();
        while let NextMatch::Found(owner, range) = matches.next() {
            written.put(self, text, owner, &range);
        }
        written.owner?;
        written.copy_to(text, text.len());
        Some(written.bytes)
    }

    fn matches<'a>(&'a self, text: &'a [u8], from: usize, end: TextEnd) -> Matches<'a> {
        let Self { index, known, .. } = self.latest();
        Matches { finder: index.finder(text, from, end), known, text, end }
    }

    fn placeholder(&self, owner: usize) -> &[u8] {
        self.latest().known.get(owner).map_or(b"<credential>", |secret| secret.placeholder.as_bytes())
    }
}

/// The secrets of a text, without those that are part of the name in a placeholder.
struct Matches<'a> {
    finder: Finder<'a>,
    known: &'a [KnownSecret],
    text: &'a [u8],
    end: TextEnd,
}

impl Matches<'_> {
    fn next(&mut self) -> NextMatch {
        loop {
            let next = self.finder.next();
            let NextMatch::Found(_, range) = &next else { return next };
            match placeholder::around(self.text, range, self.end, self.known) {
                Within::No => return next,
                Within::Yes => {}
                // A whole secret matched here, so waiting reveals nothing about a part.
                Within::Unknown => return NextMatch::Wait { from: range.start, matched: 0 },
            }
        }
    }
}

/// A text with placeholders for secrets, written so far.
#[derive(Default)]
struct Replaced {
    bytes: Vec<u8>,
    /// Bytes of the text already written or replaced.
    done: usize,
    /// Index of the secret of the last placeholder.
    owner: Option<usize>,
}

impl Replaced {
    fn copy_to(&mut self, text: &[u8], end: usize) {
        self.bytes.extend_from_slice(text.get(self.done..end).unwrap_or_default());
        self.done = self.done.max(end);
    }

    /// Replaces the secret at `range`. Secrets that overlap are replaced together, and each is named.
    fn put(&mut self, scrubber: &Scrubber, text: &[u8], owner: usize, range: &Range<usize>) {
        if range.end <= self.done {
            return;
        }
        if range.start >= self.done || self.owner != Some(owner) {
            self.copy_to(text, range.start);
            self.bytes.extend_from_slice(scrubber.placeholder(owner));
        }
        (self.done, self.owner) = (range.end, Some(owner));
    }
}

impl std::fmt::Debug for Scrubber {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scrubber").field("forms", &self.latest().index.len()).finish_non_exhaustive()
    }
}
