//! A page as text: parsed within bounds, cleaned of unread parts, written as Markdown or plain text.
//!
//! Writing recurses once per nesting level, so the tree that gets there is shallow: the parser stops at
//! [`MAX_DEPTH`], and cleaning takes away any deeper ones all the same.

mod clean;
mod plain;
mod sink;
mod table;

use std::rc::Rc;

use htmd::HtmlToMarkdown;
use htmd::options::{BulletListMarker, Options};
use markup5ever_rcdom::{Node, NodeData};
use url::Url;

/// Levels of elements in a page; browsers stop at 512, pages that people made are below 100. A level takes about
/// 1 KiB of the 512 KiB stack that a call has.
const MAX_DEPTH: usize = 200;
/// Elements of a page. Each takes a few hundred bytes.
const MAX_ELEMENTS: usize = 100_000;

/// A page in the form of text.
pub struct Page {
    /// Its title; empty if it has none.
    pub title: String,
    /// Its text, without the title.
    pub body: String,
    /// The part of it that was not read, if any.
    pub left_out: Option<String>,
}

/// Reads a page that came from `url`. Links and pictures are kept `as_markdown` only.
pub fn read(html: String, url: &str, as_markdown: bool) -> Page {
    let parsed = sink::parse(html);
    let base = Url::parse(url).ok();
    let cleaned = clean::clean(&parsed.document, base);
    let body = if as_markdown {
        converter().tree_to_markdown(&parsed.document).trim().to_owned()
    } else {
        plain::write(&parsed.document)
    };
    let left_out = parsed.stopped.map(|stopped| match stopped {
        sink::Stopped::Depth => format!("the page nests deeper than {MAX_DEPTH} levels; what follows is left out"),
        sink::Stopped::Elements => format!("the page has more than {MAX_ELEMENTS} elements; the rest is left out"),
    });
    Page { title: cleaned.title, body, left_out }
}

fn converter() -> HtmlToMarkdown {
    let options = Options {
        bullet_list_marker: BulletListMarker::Dash,
        ul_bullet_spacing: 1,
        ol_number_spacing: 1,
        ..Options::default()
    };
    HtmlToMarkdown::builder().options(options).add_handler(vec!["table"], table::write).build()
}

/// The name of an element; empty for other nodes.
fn tag(node: &Node) -> &str {
    match &node.data {
        NodeData::Element { name, .. } => &name.local,
        _ => "",
    }
}

/// The children, to walk while they are changed.
fn children(node: &Node) -> Vec<Rc<Node>> {
    node.children.borrow().clone()
}

#[cfg(test)]
mod tests;
