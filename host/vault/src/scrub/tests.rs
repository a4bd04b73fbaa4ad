//! Secrets that are found, texts that are left alone, streams in pieces, and speed.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use proptest::prelude::*;

use super::*;

pub(super) fn scrubber(secrets: &[(&str, &str)]) -> Arc<Scrubber> {
    Arc::new(Scrubber::new(
        secrets
            .iter()
            .map(|(name, value)| (CredentialName::parse(name).unwrap(), Secret::new((*value).to_owned())))
            .collect(),
    ))
}

fn check(secret: &str, text: &str, expected: &str) {
    let scrubber = scrubber(&[("key", secret)]);
    let expected = expected.replace('@', "<credential:key>");
    assert_eq!(scrubber.text(text.to_owned()), expected, "{secret:?} in {text:?}");
    for split in 0..=text.len() {
        let mut stream = scrubber.stream();
        let mut found = stream.push(&text.as_bytes()[..split]);
        found.extend(stream.push(&text.as_bytes()[split..]));
        found.extend(stream.finish());
        assert_eq!(String::from_utf8_lossy(&found), expected, "{secret:?} in {text:?}, split at {split}");
    }
}

const KEY: &str = "sk-Te5t+Key/42=x";

#[test]
fn common_encodings_are_found() {
    let hex: String = KEY.bytes().map(|byte| format!("{byte:02X}")).collect();
    let reversed: String = KEY.chars().rev().collect();
    let every = |format: fn(u8) -> String| KEY.bytes().map(format).collect::<String>();
    for encoded in [
        KEY.to_owned(),
        KEY.to_uppercase(),
        reversed.clone(),
        hex.clone(),
        hex.chars().rev().collect(),
        every(|byte| format!("{byte:02x}:")).trim_end_matches(':').to_owned(),
        "sk-Te5t%2BKey%2F42%3Dx".to_owned(),
        "sk-Te5t%252BKey%252f42%253Dx".to_owned(),
        every(|byte| format!("%{byte:02x}")),
        every(|byte| format!("%25{byte:02X}")),
        every(|byte| format!("\\u{byte:04x}")),
        every(|byte| format!("\\x{byte:02x}")),
        every(|byte| format!("&#{byte};")),
        every(|byte| format!("&#x{byte:x};")),
        "sk-Te5t+Key\\/42=x".to_owned(),
        "sk-Te5t%2bKey\\u002f42&#61;x".to_owned(),
        "sk-Te5t\n+Key/42\r\n=x".to_owned(),
    ] {
        check(KEY, &format!("a:{encoded}\n\"b\""), "a:@\n\"b\"");
        check(KEY, &encoded, "@");
    }
}

#[test]
fn base64_is_found_wherever_the_secret_stands_in_it() {
    let scrubber = scrubber(&[("key", KEY)]);
    for before in 0..6 {
        for after in 0..4 {
            let plain = format!("{}{KEY}{}", "u:pw!~".get(..before).unwrap(), "?>x".get(..after).unwrap());
            for encoded in [STANDARD.encode(&plain), URL_SAFE_NO_PAD.encode(&plain)] {
                let wrapped = format!("{}\r\n{}", &encoded[..encoded.len() / 2], &encoded[encoded.len() / 2..]);
                let escaped = encoded.replace('+', "%2B").replace('/', "%2F").replace('=', "%3D");
                let reversed: String = encoded.chars().rev().collect();
                for text in [&encoded, &wrapped, &escaped, &reversed] {
                    let found = scrubber.text(format!("Basic {text} end"));
                    assert!(found.contains("<credential:key>"), "{found}");
                    // At most the signs around it, and the digits that share bits with it.
                    assert!(found.len() <= "Basic <credential:key> end".len() + 14 + 8, "{found}");
                }
            }
        }
    }
}

