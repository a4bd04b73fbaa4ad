//! Characters that are invisible or look like others: bidirectional controls, zero-width characters, tags, terminal
//! controls, names that mix scripts.
//!
//! They show a reader and a model different texts, which smuggles instructions past a review and makes a terminal lie.
//! Uses that human languages and emoji need are allowed: joiners between letters that join, a variation selector after
//! a character that has variants. It must not know where the text came from.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use unicode_security::MixedScript as _;
use unicode_security::confusable_detection::skeleton;

use super::Hidden;

mod names;

use names::{TAGS, kind};

/// Characters of a line that are shown around the first hidden one.
const SHOWN_BEFORE: usize = 40;
const SHOWN: usize = 160;
/// Maximum letters shown of a text in tag characters.
const MAX_DECODED: usize = 200;
/// Maximum kinds of findings in one file: there are more hidden characters than a person would read about.
const MAX_KINDS: usize = 100;

/// The text with every hidden, bidirectional or control character written out as `<U+202E>`. Line ends and tabs stay,
/// and so does a byte order mark at the very beginning. Every display of a skill's text shows this form.
#[must_use]
pub fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    if let Some(after) = rest.strip_prefix('\u{feff}') {
        out.push('\u{feff}');
        rest = after;
    }
    for line in rest.split_inclusive('\n') {
        let (content, end) = split_end(line);
        push_visible(&mut out, content);
        out.push_str(end);
    }
    out
}

/// A name on one line: like [`visible`], with line ends and tabs written out too.
#[must_use]
pub fn visible_name(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for part in name.split_inclusive(['\n', '\t']) {
        let (content, end) = match part.char_indices().next_back() {
            Some((at, '\n' | '\t')) => part.split_at(at),
            _ => (part, ""),
        };
        push_visible(&mut out, content);
        for character in end.chars() {
            push_code(&mut out, character);
        }
    }
    out
}

/// Hidden characters in a file's text: one entry for each kind, at its first line.
pub(super) fn in_text(path: &str, text: &str) -> Vec<Hidden> {
    let mut found = Findings::default();
    // A byte order mark at the beginning of a file is a convention and hides nothing.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    for (line, number) in text.split_inclusive('\n').zip(1..) {
        found.line(path, split_end(line).0, number);
    }
    found.finish()
}

/// Findings in the path of a file: hidden characters, and words that mix scripts.
pub(super) fn in_path(path: &str) -> Vec<Hidden> {
    let mut found = Findings::default();
    found.line(path, path, 0);
    let mut found = found.finish();
    let words = path.split(|character: char| !character.is_alphanumeric());
    found.extend(words.filter_map(disguise).map(|what| Hidden {
        path: path.to_owned(),
        line: 0,
        what,
        shown: visible_name(path),
        count: 1,
    }));
    found
}

/// How a word imitates another: letters of several scripts, or letters that look like others.
pub(crate) fn disguise(word: &str) -> Option<String> {
    if word.is_ascii() {
        return None;
    }
    // Chinese, Japanese and Korean words stand beside Latin ones without a space; nothing looks alike there.
    let alphabetic: String = word.chars().filter(|character| !is_east_asian(*character)).collect();
    if !alphabetic.is_ascii() && !alphabetic.as_str().is_single_script() {
        return Some(format!("`{}` mixes scripts", visible_name(word)));
    }
    let looks: String = skeleton(word).collect();
    let is_word = looks.is_ascii() && looks.chars().any(|character| character.is_ascii_alphabetic());
    is_word.then(|| format!("`{}` looks like `{looks}`", visible_name(word)))
}

fn split_end(line: &str) -> (&str, &str) {
    let content = match line.strip_suffix('\n') {
        // Only before a line feed: alone it makes a terminal overwrite its output.
        Some(content) => content.strip_suffix('\r').unwrap_or(content),
        None => line,
    };
    line.split_at(content.len())
}

fn push_visible(out: &mut String, line: &str) {
    let mut from = 0;
    for (at, character) in marks(line) {
        out.push_str(line.get(from..at).unwrap_or_default());
        push_code(out, character);
        from = at + character.len_utf8();
    }
    out.push_str(line.get(from..).unwrap_or_default());
}

