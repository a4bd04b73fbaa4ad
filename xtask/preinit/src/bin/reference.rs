//! Writes the reference of the WIT: every world, interface, type and function with its doc comment, below the marker in a page
//! that is otherwise written by hand.
//!
//! Usage: `reference WIT PAGE.md`; a test checks that the committed page is up to date.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use wit_parser::{
    Docs, Function, Handle, Interface, InterfaceId, Resolve, Type, TypeDef, TypeDefKind, World, WorldItem, WorldKey,
};

/// The line of the page after which everything is generated.
const MARKER: &str = "<!-- From here on written by `cargo xtask docs`, from the comments in `wit/`. -->\n";

fn main() -> Result<()> {
    let arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [wit, page] = arguments.as_slice() else { bail!("usage: `reference WIT PAGE.md`") };
    let text = std::fs::read_to_string(page).with_context(|| format!("cannot read `{}`", page.display()))?;
    let text = renewed(&text, &reference(wit)?)?;
    std::fs::write(page, text).with_context(|| format!("cannot write `{}`", page.display()))
}

/// The page with this reference.
fn renewed(page: &str, reference: &str) -> Result<String> {
    let (by_hand, _) = page.split_once(MARKER).context("the page has no line that begins the reference")?;
    Ok(format!("{by_hand}{MARKER}{reference}"))
}

fn reference(wit: &Path) -> Result<String> {
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_path(wit).with_context(|| format!("cannot read `{}`", wit.display()))?;
    let package = resolve.packages.get(package).context("a package that was read is there")?;
    let mut page = format!("\n## Reference of `{}`\n", package.name);
    for world in package.worlds.values().filter_map(|id| resolve.worlds.get(*id)) {
        write!(page, "\n### World `{}`\n\n{}\n", world.name, text_of(&world.docs, &world.name)?)?;
        let (imports, exports) = items(&resolve, world);
        write!(page, "\nImports {}. Exports {}.\n", listed(&imports), listed(&exports))?;
    }
    for interface in package.interfaces.values().filter_map(|id| resolve.interfaces.get(*id)) {
        describe_interface(&mut page, &resolve, interface)?;
    }
    Ok(page)
}

fn describe_interface(page: &mut String, resolve: &Resolve, interface: &Interface) -> Result<()> {
    let name = interface.name.as_deref().context("an interface of a package has a name")?;
    write!(page, "\n### Interface `{name}`\n\n{}\n", text_of(&interface.docs, name)?)?;
    let types = interface.types.values().filter_map(|id| resolve.types.get(*id));
    for ty in types.filter(|ty| !is_used(resolve, ty)) {
        describe_type(page, resolve, ty)?;
    }
    for function in interface.functions.values() {
        write!(page, "\n`{}`\\\n{}\n", signature(resolve, function), text_of(&function.docs, &function.name)?)?;
    }
    Ok(())
}

/// Names of the interfaces and functions that a world imports and exports.
fn items(resolve: &Resolve, world: &World) -> (Vec<String>, Vec<String>) {
    let interface = |id: InterfaceId| resolve.interfaces.get(id).and_then(|interface| interface.name.clone());
    let name = |(key, item): (&WorldKey, &WorldItem)| match (key, item) {
        (_, WorldItem::Interface { id, .. }) => interface(*id).unwrap_or_default(),
        (WorldKey::Name(name), _) => name.clone(),
        (WorldKey::Interface(id), _) => interface(*id).unwrap_or_default(),
    };
    (world.imports.iter().map(name).collect(), world.exports.iter().map(name).collect())
}

