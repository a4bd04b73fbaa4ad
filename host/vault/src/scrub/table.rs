//! The encodings that `docs/credentials.md` promises to find, implemented independently of the scrubber: one row each.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};

use super::tests::scrubber;

/// A name, an encoder, and the most bytes that may remain: signs around a list or before the first letter, digits that
/// share bits with the bytes next to the secret.
type TableRow = (&'static str, fn(&str) -> Vec<u8>, usize);

fn bytes(secret: &str, write: impl Fn(u8) -> String) -> Vec<u8> {
    secret.bytes().map(write).collect::<String>().into()
}

fn chars(secret: &str, write: impl Fn(char) -> String) -> Vec<u8> {
    secret.chars().map(write).collect::<String>().into()
}

fn units(secret: &str, write: impl Fn(u16) -> String) -> Vec<u8> {
    secret.encode_utf16().map(write).collect::<String>().into()
}

/// Encodes signs only; letters and digits stay.
fn signs(secret: &str, write: impl Fn(char) -> String) -> Vec<u8> {
    chars(secret, |sign| if sign.is_ascii_alphanumeric() { sign.to_string() } else { write(sign) })
}

fn list(secret: &str, between: &str, write: impl Fn(u8) -> String) -> Vec<u8> {
    secret.bytes().map(write).collect::<Vec<_>>().join(between).into()
}

fn lines(text: &[u8], length: usize, between: &str) -> Vec<u8> {
    text.chunks(length).collect::<Vec<_>>().join(between.as_bytes())
}

fn base64(bytes: impl AsRef<[u8]>) -> Vec<u8> {
    STANDARD.encode(bytes).into()
}

/// Digits of some bits each, the last padded with zeros.
fn digits(bytes: &[u8], bits: usize, alphabet: &str) -> Vec<u8> {
    let binary: String = bytes.iter().map(|byte| format!("{byte:08b}")).collect();
    let binary = format!("{binary}{}", "0".repeat((bits - binary.len() % bits) % bits));
    let value = |digit: &[u8]| usize::from_str_radix(std::str::from_utf8(digit).unwrap(), 2).unwrap();
    binary.as_bytes().chunks(bits).map(|digit| alphabet.as_bytes()[value(digit)]).collect()
}

const BASE32: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

fn base85(bytes: &[u8], alphabet: &[u8]) -> Vec<u8> {
    let mut padded = bytes.to_vec();
    padded.resize(bytes.len().next_multiple_of(4), 0);
    let group = |group: &[u8]| {
        let mut value = u32::from_be_bytes(group.try_into().unwrap());
        let mut digits = [0; 5];
        for digit in digits.iter_mut().rev() {
            *digit = alphabet[(value % 85) as usize];
            value /= 85;
        }
        digits
    };
    padded.chunks(4).flat_map(group).collect()
}

fn base58(bytes: &[u8]) -> Vec<u8> {
    let alphabet = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
    let (mut number, mut digits) = (bytes.to_vec(), Vec::new());
    while number.iter().any(|byte| *byte != 0) {
        let mut rest = 0;
        for byte in &mut number {
            let value = rest * 256 + u32::from(*byte);
            *byte = (value / 58) as u8;
            rest = value % 58;
        }
        digits.push(alphabet[rest as usize]);
    }
    digits.reverse();
    digits
}

fn uuencode(secret: &str, zero: char) -> Vec<u8> {
    let alphabet: String = std::iter::once(zero).chain('!'..='_').collect();
    secret
        .as_bytes()
        .chunks(45)
        .flat_map(|line| {
            let mut padded = line.to_vec();
            padded.resize(line.len().next_multiple_of(3), 0);
            let length = char::from(b' ' + line.len() as u8);
            [length.to_string().into_bytes(), digits(&padded, 6, &alphabet), b"\n".to_vec()].concat()
        })
        .collect()
}

fn json(secret: &str) -> String {
    serde_json::to_string(secret).unwrap()
}

/// The output of Python's `json.dumps`.
fn json_ascii(secret: &str) -> String {
    json(secret).chars().map(|sign| if sign.is_ascii() { sign.to_string() } else { utf16_escapes(sign) }).collect()
}

fn utf16_escapes(sign: char) -> String {
    sign.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect()
}

fn percent(secret: &[u8], kept: &str) -> Vec<u8> {
    let mut text = String::new();
    for byte in secret {
        if byte.is_ascii_alphanumeric() || kept.as_bytes().contains(byte) {
            text.push(char::from(*byte));
        } else {
            write!(text, "%{byte:02X}").unwrap();
        }
    }
    text.into()
}

fn quoted(secret: &str) -> Vec<u8> {
    let mut text = String::new();
    let mut column = 0;
    for byte in secret.bytes() {
        let piece = if byte.is_ascii_graphic() && byte != b'=' || byte == b' ' {
            char::from(byte).to_string()
        } else {
            format!("={byte:02X}")
        };
        if column + piece.len() > 75 {
            text.push_str("=\r\n");
            column = 0;
        }
        column += piece.len();
        text.push_str(&piece);
    }
    text.into()
}

fn utf16(secret: &str, write: fn(u16) -> [u8; 2]) -> Vec<u8> {
    secret.encode_utf16().flat_map(write).collect()
}

fn utf32(secret: &str, write: fn(u32) -> [u8; 4]) -> Vec<u8> {
    secret.chars().flat_map(|sign| write(u32::from(sign))).collect()
}

/// The output of Python's `utf-7`; `optional` signs are encoded, too.
fn utf7(secret: &str, optional: bool) -> Vec<u8> {
    let is_direct = |sign: char| {
        sign.is_ascii_alphanumeric()
            || "'(),-./:? \t\r\n".contains(sign)
            || !optional && "!\"#$%&*;<=>@[]^_`{|}".contains(sign)
    };
    let (mut text, mut shifted) = (String::new(), String::new());
    let end = |text: &mut String, shifted: &mut String, next: Option<char>| {
        if !shifted.is_empty() {
            let encoded = STANDARD.encode(utf16(shifted, u16::to_be_bytes));
            write!(text, "+{}", encoded.trim_end_matches('=')).unwrap();
            if next.is_none_or(|next| next.is_ascii_alphanumeric() || "/-".contains(next)) {
                text.push('-');
            }
            shifted.clear();
        }
    };
    for sign in secret.chars() {
        if is_direct(sign) {
            end(&mut text, &mut shifted, Some(sign));
            text.push(sign);
        } else if sign == '+' && shifted.is_empty() {
            text.push_str("+-");
        } else {
            shifted.push(sign);
        }
    }
    end(&mut text, &mut shifted, None);
    text.into()
}

fn names(secret: &str, end: &str) -> Vec<u8> {
    let name = |sign| match sign {
        '&' => "amp",
        '<' => "lt",
        '>' => "gt",
        '"' => "quot",
        'é' => "eacute",
        'ä' => "auml",
        'ö' => "ouml",
        'ü' => "uuml",
        'ñ' => "ntilde",
        _ => "",
    };
    // Without `;` a name ends before any character that does not make it another name.
    chars(secret, |sign| if name(sign).is_empty() { sign.to_string() } else { format!("&{}{end}", name(sign)) })
}

fn every_name(secret: &str) -> Vec<u8> {
    let all = [
        ('!', "excl"),
        ('#', "num"),
        ('$', "dollar"),
        ('%', "percnt"),
        ('(', "lpar"),
        (')', "rpar"),
        ('*', "ast"),
        ('+', "plus"),
        (',', "comma"),
        ('.', "period"),
        ('/', "sol"),
        (':', "colon"),
        (';', "semi"),
        ('=', "equals"),
        ('?', "quest"),
        ('@', "commat"),
        ('[', "lsqb"),
        ('\\', "bsol"),
        (']', "rsqb"),
        ('^', "Hat"),
        ('_', "lowbar"),
        ('`', "grave"),
        ('{', "lcub"),
        ('|', "verbar"),
        ('}', "rcub"),
        ('&', "amp"),
        ('<', "lt"),
        ('>', "gt"),
        ('"', "quot"),
        ('\'', "apos"),
        ('\n', "NewLine"),
        ('é', "eacute"),
        ('ß', "szlig"),
    ];
    chars(secret, |sign| match all.iter().find(|(known, _)| *known == sign) {
        Some((_, name)) => format!("&{name};"),
        None => sign.to_string(),
    })
}

const COMPONENT: &str = "-_.!~*'()";

pub(super) const TABLE: &[TableRow] = &[
    ("plain", |s| s.into(), 0),
    ("upper case", |s| s.to_uppercase().into(), 0),
    ("lower case", |s| s.to_lowercase().into(), 0),
    ("upper case of ASCII", |s| s.to_ascii_uppercase().into(), 0),
    (
        "changing case",
        |s| {
            s.chars()
                .enumerate()
                .map(|(n, c)| if n % 2 == 0 { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() })
                .collect::<String>()
                .into()
        },
        0,
    ),
    ("reversed", |s| s.chars().rev().collect::<String>().into(), 0),
    ("UTF-8 with a mark", |s| format!("\u{feff}{s}").into(), 3),
    ("UTF-16LE", |s| utf16(s, u16::to_le_bytes), 1),
    ("UTF-16BE", |s| utf16(s, u16::to_be_bytes), 1),
    ("UTF-16LE with a mark", |s| utf16(&format!("\u{feff}{s}"), u16::to_le_bytes), 3),
    ("UTF-16BE with a mark", |s| utf16(&format!("\u{feff}{s}"), u16::to_be_bytes), 3),
    ("UTF-32LE", |s| utf32(s, u32::to_le_bytes), 3),
    ("UTF-32BE", |s| utf32(s, u32::to_be_bytes), 3),
    ("UTF-32LE with a mark", |s| utf32(&format!("\u{feff}{s}"), u32::to_le_bytes), 7),
    ("UTF-32BE with a mark", |s| utf32(&format!("\u{feff}{s}"), u32::to_be_bytes), 7),
    ("zero bytes between", |s| s.bytes().flat_map(|byte| [byte, 0]).collect(), 1),
    (
        "Latin-1",
        |s| s.chars().map(|c| u8::try_from(u32::from(c))).collect::<Result<_, _>>().unwrap_or_else(|_| s.into()),
        0,
    ),
    ("UTF-8 taken for Latin-1", |s| s.bytes().map(char::from).collect::<String>().into(), 0),
    ("UTF-7", |s| utf7(s, false), 1),
    ("UTF-7, optional signs encoded", |s| utf7(s, true), 1),
    ("hexadecimal", |s| bytes(s, |b| format!("{b:02x}")), 0),
    ("hexadecimal, upper case", |s| bytes(s, |b| format!("{b:02X}")), 0),
    ("hexadecimal, mixed case", |s| bytes(s, |b| if b % 2 == 0 { format!("{b:02X}") } else { format!("{b:02x}") }), 0),
    ("hexadecimal with spaces", |s| list(s, " ", |b| format!("{b:02x}")), 0),
    ("hexadecimal with colons", |s| list(s, ":", |b| format!("{b:02X}")), 0),
    ("hexadecimal with dashes", |s| list(s, "-", |b| format!("{b:02X}")), 0),
    ("hexadecimal with commas", |s| list(s, ", ", |b| format!("{b:02x}")), 0),
    ("hexadecimal with line breaks", |s| list(s, "\n", |b| format!("{b:02x}")), 0),
    ("hexadecimal in lines", |s| lines(&bytes(s, |b| format!("{b:02x}")), 60, "\n"), 0),
    ("hexadecimal in indented lines", |s| lines(&bytes(s, |b| format!("{b:02x}")), 32, "\r\n    "), 0),
    ("hexadecimal in groups", |s| lines(&bytes(s, |b| format!("{b:02x}")), 4, " "), 0),
    ("hexadecimal after 0x", |s| [b"0x".to_vec(), bytes(s, |b| format!("{b:02x}"))].concat(), 2),
    ("hexadecimal, reversed", |s| bytes(s, |b| format!("{b:02x}")).into_iter().rev().collect(), 0),
    (
        "hexadecimal of UTF-16",
        |s| utf16(s, u16::to_le_bytes).iter().map(|b| format!("{b:02x}")).collect::<String>().into(),
        2,
    ),
    ("a list of bytes", |s| [b"[".to_vec(), list(s, ",", |b| b.to_string()), b"]".to_vec()].concat(), 2),
    ("a list of bytes with spaces", |s| [b"[".to_vec(), list(s, ", ", |b| b.to_string()), b"]".to_vec()].concat(), 2),
    (
        "a list of bytes, a line each",
        |s| [b"[\n    ".to_vec(), list(s, ",\n    ", |b| b.to_string()), b"\n]".to_vec()].concat(),
        8,
    ),
    ("numbers with spaces", |s| list(s, " ", |b| b.to_string()), 0),
    ("numbers with zeros before", |s| list(s, " ", |b| format!("{b:03}")), 0),
    ("signed numbers", |s| list(s, ", ", |b| b.cast_signed().to_string()), 1),
    ("code points", |s| s.chars().map(|c| u32::from(c).to_string()).collect::<Vec<_>>().join(",").into(), 0),
    (
        "String.fromCharCode",
        |s| {
            format!("String.fromCharCode({})", s.encode_utf16().map(|u| u.to_string()).collect::<Vec<_>>().join(", "))
                .into()
        },
        21,
    ),
    ("an Erlang binary", |s| [b"<<".to_vec(), list(s, ",", |b| b.to_string()), b">>".to_vec()].concat(), 4),
    ("octal numbers", |s| list(s, ", ", |b| format!("0{b:03o}")), 0),
    ("octal numbers after 0o", |s| list(s, " ", |b| format!("0o{b:o}")), 0),
    ("octal numbers, three digits", |s| list(s, " ", |b| format!("{b:03o}")), 0),
    ("numbers after 0x", |s| list(s, ", ", |b| format!("0x{b:02x}")), 0),
    (
        "numbers after 0X in braces",
        |s| [b"{".to_vec(), list(s, ",", |b| format!("0X{b:02X}")), b"}".to_vec()].concat(),
        2,
    ),
    ("numbers after 0x, a line each", |s| list(s, ",\n\t", |b| format!("0x{b:02x}")), 0),
    ("binary", |s| bytes(s, |b| format!("{b:08b}")), 0),
    ("binary with spaces", |s| list(s, " ", |b| format!("{b:08b}")), 0),
    ("U+0073", |s| s.encode_utf16().map(|u| format!("U+{u:04X}")).collect::<Vec<_>>().join(" ").into(), 0),
    ("a list of characters", |s| serde_json::to_vec(&s.chars().collect::<Vec<_>>()).unwrap(), 24),
    ("characters with spaces", |s| s.chars().map(String::from).collect::<Vec<_>>().join(" ").into(), 10),
    ("characters with commas", |s| s.chars().map(String::from).collect::<Vec<_>>().join(", ").into(), 15),
    ("a character a line", |s| s.chars().map(String::from).collect::<Vec<_>>().join("\n").into(), 0),
    ("percent", |s| bytes(s, |b| format!("%{b:02X}")), 0),
    ("percent, lower case", |s| bytes(s, |b| format!("%{b:02x}")), 0),
    ("percent as encodeURIComponent", |s| percent(s.as_bytes(), COMPONENT), 0),
    ("percent as encodeURI", |s| percent(s.as_bytes(), "-_.!~*'();/?:@&=+$,#"), 0),
    ("percent as forms", |s| form_urlencode(s), 0),
    ("percent of percent", |s| percent(&percent(s.as_bytes(), COMPONENT), COMPONENT), 0),
    ("percent of percent of every byte", |s| bytes(s, |b| format!("%25{b:02x}")), 0),
    ("percent three times", |s| bytes(s, |b| format!("%2525{b:02x}")), 0),
    ("percent of UTF-16", |s| percent(&utf16(s, u16::to_le_bytes), ""), 3),
    ("%u0073", |s| units(s, |u| format!("%u{u:04x}")), 0),
    ("\\x73", |s| bytes(s, |b| format!("\\x{b:02x}")), 0),
    ("\\x73, upper case", |s| bytes(s, |b| format!("\\x{b:02X}")), 0),
    (
        "\\x73 of signs",
        |s| {
            s.bytes()
                .map(|b| if b.is_ascii_alphanumeric() { char::from(b).to_string() } else { format!("\\x{b:02x}") })
                .collect::<String>()
                .into()
        },
        0,
    ),
    ("\\x{73}", |s| chars(s, |c| format!("\\x{{{:x}}}", u32::from(c))), 0),
    ("\\u0073", |s| units(s, |u| format!("\\u{u:04x}")), 0),
    ("\\u0073 of signs", |s| signs(s, utf16_escapes), 0),
    ("\\\\u0073", |s| units(s, |u| format!("\\\\u{u:04X}")), 0),
    ("\\u{73}", |s| chars(s, |c| format!("\\u{{{:x}}}", u32::from(c))), 0),
    ("\\u{73} of signs", |s| signs(s, |c| format!("\\u{{{:x}}}", u32::from(c))), 0),
    ("\\U00000073", |s| chars(s, |c| format!("\\U{:08x}", u32::from(c))), 0),
    ("\\163", |s| bytes(s, |b| format!("\\{b:03o}")), 0),
    (
        "\\163 of signs",
        |s| {
            s.bytes()
                .map(|b| if b.is_ascii_alphanumeric() { char::from(b).to_string() } else { format!("\\{b:03o}") })
                .collect::<String>()
                .into()
        },
        0,
    ),
    ("\\0163", |s| bytes(s, |b| format!("\\0{b:03o}")), 1),
    ("\\115", |s| bytes(s, |b| format!("\\{b:03}")), 1),
    ("JSON", |s| json(s).into(), 2),
    ("JSON with \\/", |s| json(s).replace('/', "\\/").into(), 2),
    ("JSON in ASCII", |s| json_ascii(s).into(), 2),
    ("JSON in JSON", |s| json(&json(s)).into(), 6),
    ("JSON in ASCII in JSON", |s| json(&json_ascii(s)).into(), 6),
    (
        "a shell's word",
        |s| {
            chars(s, |c| {
                if c.is_ascii_alphanumeric() || !c.is_ascii() || c == '\n' { c.to_string() } else { format!("\\{c}") }
            })
        },
        0,
    ),
    ("CSS", |s| chars(s, |c| format!("\\{:x} ", u32::from(c))), 0),
    ("CSS, six digits", |s| chars(s, |c| format!("\\{:06X}", u32::from(c))), 0),
    ("CSS of signs", |s| signs(s, |c| format!("\\{:x} ", u32::from(c))), 0),
    ("quoted-printable", |s| quoted(s), 0),
    ("quoted-printable of every byte", |s| lines(&bytes(s, |b| format!("={b:02X}")), 75, "=\r\n"), 0),
    (
        "Q of RFC 2047",
        |s| {
            s.bytes()
                .map(|b| match b {
                    b' ' => "_".to_owned(),
                    b if b.is_ascii_alphanumeric() => char::from(b).to_string(),
                    b => format!("={b:02X}"),
                })
                .collect::<String>()
                .into()
        },
        0,
    ),
    ("&#115;", |s| chars(s, |c| format!("&#{};", u32::from(c))), 0),
    ("&#115", |s| chars(s, |c| format!("&#{}", u32::from(c))), 0),
    ("&#115; of signs", |s| signs(s, |c| format!("&#{};", u32::from(c))), 0),
    ("&#x73;", |s| chars(s, |c| format!("&#x{:x};", u32::from(c))), 0),
    ("&#x73", |s| chars(s, |c| format!("&#x{:X}", u32::from(c))), 0),
    ("&#x0073;", |s| chars(s, |c| format!("&#x{:04x};", u32::from(c))), 0),
    ("&#00115;", |s| chars(s, |c| format!("&#{:07};", u32::from(c))), 0),
    ("names of HTML", |s| names(s, ";"), 0),
    ("names of HTML without ;", |s| names(s, ""), 0),
    ("names of HTML for every sign", every_name, 0),
    ("names of HTML twice", |s| String::from_utf8(names(s, ";")).unwrap().replace('&', "&amp;").into(), 0),
    ("&amp;#115;", |s| chars(s, |c| format!("&amp;#{};", u32::from(c))), 0),
    ("base64", |s| base64(s), 4),
    ("base64 after one byte", |s| base64(format!(":{s}")), 6),
    ("base64 after two bytes", |s| base64(format!("u:{s}")), 6),
    ("base64 for URLs", |s| URL_SAFE_NO_PAD.encode(s).into(), 2),
    ("base64 for URLs after a byte", |s| URL_SAFE_NO_PAD.encode(format!("~{s}")).into(), 4),
    ("base64 for URLs after two bytes", |s| URL_SAFE_NO_PAD.encode(format!("?~{s}")).into(), 5),
    ("base64 in lines of MIME", |s| lines(&base64(s), 76, "\r\n"), 4),
    ("base64 in lines of PEM", |s| lines(&base64(s), 64, "\n"), 4),
    ("base64 in indented lines", |s| lines(&base64(s), 20, "\n        "), 16),
    ("base64 with spaces", |s| lines(&base64(s), 4, " "), 5),
    ("base64 in quoted lines", |s| lines(&base64(s), 32, "\n> "), 7),
    ("base64 with its signs escaped", |s| percent(&base64(s), ""), 9),
    ("base64 in JSON", |s| String::from_utf8(base64(s)).unwrap().replace('/', "\\/").into(), 4),
    ("base64, reversed", |s| base64(s).into_iter().rev().collect(), 4),
    ("base64 of JSON", |s| base64(json(s)), 8),
    ("base64 of JSON in ASCII", |s| base64(json_ascii(s)), 8),
    ("base64 of percent", |s| base64(percent(s.as_bytes(), "-._~")), 8),
    (
        "base64 of HTML",
        |s| {
            base64(
                s.replace('&', "&amp;")
                    .replace('<', "&lt;")
                    .replace('>', "&gt;")
                    .replace('"', "&quot;")
                    .replace('\'', "&#39;"),
            )
        },
        8,
    ),
    ("base64 of UTF-16LE", |s| base64(utf16(s, u16::to_le_bytes)), 6),
    ("base64 of UTF-16BE", |s| base64(utf16(s, u16::to_be_bytes)), 6),
    ("base64 of base64", |s| base64(base64(s)), 14),
    ("base64 of base64 for a user", |s| base64(base64(format!("u:{s}"))), 18),
    ("data of a URL", |s| [b"data:;base64,".to_vec(), base64(s)].concat(), 17),
    ("base32", |s| [digits(s.as_bytes(), 5, BASE32), b"===".to_vec()].concat(), 5),
    ("base32, lower case", |s| digits(s.as_bytes(), 5, &BASE32.to_lowercase()), 2),
    ("base32 after one byte", |s| digits(format!("a{s}").as_bytes(), 5, BASE32), 4),
    ("base32 after two bytes", |s| digits(format!("ab{s}").as_bytes(), 5, BASE32), 6),
    ("base32 after three bytes", |s| digits(format!("abc{s}").as_bytes(), 5, BASE32), 7),
    ("base32 after four bytes", |s| digits(format!("abcd{s}").as_bytes(), 5, BASE32), 9),
    ("base32 in groups", |s| lines(&digits(s.as_bytes(), 5, BASE32), 4, "-"), 3),
    ("base32 in lines", |s| lines(&digits(s.as_bytes(), 5, BASE32), 16, "\n  "), 5),
    ("base32 with the hexadecimal alphabet", |s| digits(s.as_bytes(), 5, "0123456789ABCDEFGHIJKLMNOPQRSTUV"), 2),
    ("base32 of Crockford", |s| digits(s.as_bytes(), 5, "0123456789ABCDEFGHJKMNPQRSTVWXYZ"), 2),
    ("z-base-32", |s| digits(s.as_bytes(), 5, "ybndrfg8ejkmcpqxot1uwisza345h769"), 2),
    ("base58", |s| base58(s.as_bytes()), 0),
    ("Ascii85", |s| base85(s.as_bytes(), &(b'!'..=b'u').collect::<Vec<_>>()), 5),
    (
        "base85 of RFC 1924",
        |s| {
            base85(
                s.as_bytes(),
                b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~",
            )
        },
        5,
    ),
    (
        "Z85",
        |s| {
            base85(
                s.as_bytes(),
                b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#",
            )
        },
        5,
    ),
    ("uuencode", |s| uuencode(s, '`'), 6),
    ("uuencode with spaces", |s| uuencode(s, ' '), 6),
    ("xxencode", |s| digits(s.as_bytes(), 6, "+-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"), 2),
    ("in lines", |s| lines(s.as_bytes(), 20, "\r\n"), 0),
    ("in indented lines", |s| lines(s.as_bytes(), 20, "\n    "), 0),
    ("in quoted lines", |s| lines(s.as_bytes(), 20, "\n> "), 0),
    ("in a shell's continued lines", |s| lines(s.as_bytes(), 20, "\\\n"), 0),
];

fn form_urlencode(secret: &str) -> Vec<u8> {
    String::from_utf8(percent(secret.as_bytes(), "*-._ ")).unwrap().replace(' ', "+").into()
}

pub(super) fn secrets() -> Vec<String> {
    let long: String = (0..2_000_u32).map(|n| char::from(b'0' + (n * n % 75) as u8)).collect();
    let pem = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7\nVJTUt9Us8cKjMzEfYyjiWA4R4ypDgxZ\n-----END PRIVATE KEY-----";
    [
        "abcdefgh",
        "hunter2-42",
        "Tr0ub4dor&3",
        "sk-live-4f9a7c21d8e34b60",
        "pa\"ss'wo\\rd-x9",
        "100%25sure%41bc",
        "aB+/cD==eF+g/h1",
        "pässwörd-éñü",
        "пароль-секрет",
        "🔑key-😀-value",
        "{\"token\":\"abc123DEF\",\"n\":1}",
        pem,
        "first line 1\nsecond line 2",
        "correct horse battery",
        &long,
        "<b>&amp;secret</b>",
        "C:\\new\\table\\x41",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln",
        "9081726354",
        "!@#$%^&*()_+{}|",
        "https://user:p%40ss@host/x?y=z",
    ]
    .map(str::to_owned)
    .into()
}

/// Whether the documentation lists this combination as not found.
fn is_documented(row: &str, secret: &str) -> bool {
    let signs =
        secret.chars().filter(char::is_ascii_alphanumeric).count() + secret.chars().filter(|c| !c.is_ascii()).count();
    let is_long = secret.len() > 128;
    match row {
        // Spelled out, a secret needs eight letters and digits.
        // A line break in it is written with a letter.
        "a list of characters" => signs < 8 || secret.contains('\n'),
        "characters with spaces" | "characters with commas" => signs < 8,
        "base58" => is_long,
        // Each line begins with its length.
        "uuencode" | "uuencode with spaces" => secret.len() > 45,
        _ => false,
    }
}

#[test]
fn no_encoding_of_the_table_hides_a_secret() {
    let mut missed = Vec::new();
    for secret in secrets() {
        let scrubber = scrubber(&[("key", &secret)]);
        for (name, encode, slack) in TABLE {
            let encoded = encode(&secret);
            let text = [b"before ".as_slice(), &encoded, b" after"].concat();
            let scrubbed = scrubber.bytes(text.clone());
            let found = String::from_utf8_lossy(&scrubbed).matches("<credential:key>").count();
            let left = scrubbed.len().saturating_sub(found * "<credential:key>".len() + "before  after".len());
            let names: Vec<_> = scrubber.secrets_in(&text).iter().map(|secret| secret.name.as_str()).collect();
            let is_seen = found == 0 || left > *slack || names != ["key"];
            if is_seen && !is_documented(name, &secret) {
                let [secret, encoded, scrubbed] =
                    [secret.as_bytes(), &encoded, &scrubbed].map(|text| text[..text.len().min(90)].escape_ascii());
                missed.push(format!("{name}: {secret} as {encoded} gave {scrubbed}"));
            }
            assert_eq!(scrubber.bytes(scrubbed.clone()), scrubbed, "{name} twice");
        }
    }
    assert!(TABLE.len() >= 98 && secrets().len() >= 20);
    assert!(missed.is_empty(), "{} of {}:\n{}", missed.len(), TABLE.len() * secrets().len(), missed.join("\n"));
}

#[test]
fn no_border_of_pieces_hides_a_secret() {
    for secret in secrets().iter().filter(|secret| secret.len() < 64) {
        let scrubber = scrubber(&[("key", secret)]);
        for (name, encode, _) in TABLE {
            let text = [b"before ".as_slice(), &encode(secret), b" after"].concat();
            let whole = scrubber.bytes(text.clone());
            for split in 0..=text.len() {
                let mut stream = scrubber.stream();
                let mut pieced = stream.push(&text[..split]);
                pieced.extend(stream.push(&text[split..]));
                pieced.extend(stream.finish());
                assert_eq!(
                    String::from_utf8_lossy(&pieced),
                    String::from_utf8_lossy(&whole),
                    "{name}: {secret:?} split at {split}"
                );
            }
        }
    }
}
