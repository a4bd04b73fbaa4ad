//! Finds the forms of secrets in bytes: a filter over the first eight bytes of each, then a comparison.
//!
//! Written by hand, because a library's automaton keeps its patterns in memory that is never wiped. Texts are compared
//! by case-folded bytes, with line breaks left out and escapes read, so a mixture of encodings is found too. A match at
//! a position depends on nothing before it, so a stream in pieces gives the same result as the whole.

use std::ops::Range;

use zeroize::Zeroizing;

use super::bits::{is_set, second_slot, set, slot};
use super::escape::{Dialect, EscapedText, TextEnd, Token, is_break, special, token};
use super::variants::{Gaps, SecretForm};

/// Bytes that the filter examines; shorter forms cannot be found.
pub(super) const KEY_BYTES: usize = 8;
/// If there are escapes, this many bytes are read before the others.
const START_BYTES: usize = 3;
/// The first [`START_BYTES`] bytes, in a mask with one bit for each byte of a key.
const ESCAPED_START: u8 = 0b1110_0000;
/// All bytes of a key except the first, in such a mask.
const WITHIN_KEY: u8 = 0b0111_1111;
/// 262,144 bits, for some ten thousand beginnings.
const START_SHIFT: u32 = 64 - 18;
/// Line breaks and zero bytes left out between two bytes of a secret: `\r\n` and a blank line in UTF-32, or the
/// indentation of a line. Four times as many as the secret has itself, if those are more.
const MIN_BREAKS: usize = 16;
/// Signs left out between two bytes of a spread-out form: `0x73,` and an indented line.
const MAX_GAP: usize = 64;
/// Bytes within which an escape has to begin for a key that is read through it.
const KEY_REACH: usize = 32;
/// Bits of the filter for each form, two of them set: about one position in a thousand is a false positive.
const FILTER_BITS_EACH: usize = 64;
const MIN_FILTER_BITS: usize = 1 << 12;
const MAX_FILTER_BITS: usize = 1 << 24;

/// Flags in [`FOLD`]: the byte begins an escape in some dialect; it is left out of spread-out text.
const SPECIAL: u16 = 0x700;
const GAP: u16 = 0x800;

/// The folded byte, and above it the flags of the byte.
static FOLD: [u16; 256] = {
    let mut table = [0; 256];
    let mut byte: u8 = 0;
    loop {
        let folded = match byte {
            // Unifies the alphabets of base64, and writes a space like the forms do.
            b'-' | b' ' => b'+',
            b'_' => b'/',
            _ => byte.to_ascii_lowercase(),
        };
        let is_gap = byte.is_ascii() && !byte.is_ascii_alphanumeric();
        // A constant index cannot be out of bounds if it compiles.
        #[expect(clippy::indexing_slicing, reason = "evaluated at compile time")]
        {
            table[byte as usize] = folded as u16 | special(byte) | if is_gap { GAP } else { 0 };
        }
        if byte == u8::MAX {
            break table;
        }
        byte += 1;
    }
};

/// The next event in a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NextMatch {
    /// A secret: its index and its range.
    Found(usize, Range<usize>),
    /// Undecided from here on until more text arrives; `matched` bytes of a form are present.
    Wait { from: usize, matched: usize },
    /// No more secrets in this text.
    Nothing,
}

/// Forms, each with the index of its secret.
#[derive(Default)]
pub(super) struct Index {
    /// The forms, one after another, folded and without line breaks.
    arena: Zeroizing<Vec<u8>>,
    patterns: Vec<SecretPattern>,
    /// The first bytes of each pattern, both contiguous and spread out, ascending, the first byte most significant.
    keys: Zeroizing<Vec<u64>>,
    /// The pattern of each key, by position in `keys`.
    patterns_of: Vec<usize>,
    filter: Zeroizing<Vec<u64>>,
    /// A smaller filter, over the first bytes, for positions where reading them is costly.
    starts: Zeroizing<Vec<u64>>,
    shift: u32,
    most_breaks: usize,
}