#[test]
fn secrets_that_look_like_escapes_are_found() {
    for secret in
        ["pass%41word", "%25%2541abc", "41abcdefgh", "a\\nb\\\\cdefg", "x&amp;yz&1234", "tick\\\\'\"<&>", "pässwörd-é"]
    {
        for before in ["", "%", "\\", "&", "%4", "\\u00", "&#x"] {
            let scrubber = scrubber(&[("key", secret)]);
            let json = serde_json::to_string(secret).unwrap();
            let percent: String = secret.bytes().map(|byte| format!("%{byte:02X}")).collect();
            for encoded in [secret, json.trim_matches('"'), &percent] {
                let found = scrubber.text(format!("{before}{encoded} end"));
                assert!(found.ends_with("<credential:key> end"), "{secret}: {before}{encoded} gave {found}");
            }
        }
    }
    check("quo\"te<d>&amp", "quo&quot;te&lt;d&gt;&amp;amp", "@");
    check("pässwörd-é", "p\\u00e4ssw\\u00f6rd-\\u00e9", "@");
}

#[test]
fn other_text_is_left_alone() {
    let text = "100% of Tom & Jerry's \\work\\: caf\u{e9} %zz &nope; sk-Te5t+Key/43=x \\u00";
    check(KEY, text, text);
    let scrubber = scrubber(&[("key", KEY)]);
    let bytes: Vec<u8> = (0..=255).cycle().take(4096).collect();
    assert_eq!(scrubber.bytes(bytes.clone()), bytes);
    assert_eq!(Arc::new(Scrubber::default()).stream().push(b"abc"), b"abc");
    assert!(Scrubber::default().is_empty() && !scrubber.is_empty());
}

#[test]
fn the_longest_wins_and_names_its_own() {
    let scrubber = scrubber(&[("short", "abcdefgh"), ("long", "abcdefghij"), ("tiny", "xyz")]);
    assert_eq!(scrubber.text("abcdefghij abcdefghi xyz".to_owned()), "<credential:long> <credential:short>i xyz");
}

#[test]
fn lines_of_a_key_file_are_secrets() {
    let (first, second) = ("MIIEvQIBADANBgkqhkiG9w0BAQ", "EFAASCBKcwggSjAgEAAoIBAQC7");
    let pem = format!("-----BEGIN PRIVATE KEY-----\n{first}\n{second}\n-----END PRIVATE KEY-----\n");
    for text in [pem.trim().to_owned(), pem.trim().replace('\n', "\r\n"), pem.trim().replace('\n', "\\n")] {
        check(pem.trim(), &format!("[{text}]"), "[@]");
    }
    check(&pem, &format!("- {second} -"), "- @ -");
    check(&pem, "-----BEGIN PRIVATE KEY-----\n", "-----BEGIN PRIVATE KEY-----\n");
    let account = format!("{{\"private_key\": \"-----BEGIN PRIVATE KEY-----\\n{first}\\n{second}\\n\"}}");
    check(&account, &format!("{first} {second}"), "@ @");
}

#[test]
fn json_is_scrubbed_everywhere() {
    let scrubber = scrubber(&[("key", KEY), ("pin", "1234567890")]);
    let value = serde_json::json!({ KEY: [KEY, 1, null, true], "n": 1_234_567_890_u64, "m": 12 });
    assert_eq!(
        scrubber.json(value),
        serde_json::json!({ "<credential:key>": ["<credential:key>", 1, null, true], "n": "<credential:pin>", "m": 12 })
    );
}

#[test]
fn nothing_prints_a_secret() {
    let scrubber = scrubber(&[("key", KEY)]);
    let mut stream = scrubber.stream();
    stream.push(&KEY.as_bytes()[..10]);
    let shown = format!("{scrubber:?} {stream:?}");
    assert!(!shown.contains("sk-") && !shown.contains("115"), "{shown}");
}

