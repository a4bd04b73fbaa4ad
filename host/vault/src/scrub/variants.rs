//! The forms in which a secret may turn up, but for escapes: those are read where the text is compared.
//!
//! Everything made here is a secret too and is wiped when dropped. Knows neither names nor texts.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use zeroize::{Zeroize as _, Zeroizing};

/// A form of a secret.
pub(super) type Form = Zeroizing<Vec<u8>>;

/// A line of a secret that has at least so many bytes is a secret of its own: keys are often passed on without their armour.
const LEAST_LINE_BYTES: usize = 16;

/// All forms of `secret`, which has no white space at its ends. Some may be equal.
pub(super) fn of(secret: &str) -> Vec<Form> {
    let reversed = Zeroizing::new(secret.chars().rev().collect::<String>());
    let mut forms = encodings(secret);
    for index in 0..forms.len() {
        if let Some(form) = forms.get(index) {
            // The plain form is reversed by characters below. The others are ASCII.
            let form: Form = Zeroizing::new(form.iter().rev().copied().collect());
            forms.push(form);
        }
    }
    forms.extend(encodings(&reversed));
    forms.extend([plain(secret), plain(&reversed)]);
    // Reading escapes to the bottom would take away what looks like one in the secret itself, and does not put characters
    // of several bytes together. Then the escaped forms are looked for as they stand.
    if !secret.is_ascii() || secret.contains(['%', '\\', '&']) {
        forms.extend(escaped(secret));
    }
    for line in secret.split(['\r', '\n']).flat_map(|line| line.split("\\n")).map(str::trim) {
        // The armour of a PEM file is no secret.
        if line.len() >= LEAST_LINE_BYTES && line.len() < secret.len() && !line.starts_with("-----") {
            forms.push(plain(line));
            forms.extend(encodings(line));
        }
    }
    forms
}

fn plain(text: &str) -> Form {
    Zeroizing::new(text.as_bytes().to_vec())
}

/// Hexadecimal, and base64 wherever the secret may stand within what was encoded.
fn encodings(text: &str) -> Vec<Form> {
    let mut forms = vec![hex(text, ""), hex(text, ":"), hex(text, " ")];
    for offset in 0..3_usize {
        let mut padded = Zeroizing::new(Vec::with_capacity(offset + text.len()));
        padded.resize(offset, 0);
        padded.extend_from_slice(text.as_bytes());
        let encoded = Zeroizing::new(STANDARD_NO_PAD.encode(&*padded).into_bytes());
        // Only digits all of whose bits are the secret's are the same whatever stands around it. The other alphabet is
        // made equal where texts are compared.
        let (first, end) = ((offset * 8).div_ceil(6), padded.len() * 8 / 6);
        forms.extend(encoded.get(first..end).map(|digits| Zeroizing::new(digits.to_vec())));
    }
    forms
}

fn hex(text: &str, separator: &str) -> Form {
    let mut digits = Zeroizing::new(String::with_capacity(text.len() * (2 + separator.len())));
    for (index, byte) in text.bytes().enumerate() {
        // Writing to a string cannot fail.
        write!(digits, "{}{byte:02x}", if index == 0 { "" } else { separator }).ok();
    }
    Zeroizing::new(std::mem::take(&mut *digits).into_bytes())
}

/// What the customary encoders make of a text.
fn escaped(secret: &str) -> Vec<Form> {
    /// What each kind of percent-encoder leaves as it is, beside letters and digits: RFC 3986, `encodeURIComponent`,
    /// paths, forms, `encodeURI`, and none.
    const KEPT: [&str; 6] = ["-._~", "-._~!'()*", "-._~/", "*-._", "-._~!'()*;,/?:@&=+$#", ""];
    let mut forms = Vec::new();
    for kept in KEPT {
        let once = percent(secret, kept);
        forms.extend([text_of(&percent(&once, kept)), text_of(&once)]);
    }
    forms.push(text_of(&percent(secret, "\0")));
    let json = Zeroizing::new(serde_json::to_string(secret).unwrap_or_default());
    let json = json.get(1..json.len().saturating_sub(1)).unwrap_or_default();
    let nested = Zeroizing::new(serde_json::to_string(json).unwrap_or_default());
    forms.push(text_of(nested.get(1..nested.len().saturating_sub(1)).unwrap_or_default()));
    forms.extend([text_of(json), text_of(&json.replace('/', "\\/"))]);
    forms.push(each(json, |text, character| {
        let mut units = [0; 2];
        if character.is_ascii() {
            text.push(character);
        } else {
            for unit in character.encode_utf16(&mut units) {
                write!(text, "\\u{unit:04x}").ok();
            }
        }
    }));
    for (quote, is_numeric) in [("&#39;", true), ("&#x27;", false), ("&apos;", true)] {
        forms.push(each(secret, |text, character| match character {
            '&' => text.push_str("&amp;"),
            '<' => text.push_str("&lt;"),
            '>' => text.push_str("&gt;"),
            '"' => text.push_str("&quot;"),
            '\'' => text.push_str(quote),
            other if is_numeric && !other.is_ascii() => drop(write!(text, "&#{};", u32::from(other))),
            other => text.push(other),
        }));
    }
    forms
}

fn text_of(text: &str) -> Form {
    plain(text)
}

/// `kept` is left as it is beside letters and digits; with `"\0"` nothing is.
fn percent(secret: &str, kept: &str) -> Zeroizing<String> {
    let mut text = Zeroizing::new(String::with_capacity(secret.len() * 3));
    for byte in secret.bytes() {
        if kept != "\0" && (byte.is_ascii_alphanumeric() || kept.as_bytes().contains(&byte)) {
            text.push(char::from(byte));
        } else {
            write!(text, "%{byte:02x}").ok();
        }
    }
    text
}

fn each(secret: &str, mut write: impl FnMut(&mut String, char)) -> Form {
    // The longest reference of a character, so that no copy is left behind by growing.
    let mut text = String::with_capacity(secret.len() * 10);
    secret.chars().for_each(|character| write(&mut text, character));
    let form = plain(&text);
    text.zeroize();
    form
}