struct SecretPattern {
    range: Range<usize>,
    owner: usize,
    gaps: Gaps,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum MatchVerdict {
    No,
    /// The text ends after this many bytes of a form.
    Wait(usize),
    /// A match of this many bytes of the text.
    Match(usize),
}

enum IndexKey {
    Full(u64),
    /// The text ends too early: its bytes, and their number.
    Cut(u64, usize),
    None,
}

impl Index {
    pub(super) fn new(forms: impl Iterator<Item = (SecretForm, usize)>) -> Self {
        let mut most_breaks = MIN_BREAKS;
        let mut forms: Vec<(SecretForm, usize)> = forms
            .filter_map(|(SecretForm { bytes, gaps }, owner)| {
                let longest = bytes.split(|byte| !is_break(*byte)).map(<[u8]>::len).max().unwrap_or_default();
                most_breaks = most_breaks.max(longest * 4);
                let bytes =
                    Zeroizing::new(bytes.iter().filter(|b| !is_break(**b)).map(|b| fold(*b)).collect::<Vec<_>>());
                (bytes.len() >= KEY_BYTES).then_some((SecretForm { bytes, gaps }, owner))
            })
            .collect();
        forms.sort_by(|a, b| (&*a.0.bytes, a.1).cmp(&(&*b.0.bytes, b.1)));
        forms.dedup_by(|a, b| *a.0.bytes == *b.0.bytes);

        let mut keys = Vec::with_capacity(forms.len() * 2);
        for (number, (form, _)) in forms.iter().enumerate() {
            let together = key_of(form.bytes.iter().copied());
            let spread = key_of(form.bytes.iter().copied().filter(|byte| !is_gap(*byte)));
            keys.extend(together.map(|key| (key, number)));
            keys.extend(spread.filter(|key| Some(*key) != together).map(|key| (key, number)));
        }
        keys.sort_unstable();
        let bits = (keys.len() * FILTER_BITS_EACH).next_power_of_two().clamp(MIN_FILTER_BITS, MAX_FILTER_BITS);
        let mut index = Self {
            arena: Zeroizing::new(Vec::with_capacity(forms.iter().map(|(form, _)| form.bytes.len()).sum())),
            patterns: Vec::with_capacity(forms.len()),
            keys: Zeroizing::new(Vec::with_capacity(keys.len())),
            patterns_of: Vec::with_capacity(keys.len()),
            filter: Zeroizing::new(vec![0; bits / 64]),
            starts: Zeroizing::new(vec![0; (1 << (64 - START_SHIFT)) / 64]),
            shift: 64 - bits.trailing_zeros(),
            most_breaks,
        };
        for (form, owner) in &forms {
            let start = index.arena.len();
            index.arena.extend_from_slice(&form.bytes);
            index.patterns.push(SecretPattern { range: start..index.arena.len(), owner: *owner, gaps: form.gaps });
        }
        for (key, number) in keys {
            index.keys.push(key);
            index.patterns_of.push(number);
            set(&mut index.filter, slot(key, index.shift));
            set(&mut index.filter, second_slot(key, index.shift));
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

    /// Searches a text from a position on.
    pub(super) fn finder<'a>(&'a self, text: &'a [u8], from: usize, end: TextEnd) -> Finder<'a> {
        let places = |next: Option<usize>| if self.is_empty() { None } else { next };
        let together = places(self.together(text, from));
        Finder { index: self, text, end, together, spread: places(self.spread(text, from)) }
    }

    /// The next position from `from` on where a contiguous form may begin.
    fn together(&self, text: &[u8], from: usize) -> Option<usize> {
        let rest = text.get(from..)?;
        let (mut window, mut filled) = (0_u64, 0_usize);
        // The bytes of the window that may begin an escape, the first of them topmost: without one, both readings are
        // the same.
        let mut escapes: u8 = 0;
        let mut first_unbroken = 0;
        for (offset, byte) in rest.iter().enumerate() {
            let entry = entry(*byte);
            if entry & GAP != 0 && is_break(*byte) {
                first_unbroken = offset + 1;
                continue;
            }
            window = (window << 8) | u64::from(entry & 0xff);
            escapes = (escapes << 1) | u8::from(entry & SPECIAL != 0);
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
                _ => back(rest, offset + 1, KEY_BYTES, is_break),
            };
            if may_begin || self.may_begin_escaped(rest.get(start..).unwrap_or_default()) {
                return Some(from + start);
            }
        }
        last_places(rest, is_break).map(|start| from + start)
    }

    /// The next position from `from` on where a spread-out form may begin.
    fn spread(&self, text: &[u8], from: usize) -> Option<usize> {
        let rest = text.get(from..)?;
        let (mut window, mut filled) = (0_u64, 0_usize);
        // The bytes of the window that follow a gap: without one, the form is contiguous.
        let (mut gaps, mut is_behind_gap) = (0_u8, 0_u8);
        for (offset, byte) in rest.iter().enumerate() {
            let entry = entry(*byte);
            if entry & GAP != 0 {
                is_behind_gap = 1;
                continue;
            }
            window = (window << 8) | u64::from(entry & 0xff);
            gaps = (gaps << 1) | is_behind_gap;
            is_behind_gap = 0;
            filled += 1;
            if gaps & WITHIN_KEY != 0 && filled >= KEY_BYTES && self.may_begin_with(window) {
                return Some(from + back(rest, offset + 1, KEY_BYTES, is_gap));
            }
        }
        last_places(rest, is_gap).map(|start| from + start)
    }

    /// Whether a form may begin with the decoded escapes at the beginning of `text`.
    fn may_begin_escaped(&self, text: &[u8]) -> bool {
        let kinds = text.iter().take(START_BYTES).fold(0, |kinds, byte| kinds | entry(*byte));
        // The caller has checked letters and digits.
        kinds & SPECIAL == 0
            || Dialect::ALL.iter().any(|(dialect, bit)| kinds & bit != 0 && self.may_begin_in(*dialect, text))
    }

    fn may_begin_in(&self, dialect: Dialect, text: &[u8]) -> bool {
        let (mut bytes, mut count, mut at, mut breaks) = (0_u64, 0, 0, 0);
        while count < START_BYTES {
            match token(text.get(at..).unwrap_or_default(), dialect, TextEnd::More) {
                None | Some(Token::Cut) => return true,
                // Same as [`IndexReader::key`]. Without the limit a run of breaks would be read again from each of its
                // positions.
                Some(Token::Break(_)) if count == 0 || breaks == self.most_breaks => return false,
                Some(Token::Break(len)) => (at, breaks) = (at + len, breaks + 1),
                Some(Token::Written(written, len)) => {
                    breaks = 0;
                    for byte in written.bytes().iter().take(START_BYTES - count) {
                        bytes = (bytes << 8) | u64::from(fold(*byte));
                        count += 1;
                    }
                    at += len;
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
        is_set(&self.filter, slot(key, self.shift)) && is_set(&self.filter, second_slot(key, self.shift))
    }

    /// Whether a form begins with these bytes, fewer than [`KEY_BYTES`].
    fn has_beginning(&self, bytes: u64, count: usize) -> bool {
        if count == 0 {
            return true;
        }
        let missing_bits = 8 * (KEY_BYTES - count);
        let first = self.keys.partition_point(|known| known >> missing_bits < bytes);
        self.keys.get(first).is_some_and(|known| known >> missing_bits == bytes)
    }

    /// The match at the beginning of `text`, and the index of its secret.
    fn at(&self, text: &[u8], end: TextEnd) -> (MatchVerdict, usize) {
        let kinds = text.iter().take(KEY_REACH).fold(SPREAD_BIT, |kinds, byte| kinds | entry(*byte));
        let mut best = (MatchVerdict::No, 0);
        let mut last = None;
        for (reading, bit) in READINGS {
            if kinds & bit != bit {
                continue;
            }
            let reader = IndexReader { reading, end, most_breaks: self.most_breaks };
            match (reader.key(text), end) {
                (IndexKey::Full(key), _) if last != Some(key) => {
                    last = Some(key);
                    if self.may_begin_with(key) {
                        best = self.longest(key, text, end, best);
                    }
                }
                (IndexKey::Cut(key, count), TextEnd::More) if self.has_beginning(key, count) => {
                    return (MatchVerdict::Wait(count), 0);
                }
                _ => {}
            }
            if matches!(best.0, MatchVerdict::Wait(_)) {
                return best;
            }
        }
        best
    }

    fn longest(&self, key: u64, text: &[u8], end: TextEnd, mut best: (MatchVerdict, usize)) -> (MatchVerdict, usize) {
        let first = self.keys.partition_point(|known| *known < key);
        let same = self.keys.iter().skip(first).take_while(|known| **known == key);
        for (_, number) in same.zip(self.patterns_of.iter().skip(first)) {
            let Some(pattern) = self.patterns.get(*number) else { continue };
            let form = self.arena.get(pattern.range.clone()).unwrap_or_default();
            let readers = READINGS.iter().map(|(reading, _)| IndexReader {
                reading: *reading,
                end,
                most_breaks: self.most_breaks,
            });
            let verdicts = readers.map(|reader| reader.compare(form, pattern.gaps, text));
            match (
                verdicts.into_iter().find(|verdict| *verdict != MatchVerdict::No).unwrap_or(MatchVerdict::No),
                best.0,
            ) {
                (wait @ MatchVerdict::Wait(_), _) => return (wait, pattern.owner),
                (MatchVerdict::Match(len), MatchVerdict::Match(longest)) if len <= longest => {}
                (verdict @ MatchVerdict::Match(_), _) => best = (verdict, pattern.owner),
                _ => {}
            }
        }
        best
    }
}

/// Iterates over the secrets of a text.
pub(super) struct Finder<'a> {
    index: &'a Index,
    text: &'a [u8],
    end: TextEnd,
    /// The next positions to examine, one for each kind of form.
    together: Option<usize>,
    spread: Option<usize>,
}

impl Finder<'_> {
    /// The first secret that begins after the beginning of the previous one, which it may overlap; of several that
    /// begin at one position, the longest.
    pub(super) fn next(&mut self) -> NextMatch {
        loop {
            let Some(start) = self.together.into_iter().chain(self.spread).min() else { return NextMatch::Nothing };
            let (verdict, owner) = self.index.at(self.text.get(start..).unwrap_or_default(), self.end);
            if let MatchVerdict::Wait(matched) = verdict {
                return NextMatch::Wait { from: start, matched };
            }
            if self.together == Some(start) {
                self.together = self.index.together(self.text, start + 1);
            }
            if self.spread == Some(start) {
                self.spread = self.index.spread(self.text, start + 1);
            }
            if let MatchVerdict::Match(len) = verdict {
                return NextMatch::Found(owner, start..start + len);
            }
        }
    }
}

/// A way to read a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum IndexReading {
    /// Each byte stands for itself.
    Literal,
    /// Escapes are decoded in this dialect.
    Escaped(Dialect),
    /// Signs between letters and digits are left out.
    Spread,
}

/// Always set, so that those readings are always tried.
const SPREAD_BIT: u16 = 0x1000;
/// All readings, each with the bits that a text must have for it.
const READINGS: [(IndexReading, u16); 5] = [
    (IndexReading::Literal, SPREAD_BIT),
    (IndexReading::Escaped(Dialect::Usual), 0x100),
    (IndexReading::Escaped(Dialect::Css), 0x200),
    (IndexReading::Escaped(Dialect::Quoted), 0x400),
    (IndexReading::Spread, SPREAD_BIT | GAP),
];

/// Reads a text in one way.
#[derive(Clone, Copy)]
struct IndexReader {
    reading: IndexReading,
    end: TextEnd,
    most_breaks: usize,
}

impl IndexReader {
    fn token(self, text: &[u8]) -> Option<Token> {
        match self.reading {
            IndexReading::Escaped(dialect) => token(text, dialect, self.end),
            IndexReading::Literal | IndexReading::Spread => text.first().map(|byte| {
                if is_break(*byte) { Token::Break(1) } else { Token::Written(EscapedText::byte(*byte), 1) }
            }),
        }
    }