#[test]
fn ordinary_words_are_not_held_back_for_long() {
    let long = "k3y-".repeat(1000);
    let scrubber = scrubber(&[("key", &long)]);
    for (piece, most_held) in
        [("data: an ordinary line of an answer\n\n", 4), ("a key: k3y-k", 5), ("100%", 4), ("&am", 3), ("#\n", 0)]
    {
        let mut stream = scrubber.stream();
        let released = stream.push(piece.as_bytes());
        assert!(released.len() >= piece.len() - most_held && piece.as_bytes().starts_with(&released), "{piece}");
        assert_eq!([released, stream.finish()].concat(), piece.as_bytes());
    }
}

#[test]
fn a_secret_byte_by_byte_is_not_compared_for_each_byte() {
    let long: String = (0..16_384).map(|n| char::from(b'a' + (n * n % 23) as u8)).collect();
    let scrubber = scrubber(&[("key", &long)]);
    let mut stream = scrubber.stream();
    let mut looks = 0;
    let mut last = 0;
    for byte in long.as_bytes() {
        assert!(stream.push(std::slice::from_ref(byte)).is_empty());
        looks += usize::from(stream.again_at != last);
        last = stream.again_at;
    }
    assert!(looks < 200, "{looks}");
    assert_eq!(stream.finish(), b"<credential:key>");
}

/// Texts that are dense in escapes, secrets and parts of them.
fn texts() -> impl Strategy<Value = String> {
    let secret = "[ -~é\n]{8,24}";
    let piece = prop_oneof![
        3 => Just("\u{0}".to_owned()),
        2 => "[a-zA-Z0-9+/=_-]{0,12}",
        2 => "[%\\\\&\"\r\n;#xu0-9a-f]{0,8}",
        1 => "[ -~é]{0,8}",
    ];
    (secret, proptest::collection::vec((piece, 0..8_u8), 0..12)).prop_map(|(secret, pieces)| {
        let mut text = secret.clone();
        text.push('\u{1}');
        for (piece, how) in pieces {
            text.push_str(&if piece == "\u{0}" { encode(&secret, how) } else { piece });
        }
        text
    })
}

fn encode(secret: &str, how: u8) -> String {
    match how {
        0 => secret.to_owned(),
        1 => secret.bytes().map(|byte| format!("{byte:02x}")).collect(),
        2 => STANDARD.encode(secret),
        3 => URL_SAFE_NO_PAD.encode(format!("ab{secret}")),
        4 => secret.bytes().map(|byte| format!("%{byte:02x}")).collect(),
        5 => {
            let json = serde_json::to_string(secret).unwrap();
            json[1..json.len() - 1].to_owned()
        }
        6 => secret.chars().rev().collect(),
        _ => secret.chars().take(secret.chars().count() - 1).collect(),
    }
}

/// Whether the secret has characters of which placeholders are made.
fn is_of_its_placeholder(secret: &str) -> bool {
    secret.contains(['<', '>', ':'])
}

proptest! {
    #![proptest_config(ProptestConfig::default())]

    #[test]
    fn any_split_gives_the_same_and_no_form_is_left(text in texts(), cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..6)) {
        let (secret, text) = text.split_once('\u{1}').unwrap();
        let scrubber = scrubber(&[("key", secret)]);
        let whole = scrubber.bytes(text.as_bytes().to_vec());

        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len() + 1)).collect();
        cuts.extend([0, text.len()]);
        cuts.sort_unstable();
        let mut stream = scrubber.stream();
        let mut pieced: Vec<u8> = Vec::new();
        for piece in cuts.windows(2) {
            pieced.extend(stream.push(&text.as_bytes()[piece[0]..piece[1]]));
        }
        pieced.extend(stream.finish());
        prop_assert_eq!(String::from_utf8_lossy(&pieced), String::from_utf8_lossy(&whole));

        let mut stream = scrubber.stream();
        let mut single: Vec<u8> = text.bytes().flat_map(|byte| stream.push(&[byte])).collect();
        single.extend(stream.finish());
        prop_assert_eq!(&single, &whole);

        if !is_of_its_placeholder(secret) {
            for how in [0, 1, 4, 5, 6] {
                let encoded = encode(secret, how).to_lowercase();
                let found = String::from_utf8_lossy(&whole).to_lowercase().contains(&encoded);
                prop_assert!(!found || secret.trim().replace('\n', "").len() < 8, "{encoded}");
            }
        }
    }

    #[test]
    fn text_without_secrets_comes_through(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let scrubber = scrubber(&[("key", "a secret nobody has"), ("pem", "one line of a key\nanother line of it\n")]);
        prop_assert_eq!(scrubber.bytes(bytes.clone()), bytes.clone());
        let mut stream = scrubber.stream();
        let mut pieced: Vec<u8> = bytes.chunks(7).flat_map(|piece| stream.push(piece)).collect();
        pieced.extend(stream.finish());
        prop_assert_eq!(pieced, bytes);
    }
}

