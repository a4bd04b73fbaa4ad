//! Core modules as a linker sees them: the names they import and export, and how many items of each kind they define.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, bail};
use wasm_encoder::ExportKind;
use wasmparser::{ConstExpr, ExternalKind, GlobalType, Parser, Payload, TypeRef};

/// The kinds of items that modules import from each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    Function,
    Table,
    Memory,
    Global,
    Tag,
}

impl From<ExternalKind> for Kind {
    fn from(kind: ExternalKind) -> Self {
        match kind {
            ExternalKind::Func | ExternalKind::FuncExact => Self::Function,
            ExternalKind::Table => Self::Table,
            ExternalKind::Memory => Self::Memory,
            ExternalKind::Global => Self::Global,
            ExternalKind::Tag => Self::Tag,
        }
    }
}

impl From<TypeRef> for Kind {
    fn from(ty: TypeRef) -> Self {
        match ty {
            TypeRef::Func(_) | TypeRef::FuncExact(_) => Self::Function,
            TypeRef::Table(_) => Self::Table,
            TypeRef::Memory(_) => Self::Memory,
            TypeRef::Global(_) => Self::Global,
            TypeRef::Tag(_) => Self::Tag,
        }
    }
}

impl From<Kind> for ExportKind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Function => Self::Func,
            Kind::Table => Self::Table,
            Kind::Memory => Self::Memory,
            Kind::Global => Self::Global,
            Kind::Tag => Self::Tag,
        }
    }
}

/// One value for each kind.
#[derive(Debug, Clone, Copy, Default)]
pub struct Kinds<T> {
    functions: T,
    tables: T,
    memories: T,
    globals: T,
    tags: T,
}

impl<T> Kinds<T> {
    pub fn of(&self, kind: Kind) -> &T {
        match kind {
            Kind::Function => &self.functions,
            Kind::Table => &self.tables,
            Kind::Memory => &self.memories,
            Kind::Global => &self.globals,
            Kind::Tag => &self.tags,
        }
    }

    pub fn of_mut(&mut self, kind: Kind) -> &mut T {
        match kind {
            Kind::Function => &mut self.functions,
            Kind::Table => &mut self.tables,
            Kind::Memory => &mut self.memories,
            Kind::Global => &mut self.globals,
            Kind::Tag => &mut self.tags,
        }
    }
}

/// An item, by the module that defines it and not by one that uses it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Item {
    pub kind: Kind,
    pub home: Home,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Home {
    /// A member of the fused module: its number, and the item's index in its own index space.
    Member(usize, u32),
    /// The component or a module that is no member: the item's number among these.
    Outside(u32),
}

/// A core module, with its names and counts.
pub struct Module<'a> {
    pub bytes: &'a [u8],
    /// The module and the name of each import.
    pub imports: Vec<(&'a str, &'a str, TypeRef)>,
    pub exports: BTreeMap<&'a str, (Kind, u32)>,
    /// How many items it defines.
    pub defined: Kinds<u32>,
    pub globals: Vec<(GlobalType, ConstExpr<'a>)>,
    pub types: u32,
    pub elements: u32,
    pub data: u32,
}

impl<'a> Module<'a> {
    /// Reads a module from its bytes.
    pub fn read(bytes: &'a [u8]) -> Result<Self> {
        let mut module = Self {
            bytes,
            imports: Vec::new(),
            exports: BTreeMap::new(),
            defined: Kinds::default(),
            globals: Vec::new(),
            types: 0,
            elements: 0,
            data: 0,
        };
        for payload in Parser::new(0).parse_all(bytes) {
            match payload? {
                Payload::TypeSection(section) => {
                    for group in section {
                        module.types += u32::try_from(group?.types().len())?;
                    }
                }
                Payload::ImportSection(section) => {
                    for import in section.into_imports() {
                        let import = import?;
                        module.imports.push((import.module, import.name, import.ty));
                    }
                }
                Payload::ExportSection(section) => {
                    for export in section {
                        let export = export?;
                        module.exports.insert(export.name, (export.kind.into(), export.index));
                    }
                }
                Payload::GlobalSection(section) => {
                    module.defined.globals = section.count();
                    for global in section {
                        let global = global?;
                        module.globals.push((global.ty, global.init_expr));
                    }
                }
                Payload::FunctionSection(section) => module.defined.functions = section.count(),
                Payload::TableSection(section) => module.defined.tables = section.count(),
                Payload::MemorySection(section) => module.defined.memories = section.count(),
                Payload::TagSection(section) => module.defined.tags = section.count(),
                Payload::ElementSection(section) => module.elements = section.count(),
                Payload::DataSection(section) => module.data = section.count(),
                Payload::StartSection { .. } => bail!("a module has a start function: fuse it after its snapshot"),
                _ => {}
            }
        }
        Ok(module)
    }
}

/// A module whose imports are known: a member of the fused one.
pub struct Member<'a> {
    pub module: Module<'a>,
    /// The name that the component has for the module.
    pub name: &'a str,
    /// The items that its imports are.
    pub imports: Kinds<Vec<Item>>,
    /// Its place among the members.
    pub number: usize,
}

impl<'a> Member<'a> {
    /// The item at an index of the module.
    pub fn item(&self, kind: Kind, index: u32) -> Item {
        let import = self.imports.of(kind).get(index as usize).copied();
        import.unwrap_or(Item { kind, home: Home::Member(self.number, index) })
    }

    /// The item that it exports by a name.
    pub fn export(&self, name: &str) -> Result<Item> {
        let (kind, index) = *self.module.exports.get(name).with_context(|| format!("no module exports `{name}`"))?;
        Ok(self.item(kind, index))
    }

    /// The place of an index among the items that it defines itself.
    pub fn defined(&self, kind: Kind, index: u32) -> Result<u32> {
        let imported = u32::try_from(self.imports.of(kind).len())?;
        index.checked_sub(imported).context("an import has no place among the items of a module")
    }
}
