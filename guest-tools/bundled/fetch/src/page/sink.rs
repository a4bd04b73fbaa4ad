//! Parsing within bounds: html5ever builds its usual tree, through a sink that counts.
//!
//! The parser's work for a tag grows with the elements that are open, so a page that opens ever more of them would cost
//! the square of its size; once a bound is met, the rest of the page is not looked at. Attributes that nothing here
//! reads are dropped at once, and the errors of the page are not collected.

use std::borrow::Cow;
use std::cell::Cell;
use std::rc::{Rc, Weak};

use html5ever::interface::{ElementFlags, NodeOrText, QuirksMode, TreeSink};
use html5ever::tendril::StrTendril;
use html5ever::tokenizer::{BufferQueue, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts};
use html5ever::tree_builder::{TreeBuilder, TreeBuilderOpts};
use html5ever::{Attribute, ExpandedName, QualName};
use markup5ever_rcdom::{Node, RcDom};

use super::{MAX_DEPTH, MAX_ELEMENTS};

/// Attributes that cleaning or writing reads.
const KEPT_ATTRIBUTES: [&str; 15] = [
    "href",
    "src",
    "alt",
    "title",
    "class",
    "style",
    "hidden",
    "role",
    "aria-hidden",
    "start",
    "type",
    "align",
    "colspan",
    "content",
    "name",
];

/// A tree, and why it is not all of the page.
pub struct Parsed {
    pub document: Rc<Node>,
    pub stopped: Option<Stopped>,
}

/// Which bound the page met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopped {
    Depth,
    Elements,
}

/// Parses a page, as without scripts: the text in `noscript` is for readers like this one.
pub fn parse(html: String) -> Parsed {
    let options = TreeBuilderOpts { scripting_enabled: false, drop_doctype: true, ..TreeBuilderOpts::default() };
    let bounded = Bounded { dom: RcDom::default(), elements: Cell::new(0), stopped: Cell::new(None) };
    let tokenizer = Tokenizer::new(UntilStopped(TreeBuilder::new(bounded, options)), TokenizerOpts::default());
    let input = BufferQueue::default();
    input.push_back(StrTendril::from_slice(&html));
    // The tree shares the copy; memory does not hold a page twice.
    drop(html);
    while !matches!(tokenizer.feed(&input), html5ever::TokenizerResult::Done) {}
    tokenizer.end();
    let Bounded { dom, stopped, .. } = tokenizer.sink.0.sink;
    Parsed { document: dom.document, stopped: stopped.get() }
}

/// Passes tokens on until a bound is met.
struct UntilStopped(TreeBuilder<Rc<Node>, Bounded>);

impl TokenSink for UntilStopped {
    type Handle = Rc<Node>;

    fn process_token(&self, token: Token, line: u64) -> TokenSinkResult<Self::Handle> {
        if self.0.sink.stopped.get().is_some() && token != Token::EOFToken {
            return TokenSinkResult::Continue;
        }
        match self.0.process_token(token, line) {
            // Nothing runs scripts here, and the text is decoded already.
            TokenSinkResult::Script(_) | TokenSinkResult::EncodingIndicator(_) => TokenSinkResult::Continue,
            other => other,
        }
    }

    fn end(&self) {
        self.0.end();
    }

    fn adjusted_current_node_present_but_not_in_html_namespace(&self) -> bool {
        self.0.adjusted_current_node_present_but_not_in_html_namespace()
    }
}

/// The tree, and how large it has become.
struct Bounded {
    dom: RcDom,
    elements: Cell<usize>,
    stopped: Cell<Option<Stopped>>,
}

impl Bounded {
    fn check_depth(&self, parent: &Rc<Node>) {
        let mut depth = 0;
        let mut above = Some(Rc::clone(parent));
        while let Some(node) = above {
            depth += 1;
            if depth >= MAX_DEPTH {
                self.stopped.set(Some(Stopped::Depth));
                return;
            }
            above = parent_of(&node);
        }
    }
}

fn parent_of(node: &Node) -> Option<Rc<Node>> {
    let parent = node.parent.take();
    let found = parent.as_ref().and_then(Weak::upgrade);
    node.parent.set(parent);
    found
}

impl TreeSink for Bounded {
    type Handle = Rc<Node>;
    type Output = Self;
    type ElemName<'a> = ExpandedName<'a>;

    fn finish(self) -> Self {
        self
    }

    fn parse_error(&self, _message: Cow<'static, str>) {}

    fn get_document(&self) -> Self::Handle {
        self.dom.get_document()
    }

    fn elem_name<'a>(&'a self, target: &'a Self::Handle) -> Self::ElemName<'a> {
        self.dom.elem_name(target)
    }

    fn create_element(&self, name: QualName, mut attributes: Vec<Attribute>, flags: ElementFlags) -> Self::Handle {
        self.elements.set(self.elements.get() + 1);
        if self.elements.get() >= MAX_ELEMENTS {
            self.stopped.set(Some(Stopped::Elements));
        }
        attributes.retain(|attribute| KEPT_ATTRIBUTES.contains(&&*attribute.name.local));
        attributes.shrink_to_fit();
        self.dom.create_element(name, attributes, flags)
    }

    fn create_comment(&self, _text: StrTendril) -> Self::Handle {
        self.dom.create_comment(StrTendril::new())
    }

    fn create_pi(&self, _target: StrTendril, _data: StrTendril) -> Self::Handle {
        self.dom.create_comment(StrTendril::new())
    }

    fn append(&self, parent: &Self::Handle, child: NodeOrText<Self::Handle>) {
        if matches!(child, NodeOrText::AppendNode(_)) {
            self.check_depth(parent);
        }
        self.dom.append(parent, child);
    }

    fn append_based_on_parent_node(
        &self,
        element: &Self::Handle,
        previous: &Self::Handle,
        child: NodeOrText<Self::Handle>,
    ) {
        self.check_depth(element);
        self.dom.append_based_on_parent_node(element, previous, child);
    }

    fn append_doctype_to_document(&self, _name: StrTendril, _public_id: StrTendril, _system_id: StrTendril) {}

    fn get_template_contents(&self, target: &Self::Handle) -> Self::Handle {
        self.dom.get_template_contents(target)
    }

    fn same_node(&self, x: &Self::Handle, y: &Self::Handle) -> bool {
        self.dom.same_node(x, y)
    }

    fn set_quirks_mode(&self, mode: QuirksMode) {
        self.dom.set_quirks_mode(mode);
    }

    fn append_before_sibling(&self, sibling: &Self::Handle, node: NodeOrText<Self::Handle>) {
        self.check_depth(sibling);
        self.dom.append_before_sibling(sibling, node);
    }

    // Attributes of `html` and `body` that come late: these are never read here.
    fn add_attrs_if_missing(&self, _target: &Self::Handle, _attributes: Vec<Attribute>) {}

    fn remove_from_parent(&self, target: &Self::Handle) {
        self.dom.remove_from_parent(target);
    }

    fn reparent_children(&self, node: &Self::Handle, new_parent: &Self::Handle) {
        self.dom.reparent_children(node, new_parent);
    }

    fn is_mathml_annotation_xml_integration_point(&self, target: &Self::Handle) -> bool {
        self.dom.is_mathml_annotation_xml_integration_point(target)
    }
}
