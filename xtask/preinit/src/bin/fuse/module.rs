//! One core module of several that are linked with each other.

use std::collections::HashSet;

use anyhow::{Context as _, Result, anyhow, bail};
use wasm_encoder::reencode::{Error, Reencode, utils};
use wasm_encoder::{
    CodeSection, DataCountSection, DataSection, ElementSection, EntityType, ExportSection, FunctionSection,
    GlobalSection, ImportSection, Instruction, MemorySection, TableSection, TagSection, TypeSection,
};
use wasmparser::{ConstExpr, Operator, Parser, Payload, TypeRef};

use crate::linked::{Home, Item, Kind, Kinds, Member};

/// A fused module, with its imports.
pub struct Fused {
    pub bytes: Vec<u8>,
    /// The functions outside that it imports, in order, by the names `0`, `1` and so on of a module without a name.
    pub imports: Vec<Item>,
}

/// Fuses the members into a module with these exports.
pub fn fuse(members: &[Member<'_>], exports: &[(String, Item)]) -> Result<Fused> {
    let whole = Whole::new(members, exports)?;
    let (mut types, mut functions, mut tables) = (TypeSection::new(), FunctionSection::new(), TableSection::new());
    let (mut memories, mut tags, mut globals) = (MemorySection::new(), TagSection::new(), GlobalSection::new());
    let (mut elements, mut code, mut data) = (ElementSection::new(), CodeSection::new(), DataSection::new());
    for member in members {
        let part = &mut Part { whole: &whole, member };
        for payload in Parser::new(0).parse_all(member.module.bytes) {
            let added = match payload? {
                Payload::TypeSection(section) => utils::parse_type_section(part, &mut types, section),
                Payload::FunctionSection(section) => utils::parse_function_section(part, &mut functions, section),
                Payload::TableSection(section) => utils::parse_table_section(part, &mut tables, section),
                Payload::MemorySection(section) => utils::parse_memory_section(part, &mut memories, section),
                Payload::TagSection(section) => utils::parse_tag_section(part, &mut tags, section),
                Payload::GlobalSection(section) => utils::parse_global_section(part, &mut globals, section),
                Payload::ElementSection(section) => utils::parse_element_section(part, &mut elements, section),
                Payload::DataSection(section) => utils::parse_data_section(part, &mut data, section),
                Payload::CodeSectionEntry(body) => utils::parse_function_body(part, &mut code, body),
                _ => Ok(()),
            };
            added.map_err(|error| anyhow!("a module cannot be read: {error}"))?;
        }
    }
    let mut exported = ExportSection::new();
    for (name, item) in exports {
        exported.export(name, item.kind.into(), whole.index(*item)?);
    }
    let mut module = wasm_encoder::Module::new();
    module.section(&types).section(&whole.imports()?).section(&functions).section(&tables).section(&memories);
    // Of the sections here, the only one of a proposal that an engine may not know.
    if !tags.is_empty() {
        module.section(&tags);
    }
    module.section(&globals).section(&exported).section(&elements);
    module.section(&DataCountSection { count: data.len() }).section(&code).section(&data);
    Ok(Fused { bytes: module.finish(), imports: whole.outside.into_iter().map(|(item, ..)| item).collect() })
}

/// The first indices of the items that a member defines.
#[derive(Clone, Copy, Default)]
struct First {
    items: Kinds<u32>,
    types: u32,
    elements: u32,
    data: u32,
}

/// The indices of the fused module.
struct Whole<'a> {
    members: &'a [Member<'a>],
    firsts: Vec<First>,
    /// The functions that it imports, each with a member that says of which of its types they are.
    outside: Vec<(Item, usize, u32)>,
    /// Globals that are set after the start, or might be.
    changing: HashSet<Item>,
}