fn push_code(out: &mut String, character: char) {
    // Writing to a string cannot fail.
    write!(out, "<U+{:04X}>", u32::from(character)).ok();
}

/// Findings of one file by kind.
#[derive(Default)]
struct Findings {
    found: BTreeMap<String, Hidden>,
    more: u64,
    first_more: u64,
    path: String,
    tags: String,
}

impl Findings {
    fn line(&mut self, path: &str, line: &str, number: u64) {
        let marks = marks(line);
        for (at, character) in &marks {
            if let Some(letter) = tag_letter(*character)
                && self.tags.len() < MAX_DECODED
            {
                self.tags.push(letter);
            }
            let kind = kind(*character);
            if let Some(known) = self.found.get_mut(&kind) {
                known.count += 1;
            } else if self.found.len() < MAX_KINDS {
                let shown = excerpt(line, *at);
                self.found
                    .insert(kind.clone(), Hidden { path: path.to_owned(), line: number, what: kind, shown, count: 1 });
            } else {
                self.more += 1;
                if self.first_more == 0 {
                    path.clone_into(&mut self.path);
                    self.first_more = number;
                }
            }
        }
    }

    fn finish(self) -> Vec<Hidden> {
        let mut found: Vec<Hidden> = self.found.into_values().collect();
        if !self.tags.is_empty() {
            for tags in found.iter_mut().filter(|hidden| hidden.what == TAGS) {
                tags.what = format!("{TAGS}: `{}`", self.tags);
            }
        }
        if self.more > 0 {
            found.push(Hidden {
                path: self.path,
                line: self.first_more,
                what: "more kinds of hidden characters".to_owned(),
                shown: String::new(),
                count: self.more,
            });
        }
        found.sort_by(|one, other| (one.line, &one.what).cmp(&(other.line, &other.what)));
        found
    }
}

fn excerpt(line: &str, at: usize) -> String {
    let before = line.get(..at).unwrap_or_default();
    let skipped = before.chars().count().saturating_sub(SHOWN_BEFORE);
    let from = line.char_indices().nth(skipped).map_or(0, |(from, _)| from);
    let rest = line.get(from..).unwrap_or_default();
    let to = rest.char_indices().nth(SHOWN).map_or(rest.len(), |(to, _)| to);
    let mut shown = String::new();
    if from > 0 {
        shown.push('…');
    }
    // Whether a character is in its place depends on its neighbours, so a cut may write out one more and never one less.
    push_visible(&mut shown, rest.get(..to).unwrap_or_default());
    if to < rest.len() {
        shown.push('…');
    }
    shown
}

/// The hidden characters of a line, which has no line end.
fn marks(line: &str) -> Vec<(usize, char)> {
    let plain = |byte: u8| byte == b'\t' || (b' '..0x7f).contains(&byte);
    if line.bytes().all(plain) {
        return Vec::new();
    }
    let mut marks = Vec::new();
    let mut before = None;
    let mut characters = line.char_indices();
    while let Some((at, character)) = characters.next() {
        let mut after = characters.clone().map(|(_, character)| character);
        if is_flag_base(character)
            && let Some(length) = flag_length(after.clone())
        {
            // A flag of a part of a country: a black flag, tags of two letters and more, and the end tag.
            before = characters.nth(length - 1).map(|(_, character)| character);
            continue;
        }
        if hides(character) && !in_place(before, character, after.next()) {
            marks.push((at, character));
        }
        before = Some(character);
    }
    marks
}

/// Characters that do not show or change how others show. From the Unicode property `Default_Ignorable_Code_Point`,
/// with controls, line separators, blanks that are not spaces, and characters without meaning in interchange.
fn hides(character: char) -> bool {
    matches!(character,
        '\u{0}'..='\u{8}' | '\u{a}'..='\u{1f}' | '\u{7f}'..='\u{9f}'
        | '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}'
        | '\u{fdd0}'..='\u{fdef}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffc}'
        | '\u{1bca0}'..='\u{1bca3}' | '\u{1d159}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{10ffff}')
        || u32::from(character) & 0xfffe == 0xfffe
}

