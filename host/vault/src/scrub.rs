//! Finds secrets in what flows back, in every common encoding, and puts their placeholders there instead.
//!
//! Knows no vault and no network. It survives a server that sends a secret back encoded, split at any byte, or both, and
//! one that sends what nearly is a secret, piece by piece, to have it compared again and again.
//! What it cannot find: a secret that was encrypted, compressed, cut into parts or encoded in a way of somebody's own.

mod escape;
mod index;
#[cfg(test)]
mod tests;
mod variants;

use std::sync::Arc;

use base::{CredentialName, Secret};
use serde_json::Value;
use zeroize::{Zeroize as _, Zeroizing};

use index::{End, Index, Next};

/// Knows secrets by name. Cheap to share; made anew when a secret changes.
#[derive(Default)]
pub struct Scrubber {
    index: Index,
    placeholders: Vec<String>,
}

/// Scrubs a stream piece by piece: a secret that is split over two pieces is found too.
pub struct ScrubStream {
    scrubber: Arc<Scrubber>,
    /// What may be the beginning of a secret.
    held: Zeroizing<Vec<u8>>,
    /// What is held is looked at again when it has grown to so many bytes: otherwise a server could have a long beginning of
    /// a secret compared once for each byte it sends.
    again_at: usize,
}

impl Scrubber {
    /// Knows these secrets. Those under eight bytes are not looked for: they would be found everywhere.
    #[must_use]
    pub fn new(secrets: Vec<(CredentialName, Secret<String>)>) -> Self {
        // Servers cut white space off the ends of what they are sent, and send the rest back.
        let trimmed = secrets.iter().enumerate().map(|(owner, (_, secret))| (owner, secret.expose().trim()));
        let forms = trimmed
            .filter(|(_, secret)| secret.len() >= index::KEY_BYTES)
            .flat_map(|(owner, secret)| variants::of(secret).into_iter().map(move |form| (form, owner)));
        Self { index: Index::new(forms), placeholders: secrets.iter().map(|(name, _)| name.placeholder()).collect() }
    }

    /// Whether there is nothing to look for.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// The text with every secret replaced.
    #[must_use]
    pub fn text(&self, text: String) -> String {
        match self.replaced(text.as_bytes()) {
            None => text,
            Some(replaced) => {
                Zeroizing::new(text).zeroize();
                // A secret may have been cut out of the middle of a character that it did not begin in.
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

    /// The value with every secret replaced, in texts, names of fields, and numbers (which become texts).
    #[must_use]
    pub fn json(&self, value: Value) -> Value {
        if self.is_empty() {
            return value;
        }
        match value {
            Value::String(text) => Value::String(self.text(text)),
            Value::Array(items) => Value::Array(items.into_iter().map(|item| self.json(item)).collect()),
            Value::Object(fields) => {
                Value::Object(fields.into_iter().map(|(name, value)| (self.text(name), self.json(value))).collect())
            }
            Value::Number(number) => match self.replaced(number.to_string().as_bytes()) {
                Some(replaced) => Value::String(String::from_utf8_lossy(&replaced).into_owned()),
                None => Value::Number(number),
            },
            other @ (Value::Null | Value::Bool(_)) => other,
        }
    }

    /// Starts on a stream.
    #[must_use]
    pub fn stream(self: &Arc<Self>) -> ScrubStream {
        ScrubStream { scrubber: self.clone(), held: Zeroizing::default(), again_at: 0 }
    }

    /// None when there is nothing to replace.
    fn replaced(&self, text: &[u8]) -> Option<Vec<u8>> {
        let mut replaced = Vec::new();
        let mut done = 0;
        while let Next::Found(owner, range) = self.index.next(text, done, End::Final) {
            replaced.extend_from_slice(text.get(done..range.start).unwrap_or_default());
            replaced.extend_from_slice(self.placeholder(owner));
            done = range.end;
        }
        if done == 0 {
            return None;
        }
        replaced.extend_from_slice(text.get(done..).unwrap_or_default());
        Some(replaced)
    }

    fn placeholder(&self, owner: usize) -> &[u8] {
        self.placeholders.get(owner).map_or(b"<credential>", String::as_bytes)
    }
}

impl ScrubStream {
    /// Takes in a piece and gives back what can no longer be the beginning of a secret.
    pub fn push(&mut self, piece: &[u8]) -> Vec<u8> {
        if self.scrubber.is_empty() {
            return piece.to_vec();
        }
        self.held.extend_from_slice(piece);
        if self.held.len() < self.again_at { Vec::new() } else { self.released(End::More) }
    }

    /// Gives back the rest.
    #[must_use]
    pub fn finish(mut self) -> Vec<u8> {
        self.released(End::Final)
    }

    fn released(&mut self, end: End) -> Vec<u8> {
        let mut released = Vec::with_capacity(self.held.len());
        let mut done = 0;
        let kept_from = loop {
            match self.scrubber.index.next(&self.held, done, end) {
                Next::Found(owner, range) => {
                    released.extend_from_slice(self.held.get(done..range.start).unwrap_or_default());
                    released.extend_from_slice(self.scrubber.placeholder(owner));
                    done = range.end;
                }
                Next::Wait(from) => break from,
                Next::Nothing => break self.held.len(),
            }
        };
        released.extend_from_slice(self.held.get(done..kept_from).unwrap_or_default());
        self.held.copy_within(kept_from.., 0);
        let kept = self.held.len() - kept_from;
        if let Some(stale) = self.held.get_mut(kept..) {
            stale.zeroize();
        }
        self.held.truncate(kept);
        self.again_at = kept + kept / 8;
        released
    }
}

impl std::fmt::Debug for Scrubber {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scrubber").field("forms", &self.index.len()).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for ScrubStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ScrubStream").field("held_bytes", &self.held.len()).finish_non_exhaustive()
    }
}