    /// Whether the reading leaves out a byte between two of a secret.
    fn leaves_out(self, byte: u8) -> bool {
        self.reading == IndexReading::Spread && is_gap(byte)
    }

    /// The first bytes of a text, folded.
    fn key(self, text: &[u8]) -> IndexKey {
        let (mut key, mut count, mut left_out, mut at) = (0_u64, 0, 0, 0);
        let most = if self.reading == IndexReading::Spread { MAX_GAP } else { self.most_breaks };
        while count < KEY_BYTES {
            let rest = text.get(at..).unwrap_or_default();
            let len = match self.token(rest) {
                None | Some(Token::Cut) => return IndexKey::Cut(key, count),
                Some(Token::Written(written, len)) if !rest.first().is_some_and(|byte| self.leaves_out(*byte)) => {
                    for byte in written.bytes().iter().take(KEY_BYTES - count) {
                        key = (key << 8) | u64::from(fold(*byte));
                        count += 1;
                    }
                    left_out = 0;
                    at += len;
                    continue;
                }
                Some(Token::Written(_, len) | Token::Break(len)) => len,
            };
            if count == 0 || left_out == most {
                return IndexKey::None;
            }
            (at, left_out) = (at + len, left_out + 1);
        }
        IndexKey::Full(key)
    }