/// Whether a hidden character is in a place where its language or emoji needs it.
fn in_place(before: Option<char>, character: char, after: Option<char>) -> bool {
    let Some(before) = before else { return false };
    match character {
        '\u{200c}' => joins(before) && after.is_some_and(joins),
        '\u{200d}' => {
            joins(before) && after.is_some_and(joins) || is_pictured(before) && after.is_some_and(has_picture)
        }
        '\u{fe0e}' | '\u{fe0f}' => {
            has_picture(before) || matches!(before, '0'..='9' | '#' | '*') && after == Some('\u{20e3}')
        }
        '\u{fe00}'..='\u{fe02}' => {
            is_ideograph(before)
                || matches!(before, '\u{2200}'..='\u{22ff}' | '\u{2a00}'..='\u{2aff}' | '\u{1000}'..='\u{109f}')
        }
        '\u{e0100}'..='\u{e01ef}' => is_ideograph(before),
        '\u{180b}'..='\u{180d}' | '\u{180f}' => matches!(before, '\u{1820}'..='\u{18aa}'),
        '\u{2800}' => {
            let is_dots = |character: char| matches!(character, '\u{2801}'..='\u{28ff}');
            is_dots(before) || after.is_some_and(is_dots)
        }
        _ => false,
    }
}

/// Letters and marks of scripts whose letters join or stack.
fn joins(character: char) -> bool {
    matches!(character,
        '\u{620}'..='\u{6ff}' | '\u{700}'..='\u{8ff}' | '\u{900}'..='\u{dff}' | '\u{1000}'..='\u{109f}'
        | '\u{1780}'..='\u{17b3}' | '\u{17b6}'..='\u{17dd}' | '\u{1820}'..='\u{18aa}' | '\u{fb50}'..='\u{fdcf}' | '\u{fe70}'..='\u{fefc}')
}

/// Characters that can be an emoji.
fn has_picture(character: char) -> bool {
    matches!(character,
        '\u{a9}' | '\u{ae}' | '\u{203c}' | '\u{2049}' | '\u{2122}' | '\u{2139}' | '\u{2190}'..='\u{21ff}'
        | '\u{2300}'..='\u{23ff}' | '\u{24c2}' | '\u{25a0}'..='\u{27bf}' | '\u{2900}'..='\u{297f}' | '\u{2b00}'..='\u{2bff}'
        | '\u{3030}' | '\u{303d}' | '\u{3297}' | '\u{3299}' | '\u{1f000}'..='\u{1faff}')
}

/// Characters that can end an emoji.
fn is_pictured(character: char) -> bool {
    has_picture(character) || character == '\u{fe0f}'
}

fn is_ideograph(character: char) -> bool {
    matches!(character, '\u{3000}'..='\u{303f}' | '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{ff00}'..='\u{ff9f}' | '\u{20000}'..='\u{3ffff}')
}

fn is_east_asian(character: char) -> bool {
    is_ideograph(character)
        || matches!(character, '\u{1100}'..='\u{11ff}' | '\u{2e80}'..='\u{33ff}' | '\u{ac00}'..='\u{d7af}')
}

fn is_flag_base(character: char) -> bool {
    character == '\u{1f3f4}'
}

/// The only three flags of this kind; any other text in tags is hidden text.
fn flag_length(after: impl Iterator<Item = char> + Clone) -> Option<usize> {
    ["gbeng", "gbsct", "gbwls"].into_iter().find_map(|region| {
        let tags = region.chars().map(Some).chain([None]);
        let length = region.len() + 1;
        let same = after.clone().take(length).map(tag_letter).eq(tags);
        (same && after.clone().nth(length - 1) == Some('\u{e007f}')).then_some(length)
    })
}

/// The ASCII character that a tag character stands for.
fn tag_letter(character: char) -> Option<char> {
    match character {
        '\u{e0020}'..='\u{e007e}' => char::from_u32(u32::from(character) - 0xe0000),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
