//! Finds the forms of secrets in bytes: a filter over the first eight bytes of each, then a comparison.
//!
//! By hand, because a library's automaton keeps its patterns in memory that nobody wipes. Texts are compared by case-folded
//! bytes, with line breaks left out and escapes read, so a mixture of encodings is found too. What begins at a place
//! depends on nothing before it, which is why a stream in pieces gives what the whole would.

use std::ops::Range;

use zeroize::Zeroizing;

use super::escape::{Token, is_special, token};
use super::variants::Form;

/// The filter looks at so many bytes; shorter forms cannot be found.
pub(super) const KEY_BYTES: usize = 8;
/// Where there are escapes, so many bytes are read before the others.
const START_BYTES: usize = 3;
/// Those bytes, in a mask with one bit for each byte of a key.
const ESCAPED_START: u8 = 0b1110_0000;
/// 65,536 bits, for some three thousand forms.
const START_SHIFT: u32 = 64 - 16;
/// Line breaks left out between two bytes of a secret, unless it has more itself: `\r\n`, and a blank line.
const LEAST_BREAKS: usize = 4;
/// Bits of the filter for each form: about one place in sixty-four is looked at twice.
const FILTER_BITS_EACH: usize = 64;
const LEAST_FILTER_BITS: usize = 1 << 12;
const MOST_FILTER_BITS: usize = 1 << 24;

/// The folded byte; above it, whether it is special.
static FOLD: [u16; 256] = {
    let mut table = [0; 256];
    let mut byte: u8 = 0;
    loop {
        let folded = match byte {
            // One alphabet of base64 for both, and a space as forms write it.
            b'-' | b' ' => b'+',
            b'_' => b'/',
            _ => byte.to_ascii_lowercase(),
        };
        // A constant index cannot be out of bounds where it compiles.
        #[expect(clippy::indexing_slicing, reason = "evaluated at compile time")]
        {
            table[byte as usize] = folded as u16 | if is_special(byte) { 0x100 } else { 0 };
        }
        if byte == u8::MAX {
            break table;
        }
        byte += 1;
    }
};

/// Whether more text may follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    More,
    Final,
}

/// What comes next in a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// A secret, whose it is, and where.
    Found(usize, Range<usize>),
    /// From here on it depends on what follows.
    Wait(usize),
    /// No more.
    Nothing,
}

/// Forms, each with the number of the secret it is of.
#[derive(Default)]
pub(super) struct Index {
    /// The forms, one after another, folded and without line breaks.
    arena: Zeroizing<Vec<u8>>,
    patterns: Vec<Pattern>,
    /// The first bytes of each pattern, ascending, the first byte most significant.
    keys: Zeroizing<Vec<u64>>,
    filter: Zeroizing<Vec<u64>>,
    /// A smaller filter, over the first bytes, for places where reading them is costly.
    starts: Zeroizing<Vec<u64>>,
    shift: u32,
    most_breaks: usize,
}

struct Pattern {
    range: Range<usize>,
    owner: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    No,
    Wait,
    /// So many bytes of the text.
    Match(usize),
}

enum Key {
    Full(u64),
    /// The text ends too early: these bytes, so many.
    Cut(u64, usize),
    None,
}

impl Index {
    pub(super) fn new(forms: impl Iterator<Item = (Form, usize)>) -> Self {
        let mut most_breaks = LEAST_BREAKS;
        let mut forms: Vec<(u64, Form, usize)> = forms
            .filter_map(|(form, owner)| {
                let longest = form.split(|byte| !is_break(*byte)).map(<[u8]>::len).max().unwrap_or_default();
                most_breaks = most_breaks.max(longest);
                let form: Form = Zeroizing::new(form.iter().filter(|b| !is_break(**b)).map(|b| fold(*b)).collect());
                Some((u64::from_be_bytes(*form.first_chunk::<KEY_BYTES>()?), form, owner))
            })
            .collect();
        forms.sort_by(|a, b| (a.0, &*a.1, a.2).cmp(&(b.0, &*b.1, b.2)));
        forms.dedup_by(|a, b| *a.1 == *b.1);

        let bits = (forms.len() * FILTER_BITS_EACH).next_power_of_two().clamp(LEAST_FILTER_BITS, MOST_FILTER_BITS);
        let mut index = Self {
            arena: Zeroizing::new(Vec::with_capacity(forms.iter().map(|(_, form, _)| form.len()).sum())),
            patterns: Vec::with_capacity(forms.len()),
            keys: Zeroizing::new(Vec::with_capacity(forms.len())),
            filter: Zeroizing::new(vec![0; bits / 64]),
            starts: Zeroizing::new(vec![0; (1 << (64 - START_SHIFT)) / 64]),
            shift: 64 - bits.trailing_zeros(),
            most_breaks,
        };
        for (key, form, owner) in &forms {
            let start = index.arena.len();
            index.arena.extend_from_slice(form);
            index.patterns.push(Pattern { range: start..index.arena.len(), owner: *owner });
            index.keys.push(*key);
            set(&mut index.filter, slot(*key, index.shift));
            set(&mut index.starts, slot(key >> (8 * (KEY_BYTES - START_BYTES)), START_SHIFT));
        }
        index
    }

