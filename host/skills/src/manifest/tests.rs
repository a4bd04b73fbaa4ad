//! Tests of manifest.

use proptest::prelude::*;

use super::*;

fn of(text: &str) -> Result<(String, String), String> {
    read(text.as_bytes(), "pdf").map(|m| (m.name.to_string(), m.description)).map_err(|error| error.to_string())
}

#[track_caller]
fn check(text: &str, description: &str) {
    assert_eq!(of(text), Ok(("pdf".to_owned(), description.to_owned())), "{text:?}");
}

#[track_caller]
fn refused(text: &[u8], reason: &str) {
    assert_eq!(
        read(text, "pdf").map(|m| m.name).unwrap_err().to_string(),
        reason,
        "{:?}",
        String::from_utf8_lossy(text)
    );
}

#[test]
fn what_is_plainly_meant_is_read() {
    for (front, description) in [
        ("name: pdf\ndescription: Reads PDF", "Reads PDF"),
        // Values that look like something else than text.
        ("name: pdf\ndescription: 42", "42"),
        ("name: pdf\ndescription: 1.10", "1.10"),
        ("name: pdf\ndescription: true", "true"),
        ("name: pdf\ndescription: no", "no"),
        ("name: pdf\ndescription: 2024-01-01", "2024-01-01"),
        ("name: pdf\ndescription: ~", "~"),
        ("name: pdf\ndescription: \"~\"", "~"),
        ("name: pdf\ndescription: '~'", "~"),
        ("name: pdf\ndescription: [Reads, Writes]", "Reads, Writes"),
        ("name: pdf\ndescription:\n- Reads\n- Writes", "Reads, Writes"),
        // Several lines.
        ("name: pdf\ndescription: |\n  Reads\n  PDF\n\n  Now", "Reads PDF Now"),
        ("name: pdf\ndescription: >-\n  Reads\n  PDF", "Reads PDF"),
        ("name: pdf\ndescription: Reads\n  PDF\n  now", "Reads PDF now"),
        ("name: pdf\ndescription:\n  Reads\n  PDF", "Reads PDF"),
        ("name: pdf\ndescription: \"Reads\n  PDF\"", "Reads PDF"),
        ("name: pdf\ndescription: Reads\nPDF now", "Reads PDF now"),
        // Colons and characters that mean something in YAML.
        ("name: pdf\ndescription: Use when: a PDF is there", "Use when: a PDF is there"),
        ("name: pdf\ndescription: Use when: a\n  PDF: is there", "Use when: a PDF: is there"),
        ("name: pdf\ndescription: See http://a.example/b", "See http://a.example/b"),
        ("name: pdf\ndescription: @pdf %now `x`", "@pdf %now `x`"),
        ("name: pdf\ndescription: \"PDF\" is read", "\"PDF\" is read"),
        ("name: pdf\ndescription: *all* of it", "*all* of it"),
        ("name: pdf\ndescription: {PDF} it", "{PDF} it"),
        ("name: pdf\ndescription: - Reads", "- Reads"),
        // Quotes.
        ("name: 'pdf'\ndescription: \"Reads \\\"it\\\"\"", "Reads \"it\""),
        ("name: pdf\ndescription: 'It''s: it'", "It's: it"),
        ("name: pdf\ndescription: \"Reads PDF", "Reads PDF"),
        ("name: pdf\ndescription: 'Reads: PDF\nlicense: MIT", "Reads: PDF"),
        ("name: pdf\ndescription: \"a \\d b\"", "a \\d b"),
        ("\"name\": \"pdf\"\n\"description\": \"Use: it\" # now\nx: \"", "Use: it"),
        // JSON in it, and JSON all of it.
        ("name: pdf\nmetadata: {\"a\": {\"b\": [1, 2]}}\ndescription: Reads", "Reads"),
        ("{\"name\": \"pdf\", \"description\": \"Reads: it\"}", "Reads: it"),
        ("name: pdf\nmetadata:\n  {\n    \"a\": [\n      1,\n    ]\n  }\ndescription: Reads", "Reads"),
        // Tabs, indentation, cases, comments, unknown fields.
        ("name:\tpdf\ndescription:\tReads\tPDF", "Reads PDF"),
        ("\tname: pdf\n\tdescription: Reads", "Reads"),
        ("  name: pdf\n  description: Reads", "Reads"),
        ("name: pdf\ndescription: >\n\tReads\n\tPDF", "Reads PDF"),
        ("name: pdf\nmetadata:\n\tx: 1\ndescription: Reads", "Reads"),
        ("Name: pdf\nDescription: Reads", "Reads"),
        ("# a\nname: pdf # b\n\ndescription: Reads # c\nversion: 1\nx-y: {}\n", "Reads"),
        ("name:pdf\ndescription:Reads", "Reads"),
        ("name : pdf\ndescription : Reads", "Reads"),
        // Twice: as other readers, the last.
        ("name: other\nname: pdf\ndescription: One\ndescription: Two", "Two"),
        // Anchors and tags.
        ("x: &a Reads\nname: pdf\ndescription: *a", "Reads"),
        ("name: !!str pdf\ndescription: !x Reads", "Reads"),
    ] {
        for text in [
            format!("---\n{front}\n---\nBody"),
            format!("\u{feff}\n \n--- \n{front}\n----\t\n"),
            format!("---\n{front}\n...\n"),
        ] {
            check(&text, description);
            check(&text.replace('\n', "\r\n"), description);
            check(&text.replace('\n', "\r"), description);
        }
    }
}