    /// Whether `text` begins with `form`.
    fn compare(self, form: &[u8], gaps: Gaps, text: &[u8]) -> MatchVerdict {
        let mut spaces = Spaces::new(self, gaps);
        // Leading signs cannot be told from the text before, so they are skipped.
        let leading = |is_spread: bool| form.iter().take_while(|byte| is_spread && is_gap(**byte)).count();
        let (mut at, mut done) = (0, leading(self.reading == IndexReading::Spread));
        while let Some(wanted) = form.get(done) {
            let rest = text.get(at..).unwrap_or_default();
            let Some(first) = rest.first() else {
                return if self.end == TextEnd::Final { MatchVerdict::No } else { MatchVerdict::Wait(done) };
            };
            // If an escape is the secret's own text, so is its next byte.
            let goes_on = || match (rest.get(1), form.get(done + 1)) {
                (Some(byte), Some(wanted)) => fold(*byte) == *wanted,
                _ => true,
            };
            let is_literal = fold(*first) == *wanted;
            let (len, count) = match self.token(rest) {
                Some(Token::Written(..)) if at > 0 && spaces.is_short() && spaces.leave_out(Some(*first)) => {
                    at += 1;
                    continue;
                }
                Some(Token::Written(written, len)) if begins(form.get(done..), written) => (len, written.bytes().len()),
                None | Some(Token::Cut) => return MatchVerdict::Wait(done),
                // An apparent escape may be the secret's own text.
                Some(Token::Written(..)) if is_literal => (1, 1),
                Some(Token::Break(_)) if is_literal && goes_on() => (1, 1),
                Some(Token::Break(len)) if at > 0 && spaces.leave_out(None) => {
                    at += len;
                    continue;
                }
                Some(Token::Written(..)) if at > 0 && spaces.leave_out(Some(*first)) => {
                    at += 1;
                    continue;
                }
                _ => return MatchVerdict::No,
            };
            if at > 0 && !spaces.end(*wanted) {
                return MatchVerdict::No;
            }
            (at, done) = (at + len, done + count);
        }
        if at == 0 { MatchVerdict::No } else { MatchVerdict::Match(at) }
    }
}

fn begins(form: Option<&[u8]>, written: EscapedText) -> bool {
    let bytes = written.bytes();
    form.and_then(|form| form.get(..bytes.len()))
        .is_some_and(|form| form.iter().zip(bytes).all(|(form, byte)| *form == fold(*byte)))
}

/// The signs left out between two bytes of a secret.
struct Spaces {
    reader: IndexReader,
    gaps: Gaps,
    /// Bytes of this gap, and whether a line breaks in it.
    left_out: usize,
    is_broken: bool,
    /// Bytes of the first gap without a line break: spelled-out text has the same between all its characters.
    usual: Option<usize>,
}

impl Spaces {
    fn new(reader: IndexReader, gaps: Gaps) -> Self {
        Self { reader, gaps, left_out: 0, is_broken: false, usual: None }
    }

