//! The forms in which a secret may appear, except for escapes: those are read by the comparison.
//!
//! Every form is a secret too and is wiped when dropped. Knows neither names nor texts.

use std::fmt::Write as _;

use zeroize::{Zeroize as _, Zeroizing};

/// Bytes that are wiped when dropped.
type Bytes = Zeroizing<Vec<u8>>;

/// A form of a secret.
pub(super) struct SecretForm {
    pub(super) bytes: Bytes,
    pub(super) gaps: Gaps,
}

/// The signs allowed between the letters and digits of a form when it is spread out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Gaps {
    /// The same everywhere except at line breaks: spelled-out text. A text with merely other punctuation is another
    /// text.
    Even,
    /// Any signs: for digits of an encoding.
    Any,
}

/// A line of a secret that looks like key material is a secret of its own: keys are often passed on without their
/// armour. It has at least this many bytes and different bytes, and no white space or quotes: lines of JSON and YAML
/// are public in part.
const MIN_LINE_BYTES: usize = 16;
const MIN_DIFFERENT_IN_LINE: usize = 8;
/// Longer secrets are looked for in fewer encodings: each of their forms is kept in memory.
const MAX_MIXED_BYTES: usize = 8 << 10;
/// Longer secrets are not looked for in base58, which encodes the whole number.
const MAX_BASE58_BYTES: usize = 128;