#[test]
fn white_space_at_the_ends_hides_nothing() {
    for padded in [format!("{KEY} "), format!("\t{KEY}"), format!(" \r\n{KEY}\n\n")] {
        check(&padded, &format!("a {KEY}b"), "a @b");
        check(&padded, &STANDARD.encode(KEY), "@A==");
        check(&padded, &format!("[{padded}]"), &format!("[{}]", padded.replace(KEY, "@")));
    }
    // The rest is too short to be found.
    check("  short   ", "a short   b", "a short   b");
}

/// Secrets without the signs of a placeholder, and bytes that are dense in parts of them.
fn secret_and_bytes() -> impl Strategy<Value = (String, Vec<u8>)> {
    let piece = prop_oneof![
        2 => proptest::collection::vec(any::<u8>(), 0..8),
        2 => "[0-9a-fA-FxuU+%=&#;\\\\ ,\r\n\u{0}]{0,10}".prop_map(String::into_bytes),
        1 => any::<(u8, prop::sample::Index)>().prop_map(|(row, _)| vec![0xff, row]),
    ];
    ("[ -;=?-~é]{8,16}", proptest::collection::vec(piece, 0..10)).prop_map(|(secret, pieces)| {
        let mut text = Vec::new();
        for piece in pieces {
            match *piece {
                [0xff, row] => text.extend(table::TABLE[usize::from(row) % table::TABLE.len()].1(&secret)),
                _ => text.extend(piece),
            }
        }
        (secret, text)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::default())]

    #[test]
    fn any_bytes_in_any_pieces_end_the_same_and_twice_is_once(
        (secret, text) in secret_and_bytes(), cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..8)
    ) {
        let scrubber = scrubber(&[("qqq", &secret)]);
        let whole = scrubber.bytes(text.clone());
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len() + 1)).collect();
        cuts.extend([0, text.len()]);
        cuts.sort_unstable();
        let mut stream = scrubber.stream();
        let mut pieced: Vec<u8> = cuts.windows(2).flat_map(|piece| stream.push(&text[piece[0]..piece[1]])).collect();
        pieced.extend(stream.finish());
        prop_assert_eq!(&pieced, &whole);
        prop_assert_eq!(whole == text, scrubber.secrets_in(&text).is_empty());
        prop_assert_eq!(scrubber.bytes(whole.clone()), whole);
    }
}

#[test]
fn runs_of_escaped_breaks_are_read_once() {
    let scrubber = scrubber(&[("key", KEY), ("pem", "-----BEGIN-----\n\nMIIEvQIBADANBgkqhkiG9w0BAQ\n-----END-----")]);
    for unit in
        ["\\x00", "\\u0000", "\\0", "%0a", "%00", "%u000a", "\\n", "\\\\n", "&#10;", "&#x0", "\\\n", "=\n", "\n", "\0"]
    {
        let text = unit.repeat((4 << 20) / unit.len());
        assert!(scrubber.secrets_in(text.as_bytes()).is_empty(), "{unit}");
        let found = scrubber.text(format!("{text}{KEY}"));
        assert!(found.ends_with("<credential:key>"), "{unit}");
    }
    // As many breaks as between two lines, and twice as many, still separate nothing.
    let spaced = KEY.replace('+', "%0a%00\\n\\u0000+");
    check(KEY, &format!("a {spaced}."), "a @.");
}