    pub(super) fn is_empty(&self) -> bool {
        self.patterns.is_empty()
    }

    /// The number of forms.
    pub(super) fn len(&self) -> usize {
        self.patterns.len()
    }

    /// The first secret in `text` that begins at `from` or later; of several that begin there, the longest.
    pub(super) fn next(&self, text: &[u8], from: usize, end: End) -> Next {
        if self.is_empty() {
            return Next::Nothing;
        }
        let mut from = from;
        while let Some(suspects) = self.suspects(text, from) {
            from = suspects.end;
            for start in suspects {
                let Some(rest) = text.get(start..) else { break };
                match self.at(rest, end) {
                    (Verdict::No, _) => {}
                    (Verdict::Wait, _) => return Next::Wait(start),
                    (Verdict::Match(len), owner) => return Next::Found(owner, start..start + len),
                }
            }
        }
        Next::Nothing
    }

    /// The next places from `from` on that have to be looked at one by one.
    fn suspects(&self, text: &[u8], from: usize) -> Option<Range<usize>> {
        let rest = text.get(from..)?;
        let mut window: u64 = 0;
        // Which bytes of the window may begin an escape, the first of them topmost: without one, both readings are the same.
        let mut escapes: u8 = 0;
        let mut filled = 0_usize;
        let mut first_unbroken = 0;
        for (offset, byte) in rest.iter().enumerate() {
            let entry = FOLD.get(usize::from(*byte)).copied().unwrap_or_default();
            if entry > 0xff && is_break(*byte) {
                first_unbroken = offset + 1;
                continue;
            }
            window = (window << 8) | u64::from(entry & 0xff);
            escapes = (escapes << 1) | u8::from(entry > 0xff);
            filled += 1;
            if filled < KEY_BYTES {
                continue;
            }
            let may_begin = self.may_begin_with(window);
            if !may_begin && (escapes == 0 || escapes & ESCAPED_START == 0 && !self.may_start_with(window)) {
                continue;
            }
            let start = match (offset + 1).checked_sub(KEY_BYTES) {
                Some(start) if start >= first_unbroken => start,
                _ => back(rest, offset + 1, KEY_BYTES),
            };
            if may_begin || self.may_begin_escaped(rest.get(start..).unwrap_or_default()) {
                return Some(from + start..from + start + 1);
            }
        }
        // Too little is left of the text for the filter.
        (!rest.is_empty()).then(|| from + back(rest, rest.len(), KEY_BYTES - 1)..text.len())
    }

    /// Whether a form may begin with what the escapes at the beginning of `text` stand for.
    fn may_begin_escaped(&self, text: &[u8]) -> bool {
        let (mut bytes, mut count, mut at) = (0_u64, 0, 0);
        while count < START_BYTES {
            match token(text.get(at..).unwrap_or_default()) {
                None | Some(Token::Cut(..)) => return true,
                Some(Token::Break(_)) if count == 0 => return false,
                Some(Token::Break(len)) => at += len,
                Some(Token::Byte(byte, len)) => {
                    bytes = (bytes << 8) | u64::from(fold(byte));
                    (at, count) = (at + len, count + 1);
                }
            }
        }
        is_set(&self.starts, slot(bytes, START_SHIFT))
    }

    /// Whether a form may begin with the first bytes of a key.
    fn may_start_with(&self, key: u64) -> bool {
        is_set(&self.starts, slot(key >> (8 * (KEY_BYTES - START_BYTES)), START_SHIFT))
    }

    fn may_begin_with(&self, key: u64) -> bool {
        is_set(&self.filter, slot(key, self.shift))
    }

    /// Whether there is a form that begins with these bytes, fewer than [`KEY_BYTES`].
    fn has_beginning(&self, bytes: u64, count: usize) -> bool {
        if count == 0 {
            return true;
        }
        let missing_bits = 8 * (KEY_BYTES - count);
        let first = self.keys.partition_point(|known| known >> missing_bits < bytes);
        self.keys.get(first).is_some_and(|known| known >> missing_bits == bytes)
    }

    fn reader(&self, reading: Reading, end: End) -> Reader {
        Reader { reading, end, most_breaks: self.most_breaks }
    }

    /// What begins at the beginning of `text`.
    fn at(&self, text: &[u8], end: End) -> (Verdict, usize) {
        let mut best = (Verdict::No, 0);
        let mut last = None;
        for reading in [Reading::Literal, Reading::Escaped] {
            match (self.reader(reading, end).key(text), end) {
                (Key::Full(key), _) if last != Some(key) => {
                    last = Some(key);
                    if self.may_begin_with(key) {
                        best = self.longest(key, text, end, best);
                    }
                }
                (Key::Cut(key, count), End::More) if self.has_beginning(key, count) => return (Verdict::Wait, 0),
                _ => {}
            }
            if best.0 == Verdict::Wait {
                return best;
            }
        }
        best
    }