impl<'a> Whole<'a> {
    fn new(members: &'a [Member<'a>], exports: &[(String, Item)]) -> Result<Self> {
        let changing = exports.iter().map(|(_, item)| *item).filter(|item| item.kind == Kind::Global).collect();
        let mut whole = Self { members, firsts: Vec::new(), outside: Vec::new(), changing };
        for member in members {
            whole.note_imports(member);
            whole.note_changes(member)?;
        }
        let mut next = First::default();
        *next.items.of_mut(Kind::Function) = u32::try_from(whole.outside.len())?;
        for Member { module, .. } in members {
            whole.firsts.push(next);
            for kind in [Kind::Function, Kind::Table, Kind::Memory, Kind::Global, Kind::Tag] {
                *next.items.of_mut(kind) += module.defined.of(kind);
            }
            next.types += module.types;
            next.elements += module.elements;
            next.data += module.data;
        }
        Ok(whole)
    }

    fn note_imports(&mut self, member: &Member<'_>) {
        let types = member.module.imports.iter().filter_map(|(.., ty)| match ty {
            TypeRef::Func(ty) | TypeRef::FuncExact(ty) => Some(*ty),
            _ => None,
        });
        for (item, ty) in member.imports.of(Kind::Function).iter().zip(types) {
            if matches!(item.home, Home::Outside(_)) && !self.outside.iter().any(|(other, ..)| other == item) {
                self.outside.push((*item, member.number, ty));
            }
        }
    }

    /// Notes the globals that the code of a member sets.
    fn note_changes(&mut self, member: &Member<'_>) -> Result<()> {
        for payload in Parser::new(0).parse_all(member.module.bytes) {
            let Payload::CodeSectionEntry(body) = payload? else { continue };
            for operator in body.get_operators_reader()? {
                if let Operator::GlobalSet { global_index } = operator? {
                    self.changing.insert(member.item(Kind::Global, global_index));
                }
            }
        }
        Ok(())
    }

    fn imports(&self) -> Result<ImportSection> {
        let mut section = ImportSection::new();
        for (number, (_, member, ty)) in self.outside.iter().enumerate() {
            section.import("", &number.to_string(), EntityType::Function(self.first(*member)?.types + ty));
        }
        Ok(section)
    }

    fn first(&self, member: usize) -> Result<&First> {
        self.firsts.get(member).context("no such member")
    }

    fn index(&self, item: Item) -> Result<u32> {
        match item.home {
            Home::Member(number, index) => {
                let member = self.members.get(number).context("no such member")?;
                Ok(self.first(number)?.items.of(item.kind) + member.defined(item.kind, index)?)
            }
            Home::Outside(_) => match self.outside.iter().position(|(other, ..)| *other == item) {
                Some(place) => Ok(u32::try_from(place)?),
                None => bail!("only functions are imported"),
            },
        }
    }

    /// The value of a global that never changes, where it is known.
    fn constant(&self, item: Item) -> Option<i32> {
        let Home::Member(number, index) = item.home else { return None };
        if self.changing.contains(&item) {
            return None;
        }
        let member = self.members.get(number)?;
        let (_, value) = member.module.globals.get(member.defined(Kind::Global, index).ok()? as usize)?;
        self.value(member, value)
    }

    /// The value of an expression of 32-bit integers, where it is known.
    fn value(&self, member: &Member<'_>, expression: &ConstExpr<'_>) -> Option<i32> {
        let mut stack = Vec::new();
        for operator in expression.get_operators_reader() {
            let value = match operator.ok()? {
                Operator::I32Const { value } => value,
                Operator::GlobalGet { global_index } => self.constant(member.item(Kind::Global, global_index))?,
                Operator::I32Add => stack.pop().zip(stack.pop()).map(|(b, a): (i32, i32)| a.wrapping_add(b))?,
                Operator::End => break,
                _ => return None,
            };
            stack.push(value);
        }
        stack.pop().filter(|_| stack.is_empty())
    }
}

/// A member, as it is read into the whole.
struct Part<'w, 'a> {
    whole: &'w Whole<'a>,
    member: &'w Member<'a>,
}

type Indexed<T = u32> = Result<T, Error<anyhow::Error>>;

impl Part<'_, '_> {
    fn index(&self, kind: Kind, index: u32) -> Indexed {
        self.whole.index(self.member.item(kind, index)).map_err(Error::UserError)
    }

    fn first(&self) -> Indexed<&First> {
        self.whole.first(self.member.number).map_err(Error::UserError)
    }
}

impl Reencode for Part<'_, '_> {
    type Error = anyhow::Error;

    fn type_index(&mut self, index: u32) -> Indexed {
        Ok(self.first()?.types + index)
    }

    fn element_index(&mut self, index: u32) -> Indexed {
        Ok(self.first()?.elements + index)
    }

    fn data_index(&mut self, index: u32) -> Indexed {
        Ok(self.first()?.data + index)
    }

    fn function_index(&mut self, index: u32) -> Indexed {
        self.index(Kind::Function, index)
    }

    fn table_index(&mut self, index: u32) -> Indexed {
        self.index(Kind::Table, index)
    }

    fn memory_index(&mut self, index: u32) -> Indexed {
        self.index(Kind::Memory, index)
    }

    fn global_index(&mut self, index: u32) -> Indexed {
        self.index(Kind::Global, index)
    }

    fn tag_index(&mut self, index: u32) -> Indexed {
        self.index(Kind::Tag, index)
    }

    /// A constant where it is known: only then is a segment at it a part of the image that the engine makes of a module.
    fn const_expr(&mut self, expression: ConstExpr<'_>) -> Indexed<wasm_encoder::ConstExpr> {
        match self.whole.value(self.member, &expression) {
            Some(value) => Ok(wasm_encoder::ConstExpr::i32_const(value)),
            None => utils::const_expr(self, expression),
        }
    }

    fn instruction<'b>(&mut self, operator: Operator<'b>) -> Indexed<Instruction<'b>> {
        if let Operator::GlobalGet { global_index } = operator
            && let Some(value) = self.whole.constant(self.member.item(Kind::Global, global_index))
        {
            return Ok(Instruction::I32Const(value));
        }
        utils::instruction(self, operator)
    }
}