#[test]
fn each_that_cannot_be_used_has_one_reason() {
    let none = "`SKILL.md` has no frontmatter: begin it with a line `---`";
    let no_end = "the frontmatter of `SKILL.md` does not end: put a line `---` after it";
    let no_name = "the frontmatter of `SKILL.md` has no `name`";
    let no_description = "the frontmatter of `SKILL.md` has no `description`";
    for (text, reason) in [
        ("", none),
        ("# PDF\n---\nname: pdf\n---\n", none),
        ("--\nname: pdf\n--\n", none),
        ("---\n", no_end),
        ("---\nname: pdf\ndescription: Reads", no_end),
        ("---\nname: pdf\ndescription: |\n  a\n  ---\n", no_end),
        ("---\n---\n", no_name),
        ("---\ndescription: Reads\n---\n", no_name),
        ("---\nname:\ndescription: Reads\n---\n", no_name),
        ("---\nname: \" \"\ndescription: Reads\n---\n", no_name),
        ("---\nmetadata:\n  name: pdf\ndescription: Reads\n---\n", no_name),
        ("---\n- name: pdf\n- description: Reads\n---\n", no_name),
        ("---\n[[[[\n---\n", no_name),
        ("---\nname: pdf\n---\n", no_description),
        ("---\nname: pdf\ndescription: \"\"\n---\n", no_description),
        ("---\nname: pdf\ndescription: \"\\u0007 \\u0085\"\n---\n", no_description),
        (
            "---\nname: ../a\ndescription: a\n---\n",
            "the name `../a` has the character `.`: use `a` to `z`, `0` to `9` and `-`",
        ),
    ] {
        refused(text.as_bytes(), reason);
    }
    refused(b"---\nname: \xff\n---\n", "`SKILL.md` is not UTF-8: byte 10 is not");
    let utf16: Vec<u8> = "\u{feff}---\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    refused(&utf16, "`SKILL.md` is not UTF-8: byte 0 is not");
    let large = |bytes: usize| format!("---\nname: pdf\ndescription: a\nx: {}\n---\n", "x".repeat(bytes));
    refused(large(70_000).as_bytes(), "the frontmatter of `SKILL.md` is larger than 65536 bytes");
    refused(
        format!("---\n{}", "a\n".repeat(500_000)).as_bytes(),
        "the frontmatter of `SKILL.md` is larger than 65536 bytes",
    );
    assert!(of(&large(60_000)).is_ok());
}

#[test]
fn a_name_that_only_other_readers_accept_has_a_slug() {
    for (written, name) in [("PDF", "pdf"), ("12", "skill-12"), ("Azure CLI", "azure-cli")] {
        let read = read(format!("---\nname: {written}\ndescription: a\n---\n").as_bytes(), "pdf").unwrap();
        assert_eq!((read.name.as_str(), read.written.as_deref()), (name, Some(written)));
    }
    assert_eq!(read(b"---\nname: pdf\ndescription: a\n---\n", "pdf").unwrap().written, None);
}

