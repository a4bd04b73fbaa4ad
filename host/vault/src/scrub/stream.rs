//! Scrubs a stream piece by piece: a secret that is split over pieces is found too.
//!
//! It survives a server that sends the beginning of a secret byte by byte to have it compared again and again. It
//! counts how often the beginning of a secret was held back and did not become one: an observer who sees that bytes are
//! held back learns that a guess is right.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use zeroize::{Zeroize as _, Zeroizing};

use super::escape::TextEnd;
use super::index::NextMatch;
use super::placeholder::MAX_BYTES;
use super::{Replaced, Scrubber};

/// Shorter beginnings of a secret occur in any text.
const MIN_GUESS: usize = 4;
/// Together with the bytes of an uncounted beginning, fewer than the shortest secret has.
const MAX_FALSE_STARTS: usize = 4;

/// How often streams held back four or more bytes of a form of a secret that have not become one.
#[derive(Debug, Default)]
pub struct FalseStarts(AtomicUsize);

impl FalseStarts {
    /// Whether there were too many to let held bytes stay observable: from then on a stream is released only as a
    /// whole.
    #[must_use]
    pub fn are_too_many(&self) -> bool {
        self.0.load(Ordering::Relaxed) >= MAX_FALSE_STARTS
    }
}

/// Scrubs a stream piece by piece.
pub struct ScrubStream {
    scrubber: Arc<Scrubber>,
    /// The bytes that may be the beginning of a secret, after a few finished ones: a placeholder may begin there.
    held: Zeroizing<Vec<u8>>,
    /// Number of held bytes that were searched.
    from: usize,
    /// Number of held bytes released or replaced; more than `from` if the end of a secret may be the beginning of
    /// another.
    done: usize,
    /// Index of the secret that was replaced last.
    owner: Option<usize>,
    /// The size at which the held bytes are searched again: otherwise a server could have a long beginning of a secret
    /// compared once for each byte it sends.
    pub(super) again_at: usize,
    false_starts: Arc<FalseStarts>,
    /// Whether the held bytes count as a false start. They do from the beginning: the sender of a guess may stop there.
    is_counted: bool,
}

impl ScrubStream {
    /// Starts a stream whose false starts count with those of others.
    #[must_use]
    pub fn new(scrubber: Arc<Scrubber>, false_starts: Arc<FalseStarts>) -> Self {
        let held = Zeroizing::default();
        Self { scrubber, held, from: 0, done: 0, owner: None, again_at: 0, false_starts, is_counted: false }
    }

    /// Adds a piece and returns the bytes that can no longer be the beginning of a secret.
    pub fn push(&mut self, piece: &[u8]) -> Vec<u8> {
        if self.scrubber.is_empty() {
            return piece.to_vec();
        }
        self.held.extend_from_slice(piece);
        if self.held.len() < self.again_at { Vec::new() } else { self.released(TextEnd::More) }
    }

    /// Ends the stream and returns its remaining bytes.
    #[must_use]
    pub fn finish(mut self) -> Vec<u8> {
        self.released(TextEnd::Final)
    }

    fn released(&mut self, end: TextEnd) -> Vec<u8> {
        let scrubber = self.scrubber.clone();
        let mut written = Replaced { bytes: Vec::with_capacity(self.held.len()), done: self.done, owner: self.owner };
        let (held_from, mut guess) = (self.from, 0);
        let mut is_secret = false;
        let mut matches = scrubber.matches(&self.held, self.from, end);
        let from = loop {
            match matches.next() {
                NextMatch::Found(owner, range) => {
                    is_secret |= range.start == held_from;
                    written.put(&scrubber, &self.held, owner, &range);
                }
                NextMatch::Wait { from, matched } => {
                    guess = matched;
                    break from;
                }
                NextMatch::Nothing => break self.held.len(),
            }
        };
        written.copy_to(&self.held, from);
        self.count(from == held_from, is_secret, guess >= MIN_GUESS);
        // Finished bytes, except those in which a placeholder may have begun.
        let gone = from.saturating_sub(MAX_BYTES);
        self.held.copy_within(gone.., 0);
        let kept = self.held.len() - gone;
        if let Some(stale) = self.held.get_mut(kept..) {
            stale.zeroize();
        }
        self.held.truncate(kept);
        (self.from, self.done, self.owner) = (from - gone, written.done - gone, written.owner);
        self.again_at = kept + (kept - self.from) / 8;
        written.bytes
    }

    /// Updates the count: `is_same` if the held bytes begin where they did, `was_secret` if the earlier ones became a
    /// secret.
    fn count(&mut self, is_same: bool, was_secret: bool, is_guess: bool) {
        if self.is_counted && was_secret {
            self.false_starts.0.fetch_sub(1, Ordering::Relaxed);
        }
        if is_guess && !(is_same && self.is_counted) {
            self.false_starts.0.fetch_add(1, Ordering::Relaxed);
        }
        self.is_counted = is_guess || is_same && self.is_counted;
    }
}

impl std::fmt::Debug for ScrubStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ScrubStream").field("held_bytes", &(self.held.len() - self.from)).finish_non_exhaustive()
    }
}
