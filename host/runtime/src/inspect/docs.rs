//! The documentation in a component: its `package-docs` section.
//!
//! A byte for the version, 0 or 1, and JSON. Its content is untrusted: it is read within bounds, and malformed sections
//! are ignored. It never decides which functions are tools. The section does not name its package, so an interface is
//! found by its short name.

use serde_json::Value;

use super::name::parts;

/// The name of the custom section.
pub(super) const SECTION: &str = "package-docs";
/// The longest section that is read, in bytes.
const MAX_SECTION_BYTES: usize = 512 * 1024;
/// Maximum number of sections that are read.
const MAX_SECTIONS: usize = 8;
/// Worlds of one section that are searched: each field of each type is looked up in all of them.
const MAX_WORLDS: usize = 8;
/// The longest text of a function or of the whole component, in bytes.
pub(crate) const MAX_TEXT_BYTES: usize = 4 * 1024;
/// The longest text of a field, in bytes: it is in the schema that a model reads each turn.
const MAX_FIELD_BYTES: usize = 512;

/// The documentation of a component.
#[derive(Debug, Default)]
pub(super) struct Docs(Vec<Value>);

impl Docs {
    /// Adds one more section; a malformed one is ignored.
    pub fn add(&mut self, section: &[u8]) {
        if self.0.len() >= MAX_SECTIONS || section.len() > MAX_SECTION_BYTES {
            return;
        }
        // The parser itself bounds nesting.
        if let Some((0 | 1, json)) = section.split_first()
            && let Ok(docs @ Value::Object(_)) = serde_json::from_slice(json)
        {
            self.0.push(docs);
        }
    }

    /// The text of a function of an exported interface; `export` is empty for a function of the world itself.
    pub fn function(&self, export: &str, function: &str) -> Option<String> {
        if export.is_empty() {
            let mut found = self.worlds().flat_map(|world| ["func_exports", "funcs"].map(|key| world.get(key)));
            return found.find_map(|functions| text_of(functions?.get(function)?, MAX_TEXT_BYTES));
        }
        self.interfaces(export).find_map(|interface| text_of(interface.get("funcs")?.get(function)?, MAX_TEXT_BYTES))
    }

    /// The text of a field of a record that a function of that interface uses.
    pub fn field(&self, export: &str, ty: &str, field: &str) -> Option<String> {
        let of = |holder: &Value| {
            let items = holder.get("types")?.get(ty)?.get("items")?;
            text_of(items.get(field)?, MAX_FIELD_BYTES)
        };
        if export.is_empty() { self.worlds().find_map(of) } else { self.interfaces(export).find_map(of) }
    }

    /// The text of the component as a whole: of its world, or else of its package.
    pub fn whole(&self) -> Option<String> {
        let docs = |value: &Value| text_of(value.get("docs")?, MAX_TEXT_BYTES);
        self.worlds().find_map(docs).or_else(|| self.0.iter().find_map(docs))
    }

    fn worlds(&self) -> impl Iterator<Item = &Value> {
        self.0
            .iter()
            .filter_map(|docs| docs.get("worlds")?.as_object())
            .flat_map(|worlds| worlds.values().take(MAX_WORLDS))
    }

    /// The documentation of an exported interface: of its package, or written into the world.
    fn interfaces<'a>(&'a self, export: &'a str) -> impl Iterator<Item = &'a Value> {
        let (_, name) = parts(export);
        let packages = self.0.iter().filter_map(move |docs| docs.get("interfaces")?.get(name));
        let inline = self.worlds().flat_map(move |world| {
            ["interface_exports", "interfaces"].into_iter().filter_map(move |key| world.get(key)?.get(export))
        });
        packages.chain(inline)
    }
}

/// The text itself in version 0, the `docs` of an object in version 1.
fn text_of(value: &Value, most: usize) -> Option<String> {
    let text = value.as_str().or_else(|| value.get("docs")?.as_str())?.trim();
    let text = text.get(..text.floor_char_boundary(most))?;
    (!text.is_empty()).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn docs(version: u8, json: &Value) -> Docs {
        let mut docs = Docs::default();
        docs.add(&[&[version], json.to_string().as_bytes()].concat());
        docs
    }

    #[test]
    fn both_versions_are_read() {
        let one = docs(
            1,
            &json!({
                "docs": "All shapes.",
                "worlds": { "w": { "func_exports": { "top": { "docs": " At the top. " } },
                    "interface_exports": { "inline": { "funcs": { "f": { "docs": "Inline." } } } } } },
                "interfaces": { "area": { "funcs": { "scale": { "docs": "Scales." } },
                    "types": { "point": { "items": { "x": "Across." } } } } },
            }),
        );
        assert_eq!(one.function("", "top").as_deref(), Some("At the top."));
        assert_eq!(one.function("a:b/area@1.0.0", "scale").as_deref(), Some("Scales."));
        assert_eq!(one.function("inline", "f").as_deref(), Some("Inline."));
        assert_eq!(one.field("a:b/area@1.0.0", "point", "x").as_deref(), Some("Across."));
        assert_eq!(one.whole().as_deref(), Some("All shapes."));
        assert_eq!(one.function("a:b/area@1.0.0", "other"), None);
        let zero = docs(0, &json!({ "worlds": { "w": { "docs": "A world.", "funcs": { "top": "At the top." } } } }));
        assert_eq!(zero.function("", "top").as_deref(), Some("At the top."));
        assert_eq!(zero.whole().as_deref(), Some("A world."));
    }

    #[test]
    fn hostile_sections_are_no_documentation() {
        let whole = |section: &[u8]| {
            let mut docs = Docs::default();
            docs.add(section);
            docs.whole()
        };
        assert_eq!(whole(b"\x01{\"docs\":\"fine\"}").as_deref(), Some("fine"));
        for section in [
            &b""[..],
            b"\x01",
            b"\x01{",
            b"\x02{\"docs\":\"x\"}",
            b"\x01[]",
            b"\x01{\"docs\":7}",
            b"\x01{\"docs\":{\"docs\":[]},\"worlds\":[],\"interfaces\":null}",
            b"\x01{\"docs\":\"\xff\"}",
        ] {
            assert_eq!(whole(section), None, "{section:?}");
        }
        assert_eq!(whole(format!("\x01{}", "[".repeat(100_000)).as_bytes()), None);
        let huge = json!({ "docs": "é".repeat(MAX_TEXT_BYTES) });
        assert_eq!(docs(1, &huge).whole().map(|text| text.len()), Some(MAX_TEXT_BYTES));
        let beyond = format!("\x01{{\"docs\":\"{}\"}}", "x".repeat(MAX_SECTION_BYTES));
        assert_eq!(whole(beyond.as_bytes()), None);
    }
}