#[test]
fn a_value_within_the_name_of_another_credential_is_no_secret_there() {
    let scrubber = scrubber(&[("pg", "postgres"), ("postgres_password", KEY), ("key", "0123456789abcdef")]);
    for text in [
        "<credential:postgres_password>",
        "use <credential:postgres_password>, then <credential:POSTGRES-PASSWORD>",
        "https://e.example/%3Ccredential%3Apostgres_password%3E?a=%3ccredential:postgres_password%3e",
        r#"{"a":"\u003ccredential:postgres_password\u003E"}"#,
        "&lt;credential:postgres_password&gt;",
    ] {
        assert!(scrubber.secrets_in(text.as_bytes()).is_empty(), "{text}");
        pieces(&scrubber, text, text);
    }
    for (text, expected) in [
        ("postgres://", "<credential:pg>://"),
        ("<credential:postgres_passwords>", "<credential:<credential:pg>_passwords>"),
        ("<credential:postgres>", "<credential:<credential:pg>>"),
        ("<credential:postgres_password", "<credential:<credential:pg>_password"),
        ("<credential: postgres_password>", "<credential: <credential:pg>_password>"),
        ("credential:postgres_password>", "credential:<credential:pg>_password>"),
        ("<credential:postgres_password>postgres", "<credential:postgres_password><credential:pg>"),
    ] {
        assert_eq!(scrubber.secrets_in(text.as_bytes()).len(), 1, "{text}");
        pieces(&scrubber, text, expected);
    }
}

/// Scrubs a text as a whole, at each split, and byte by byte.
fn pieces(scrubber: &Arc<Scrubber>, text: &str, expected: &str) {
    assert_eq!(scrubber.text(text.to_owned()), expected, "{text}");
    let scrubbed = |pieces: &[&[u8]]| {
        let mut stream = scrubber.stream();
        let mut found: Vec<u8> = pieces.iter().flat_map(|piece| stream.push(piece)).collect();
        found.extend(stream.finish());
        String::from_utf8_lossy(&found).into_owned()
    };
    let bytes = text.as_bytes();
    for split in 0..=bytes.len() {
        assert_eq!(scrubbed(&[&bytes[..split], &bytes[split..]]), expected, "{text} split at {split}");
    }
    assert_eq!(scrubbed(&bytes.chunks(1).collect::<Vec<_>>()), expected, "{text} byte by byte");
}

#[test]
fn other_punctuation_is_another_text() {
    for (secret, text) in
        [("20240105", "2024-01-05"), ("SuperSecretToken", "super-secret token"), ("abcdefgh", "ab.cd.ef.gh")]
    {
        check(secret, text, text);
    }
    for (secret, text) in [
        ("20240105", "2 0 2 4 0 1 0 5"),
        ("SuperSecretToken", "S-u-p-e-r-S-e-c-r-e-t-T-o-k-e-n"),
        ("SuperSecretToken", "supersecret\n    token"),
        ("20240105", "20240105"),
    ] {
        check(secret, &format!("a {text} b"), "a @ b");
    }
}