    fn longest(&self, key: u64, text: &[u8], end: End, mut best: (Verdict, usize)) -> (Verdict, usize) {
        let first = self.keys.partition_point(|known| *known < key);
        let same = self.keys.iter().skip(first).take_while(|known| **known == key);
        for (_, pattern) in same.zip(self.patterns.iter().skip(first)) {
            let form = self.arena.get(pattern.range.clone()).unwrap_or_default();
            let verdict = match self.reader(Reading::Literal, end).compare(form, text) {
                Verdict::No => self.reader(Reading::Escaped, end).compare(form, text),
                verdict => verdict,
            };
            match (verdict, best.0) {
                (Verdict::Wait, _) => return (Verdict::Wait, pattern.owner),
                (Verdict::Match(len), Verdict::Match(longest)) if len <= longest => {}
                (Verdict::Match(_), _) => best = (verdict, pattern.owner),
                _ => {}
            }
        }
        best
    }
}

/// How a text is read.
#[derive(Debug, Clone, Copy)]
enum Reading {
    /// Each byte is itself.
    Literal,
    /// Escapes are what they stand for.
    Escaped,
}

/// Reads a text.
#[derive(Clone, Copy)]
struct Reader {
    reading: Reading,
    end: End,
    most_breaks: usize,
}

impl Reader {
    fn token(self, text: &[u8]) -> Option<Token> {
        let token = match self.reading {
            Reading::Literal => {
                text.first().map(|byte| if is_break(*byte) { Token::Break(1) } else { Token::Byte(*byte, 1) })
            }
            Reading::Escaped => token(text),
        };
        match token {
            Some(Token::Cut(byte, len)) if self.end == End::Final => Some(Token::Byte(byte, len)),
            token => token,
        }
    }

    /// The first bytes of a text, folded.
    fn key(self, text: &[u8]) -> Key {
        let (mut key, mut count, mut breaks, mut at) = (0_u64, 0, 0, 0);
        while count < KEY_BYTES {
            match self.token(text.get(at..).unwrap_or_default()) {
                None | Some(Token::Cut(..)) => return Key::Cut(key, count),
                Some(Token::Break(_)) if count == 0 || breaks == self.most_breaks => return Key::None,
                Some(Token::Break(len)) => (at, breaks) = (at + len, breaks + 1),
                Some(Token::Byte(byte, len)) => {
                    key = (key << 8) | u64::from(fold(byte));
                    (at, breaks, count) = (at + len, 0, count + 1);
                }
            }
        }
        Key::Full(key)
    }

    /// Whether `text` begins with `form`.
    fn compare(self, form: &[u8], text: &[u8]) -> Verdict {
        let (mut at, mut breaks, mut expected) = (0, 0, form.iter());
        let Some(mut wanted) = expected.next() else { return Verdict::No };
        loop {
            let rest = text.get(at..).unwrap_or_default();
            let is_literal = rest.first().is_some_and(|byte| fold(*byte) == *wanted);
            let len = match self.token(rest) {
                None if self.end == End::Final => return Verdict::No,
                None => return Verdict::Wait,
                Some(Token::Byte(byte, len)) if fold(byte) == *wanted => len,
                Some(Token::Cut(..)) => return Verdict::Wait,
                // What looks like an escape may be the secret's own text.
                _ if is_literal => 1,
                Some(Token::Break(len)) if at > 0 && breaks < self.most_breaks => {
                    (at, breaks) = (at + len, breaks + 1);
                    continue;
                }
                _ => return Verdict::No,
            };
            (at, breaks) = (at + len, 0);
            match expected.next() {
                Some(next) => wanted = next,
                None => return Verdict::Match(at),
            }
        }
    }
}

fn fold(byte: u8) -> u8 {
    FOLD.get(usize::from(byte)).map_or(byte, |entry| entry.to_le_bytes()[0])
}

fn is_break(byte: u8) -> bool {
    matches!(byte, b'\r' | b'\n')
}

fn slot(key: u64, shift: u32) -> usize {
    // The multiplier of Fibonacci hashing spreads neighbours; the topmost bits are the good ones.
    usize::try_from(key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> shift).unwrap_or_default()
}

fn set(filter: &mut [u64], bit: usize) {
    if let Some(word) = filter.get_mut(bit / 64) {
        *word |= 1 << (bit % 64);
    }
}

fn is_set(filter: &[u64], bit: usize) -> bool {
    filter.get(bit / 64).is_some_and(|word| word >> (bit % 64) & 1 == 1)
}

/// Where the last `count` bytes before `end` that are no line breaks begin, or the beginning.
fn back(text: &[u8], end: usize, count: usize) -> usize {
    let bytes = text.iter().enumerate().take(end).rev().filter(|(_, byte)| !is_break(**byte));
    bytes.take(count).last().map_or(end, |(at, _)| at)
}
