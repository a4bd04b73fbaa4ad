//! Names of hidden characters.

/// Common name of tag characters: only the text they spell matters.
pub(super) const TAGS: &str = "U+E0000..U+E007F TAG CHARACTERS, which spell a text that does not show";

/// The name under which a character is counted: its own, or that of its kind where there are hundreds.
pub(super) fn kind(character: char) -> String {
    let code = u32::from(character);
    match character {
        '\u{e0000}'..='\u{e007f}' => TAGS.to_owned(),
        '\u{e0100}'..='\u{e01ef}' | '\u{fe00}'..='\u{fe0f}' => {
            "U+FE00..U+E01EF VARIATION SELECTOR out of place".to_owned()
        }
        '\u{f0000}'..='\u{10fffd}' if code & 0xfffe != 0xfffe => "U+F0000..U+10FFFD PRIVATE USE".to_owned(),
        _ => format!("U+{code:04X} {}", name(character)),
    }
}

/// The names of the Unicode standard; controls by their aliases.
fn name(character: char) -> &'static str {
    match character {
        '\u{0}' => "NULL",
        '\u{7}' => "ALERT",
        '\u{8}' => "BACKSPACE",
        '\u{b}' => "LINE TABULATION",
        '\u{c}' => "FORM FEED",
        '\u{d}' => "CARRIAGE RETURN",
        '\u{1b}' => "ESCAPE",
        '\u{7f}' => "DELETE",
        '\u{85}' => "NEXT LINE",
        '\u{9b}' => "CONTROL SEQUENCE INTRODUCER",
        '\u{0}'..='\u{9f}' => "CONTROL",
        '\u{ad}' => "SOFT HYPHEN",
        '\u{34f}' => "COMBINING GRAPHEME JOINER",
        '\u{61c}' => "ARABIC LETTER MARK",
        '\u{115f}' => "HANGUL CHOSEONG FILLER",
        '\u{1160}' => "HANGUL JUNGSEONG FILLER",
        '\u{17b4}' | '\u{17b5}' => "KHMER VOWEL INHERENT",
        '\u{180e}' => "MONGOLIAN VOWEL SEPARATOR",
        '\u{180b}'..='\u{180f}' => "MONGOLIAN FREE VARIATION SELECTOR",
        '\u{200b}' => "ZERO WIDTH SPACE",
        '\u{200c}' => "ZERO WIDTH NON-JOINER",
        '\u{200d}' => "ZERO WIDTH JOINER",
        '\u{200e}' => "LEFT-TO-RIGHT MARK",
        '\u{200f}' => "RIGHT-TO-LEFT MARK",
        '\u{2028}' => "LINE SEPARATOR",
        '\u{2029}' => "PARAGRAPH SEPARATOR",
        '\u{202a}' => "LEFT-TO-RIGHT EMBEDDING",
        '\u{202b}' => "RIGHT-TO-LEFT EMBEDDING",
        '\u{202c}' => "POP DIRECTIONAL FORMATTING",
        '\u{202d}' => "LEFT-TO-RIGHT OVERRIDE",
        '\u{202e}' => "RIGHT-TO-LEFT OVERRIDE",
        '\u{2060}' => "WORD JOINER",
        '\u{2061}' => "FUNCTION APPLICATION",
        '\u{2062}' => "INVISIBLE TIMES",
        '\u{2063}' => "INVISIBLE SEPARATOR",
        '\u{2064}' => "INVISIBLE PLUS",
        '\u{2066}' => "LEFT-TO-RIGHT ISOLATE",
        '\u{2067}' => "RIGHT-TO-LEFT ISOLATE",
        '\u{2068}' => "FIRST STRONG ISOLATE",
        '\u{2069}' => "POP DIRECTIONAL ISOLATE",
        '\u{206a}'..='\u{206f}' => "DEPRECATED FORMATTING",
        '\u{2800}' => "BRAILLE PATTERN BLANK",
        '\u{3164}' => "HANGUL FILLER",
        '\u{feff}' => "ZERO WIDTH NO-BREAK SPACE",
        '\u{ffa0}' => "HALFWIDTH HANGUL FILLER",
        '\u{fff9}'..='\u{fffb}' => "INTERLINEAR ANNOTATION",
        '\u{fffc}' => "OBJECT REPLACEMENT CHARACTER",
        '\u{1bca0}'..='\u{1bca3}' => "SHORTHAND FORMAT",
        '\u{1d159}' | '\u{1d173}'..='\u{1d17a}' => "MUSICAL SYMBOL FORMAT",
        '\u{fdd0}'..='\u{fdef}' => "NONCHARACTER",
        _ if u32::from(character) & 0xfffe == 0xfffe => "NONCHARACTER",
        _ => "DEFAULT IGNORABLE",
    }
}