/// Encodings with some bits per digit: the bits, the number of alignments at which a secret may begin, and the digits.
/// Alphabets that differ in case or in `-_` for `+/` are equal in the comparison.
const DIGITS: [(usize, usize, &[u8]); 10] = [
    HEXADECIMAL,
    BASE64,
    // Base32 of RFC 4648, with the extended hexadecimal alphabet, of Crockford, and z-base-32.
    (5, 5, b"abcdefghijklmnopqrstuvwxyz234567"),
    (5, 5, b"0123456789abcdefghijklmnopqrstuv"),
    (5, 5, b"0123456789abcdefghjkmnpqrstvwxyz"),
    (5, 5, b"ybndrfg8ejkmcpqxot1uwisza345h769"),
    (1, 1, b"01"),
    // Uuencode with its two zeros, and xxencode.
    (6, 3, b"`!\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_"),
    (6, 3, b" !\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_"),
    (6, 3, b"+-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"),
];
const HEXADECIMAL: (usize, usize, &[u8]) = (4, 1, b"0123456789abcdef");
const BASE64: (usize, usize, &[u8]) = (6, 3, b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/");

/// Encodings of four bytes in five digits: Ascii85, RFC 1924, Z85.
const BASE85: [&[u8]; 3] = [
    b"!\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstu",
    b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~",
    b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#",
];
const BASE58: &[u8] = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";

/// Formats of numbers in a sequence: `115, 107`, `0x73, 0x6b`, `\163\153`.
const NUMBERS: [fn(&mut String, u32); 8] = [
    |text, number| write!(text, "{number}").unwrap_or_default(),
    |text, number| write!(text, "{number:03}").unwrap_or_default(),
    |text, number| write!(text, "{number:03o}").unwrap_or_default(),
    |text, number| write!(text, "0{number:03o}").unwrap_or_default(),
    |text, number| write!(text, "0o{number:o}").unwrap_or_default(),
    |text, number| write!(text, "0x{number:02x}").unwrap_or_default(),
    |text, number| write!(text, "x{number:02x}").unwrap_or_default(),
    |text, number| write!(text, "u{number:04x}").unwrap_or_default(),
];

/// All forms of `secret`, which has no white space at its ends. Some may be equal.
pub(super) fn of(secret: &str) -> Vec<SecretForm> {
    let reversed = Zeroizing::new(secret.chars().rev().collect::<String>());
    let basic = |bytes: &[u8]| [HEXADECIMAL, BASE64].iter().flat_map(|kind| digits(bytes, *kind)).collect::<Vec<_>>();
    let mut forms = basic(secret.as_bytes());
    for index in 0..forms.len() {
        if let Some(form) = forms.get(index) {
            // The plain form is reversed by characters below. The others are ASCII.
            let bytes = form.bytes.iter().rev().copied().collect::<Vec<_>>();
            forms.push(any(bytes));
        }
    }
    forms.extend(basic(reversed.as_bytes()));
    forms.push(even(reversed.as_bytes().to_vec()));
    forms.extend(texts(secret).into_iter().map(|text| SecretForm { bytes: text, gaps: Gaps::Even }));
    // Decoding nested escapes fully would also decode apparent escapes in the secret itself. Then the escaped forms are
    // looked for literally.
    if secret.contains(['%', '\\', '&', '=']) {
        forms.extend(escaped(secret));
    }
    if secret.len() <= MAX_MIXED_BYTES {
        forms.extend(mixed(secret));
    }
    for line in secret.split(['\r', '\n']).flat_map(|line| line.split("\\n")).map(str::trim) {
        if line.len() < secret.len() && is_key_material(line) {
            forms.push(even(line.as_bytes().to_vec()));
            forms.extend(basic(line.as_bytes()));
        }
    }
    forms
}

fn is_key_material(line: &str) -> bool {
    let is_different = |(at, byte): &(usize, u8)| !line.as_bytes().iter().take(*at).any(|other| other == byte);
    let different = line.bytes().enumerate().filter(is_different).take(MIN_DIFFERENT_IN_LINE).count();
    // The armour of a PEM file is public.
    line.len() >= MIN_LINE_BYTES
        && different == MIN_DIFFERENT_IN_LINE
        && !line.contains(|sign: char| sign.is_whitespace() || matches!(sign, '"' | '\''))
        && !line.starts_with("-----")
}

fn even(bytes: Vec<u8>) -> SecretForm {
    SecretForm { bytes: Zeroizing::new(bytes), gaps: Gaps::Even }
}

fn any(bytes: Vec<u8>) -> SecretForm {
    SecretForm { bytes: Zeroizing::new(bytes), gaps: Gaps::Any }
}

fn bytes_of(bytes: impl Iterator<Item = u8> + Clone) -> Bytes {
    // Allocated at the final size: a buffer that grows leaves copies behind.
    let mut whole = Zeroizing::new(Vec::with_capacity(bytes.clone().count()));
    whole.extend(bytes);
    whole
}

/// The secret in every character set and case in which a program may return it. The comparison leaves out zero bytes:
/// most of UTF-16 and UTF-32 are the text itself.
fn texts(secret: &str) -> Vec<Bytes> {
    let mut texts = vec![bytes_of(secret.bytes())];
    // `Q` of RFC 2047 writes spaces as `_`.
    if secret.contains(' ') {
        texts.push(bytes_of(secret.bytes().map(|byte| if byte == b' ' { b'_' } else { byte })));
    }
    texts.extend([utf7(secret, ""), utf7(secret, "!\"#$%&*;<=>@[]^_`{|}")]);
    if secret.is_ascii() {
        return texts;
    }
    texts.extend([secret.to_lowercase(), secret.to_uppercase()].map(|text| Zeroizing::new(text.into_bytes())));
    texts.extend([utf16(secret, u16::to_le_bytes), utf16(secret, u16::to_be_bytes)]);
    texts.extend([utf32(secret, u32::to_le_bytes), utf32(secret, u32::to_be_bytes)]);
    // UTF-8 that was misread as Latin-1.
    texts.push(Zeroizing::new(secret.bytes().map(char::from).collect::<String>().into_bytes()));
    if let Some(latin) =
        secret.chars().map(|character| u8::try_from(u32::from(character)).ok()).collect::<Option<Vec<_>>>()
    {
        texts.push(Zeroizing::new(latin));
    }
    texts
}

fn utf16(text: &str, bytes: fn(u16) -> [u8; 2]) -> Bytes {
    bytes_of(text.encode_utf16().flat_map(bytes))
}

fn utf32(text: &str, bytes: fn(u32) -> [u8; 4]) -> Bytes {
    bytes_of(text.chars().flat_map(|character| bytes(u32::from(character))))
}

/// RFC 2152. `encoded` are signs that an encoder may or may not leave as they are.
fn utf7(text: &str, encoded: &str) -> Bytes {
    let is_direct = |character: char| {
        character.is_ascii_graphic() && !matches!(character, '+' | '\\' | '~') && !encoded.contains(character)
            || matches!(character, ' ' | '\t' | '\r' | '\n')
    };
    let mut written = Zeroizing::new(String::with_capacity(text.len() * 4));
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            // Outside an encoded run it has an escape of its own.
            '+' => 1,
            _ => rest.find(|character| is_direct(character) != is_direct(first)).unwrap_or(rest.len()),
        };
        let (run, after) = rest.split_at(length);
        rest = after;
        if is_direct(first) {
            written.push_str(run);
        } else if first == '+' {
            written.push_str("+-");
        } else {
            let mut units = utf16(run, u16::to_be_bytes);
            let digits_needed = (units.len() * 8).div_ceil(6);
            units.extend([0, 0]);
            let digits = digits(&units, BASE64).next();
            let digits = digits.as_ref().and_then(|form| form.bytes.get(..digits_needed)).unwrap_or_default();
            written.push('+');
            written.extend(digits.iter().copied().map(char::from));
            if after.chars().next().is_none_or(|next| next.is_ascii_alphanumeric() || matches!(next, '/' | '-')) {
                written.push('-');
            }
        }
    }
    // The text after the secret may end the last run.
    let len = written.strip_suffix('-').filter(|_| !text.ends_with(['-', '+'])).map_or(written.len(), str::len);
    bytes_of(written.bytes().take(len))
}

