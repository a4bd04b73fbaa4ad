//! A frontmatter as the events of a YAML parser: the spelling of every value, regardless of its apparent type, and
//! nothing expanded. An alias is a number here, so nothing can grow, and nesting ends at a fixed depth.

use std::collections::{HashMap, HashSet};

use granit_parser::{Event, Parser, ScalarStyle, StructureStyle};

/// The deepest nesting of mappings and lists.
const MAX_NESTED: usize = 32;

/// The top-level fields of a frontmatter.
#[derive(Debug, Default)]
pub(super) struct Fields {
    fields: Vec<(String, Value)>,
    anchored: HashMap<usize, String>,
    /// Ways of writing that are YAML and that the standard's reader refuses.
    pub(super) extras: Extras,
}

/// A value of a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    Text(String),
    /// The texts directly in a list.
    List(Vec<String>),
    Mapping,
    Alias(usize),
}

/// Ways of writing that the Agent Skills standard's reader refuses.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Extras {
    pub(super) flow: bool,
    pub(super) anchors: bool,
    pub(super) tags: bool,
    pub(super) documents: bool,
    pub(super) duplicates: bool,
}

/// Why there are no fields.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// It is not YAML.
    Syntax {
        /// Line of the frontmatter, from 1.
        line: usize,
    },
    /// It is a list, a text or nothing.
    NoMapping,
}

impl Fields {
    /// Reads a whole frontmatter.
    pub(super) fn read(front: &str) -> Result<Self, Fault> {
        let options = granit_parser::options! {
            flow_nesting_limit: MAX_NESTED,
            block_nesting_limit: MAX_NESTED,
        };
        let mut reading =
            YamlReading { fields: Self::default(), open: Vec::new(), field: None, is_mapping: false, documents: 0 };
        for event in Parser::new_from_str_with_options(front, options) {
            let (event, span) = event.map_err(|error| Fault::Syntax { line: error.marker().line() })?;
            reading.take(event, span.slice(front).unwrap_or_default());
        }
        if reading.is_mapping { Ok(reading.fields) } else { Err(Fault::NoMapping) }
    }

    /// The last value of a field, as other readers have it; by its name in any case if there is no exact match.
    pub(super) fn get(&self, name: &str) -> Option<&Value> {
        let last =
            |is: &dyn Fn(&str) -> bool| self.fields.iter().rev().find(|(key, _)| is(key)).map(|(_, value)| value);
        last(&|key| key == name).or_else(|| last(&|key| key.eq_ignore_ascii_case(name)))
    }

    /// A value as text.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        match self.get(name)? {
            Value::Text(text) => Some(text.clone()),
            Value::List(items) if !items.is_empty() => Some(items.join(", ")),
            Value::Alias(anchor) => self.anchored.get(anchor).cloned(),
            Value::List(_) | Value::Mapping => None,
        }
    }

    /// The names, as often as they are there.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.fields.iter().map(|(name, _)| name.as_str())
    }
}

struct YamlReading {
    fields: Fields,
    open: Vec<OpenNode>,
    /// The field at the top whose value is read.
    field: Option<String>,
    is_mapping: bool,
    documents: usize,
}

/// A mapping with the keys it has so far and whether one comes next; or a list.
enum OpenNode {
    Mapping { keys: HashSet<String>, key_next: bool },
    List,
}

impl YamlReading {
    fn take(&mut self, event: Event<'_>, source: &str) {
        let extras = &mut self.fields.extras;
        match event {
            Event::DocumentStart(..) => {
                self.documents += 1;
                extras.documents |= self.documents > 1;
            }
            Event::Scalar(text, style, anchor, tag) => {
                extras.tags |= tag.is_some();
                if anchor != 0 {
                    extras.anchors = true;
                    self.fields.anchored.insert(anchor, text.clone().into_owned());
                }
                // The parser says a plain `~` for a value that is not there.
                let is_missing = text == "~" && source != "~" && style == ScalarStyle::Plain;
                let text = if is_missing { String::new() } else { text.into_owned() };
                self.node(Value::Text(text));
            }
            Event::Alias(anchor) => {
                extras.anchors = true;
                self.node(Value::Alias(anchor));
            }
            Event::SequenceStart(style, anchor, tag) => {
                self.begins(style, anchor, tag.is_some());
                self.node(Value::List(Vec::new()));
                self.open.push(OpenNode::List);
            }
            Event::MappingStart(style, anchor, tag) => {
                self.begins(style, anchor, tag.is_some());
                if self.open.is_empty() && self.documents == 1 {
                    self.is_mapping = true;
                }
                self.node(Value::Mapping);
                self.open.push(OpenNode::Mapping { keys: HashSet::new(), key_next: true });
            }
            Event::SequenceEnd | Event::MappingEnd => {
                self.open.pop();
            }
            _ => {}
        }
    }

    fn begins(&mut self, style: StructureStyle, anchor: usize, tagged: bool) {
        let extras = &mut self.fields.extras;
        extras.flow |= style == StructureStyle::Flow;
        extras.anchors |= anchor != 0;
        extras.tags |= tagged;
    }

    /// A node begins: a key, a value or an item of the open node.
    fn node(&mut self, value: Value) {
        let at_top = self.open.len() == 1 && self.documents == 1;
        match self.open.last_mut() {
            Some(OpenNode::Mapping { keys, key_next }) if *key_next => {
                *key_next = false;
                let key = if let Value::Text(key) = value { Some(key) } else { None };
                if let Some(key) = &key
                    && !keys.insert(key.clone())
                {
                    self.fields.extras.duplicates = true;
                }
                if at_top {
                    self.field = key;
                }
            }
            Some(OpenNode::Mapping { key_next, .. }) => {
                *key_next = true;
                if at_top && let Some(name) = self.field.take() {
                    self.fields.fields.push((name, value));
                }
            }
            Some(OpenNode::List) => {
                // Directly in a list that is the value of a field.
                if self.open.len() == 2
                    && self.documents == 1
                    && let (Value::Text(item), Some((_, Value::List(items)))) = (value, self.fields.fields.last_mut())
                {
                    items.push(item);
                }
            }
            None => {}
        }
    }
}
