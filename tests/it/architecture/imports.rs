//! Which file of a crate uses which other, and the circles among them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use syn::visit::Visit;
use syn::{ItemMod, ItemUse, UseTree};

/// A module, by its path within the crate.
type Module = Vec<String>;

/// The circles of more than two files in a crate. A file is the face of the modules below it, as the root is of the
/// crate: that it uses them does not count, nor does a use of the root.
pub(super) fn circles(source: &Path, files: &[(&Path, &str)]) -> Vec<Vec<String>> {
    let mut uses: BTreeMap<Module, BTreeSet<Module>> = BTreeMap::new();
    for (path, text) in files {
        let module = module(path.strip_prefix(source).unwrap());
        let mut found = Uses { module: module.clone(), paths: Vec::new() };
        found.visit_file(&syn::parse_file(text).unwrap());
        uses.insert(module, found.paths.into_iter().collect());
    }
    let known: BTreeSet<Module> = uses.keys().cloned().collect();
    for (module, paths) in &mut uses {
        let file =
            |path: &Module| (1..=path.len()).rev().map(|end| path[..end].to_vec()).find(|part| known.contains(part));
        *paths = paths.iter().filter_map(file).filter(|other| other != module).collect();
    }
    let reach: BTreeMap<&Module, BTreeSet<&Module>> = uses.keys().map(|from| (from, reachable(from, &uses))).collect();
    let circle = |from: &&Module| -> BTreeSet<&Module> {
        reach[*from].iter().copied().filter(|other| reach[*other].contains(*from)).collect()
    };
    let circles: BTreeSet<BTreeSet<&Module>> = uses.keys().map(|from| circle(&from)).collect();
    let large = circles.into_iter().filter(|circle| circle.len() > 2);
    large.map(|circle| circle.into_iter().map(|module| module.join("/")).collect()).collect()
}

fn module(path: &Path) -> Module {
    let parts = path.with_extension("");
    let names = parts.iter().map(|part| part.to_str().unwrap().to_owned());
    names.filter(|name| name != "lib" && name != "main").collect()
}

fn reachable<'a>(from: &Module, uses: &'a BTreeMap<Module, BTreeSet<Module>>) -> BTreeSet<&'a Module> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<&Module> = uses[from].iter().collect();
    while let Some(module) = open.pop() {
        if reached.insert(module) {
            open.extend(&uses[module]);
        }
    }
    reached
}

/// Collects the paths that begin in this crate, outside tests.
struct Uses {
    module: Module,
    paths: Vec<Module>,
}

impl Uses {
    fn add(&mut self, path: &[String]) {
        let mut base = Vec::new();
        let mut rest = path;
        match path.first().map(String::as_str) {
            Some("crate") => rest = &path[1..],
            Some("self") => (base, rest) = (self.module.clone(), &path[1..]),
            Some("super") => {
                base = self.module.clone();
                while rest.first().is_some_and(|part| part == "super") {
                    base.pop();
                    rest = &rest[1..];
                }
            }
            _ => return,
        }
        base.extend_from_slice(rest);
        self.paths.push(base);
    }

    fn add_tree(&mut self, path: &[String], tree: &UseTree) {
        let with = |name: &syn::Ident| [path, &[name.to_string()]].concat();
        match tree {
            UseTree::Path(part) => self.add_tree(&with(&part.ident), &part.tree),
            UseTree::Name(name) => self.add(&with(&name.ident)),
            UseTree::Rename(name) => self.add(&with(&name.ident)),
            UseTree::Glob(_) => self.add(path),
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.add_tree(path, tree)),
        }
    }
}

impl<'ast> Visit<'ast> for Uses {
    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        self.add_tree(&[], &item.tree);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        self.add(&names);
        syn::visit::visit_path(self, path);
    }

    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        // A module of tests sees everything.
        if item.content.is_some() && item.ident != "tests" {
            syn::visit::visit_item_mod(self, item);
        }
    }
}

#[test]
fn a_circle_of_three_is_found_and_one_of_two_is_not() {
    let source = Path::new("/c/src");
    let files = |third: &'static str| {
        let at = |name: &str, text| (source.join(name), text);
        [
            at("lib.rs", "mod a; mod b; mod c; pub use a::A;"),
            at("a.rs", "use crate::b::{self, B}; pub struct A;"),
            at("b.rs", "fn f() { super::c::call() } pub struct B;"),
            at("c.rs", third),
            at("c/d.rs", "use super::C; #[cfg(test)] mod tests { use crate::a::A; }"),
        ]
    };
    for (third, expected) in [
        ("mod d; use crate::{a::A};", vec![vec!["a", "b", "c"]]),
        ("mod d; fn f(a: crate::a::A) {}", vec![vec!["a", "b", "c"]]),
        ("mod d; use crate::A; use d::D;", vec![]),
        ("mod d; use crate::b::B;", vec![]),
    ] {
        let files = files(third);
        let files: Vec<(&Path, &str)> = files.iter().map(|(path, text)| (path.as_path(), *text)).collect();
        assert_eq!(circles(source, &files), expected, "{third}");
    }
}
