//! Counts the bytes that a request without a body carries beyond the values that the run was given (SPEC TAINT-1).
//!
//! Every byte of path, query, headers and open labels is looked at once. A token is free if it stands in the user's words,
//! if the request's own host gave it, or if it is one of a few words of every API; and only so many are free, since a
//! choice of known words carries data too. Everything else counts as it is written, and one byte more for each token.

use std::ops::Range;

use crate::substitute::basic;
use crate::substitute::scan::Encoding;

use super::words::{Runs, is_inner, key, number, pieces, push_folded, spelling};
use super::{CarriedBytes, Memory, Sent};

/// Known tokens that a request may choose for nothing; each further one counts one byte. Those of the user and of every
/// API, and those that the host gave: a host may give a dictionary.
const FREE_TOKENS: [u32; 2] = [16, 8];
/// Tokens of the host that a request may choose without weighing on the run: the path of a list, and one of its items.
const MAX_PLAIN_CHOICES: u32 = 2;
/// Signs by which the spelling of a number may be longer than the plain one: `1,250.00`.
const MAX_FORMAT: usize = 4;
/// A part of every placeholder.
const MENTION: &[u8] = b"credential";
/// Words that any client may send.
pub(super) const COMMON: &str = "accept api application asc authorization basic bearer cache-control charset close \
    content-type cookie csv desc dnt false fields filter form-data format gzip html http https id identity \
    git-receive-pack git-upload-pack if-modified-since if-none-match index info javascript json keep-alive limit list max-age \
    multipart next no-cache offset order origin page per_page plain pragma q query referer refs search service size sort text \
    true utf-8 v1 v2 v3 www x-api-key x-requested-with xml xmlhttprequest";

impl Memory {
    pub(super) fn carried(&self, sent: &Sent<'_>) -> CarriedBytes {
        let host = self.host_key(sent.host);
        let name = sent.host.rsplit_once(':').map_or(sent.host, |(name, _)| name);
        let mut count = Count {
            memory: self,
            host,
            authority: sent.host,
            free: FREE_TOKENS,
            chosen: 0,
            total: 0,
            escapes: Vec::new(),
            folded: String::new(),
        };
        // A host that has answered learns nothing from its name.
        if let Some(suffix) = sent.wide_pattern_suffix
            && !self.by_host.contains(&host)
            && !self.user.contains(&key(self.seed, &name.to_ascii_lowercase()))
        {
            count.labels(name, suffix);
        }
        if !count.knows_link(sent.path_and_query) {
            let (path, query) =
                sent.path_and_query.split_at(sent.path_and_query.find('?').unwrap_or(sent.path_and_query.len()));
            count.text(path.as_bytes(), Encoding::Url);
            if !count.knows_link(query) {
                count.text(query.as_bytes(), Encoding::Form);
            }
        }
        for (name, value) in sent.headers {
            count.text(name.as_str().as_bytes(), Encoding::Plain);
            match basic(name, value) {
                Some(decoded) => {
                    // Variations of the usual spelling: white space, signs that the decoder ignores, the scheme's case.
                    let usual = "Basic ".len() + decoded.len().div_ceil(3) * 4;
                    let is_usual = value.as_bytes().starts_with(b"Basic ");
                    count.total += value.len().saturating_sub(usual) as u64 + u64::from(!is_usual);
                    count.text(&decoded, Encoding::Plain);
                }
                None => count.text(value.as_bytes(), Encoding::Plain),
            }
        }
        CarriedBytes {
            request: count.total,
            run: count.total + u64::from(count.chosen.saturating_sub(MAX_PLAIN_CHOICES)),
        }
    }
}

struct Count<'a> {
    memory: &'a Memory,
    host: u64,
    authority: &'a str,
    free: [u32; 2],
    /// Tokens that were free because the host gave them.
    chosen: u32,
    total: u64,
    /// Where in the decoded text a byte was percent-encoded.
    escapes: Vec<usize>,
    folded: String,
}

