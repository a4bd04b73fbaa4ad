//! Cleaning a tree: parts that a reader of the page would not see or not read go, and links become absolute.
//!
//! Hidden text is where a page would put words for a model alone, so text that a stylesheet inside the element hides is
//! hidden here too. Sheets elsewhere are not read: the host treats all of a page as untrusted anyway.

use std::cell::RefCell;
use std::rc::Rc;

use html5ever::Attribute;
use markup5ever_rcdom::{Node, NodeData};
use url::Url;

use super::{MAX_DEPTH, children, tag};

/// Elements that hold no text of the page, or only its controls.
const NOT_READ: [&str; 27] = [
    "script", "style", "template", "head", "nav", "svg", "math", "canvas", "iframe", "frame", "object", "embed",
    "applet", "audio", "video", "map", "area", "button", "input", "select", "textarea", "datalist", "dialog",
    "progress", "meter", "link", "meta",
];
/// Roles of elements that are the same.
const NOT_READ_ROLES: [&str; 6] = ["navigation", "search", "menu", "menubar", "toolbar", "dialog"];
/// Longer ones are data, not places.
const MAX_LINK_BYTES: usize = 2048;

/// The facts about a page beside its tree.
pub struct Cleaned {
    /// Its title, white space collapsed.
    pub title: String,
}

/// Cleans a tree. `base` is where the page came from.
pub fn clean(document: &Rc<Node>, base: Option<Url>) -> Cleaned {
    let (title, stated_base) = head_of(document);
    let base = match (base, stated_base) {
        (Some(base), Some(stated)) => base.join(&stated).ok().or(Some(base)),
        (base, _) => base,
    };
    let mut pending = vec![(Rc::clone(document), 0)];
    while let Some((node, depth)) = pending.pop() {
        let mut kept = children(&node);
        kept.retain(|child| is_read(child) && depth < MAX_DEPTH);
        for child in &kept {
            mend(child, base.as_ref());
            pending.push((Rc::clone(child), depth + 1));
        }
        *node.children.borrow_mut() = kept;
    }
    Cleaned { title }
}

/// The first `title` and the first `base` of a page, wherever they stand outside the body's graphics.
fn head_of(document: &Rc<Node>) -> (String, Option<String>) {
    let (mut title, mut base) = (None, None);
    let mut pending = vec![Rc::clone(document)];
    while let Some(node) = pending.pop() {
        match tag(&node) {
            "title" if title.is_none() => title = Some(title_of(&node)),
            "base" if base.is_none() => base = attribute(&node, "href"),
            "body" | "svg" => continue,
            _ => {}
        }
        pending.extend(children(&node).into_iter().rev());
    }
    (title.unwrap_or_default(), base)
}

fn title_of(node: &Node) -> String {
    let mut text = String::new();
    for child in children(node) {
        if let NodeData::Text { contents } = &child.data {
            text.push_str(&contents.borrow());
        }
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn is_read(node: &Rc<Node>) -> bool {
    match &node.data {
        NodeData::Text { .. } => true,
        NodeData::Element { attrs, .. } => {
            let tag = tag(node);
            !NOT_READ.contains(&tag) && !is_hidden(&attrs.borrow()) && (tag != "img" || has_alternative(node))
        }
        _ => false,
    }
}

fn is_hidden(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let value = &*attribute.value;
        match &*attribute.name.local {
            "hidden" => true,
            "aria-hidden" => value.trim().eq_ignore_ascii_case("true"),
            "role" => NOT_READ_ROLES.iter().any(|role| value.trim().eq_ignore_ascii_case(role)),
            "style" => hides(value),
            _ => false,
        }
    })
}

/// Whether an inline style makes its element invisible.
fn hides(style: &str) -> bool {
    style.split(';').any(|declaration| {
        let Some((property, value)) = declaration.split_once(':') else { return false };
        let value = value.trim().to_ascii_lowercase();
        let value = value.trim_end_matches("!important").trim_end();
        match property.trim().to_ascii_lowercase().as_str() {
            "display" => value == "none",
            "visibility" => matches!(value, "hidden" | "collapse"),
            "opacity" | "font-size" => {
                let number = value.trim_end_matches(|c: char| c.is_ascii_alphabetic() || c == '%');
                number.parse::<f64>().is_ok_and(|number| number == 0.0)
            }
            _ => false,
        }
    })
}

/// Pictures without words are ornaments.
fn has_alternative(picture: &Node) -> bool {
    attribute(picture, "alt").is_some_and(|text| !text.trim().is_empty())
}

/// Makes links absolute and takes away those that lead nowhere a request could go.
fn mend(node: &Rc<Node>, base: Option<&Url>) {
    let NodeData::Element { attrs, .. } = &node.data else { return };
    match tag(node) {
        "a" => {
            resolve(attrs, "href", base, &["http", "https", "mailto"]);
            if !has_words(node) {
                attrs.borrow_mut().clear();
            }
        }
        "img" => resolve(attrs, "src", base, &["http", "https"]),
        _ => {}
    }
}

fn resolve(attributes: &RefCell<Vec<Attribute>>, name: &str, base: Option<&Url>, schemes: &[&str]) {
    attributes.borrow_mut().retain_mut(|attribute| {
        if &*attribute.name.local != name {
            return true;
        }
        if attribute.value.len() > MAX_LINK_BYTES {
            return false;
        }
        let value = attribute.value.trim();
        let resolved = match base {
            Some(base) => base.join(value),
            None => Url::parse(value),
        };
        match resolved {
            Ok(url) if schemes.contains(&url.scheme()) && !value.starts_with('#') => {
                attribute.value = String::from(url).into();
                true
            }
            _ => false,
        }
    });
}

/// Whether there is anything to read in an element.
fn has_words(node: &Rc<Node>) -> bool {
    let mut pending = children(node);
    while let Some(node) = pending.pop() {
        match &node.data {
            NodeData::Text { contents } if !contents.borrow().trim().is_empty() => return true,
            NodeData::Element { .. } if is_read(&node) => {
                if tag(&node) == "img" {
                    return true;
                }
                pending.extend(children(&node));
            }
            _ => {}
        }
    }
    false
}

fn attribute(node: &Node, name: &str) -> Option<String> {
    let NodeData::Element { attrs, .. } = &node.data else { return None };
    attrs.borrow().iter().find(|attribute| &*attribute.name.local == name).map(|attribute| attribute.value.to_string())
}
