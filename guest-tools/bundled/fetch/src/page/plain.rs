//! A cleaned tree as plain text: blocks on lines of their own, white space collapsed except where it counts.

use std::rc::Rc;

use markup5ever_rcdom::{Node, NodeData};

use super::{children, tag};

/// Elements that stand in a line.
const INLINE: [&str; 33] = [
    "a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn", "em", "font", "i", "img",
    "ins", "kbd", "label", "mark", "q", "s", "samp", "small", "span", "strike", "strong", "sub", "sup", "time", "tt",
    "u", "var",
];

enum Step {
    Enter(Rc<Node>, bool),
    Leave(&'static str),
}

/// Writes a tree as plain text.
pub fn write(document: &Rc<Node>) -> String {
    let mut text = String::new();
    let mut steps = vec![Step::Enter(Rc::clone(document), false)];
    while let Some(step) = steps.pop() {
        match step {
            Step::Leave(end) => end_with(&mut text, end),
            Step::Enter(node, is_preformatted) => {
                if let NodeData::Text { contents } = &node.data {
                    append(&mut text, &contents.borrow(), is_preformatted);
                    continue;
                }
                let tag = tag(&node);
                let end = match tag {
                    "br" => "\n",
                    "td" | "th" => "\t",
                    "li" | "tr" | "dt" | "dd" | "option" => "\n",
                    _ if INLINE.contains(&tag) => "",
                    _ => "\n\n",
                };
                if tag != "td" && tag != "th" && tag != "br" {
                    end_with(&mut text, end);
                }
                steps.push(Step::Leave(end));
                let is_preformatted = is_preformatted || tag == "pre";
                steps.extend(children(&node).into_iter().rev().map(|child| Step::Enter(child, is_preformatted)));
            }
        }
    }
    text.truncate(text.trim_end().len());
    text
}

fn append(text: &mut String, piece: &str, is_preformatted: bool) {
    if is_preformatted {
        text.push_str(piece);
        return;
    }
    for character in piece.chars() {
        if !character.is_whitespace() || character == '\u{a0}' {
            text.push(if character == '\u{a0}' { ' ' } else { character });
        } else if !text.is_empty() && !text.ends_with(char::is_whitespace) {
            text.push(' ');
        }
    }
}

/// Makes the text end with so much white space and no more.
fn end_with(text: &mut String, end: &str) {
    if end.is_empty() || text.is_empty() {
        return;
    }
    let trimmed = text.trim_end_matches(' ').len();
    text.truncate(trimmed);
    if end == "\t" {
        text.push('\t');
        return;
    }
    let there = text.len() - text.trim_end_matches(['\n', '\t']).len();
    let has_tab = text.ends_with('\t');
    if has_tab {
        text.truncate(text.len() - there);
        text.push_str(end);
    } else if there < end.len() {
        text.push_str(end.get(there..).unwrap_or_default());
    }
}