fn listed(names: &[String]) -> String {
    if names.is_empty() {
        return "nothing".to_owned();
    }
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// Whether a type is another interface's, under its name there: it is described in its place.
fn is_used(resolve: &Resolve, ty: &TypeDef) -> bool {
    let TypeDefKind::Type(Type::Id(id)) = ty.kind else { return false };
    resolve.types.get(id).is_some_and(|of| of.name == ty.name)
}

fn describe_type(page: &mut String, resolve: &Resolve, ty: &TypeDef) -> Result<()> {
    let name = ty.name.as_deref().context("a type of an interface has a name")?;
    let mut parts: Vec<(String, &Docs)> = Vec::new();
    let with = |name: &str, ty: Option<&Type>| match ty {
        Some(ty) => format!("{name}({})", type_name(resolve, ty)),
        None => name.to_owned(),
    };
    let head = match &ty.kind {
        TypeDefKind::Record(record) => {
            let field = |field: &'_ wit_parser::Field| format!("{}: {}", field.name, type_name(resolve, &field.ty));
            parts.extend(record.fields.iter().map(|each| (field(each), &each.docs)));
            format!("record {name}")
        }
        TypeDefKind::Flags(flags) => {
            parts.extend(flags.flags.iter().map(|flag| (flag.name.clone(), &flag.docs)));
            format!("flags {name}")
        }
        TypeDefKind::Variant(variant) => {
            parts.extend(variant.cases.iter().map(|case| (with(&case.name, case.ty.as_ref()), &case.docs)));
            format!("variant {name}")
        }
        TypeDefKind::Enum(of) => {
            parts.extend(of.cases.iter().map(|case| (case.name.clone(), &case.docs)));
            format!("enum {name}")
        }
        TypeDefKind::Resource => format!("resource {name}"),
        kind => format!("type {name} = {}", kind_name(resolve, kind)),
    };
    write!(page, "\n`{head}`\\\n{}\n", text_of(&ty.docs, name)?)?;
    if !parts.is_empty() {
        page.push('\n');
    }
    for (part, docs) in parts {
        writeln!(page, "- `{part}`: {}", text_of(docs, &format!("{name}.{part}"))?)?;
    }
    Ok(())
}

fn signature(resolve: &Resolve, function: &Function) -> String {
    let parameter =
        |parameter: &wit_parser::Param| format!("{}: {}", parameter.name, type_name(resolve, &parameter.ty));
    let parameters: Vec<String> = function.params.iter().map(parameter).collect();
    let result = function.result.as_ref().map(|ty| format!(" -> {}", type_name(resolve, ty))).unwrap_or_default();
    format!("{}: func({}){result}", function.name, parameters.join(", "))
}

fn type_name(resolve: &Resolve, ty: &Type) -> String {
    match ty {
        Type::Bool => "bool",
        Type::U8 => "u8",
        Type::U16 => "u16",
        Type::U32 => "u32",
        Type::U64 => "u64",
        Type::S8 => "s8",
        Type::S16 => "s16",
        Type::S32 => "s32",
        Type::S64 => "s64",
        Type::F32 => "f32",
        Type::F64 => "f64",
        Type::Char => "char",
        Type::String => "string",
        Type::ErrorContext => "error-context",
        Type::Id(id) => {
            let Some(of) = resolve.types.get(*id) else { return "?".to_owned() };
            return of.name.clone().unwrap_or_else(|| kind_name(resolve, &of.kind));
        }
    }
    .to_owned()
}

fn kind_name(resolve: &Resolve, kind: &TypeDefKind) -> String {
    let name = |ty: &Type| type_name(resolve, ty);
    let or_none = |ty: &Option<Type>| ty.as_ref().map_or("_".to_owned(), name);
    match kind {
        TypeDefKind::Type(ty) => name(ty),
        TypeDefKind::Option(ty) => format!("option<{}>", name(ty)),
        TypeDefKind::List(ty) => format!("list<{}>", name(ty)),
        TypeDefKind::Tuple(tuple) => {
            format!("tuple<{}>", tuple.types.iter().map(name).collect::<Vec<_>>().join(", "))
        }
        TypeDefKind::Result(result) => match (&result.ok, &result.err) {
            (None, None) => "result".to_owned(),
            (Some(ok), None) => format!("result<{}>", name(ok)),
            (ok, err) => format!("result<{}, {}>", or_none(ok), or_none(err)),
        },
        TypeDefKind::Handle(Handle::Own(id)) => name(&Type::Id(*id)),
        TypeDefKind::Handle(Handle::Borrow(id)) => format!("borrow<{}>", name(&Type::Id(*id))),
        other => other.as_str().to_owned(),
    }
}

/// A doc comment as one paragraph for each of its paragraphs. Every item has one.
fn text_of(docs: &Docs, of: &str) -> Result<String> {
    let text = docs.contents.as_deref().with_context(|| format!("`{of}` has no doc comment"))?;
    let paragraphs: Vec<String> = text
        .split("\n\n")
        .map(|paragraph| paragraph.lines().map(str::trim).collect::<Vec<_>>().join(" "))
        .filter(|paragraph| !paragraph.is_empty())
        .collect();
    Ok(paragraphs.join("\n\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
    }

    #[test]
    fn the_committed_page_is_the_generated_one() {
        let page = std::fs::read_to_string(root().join("docs/wit.md")).unwrap();
        let expected = renewed(&page, &reference(&root().join("wit")).unwrap()).unwrap();
        assert!(page == expected, "docs/wit.md is out of date: run `cargo xtask docs`");
    }

    #[test]
    fn every_doc_comment_appears() {
        let reference = reference(&root().join("wit")).unwrap();
        let mut seen = 0;
        for entry in std::fs::read_dir(root().join("wit")).unwrap() {
            let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
            for line in text.lines().filter_map(|line| line.trim().strip_prefix("/// ")) {
                assert!(reference.contains(line.trim()), "{line}");
                seen += 1;
            }
        }
        assert!(seen > 100, "{seen}");
    }

    #[test]
    fn items_are_named_as_in_wit_and_one_without_a_comment_is_an_error() {
        let directory = std::env::temp_dir().join(format!("reference-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let write = |text: &str| std::fs::write(directory.join("a.wit"), text).unwrap();
        let wit = "package a:b;\n/// One.\ninterface i {\n/// T.\nvariant t { /// C.\nc(list<u8>), /// D.\nd }\n\
                   /// F.\nf: func(x: option<t>, y: tuple<u8, string>) -> result<_, t>;\n}\n/// W.\nworld w { export i; }\n";
        write(wit);
        let page = reference(&directory).unwrap();
        for part in [
            "- `c(list<u8>)`: C.\n",
            "`f: func(x: option<t>, y: tuple<u8, string>) -> result<_, t>`\\\nF.\n",
            "Imports nothing. Exports `i`.",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
        write(&wit.replace("/// T.\n", ""));
        assert!(reference(&directory).unwrap_err().to_string().contains("`t` has no doc comment"));
        std::fs::remove_dir_all(directory).unwrap();
    }
}
