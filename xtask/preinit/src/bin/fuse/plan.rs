//! A component as it is read: each core item is followed to the module that defines it, and a module is a member of the fused
//! one if it is linked with members, and with functions alone that can be made before any of them.

use std::collections::{HashMap, HashSet};

use anyhow::{Context as _, Result, anyhow};
use wasm_encoder::reencode::{Error, Reencode, ReencodeComponent, component_utils};
use wasm_encoder::{CanonicalFunctionSection, ComponentSectionId};
use wasmparser::{CanonicalFunction, ComponentAlias, ComponentName, InstantiationArg, KnownCustom, Parser, Payload};

use crate::linked::{Home, Item, Kind, Kinds, Member, Module};

/// A name in an instance, and its item.
pub type Named<'a> = (&'a str, Item);

/// A core instance of the component.
enum Instance<'a> {
    Member(usize),
    Items(Vec<Named<'a>>),
    /// Of a module that is no member: its number among these.
    Left(usize),
}

/// A part of the component, as it is written again.
pub enum Step<'a> {
    /// A section that knows nothing of core items.
    Section(u8, &'a [u8]),
    Alias(ComponentAlias<'a>),
    /// A canonical function, and the item that it makes, if that is a core function.
    Canonical(CanonicalFunction, Option<Item>),
    /// An instance of a module that is no member, with its arguments.
    Left(usize, Vec<(&'a str, Vec<Named<'a>>)>),
}

#[derive(Default)]
pub struct Plan<'a> {
    pub modules: Vec<&'a [u8]>,
    /// The names that the component has for them.
    names: HashMap<u32, &'a str>,
    pub members: Vec<Member<'a>>,
    instances: Vec<Instance<'a>>,
    /// The items at the indices of each kind.
    spaces: Kinds<Vec<Item>>,
    pub steps: Vec<Step<'a>>,
    /// Items of modules that are no members, by their numbers.
    pub left: HashMap<Item, (usize, &'a str)>,
    lefts: usize,
    outside: u32,
    /// Items outside that need a member before they can be made.
    late: HashSet<Item>,
    /// The items of members that the component uses, by the names that the fused module exports them by.
    pub exports: Vec<(String, Item)>,
}

impl<'a> Plan<'a> {
    /// Reads a component from its bytes.
    pub fn read(bytes: &'a [u8]) -> Result<Self> {
        let mut plan = Self { names: names(bytes)?, ..Self::default() };
        for payload in own_payloads(bytes) {
            plan.add(bytes, payload?)?;
        }
        Ok(plan)
    }

    fn add(&mut self, bytes: &'a [u8], payload: Payload<'a>) -> Result<()> {
        match payload {
            Payload::ModuleSection { unchecked_range, .. } => self.modules.push(part(bytes, &unchecked_range)?),
            Payload::ComponentSection { unchecked_range, .. } => {
                self.steps.push(Step::Section(ComponentSectionId::Component.into(), part(bytes, &unchecked_range)?));
            }
            Payload::InstanceSection(section) => {
                for instance in section {
                    self.add_instance(instance?)?;
                }
            }
            Payload::ComponentAliasSection(section) => {
                for alias in section {
                    match alias? {
                        ComponentAlias::CoreInstanceExport { kind, instance_index, name } => {
                            let item = self.export(kind.into(), instance_index, name)?;
                            self.spaces.of_mut(item.kind).push(item);
                        }
                        alias => self.steps.push(Step::Alias(alias)),
                    }
                }
            }
            Payload::ComponentCanonicalSection(section) => {
                for function in section {
                    self.add_canonical(function?)?;
                }
            }
            // Its names are those of indices that are others afterwards.
            Payload::CustomSection(section) if section.name() == "component-name" => {}
            Payload::Version { .. } => {}
            payload => {
                let (id, range) = payload.as_section().context("a part of a component that is not known here")?;
                self.steps.push(Step::Section(id, part(bytes, &range)?));
            }
        }
        Ok(())
    }

    fn add_canonical(&mut self, function: CanonicalFunction) -> Result<()> {
        let mut used = Indices::default();
        used.canonical(&function)?;
        let mut is_late = false;
        for (kind, index) in used.asked {
            let item = self.item(kind, index)?;
            is_late |= self.is_late(item);
            self.need(item)?;
        }
        let made =
            (!matches!(function, CanonicalFunction::Lift { .. })).then(|| self.outside_item(Kind::Function, is_late));
        self.spaces.of_mut(Kind::Function).extend(made);
        self.steps.push(Step::Canonical(function, made));
        Ok(())
    }

    /// The item at an index of the component.
    pub fn item(&self, kind: Kind, index: u32) -> Result<Item> {
        self.spaces.of(kind).get(index as usize).copied().context("no such core item")
    }

    fn add_instance(&mut self, instance: wasmparser::Instance<'a>) -> Result<()> {
        let instance = match instance {
            wasmparser::Instance::FromExports(exports) => {
                let item =
                    |export: &wasmparser::Export<'a>| Ok((export.name, self.item(export.kind.into(), export.index)?));
                Instance::Items(exports.iter().map(item).collect::<Result<_>>()?)
            }
            wasmparser::Instance::Instantiate { module_index, args } => self.instantiate(module_index, &args)?,
        };
        self.instances.push(instance);
        Ok(())
    }

    fn instantiate(&mut self, index: u32, arguments: &[InstantiationArg<'a>]) -> Result<Instance<'a>> {
        let module = Module::read(self.modules.get(index as usize).context("no such module")?)?;
        let mut imports = Kinds::<Vec<Item>>::default();
        let mut given: Vec<(&str, Vec<Named<'a>>)> = Vec::new();
        for (from, name, ty) in &module.imports {
            let argument = arguments.iter().find(|argument| argument.name == *from);
            let argument = argument.with_context(|| format!("a module is given no `{from}`"))?;
            let item = self.export((*ty).into(), argument.index, name)?;
            imports.of_mut(item.kind).push(item);
            match given.iter_mut().find(|(name, _)| name == from) {
                Some((_, items)) => items.push((name, item)),
                None => given.push((from, vec![(name, item)])),
            }
        }
        let given_items = || given.iter().flat_map(|(_, items)| items.iter().map(|(_, item)| *item));
        let is_member = given_items().all(|item| match item.home {
            Home::Member(..) => true,
            Home::Outside(_) => item.kind == Kind::Function && !self.is_late(item),
        });
        if is_member {
            let (number, name) = (self.members.len(), self.names.get(&index).copied().unwrap_or_default());
            self.members.push(Member { module, name, imports, number });
            return Ok(Instance::Member(number));
        }
        for item in given_items() {
            self.need(item)?;
        }
        self.steps.push(Step::Left(index as usize, given));
        self.lefts += 1;
        Ok(Instance::Left(self.lefts - 1))
    }

    /// The item that an instance exports by a name.
    fn export(&mut self, kind: Kind, instance: u32, name: &'a str) -> Result<Item> {
        match self.instances.get(instance as usize).context("no such core instance")? {
            Instance::Member(number) => self.members.get(*number).context("no such member")?.export(name),
            Instance::Items(items) => {
                let item = items.iter().find(|(other, _)| *other == name).map(|(_, item)| *item);
                item.with_context(|| format!("no instance exports `{name}`"))
            }
            Instance::Left(number) => {
                let number = *number;
                let item = self.outside_item(kind, true);
                self.left.insert(item, (number, name));
                Ok(item)
            }
        }
    }

    fn outside_item(&mut self, kind: Kind, is_late: bool) -> Item {
        self.outside += 1;
        let item = Item { kind, home: Home::Outside(self.outside) };
        if is_late {
            self.late.insert(item);
        }
        item
    }

    fn is_late(&self, item: Item) -> bool {
        matches!(item.home, Home::Member(..)) || self.late.contains(&item)
    }

    /// Notes that the component uses an item. Its name tells of which module it is: readers know toolchains by these.
    fn need(&mut self, item: Item) -> Result<()> {
        let Home::Member(number, index) = item.home else { return Ok(()) };
        if self.exports.iter().any(|(_, other)| *other == item) {
            return Ok(());
        }
        let member = self.members.get(number).context("no such member")?;
        let name =
            member.module.exports.iter().find(|(_, export)| **export == (item.kind, index)).map(|(name, _)| *name);
        let name = format!("{}:{}", member.name, name.unwrap_or_default());
        let is_free = self.exports.iter().all(|(other, _)| *other != name);
        let name = if is_free { name } else { format!("{name}:{}", self.exports.len()) };
        self.exports.push((name, item));
        Ok(())
    }
}

/// The parts of a component itself, without those of the modules and components in it.
fn own_payloads(bytes: &[u8]) -> impl Iterator<Item = wasmparser::Result<Payload<'_>>> {
    let mut nested = 0_usize;
    Parser::new(0).parse_all(bytes).filter(move |payload| match payload {
        Ok(Payload::ModuleSection { .. } | Payload::ComponentSection { .. }) => {
            nested += 1;
            nested == 1
        }
        Ok(Payload::End(_)) => {
            nested = nested.saturating_sub(1);
            false
        }
        Ok(_) => nested == 0,
        Err(_) => true,
    })
}

/// The names that a component has for its modules. They stand at its end.
fn names(bytes: &[u8]) -> Result<HashMap<u32, &str>> {
    let mut names = HashMap::new();
    for payload in own_payloads(bytes) {
        let Payload::CustomSection(section) = payload? else { continue };
        let KnownCustom::ComponentName(section) = section.as_known() else { continue };
        for subsection in section {
            let ComponentName::CoreModules(modules) = subsection? else { continue };
            for module in modules {
                let module = module?;
                names.insert(module.index, module.name);
            }
        }
    }
    Ok(names)
}

fn part<'a>(bytes: &'a [u8], range: &std::ops::Range<usize>) -> Result<&'a [u8]> {
    bytes.get(range.clone()).context("a section is longer than the file")
}

/// The core indices of a canonical function: which it asks for, and which these are now.
#[derive(Default)]
pub struct Indices {
    pub asked: Vec<(Kind, u32)>,
    pub now: HashMap<(Kind, u32), u32>,
}

impl Indices {
    /// A section of one canonical function, with its indices as they are now.
    pub fn canonical(&mut self, function: &CanonicalFunction) -> Result<CanonicalFunctionSection> {
        let mut section = CanonicalFunctionSection::new();
        component_utils::parse_component_canonical(self, &mut section, function.clone())
            .map_err(|error| anyhow!("a canonical function cannot be read: {error}"))?;
        Ok(section)
    }

    fn index(&mut self, kind: Kind, index: u32) -> u32 {
        self.asked.push((kind, index));
        self.now.get(&(kind, index)).copied().unwrap_or(0)
    }
}

impl Reencode for Indices {
    type Error = std::convert::Infallible;

    fn function_index(&mut self, index: u32) -> Result<u32, Error<Self::Error>> {
        Ok(self.index(Kind::Function, index))
    }

    fn memory_index(&mut self, index: u32) -> Result<u32, Error<Self::Error>> {
        Ok(self.index(Kind::Memory, index))
    }

    fn table_index(&mut self, index: u32) -> Result<u32, Error<Self::Error>> {
        Ok(self.index(Kind::Table, index))
    }
}

impl ReencodeComponent for Indices {}