#[test]
fn a_description_is_one_paragraph_of_limited_length() {
    let long = |count: usize| format!("---\nname: pdf\ndescription: {}\n---\n", "é".repeat(count));
    check(&long(1_024), &"é".repeat(1_024));
    check(&long(1_025), &format!("{}…", "é".repeat(1_023)));
    check(&long(5_000), &format!("{}…", "é".repeat(1_023)));
    check("---\nname: pdf\ndescription: \"a\\n\\n\\tb\\u0000\\e[31mc\\u2028d\"\n---\n", "a b [31mc d");
}

#[test]
fn the_body_is_what_comes_after() {
    let body = |text: &str| read(text.as_bytes(), "pdf").unwrap().body;
    let front = "---\nname: pdf\ndescription: a\n---";
    assert_eq!(body(front), "");
    assert_eq!(body(&format!("{front}\n\n\n# A\n\n---\nb\n\n")), "# A\n\n---\nb");
    assert_eq!(body(&format!("{front}\n    code\r\nb\rc")), "    code\nb\nc");
}

#[test]
fn conforming_is_told_apart() {
    for (front, departures) in [
        ("name: pdf\ndescription: Reads", &[][..]),
        (
            "name: pdf\ndescription: 'Use: it'\nlicense: MIT\nallowed-tools: a b\ncompatibility: any\nmetadata:\n  a: 1",
            &[],
        ),
        ("name: pdf\ndescription: |\n  Reads\n  it", &[]),
        ("name: pdf\ndescription: true", &[]),
        ("name: other\ndescription: Reads", &["its `name` is not the name of its directory"]),
        (
            "name: pdf\ndescription: Reads\nversion: 1\nauthor: x",
            &[
                "the field `author` is not one of the standard's: it belongs below `metadata`",
                "the field `version` is not one of the standard's: it belongs below `metadata`",
            ],
        ),
        ("name: pdf\ndescription: [Reads]", &["its frontmatter has a value in `{}` or `[]`"]),
        ("name: pdf\ndescription: Reads\nmetadata: {}", &["its frontmatter has a value in `{}` or `[]`"]),
        ("name: pdf\ndescription: &a Reads", &["its frontmatter has an anchor or an alias"]),
        ("name: !!str pdf\ndescription: Reads", &["its frontmatter has a tag"]),
        ("name: pdf\nname: pdf\ndescription: Reads", &["its frontmatter has a field twice"]),
        ("name: pdf\ndescription: Reads\nmetadata:\n  a: 1\n  a: 2", &["its frontmatter has a field twice"]),
        ("name: pdf\ndescription: Use: it", &["its frontmatter is no YAML at line 3"]),
        ("name: pdf\ndescription:\n- Reads", &["its `description` is no text"]),
        ("name: pdf\ndescription: a---b\nversion: 1", &[]),
        (
            "Name: pdf\ndescription: Reads",
            &["the field `Name` is not one of the standard's: it belongs below `metadata`", "it has no `name`"],
        ),
    ] {
        let text = format!("---\n{front}\n---\nBody");
        assert_eq!(read(text.as_bytes(), "pdf").unwrap().strict, departures, "{front}");
        assert_eq!(super::departures(text.as_bytes(), "pdf"), departures, "{front}");
    }
    let long = format!("---\nname: pdf\ndescription: {}\ncompatibility: {}\n---\n", "a".repeat(1_025), "a".repeat(501));
    assert_eq!(
        read(long.as_bytes(), "pdf").unwrap().strict,
        ["its `description` is longer than 1024 characters", "its `compatibility` is longer than 500 characters"]
    );
    for (text, departure) in [
        (&b"\xef\xbb\xbf---\nname: pdf\ndescription: a\n---\n"[..], "it does not begin with `---`"),
        (b"\n---\nname: pdf\ndescription: a\n---\n", "it does not begin with `---`"),
        (b"---\nname: pdf\ndescription: a\n...\n", "its frontmatter does not end"),
    ] {
        assert_eq!(read(text, "pdf").unwrap().strict, [departure]);
    }
    // An unusable file has a verdict too.
    assert_eq!(super::departures(b"\xff", "pdf"), ["`SKILL.md` is not UTF-8: byte 0 is not"]);
    assert_eq!(super::departures(b"---\nname: 7z\ndescription: a\n---\n", "7z"), [] as [&str; 0]);
}