    /// Whether this gap is shorter than the others: a sign may belong to it even if the secret continues with the same
    /// sign.
    fn is_short(&self) -> bool {
        self.usual.is_some_and(|usual| self.left_out < usual) && !self.is_broken
    }

    /// Leaves out a line break (`None`) or a byte; returns whether that is allowed here.
    fn leave_out(&mut self, byte: Option<u8>) -> bool {
        let is_spread = self.reader.reading == IndexReading::Spread;
        let may = match byte {
            None => true,
            // Lines may be indented, quoted and commented out.
            Some(byte) => is_gap(byte) && (is_spread || self.is_broken),
        };
        if !may || self.left_out == if is_spread { MAX_GAP } else { self.reader.most_breaks } {
            return false;
        }
        self.is_broken |= byte.is_none();
        self.left_out += 1;
        true
    }

    /// Ends a gap before a byte of the secret; returns whether the gap is allowed.
    fn end(&mut self, next: u8) -> bool {
        let left_out = std::mem::take(&mut self.left_out);
        if self.reader.reading != IndexReading::Spread || self.gaps == Gaps::Any {
            self.is_broken = false;
            return true;
        }
        // Within a character of UTF-8.
        if matches!(next, 0x80..0xc0) && left_out == 0 {
            return true;
        }
        // One more sign may be a backslash before the character. Without gaps it would be another text: `2024-01-05`
        // for `20240105`.
        let is_usual = |usual: usize| left_out == usual || usual > 0 && left_out == usual + 1;
        std::mem::take(&mut self.is_broken) || is_usual(*self.usual.get_or_insert(left_out))
    }
}

fn entry(byte: u8) -> u16 {
    FOLD.get(usize::from(byte)).copied().unwrap_or_default()
}

fn fold(byte: u8) -> u8 {
    entry(byte).to_le_bytes()[0]
}

/// Whether a byte is left out of spread-out text.
fn is_gap(byte: u8) -> bool {
    entry(byte) & GAP != 0
}

/// The first bytes of a form, if it is long enough.
fn key_of(bytes: impl Iterator<Item = u8>) -> Option<u64> {
    let mut bytes = bytes.take(KEY_BYTES);
    (0..KEY_BYTES).try_fold(0, |key, _| Some((key << 8) | u64::from(bytes.next()?)))
}

/// Position of the `count`-th byte before `end`, not counting those left out, or of the first such byte.
fn back(text: &[u8], end: usize, count: usize, is_left_out: impl Fn(u8) -> bool) -> usize {
    let bytes = text.iter().enumerate().take(end).rev().filter(|(_, byte)| !is_left_out(**byte));
    bytes.take(count).last().map_or(end, |(at, _)| at)
}

/// The first position with too few bytes after it for the filter.
fn last_places(text: &[u8], is_left_out: impl Fn(u8) -> bool) -> Option<usize> {
    let first = back(text, text.len(), KEY_BYTES - 1, is_left_out);
    (first < text.len()).then_some(first)
}