impl Count<'_> {
    fn knows_link(&self, link: &str) -> bool {
        let key = spelling(self.memory.seed, link);
        self.memory.user.contains(&key) || self.memory.by_host.contains(&(key ^ self.host))
    }

    fn labels(&mut self, name: &str, suffix: &str) {
        let start = name.len().checked_sub(suffix.len());
        let open = start.and_then(|start| name.split_at_checked(start));
        let open = open.filter(|(_, end)| end.eq_ignore_ascii_case(suffix)).map_or(name, |(open, _)| open);
        // Elsewhere the host's own name is free; here its labels are counted.
        self.authority = "";
        for label in open.split('.').filter(|label| !label.is_empty()) {
            self.token(label, 0..label.len());
        }
    }

    fn text(&mut self, bytes: &[u8], encoding: Encoding) {
        let mut at = 0;
        // Of a placeholder the gate decides by itself where its value may go.
        if bytes.windows(MENTION.len()).any(|window| window == MENTION) {
            for placeholder in encoding.placeholders(bytes) {
                self.encoded(bytes.get(at..placeholder.range.start).unwrap_or_default(), encoding);
                self.total += self.choice(true);
                at = placeholder.range.end;
            }
        }
        self.encoded(bytes.get(at..).unwrap_or_default(), encoding);
    }

    fn encoded(&mut self, bytes: &[u8], encoding: Encoding) {
        let decoded = self.decode(bytes, encoding);
        let Ok(text) = std::str::from_utf8(&decoded) else {
            self.total += bytes.len() as u64 + 1;
            return;
        };
        let mut end = 0;
        for run in Runs::of(text) {
            self.signs(text, end..run.start);
            end = run.end;
            self.run(text, run);
        }
        self.signs(text, end..text.len());
    }

    fn decode(&mut self, bytes: &[u8], encoding: Encoding) -> Vec<u8> {
        self.escapes.clear();
        let mut decoded = Vec::with_capacity(bytes.len());
        let mut rest = bytes;
        while let Some((&byte, after)) = rest.split_first() {
            rest = after;
            let escaped = if byte == b'%' { hex(after) } else { None };
            if escaped.is_some() {
                self.escapes.push(decoded.len());
                rest = after.get(2..).unwrap_or_default();
            }
            let plain = if byte == b'+' && encoding == Encoding::Form { b' ' } else { byte };
            decoded.push(escaped.unwrap_or(plain));
        }
        decoded
    }

    /// Signs between tokens: two that give a URL or a header its structure are free.
    fn signs(&mut self, text: &str, range: Range<usize>) {
        let signs = text.get(range.clone()).unwrap_or_default();
        for (index, (offset, sign)) in signs.char_indices().enumerate() {
            if index >= 2 || !" /?&=,;:.".contains(sign) {
                let start = range.start + offset;
                self.total += self.raw(start..start + sign.len_utf8());
            }
        }
    }

    fn run(&mut self, text: &str, run: Range<usize>) {
        let (mut start, mut empty) = (run.start, 0);
        for piece in pieces(text.get(run).unwrap_or_default()) {
            let end = start + piece.len();
            let token = piece.trim_matches(is_inner);
            let token_start = end - piece.trim_start_matches(is_inner).len();
            let place = token_start..token_start + token.len();
            self.total += self.raw(start..end) - self.raw(place.clone());
            if token.is_empty() {
                // `https://` has one.
                self.total += u64::from(empty > 0);
                empty += 1;
            } else {
                self.token(token, place);
            }
            // Past the joint.
            start = end + 1;
        }
    }

    /// Counts a token that stands at this place of the decoded text.
    fn token(&mut self, token: &str, place: Range<usize>) {
        let raw = self.raw(place.clone());
        self.folded.clear();
        push_folded(token, &mut self.folded);
        let (memory, folded) = (self.memory, self.folded.as_str());
        let key = key(memory.seed, folded);
        let is_free = memory.user.contains(&key) || self.authority.split(':').any(|part| part == folded);
        self.total += if is_free || memory.by_host.contains(&(key ^ self.host)) {
            let exact = spelling(memory.seed, token);
            let is_capitalised = token.chars().skip(1).eq(folded.chars().skip(1));
            let is_spelled =
                is_capitalised || memory.user.contains(&exact) || memory.by_host.contains(&(exact ^ self.host));
            // Each letter in either case carries a bit.
            let case = if is_spelled { 0 } else { token.len() as u64 / 8 + 1 };
            let zeros = number(folded).map_or(0, |plain| token.len().saturating_sub(plain.len() + MAX_FORMAT)) as u64;
            let needs_no_escape = |at: &&usize| {
                let byte = token.as_bytes().get(**at - place.start);
                byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || b"-._~".contains(byte))
            };
            let needless = self.escapes(place.clone()).iter().filter(needs_no_escape).count() as u64;
            // Of the letters that a host gave, anything can be spelled.
            let short = u64::from(!is_free && token.len() <= 2);
            case + zeros + needless + short + self.choice(is_free)
        } else if token.len() <= 3 && token.bytes().all(|byte| byte.is_ascii_digit()) {
            raw - token.len() as u64 + 1
        } else {
            raw + 1
        };
    }

    /// The count of one more known token, of the host only or not.
    fn choice(&mut self, is_free: bool) -> u64 {
        let [common, of_host] = &mut self.free;
        let left = if is_free { common } else { of_host };
        let counts = u64::from(*left == 0);
        self.chosen += u32::from(!is_free && *left > 0);
        *left = left.saturating_sub(1);
        counts
    }

    /// Bytes of a part of the decoded text as they were sent.
    fn raw(&self, range: Range<usize>) -> u64 {
        (range.len() + 2 * self.escapes(range).len()) as u64
    }

    fn escapes(&self, range: Range<usize>) -> &[usize] {
        let start = self.escapes.partition_point(|at| *at < range.start);
        let end = self.escapes.partition_point(|at| *at < range.end);
        self.escapes.get(start..end).unwrap_or_default()
    }
}

/// The byte that two hexadecimal digits write.
fn hex(digits: &[u8]) -> Option<u8> {
    let [high, low, ..] = digits else { return None };
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    u8::try_from(digit(high)? * 16 + digit(low)?).ok()
}