#[test]
fn a_bare_component_is_called_by_its_file() {
    let manifest = of_component("pdf-tools.wasm").unwrap();
    assert_eq!((manifest.name.as_str(), manifest.strict.len()), ("pdf-tools", 0));
    assert!(manifest.description.contains("pdf-tools.wasm"));
    for entry in ["Pdf.wasm", "a.b.wasm", ".wasm", "../a.wasm"] {
        assert!(matches!(of_component(entry), Err(ManifestError::Name(_))), "{entry}");
    }
}

/// Each is written to take long: as deep, as wide and as anchored as the limits let it be.
#[test]
fn what_is_made_to_take_long_does_not() {
    let wide = 60_000;
    let doubling: String = (0..40).map(|n| format!("a{}: &a{} [*a{n}, *a{n}]\n", n + 1, n + 1)).collect();
    for bomb in [
        "[".repeat(wide),
        "{".repeat(wide),
        "{a: ".repeat(wide / 4),
        "- ".repeat(wide / 2),
        "? ".repeat(wide / 2),
        "a:\n".repeat(wide / 3),
        "\"".repeat(wide),
        "'".repeat(wide),
        "&a ".repeat(wide / 3),
        "!a ".repeat(wide / 3),
        "x: *a\n".repeat(wide / 6),
        "#\n".repeat(wide / 2),
        "\t".repeat(wide),
        " ".repeat(wide),
        "\n".repeat(wide),
        "x: |\n".to_owned() + &" \n".repeat(wide / 2),
        "%".repeat(wide),
        "%a b\n".repeat(wide / 5),
        "--- a\n".repeat(wide / 6),
        "...\n".repeat(wide / 4),
        (0..wide / 3).map(|n| format!("{}x: 1\n", " ".repeat(n.min(200)))).take(250).collect(),
        format!("a0: &a0 lol\n{doubling}"),
        format!("x: {}", "a, ".repeat(wide / 3)),
        format!("x: \"{}", "\\n".repeat(wide / 2)),
        format!("x: [{}", "a: b,".repeat(wide / 5)),
    ] {
        let text = format!("---\n{bomb}\nname: pdf\ndescription: a\n---\n");
        // It ends, used or not; with anything quadratic this test does not.
        has_a_verdict(text.as_bytes());
    }
    check(&format!("---\na0: &a0 lol\n{doubling}name: pdf\ndescription: a\n---\n"), "a");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_have_a_verdict(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        has_a_verdict(&bytes);
        has_a_verdict(&[b"---\n", bytes.as_slice(), b"\n---\n"].concat());
    }

    #[test]
    fn any_text_made_of_yaml_has_a_verdict(
        words in prop::collection::vec("[-\\[\\]{}:,?&*!|>'\"%@`# \n\r\tae\u{feff}\u{202e}]|name|description|---|: |\n- |\\\\u00", 0..60)
    ) {
        has_a_verdict(format!("---\n{}\n---\n", words.concat()).as_bytes());
    }

    /// Any text in quotes by the rules of JSON comes back.
    #[test]
    fn what_is_quoted_comes_back(text in "[ -~éß漢]{1,80}") {
        prop_assume!(!text.trim().is_empty());
        let front = format!("---\nname: pdf\ndescription: {}\n---\n", serde_json::to_string(&text).unwrap());
        let words: Vec<&str> = text.split_whitespace().collect();
        prop_assert_eq!(of(&front), Ok(("pdf".to_owned(), words.join(" "))));
    }
}

/// Asserts the promises for any input.
pub(crate) fn has_a_verdict(text: &[u8]) {
    match read(text, "pdf") {
        Ok(manifest) => {
            assert!(SkillName::parse(manifest.name.as_str()).is_ok());
            let length = manifest.description.chars().count();
            assert!((1..=MAX_DESCRIPTION).contains(&length));
            assert!(!manifest.description.contains(|c: char| c.is_control()));
            assert_eq!(manifest.strict, departures(text, "pdf"));
        }
        Err(error) => {
            let reason = error.to_string();
            assert!(!reason.is_empty() && reason.len() < 2_000 && !reason.contains('\n'), "{reason:?}");
        }
    }
}