/// Encodings of bytes, and encodings of encoded text.
fn mixed(secret: &str) -> Vec<SecretForm> {
    let plain = secret.as_bytes();
    let mut forms: Vec<SecretForm> = DIGITS.iter().flat_map(|kind| digits(plain, *kind)).collect();
    forms.extend(BASE85.iter().flat_map(|alphabet| base85(plain, alphabet)));
    forms.extend(base58(plain));
    let numbers: [Vec<u32>; 4] = [
        plain.iter().map(|byte| u32::from(*byte)).collect(),
        // As signed bytes: the minus before them is left out.
        plain.iter().map(|byte| u32::from(byte.cast_signed().unsigned_abs())).collect(),
        secret.chars().map(u32::from).collect(),
        secret.encode_utf16().map(u32::from).collect(),
    ];
    for numbers in numbers.map(Zeroizing::new) {
        forms.extend(NUMBERS.iter().map(|write| {
            let mut text = Zeroizing::new(String::with_capacity(numbers.len() * 7));
            numbers.iter().for_each(|number| write(&mut text, *number));
            any(text.bytes().collect())
        }));
    }
    // Base64, base32 and hexadecimal of the encoded text.
    let mut within = texts(secret);
    within.extend([utf16(secret, u16::to_le_bytes), utf16(secret, u16::to_be_bytes)]);
    within.extend([json(secret), json_ascii(secret), percent(secret, "-._~"), html(secret, "&#39;")]);
    for text in within.iter().filter(|text| text.as_slice() != plain) {
        let kinds = DIGITS.iter().take(4);
        forms.extend(kinds.flat_map(|kind| digits(text, *kind)));
    }
    for inner in digits(plain, BASE64) {
        forms.extend(digits(&inner.bytes, BASE64));
    }
    forms
}

