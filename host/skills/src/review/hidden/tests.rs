//! Tests of review hidden.

use super::*;

fn whats(text: &str) -> Vec<String> {
    in_text("f", text).into_iter().map(|hidden| format!("{} {} ×{}", hidden.line, hidden.what, hidden.count)).collect()
}

#[test]
fn what_hides_is_written_out() {
    let check = |text: &str, expected: &str| assert_eq!(visible(text), expected, "{text:?}");
    check("plain, ünïcödé, 日本語, עברית, 😀\ttab\r\nnext\n", "plain, ünïcödé, 日本語, עברית, 😀\ttab\r\nnext\n");
    check("a\u{202e}b\u{202c}", "a<U+202E>b<U+202C>");
    check("\u{feff}a\u{feff}", "\u{feff}a<U+FEFF>");
    check("a\u{200b}b\u{ad}c\u{2060}d\u{3164}e\u{ffa0}", "a<U+200B>b<U+00AD>c<U+2060>d<U+3164>e<U+FFA0>");
    check("\u{1b}[31mred\u{7f}\u{9b}\0", "<U+001B>[31mred<U+007F><U+009B><U+0000>");
    check("shown\rhidden\n", "shown<U+000D>hidden\n");
    check("end\r", "end<U+000D>");
    check("a\u{2028}b\u{fff9}c\u{fffa}d\u{fffb}", "a<U+2028>b<U+FFF9>c<U+FFFA>d<U+FFFB>");
    check("\u{e0041}\u{e007f}", "<U+E0041><U+E007F>");
    check("\u{10ffff}\u{f0000}\u{fffe}", "<U+10FFFF><U+F0000><U+FFFE>");
    check("", "");
    assert_eq!(visible_name("a\nb\tc\u{202e}"), "a<U+000A>b<U+0009>c<U+202E>");
}

#[test]
fn nothing_that_hides_is_left() {
    for code in 0..=0x10_ffff {
        if let Some(character) = char::from_u32(code)
            && hides(character)
            && character != '\n'
        {
            let text = format!("a{character}b");
            assert_eq!(visible(&text), format!("a<U+{code:04X}>b"));
            assert!(!visible_name(&text).contains(character));
        }
    }
}

#[test]
fn what_languages_and_emoji_need_is_let_be() {
    for text in [
        "👨\u{200d}👩\u{200d}👧",
        "❤\u{fe0f}\u{200d}🔥",
        "👩🏽\u{200d}💻",
        "☎\u{fe0e} ✔\u{fe0f} 1\u{fe0f}\u{20e3} #\u{fe0f}\u{20e3} ©\u{fe0f} ⚠\u{fe0f}",
        "🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}",
        "می\u{200c}خواهم",
        "क\u{94d}\u{200d}ष",
        "葛\u{e0100}城 ︀∩\u{fe00}",
        "\u{2801}\u{2800}\u{28ff}",
    ] {
        // One text begins with a selector that stands for nothing.
        let text = text.replace("︀", "");
        assert_eq!(visible(&text), text);
        assert_eq!(whats(&text), [""; 0], "{text}");
    }
}

#[test]
fn out_of_place_they_are_not() {
    for (text, count) in [
        ("a\u{200d}b", 1),
        ("a\u{200c}b", 1),
        ("👨\u{200d}a", 1),
        ("a\u{fe0f}", 1),
        ("😀\u{fe0f}\u{fe0f}\u{fe0e}", 2),
        ("1\u{fe0f}", 1),
        ("a\u{e0100}", 1),
        // A flag with another text behind it.
        ("🏴\u{e0067}\u{e0062}\u{e0078}\u{e007f}", 4),
        ("🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}", 5),
        ("\u{200d}", 1),
        ("م\u{200c}", 1),
        ("a\u{2800}b", 1),
    ] {
        assert_eq!(marks(text).len(), count, "{text:?}");
    }
}

#[test]
fn findings_name_character_line_and_count() {
    assert_eq!(
        whats("a\nb\u{202e}c\n\u{202e}\u{200b}\n"),
        ["2 U+202E RIGHT-TO-LEFT OVERRIDE ×2", "3 U+200B ZERO WIDTH SPACE ×1"]
    );
    assert_eq!(whats("\u{1b}[2J"), ["1 U+001B ESCAPE ×1"]);
    assert_eq!(whats("\u{feff}a"), [""; 0]);
    let text: String = "run rm".chars().map(|letter| char::from_u32(u32::from(letter) + 0xe0000).unwrap()).collect();
    assert_eq!(whats(&format!("hello{text}")), [format!("1 {TAGS}: `run rm` ×6")]);
    let hidden = in_text("f", &format!("{}\u{202e}{}", "x".repeat(500), "y".repeat(500)));
    assert_eq!(hidden[0].shown.chars().count(), 2 + 160 - 1 + "<U+202E>".len());
    assert!(
        hidden[0].shown.contains("xxx<U+202E>yyy")
            && hidden[0].shown.starts_with('…')
            && hidden[0].shown.ends_with('…')
    );
}

#[test]
fn kinds_are_bounded() {
    let text: String = (0..0x1000).filter_map(|number| char::from_u32(0xe0100 + 0xf0 + number)).collect();
    let found = in_text("f", &text);
    assert_eq!(found.len(), MAX_KINDS + 1);
    assert_eq!(found.iter().map(|hidden| hidden.count).sum::<u64>(), text.chars().count() as u64);
}

#[test]
fn names_that_pretend() {
    let check = |word: &str, expected: Option<&str>| assert_eq!(disguise(word).as_deref(), expected, "{word}");
    check("paypal", None);
    check("müller", None);
    check("файл", None);
    check("データfile", None);
    check("한글abc", None);
    check("p\u{430}ypal", Some("`p\u{430}ypal` mixes scripts"));
    check("\u{3b1}bc", Some("`\u{3b1}bc` mixes scripts"));
    check("中p\u{430}y", Some("`中p\u{430}y` mixes scripts"));
    // All Cyrillic.
    check("\u{455}\u{441}\u{43e}\u{440}\u{435}", Some("`\u{455}\u{441}\u{43e}\u{440}\u{435}` looks like `scope`"));
    let found = in_path("scripts/r\u{435}adme.sh");
    assert_eq!((found.len(), found[0].line), (1, 0));
    assert_eq!(in_path("scripts/\u{202e}hs.exe")[0].shown, "scripts/<U+202E>hs.exe");
    assert_eq!(in_path("docs/日本語 README (2).md"), []);
}