#[test]
fn secrets_that_overlap_are_replaced_together() {
    let overlapping = scrubber(&[("a", "abcdefgh1234"), ("b", "1234wxyzabcd"), ("c", "cdefgh12")]);
    for (text, expected, names) in [
        ("abcdefgh1234wxyzabcd", "<credential:a><credential:b>", &["a", "b"][..]),
        ("-abcdefgh1234wxyzabcdefgh1234-", "-<credential:a><credential:b><credential:a>-", &["a", "b"]),
        ("abcdefgh1234wxyzabc", "<credential:a>wxyzabc", &["a"]),
        ("abcdefgh1234 1234wxyzabcd", "<credential:a> <credential:b>", &["a", "b"]),
        // Within another secret it is a part of that one.
        ("cdefgh12 abcdefgh1234", "<credential:c> <credential:a>", &["c", "a"]),
        ("abcdefgh1234", "<credential:a>", &["a"]),
    ] {
        pieces(&overlapping, text, expected);
        let found: Vec<_> = overlapping.secrets_in(text.as_bytes()).iter().map(|secret| secret.name.as_str()).collect();
        assert_eq!(found, names, "{text}");
    }
}

#[test]
fn public_lines_of_a_structured_credential_are_no_secrets() {
    let key = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSj";
    let account = format!(
        "{{\n  \"type\": \"service_account\",\n  \"private_key\": \"-----BEGIN PRIVATE KEY-----\\n{key}\\n-----END PRIVATE KEY-----\\n\",\n  \
         \"token_uri\": \"https://oauth2.googleapis.com/token\"\n}}"
    );
    let line = "  \"token_uri\": \"https://oauth2.googleapis.com/token\"";
    check(&account, line, line);
    check(&account, key, "@");
    check(&account, &account, "@");
    let config =
        "apiVersion: v1\nclusters:\n- cluster:\n    server: https://k8s.example.com:6443\ntoken: abc\n================";
    check(config, "    server: https://k8s.example.com:6443", "    server: https://k8s.example.com:6443");
    check(config, "================", "================");
    check(config, config, "@");
}

#[test]
fn beginnings_that_do_not_go_on_are_counted() {
    let scrubber = scrubber(&[("key", KEY)]);
    let start = |texts: &[&[&str]]| {
        let counted = Arc::<FalseStarts>::default();
        // Kept open: a guesser who stops at a beginning has learned it.
        let streams: Vec<_> = texts
            .iter()
            .map(|pieces| {
                let mut stream = ScrubStream::new(scrubber.clone(), counted.clone());
                pieces.iter().for_each(|piece| drop(stream.push(piece.as_bytes())));
                stream
            })
            .collect();
        (counted.are_too_many(), streams)
    };
    for (texts, are_too_many) in [
        (&[&["sk-T", "x", "sk-T", "x", "sk-Te", "x", "sk-Te5", "x"][..]][..], true),
        (&[&["sk-T"], &["sk-Te"], &["sk-Te"], &["sk-Te5"]], true),
        (&[&["736b2", "z", "736b2d", "z", "%73%6b%2d%54", "z", "c2st", "z"]], true),
        (&[&["sk-T", "x", "sk-T", "x", "sk-T", "e", "5"]], false),
        // Less than is counted, a beginning in one piece with the text after it, and the secret itself.
        (&[&["sk-", "x"].repeat(50)], false),
        (&[&["sk-Te5x"].repeat(50)], false),
        (&[&["sk-Te5t+", "Key/42=x", " "].repeat(50)], false),
        (&[&["an ordinary line\n", "\n", "and & another%"].repeat(50)], false),
    ] {
        assert_eq!(start(texts).0, are_too_many, "{texts:?}");
    }
}

#[test]
fn a_list_of_numbers_is_a_secret_as_a_whole() {
    let scrubber = scrubber(&[("key", KEY)]);
    let value = serde_json::json!({ "a": [1, KEY.as_bytes()], "b": true });
    assert_eq!(scrubber.json(value), serde_json::json!({ "a": [1, "[<credential:key>]"], "b": true }));
    let near = serde_json::json!({ "a": KEY.as_bytes()[1..], "b": 7 });
    assert_eq!(scrubber.json(near.clone()), near);
}