/// The digits made only of the secret's bits, for each alignment in the encoded data: they do not depend on the bytes
/// around the secret.
fn digits(bytes: &[u8], (bits, places, alphabet): (usize, usize, &'static [u8])) -> impl Iterator<Item = SecretForm> {
    (0..places).map(move |place| {
        let skipped = (bits - 8 * place % bits) % bits;
        let count = (bytes.len() * 8).saturating_sub(skipped) / bits;
        let digit = |number: usize| {
            let at = skipped + number * bits;
            let byte = |index: usize| bytes.get(index).copied().unwrap_or_default();
            let word = u16::from_be_bytes([byte(at / 8), byte(at / 8 + 1)]);
            let value = usize::from(word << (at % 8)) >> (16 - bits);
            alphabet.get(value).copied().unwrap_or_default()
        };
        any((0..count).map(digit).collect())
    })
}

/// The same for groups of four bytes. With fewer than eleven bytes some alignments have too few groups.
fn base85(bytes: &[u8], alphabet: &'static [u8]) -> impl Iterator<Item = SecretForm> {
    (0..4).map(move |place| {
        let (groups, _) = bytes.get(place..).unwrap_or_default().as_chunks::<4>();
        let digits = groups.iter().flat_map(|group| {
            let value = u32::from_be_bytes(*group);
            (0..5).rev().map(move |power| (value / 85_u32.pow(power) % 85) as usize)
        });
        any(digits.map(|digit| alphabet.get(digit).copied().unwrap_or_default()).collect())
    })
}

/// The whole secret as one number.
fn base58(bytes: &[u8]) -> Option<SecretForm> {
    if bytes.len() > MAX_BASE58_BYTES {
        return None;
    }
    let mut number = Zeroizing::new(Vec::<u8>::with_capacity(bytes.len() * 2));
    for byte in bytes {
        let mut carry = u32::from(*byte);
        for digit in number.iter_mut() {
            carry += u32::from(*digit) << 8;
            *digit = (carry % 58) as u8;
            carry /= 58;
        }
        while carry > 0 {
            number.push((carry % 58) as u8);
            carry /= 58;
        }
    }
    Some(any(number.iter().rev().map(|digit| BASE58.get(usize::from(*digit)).copied().unwrap_or_default()).collect()))
}

/// The output of the customary encoders for a text.
fn escaped(secret: &str) -> Vec<SecretForm> {
    /// Signs that each kind of percent-encoder keeps, in addition to letters and digits: RFC 3986,
    /// `encodeURIComponent`, paths, forms, `encodeURI`, and an encoder that keeps none.
    const KEPT: [&str; 6] = ["-._~", "-._~!'()*", "-._~/", "*-._", "-._~!'()*;,/?:@&=+$#", ""];
    let mut texts = Vec::new();
    for kept in KEPT {
        let once = percent(secret, kept);
        texts.extend([percent(std::str::from_utf8(&once).unwrap_or_default(), kept), once]);
    }
    texts.push(percent(secret, "\0"));
    let (json, json_ascii) = (json(secret), json_ascii(secret));
    let as_text = std::str::from_utf8(&json).unwrap_or_default();
    texts.extend([self::json(as_text), Zeroizing::new(as_text.replace('/', "\\/").into_bytes())]);
    texts.extend([json, json_ascii]);
    texts.extend(["&#39;", "&#x27;", "&apos;"].map(|quote| html(secret, quote)));
    texts.push(html(std::str::from_utf8(&html(secret, "&#39;")).unwrap_or_default(), "&#39;"));
    texts.into_iter().map(|bytes| SecretForm { bytes, gaps: Gaps::Even }).collect()
}

/// The inside of a JSON string.
fn json(text: &str) -> Bytes {
    let quoted = Zeroizing::new(serde_json::to_vec(text).unwrap_or_default());
    bytes_of(quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default().iter().copied())
}

/// The same in ASCII only.
fn json_ascii(text: &str) -> Bytes {
    let json = json(text);
    each(std::str::from_utf8(&json).unwrap_or_default(), |text, character| {
        let mut units = [0; 2];
        if character.is_ascii() {
            text.push(character);
        } else {
            for unit in character.encode_utf16(&mut units) {
                write!(text, "\\u{unit:04x}").unwrap_or_default();
            }
        }
    })
}

fn html(text: &str, quote: &str) -> Bytes {
    each(text, |text, character| match character {
        '&' => text.push_str("&amp;"),
        '<' => text.push_str("&lt;"),
        '>' => text.push_str("&gt;"),
        '"' => text.push_str("&quot;"),
        '\'' => text.push_str(quote),
        other => text.push(other),
    })
}

/// Keeps letters, digits and `kept`; with `"\0"` everything is encoded.
fn percent(secret: &str, kept: &str) -> Bytes {
    let mut text = Zeroizing::new(Vec::with_capacity(secret.len() * 3));
    for byte in secret.bytes() {
        if kept != "\0" && (byte.is_ascii_alphanumeric() || kept.as_bytes().contains(&byte)) {
            text.push(byte);
        } else {
            text.push(b'%');
            // Upper case, as encoders write it: base64 of it is looked for, too.
            let digits = [byte >> 4, byte & 15].map(|digit| b"0123456789ABCDEF".get(usize::from(digit)).copied());
            text.extend(digits.into_iter().flatten());
        }
    }
    text
}

fn each(secret: &str, mut write: impl FnMut(&mut String, char)) -> Bytes {
    // The longest reference of a character, so that growing leaves no copy behind.
    let mut text = String::with_capacity(secret.len() * 10);
    secret.chars().for_each(|character| write(&mut text, character));
    let bytes = bytes_of(text.bytes());
    text.zeroize();
    bytes
}
