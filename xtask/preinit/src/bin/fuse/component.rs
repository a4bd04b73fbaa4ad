//! A component with its core modules fused: the sections as they were, the fused module where the first of its items is needed,
//! and each index of a core item as it is now.

use std::collections::HashMap;

use anyhow::{Context as _, Result, anyhow, bail};
use wasm_encoder::reencode::component_utils;
use wasm_encoder::{
    Alias, Component, ComponentAliasSection, ComponentSectionId, ExportKind, InstanceSection, ModuleArg, RawSection,
};
use wasmparser::{CanonicalFunction, Validator};

use crate::linked::{Home, Item, Kinds};
use crate::module;
use crate::plan::{Indices, Named, Plan, Step};
use crate::words;

/// The component with its core modules fused.
///
/// # Errors
/// If it is no component, or is linked in an order that one module cannot have.
pub fn fuse(bytes: &[u8]) -> Result<Vec<u8>> {
    let plan = Plan::read(bytes)?;
    let fused = Writer::new(&plan).write()?;
    Validator::new().validate_all(&fused).context("the fused component is not valid")?;
    Ok(fused)
}

/// The component as it is written.
struct Writer<'p, 'a> {
    plan: &'p Plan<'a>,
    component: Component,
    /// How many core items of each kind there are.
    items: Kinds<u32>,
    instances: u32,
    modules: u32,
    /// The indices of those that are there.
    indices: HashMap<Item, u32>,
    /// The instances of modules that are no members.
    lefts: Vec<u32>,
    fused: Option<u32>,
}

impl<'p, 'a> Writer<'p, 'a> {
    fn new(plan: &'p Plan<'a>) -> Self {
        Self {
            plan,
            component: Component::new(),
            items: Kinds::default(),
            instances: 0,
            modules: 0,
            indices: HashMap::new(),
            lefts: Vec::new(),
            fused: None,
        }
    }

    fn write(mut self) -> Result<Vec<u8>> {
        for step in &self.plan.steps {
            match step {
                Step::Section(id, data) => {
                    self.component.section(&RawSection { id: *id, data });
                }
                Step::Alias(alias) => {
                    let alias = component_utils::component_alias(&mut Indices::default(), alias.clone());
                    let mut section = ComponentAliasSection::new();
                    section.alias(alias.map_err(|error| anyhow!("an alias cannot be read: {error}"))?);
                    self.component.section(&section);
                }
                Step::Canonical(function, made) => self.write_canonical(function, *made)?,
                Step::Left(module, arguments) => {
                    let arguments = arguments
                        .iter()
                        .map(|(name, items)| Ok((*name, self.write_items(items)?)))
                        .collect::<Result<Vec<_>>>()?;
                    let bytes = self.plan.modules.get(*module).context("no such module")?;
                    let instance = self.write_instance(bytes, &arguments);
                    self.lefts.push(instance);
                }
            }
        }
        Ok(self.component.finish())
    }

    fn write_canonical(&mut self, function: &CanonicalFunction, made: Option<Item>) -> Result<()> {
        let mut indices = Indices::default();
        indices.canonical(function)?;
        for (kind, index) in std::mem::take(&mut indices.asked) {
            indices.now.insert((kind, index), self.index(self.plan.item(kind, index)?)?);
        }
        self.component.section(&indices.canonical(function)?);
        if let Some(made) = made {
            self.count(made);
        }
        Ok(())
    }

    /// The index of an item, which is fetched from its instance when it is needed first.
    fn index(&mut self, item: Item) -> Result<u32> {
        if let Some(index) = self.indices.get(&item) {
            return Ok(*index);
        }
        let (instance, name) = match item.home {
            Home::Member(..) => {
                let export = self.plan.exports.iter().find(|(_, other)| *other == item);
                (self.fused()?, export.context("an item that is not exported")?.0.as_str())
            }
            Home::Outside(_) => {
                let Some((left, name)) = self.plan.left.get(&item) else {
                    bail!("the members need a function that the component makes after them");
                };
                (*self.lefts.get(*left).context("no such instance")?, *name)
            }
        };
        let mut section = ComponentAliasSection::new();
        section.alias(Alias::CoreInstanceExport { instance, kind: item.kind.into(), name });
        self.component.section(&section);
        Ok(self.count(item))
    }

    fn count(&mut self, item: Item) -> u32 {
        let next = self.items.of_mut(item.kind);
        let index = *next;
        *next += 1;
        self.indices.insert(item, index);
        index
    }

    /// The instance of the fused module, which is written when it is needed first.
    fn fused(&mut self) -> Result<u32> {
        if let Some(instance) = self.fused {
            return Ok(instance);
        }
        let mut module = module::fuse(&self.plan.members, &self.plan.exports)?;
        words::set(&mut module.bytes)?;
        let names: Vec<String> = (0..module.imports.len()).map(|number| number.to_string()).collect();
        let imports: Vec<Named<'_>> = names.iter().map(String::as_str).zip(module.imports).collect();
        let arguments = if imports.is_empty() { Vec::new() } else { vec![("", self.write_items(&imports)?)] };
        let instance = self.write_instance(&module.bytes, &arguments);
        self.fused = Some(instance);
        Ok(instance)
    }

    fn write_items(&mut self, items: &[Named<'_>]) -> Result<u32> {
        let mut indices: Vec<(&str, ExportKind, u32)> = Vec::new();
        for &(name, item) in items {
            indices.push((name, item.kind.into(), self.index(item)?));
        }
        let mut section = InstanceSection::new();
        section.export_items(indices);
        self.component.section(&section);
        self.instances += 1;
        Ok(self.instances - 1)
    }

    fn write_instance(&mut self, module: &[u8], arguments: &[(&str, u32)]) -> u32 {
        self.component.section(&RawSection { id: ComponentSectionId::CoreModule.into(), data: module });
        self.modules += 1;
        let mut section = InstanceSection::new();
        section
            .instantiate(self.modules - 1, arguments.iter().map(|&(name, index)| (name, ModuleArg::Instance(index))));
        self.component.section(&section);
        self.instances += 1;
        self.instances - 1
    }
}

#[cfg(test)]
mod tests {
    use wasmparser::{Parser, Payload};
    use wasmtime::component::{Component as Loaded, Linker};
    use wasmtime::{Config, Engine, Store};

    use super::*;

    /// Two libraries beside a main module, as a linker leaves them: addresses come from globals, functions from the table, and the
    /// last module fills the table. `more` is a function that the component imports, which needs the memory.
    const LINKED: &str = r#"(component
        (import "more" (func $more (param "text" string) (result u32)))
        (core module $shim
            (table (export "table") 1 1 funcref)
            (type $two (func (param i32 i32) (result i32)))
            (func (export "0") (param i32 i32) (result i32)
                (call_indirect (type $two) (local.get 0) (local.get 1) (i32.const 0))))
        (core module $main
            (memory (export "memory") 1)
            (table (export "functions") 8 funcref)
            (global (export "stack") (mut i32) (i32.const 4096))
            (global (export "libb:base") i32 (i32.const 2))
            (global (export "got") (mut i32) (i32.const 64))
            (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 512))
            (data (i32.const 64) "\07"))
        (core module $liba
            (import "env" "memory" (memory 1))
            (import "env" "stack" (global $stack (mut i32)))
            (import "GOT.mem" "seven" (global $seven (mut i32)))
            (import "env" "more" (func $more (param i32 i32) (result i32)))
            (func (export "seven") (result i32)
                (global.set $stack (i32.sub (global.get $stack) (i32.const 16)))
                (i32.add (i32.load8_u (global.get $seven)) (call $more (i32.const 64) (i32.const 1)))))
        (core module $libb
            (import "env" "functions" (table 8 funcref))
            (import "env" "base" (global $base i32))
            (import "env" "stack" (global $stack (mut i32)))
            (type $number (func (result i32)))
            (func (export "run") (result i32)
                (i32.add
                    (call_indirect (type $number) (i32.add (global.get $base) (i32.const 1)))
                    (global.get $stack))))
        (core module $fill
            (import "main" "functions" (table 8 funcref))
            (import "main" "libb:base" (global $base i32))
            (import "a" "seven" (func $seven (result i32)))
            (elem (offset (i32.add (global.get $base) (i32.const 1))) func $seven))
        (core module $fixup
            (import "" "table" (table 1 funcref))
            (import "" "more" (func $more (param i32 i32) (result i32)))
            (elem (i32.const 0) func $more))
        (core instance $shim (instantiate $shim))
        (core instance $main (instantiate $main))
        (alias core export $shim "0" (core func $early))
        (alias core export $main "memory" (core memory $memory))
        (alias core export $main "stack" (core global $stack))
        (alias core export $main "got" (core global $got))
        (alias core export $main "functions" (core table $functions))
        (alias core export $main "libb:base" (core global $base))
        (core instance $env-a (export "memory" (memory $memory)) (export "stack" (global $stack)) (export "more" (func $early)))
        (core instance $got-a (export "seven" (global $got)))
        (core instance $a (instantiate $liba (with "env" (instance $env-a)) (with "GOT.mem" (instance $got-a))))
        (core instance $env-b (export "functions" (table $functions)) (export "base" (global $base)) (export "stack" (global $stack)))
        (core instance $b (instantiate $libb (with "env" (instance $env-b))))
        (core func $late (canon lower (func $more) (memory $memory)))
        (alias core export $shim "table" (core table $lowered))
        (core instance $filled (export "table" (table $lowered)) (export "more" (func $late)))
        (core instance (instantiate $fixup (with "" (instance $filled))))
        (core instance (instantiate $fill (with "main" (instance $main)) (with "a" (instance $a))))
        (alias core export $b "run" (core func $run))
        (func (export "run") (result u32) (canon lift (core func $run)))
        (@custom "component-name" "\00\01\00"))"#;

    fn run(component: &[u8]) -> u32 {
        let engine = Engine::new(&Config::new()).unwrap();
        let mut linker = Linker::new(&engine);
        let more =
            |_: wasmtime::StoreContextMut<'_, ()>, (text,): (String,)| Ok((u32::from(text.as_bytes()[0]) * 1_000,));
        linker.root().func_wrap("more", more).unwrap();
        let mut store = Store::new(&engine, ());
        let component = Loaded::new(&engine, component).unwrap();
        let executor = tokio::runtime::Builder::new_current_thread().build().unwrap();
        executor.block_on(async {
            let instance = linker.instantiate_async(&mut store, &component).await.unwrap();
            let run = instance.get_typed_func::<(), (u32,)>(&mut store, "run").unwrap();
            run.call_async(&mut store, ()).await.unwrap().0
        })
    }

    fn modules(component: &[u8]) -> Vec<&[u8]> {
        let section = |payload| match payload {
            Payload::ModuleSection { unchecked_range, .. } => component.get(unchecked_range),
            _ => None,
        };
        Parser::new(0).parse_all(component).filter_map(|payload| section(payload.unwrap())).collect()
    }

    #[test]
    fn linked_modules_become_one_that_does_the_same() {
        let before = wat::parse_str(LINKED).unwrap();
        let after = fuse(&before).unwrap();
        // 7 at the address, 7,000 by the import, and the stack after the call.
        assert_eq!((run(&before), run(&after)), (7_007 + 4_080, 7_007 + 4_080));
        // One that hands functions of the component to the others needs them first, so it stays.
        assert_eq!((modules(&before).len(), modules(&after).len()), (6, 2));
    }

    #[test]
    fn what_the_linker_knew_is_constant() {
        let after = fuse(&wat::parse_str(LINKED).unwrap()).unwrap();
        let fused = modules(&after).into_iter().max_by_key(|module| module.len()).unwrap();
        let mut offsets = Vec::new();
        let mut read = 0;
        for payload in Parser::new(0).parse_all(fused) {
            match payload.unwrap() {
                Payload::ElementSection(section) => {
                    for element in section {
                        let wasmparser::ElementKind::Active { offset_expr, .. } = element.unwrap().kind else {
                            continue;
                        };
                        offsets.push(offset_expr.get_operators_reader().read().unwrap());
                    }
                }
                Payload::CodeSectionEntry(body) => {
                    let operators = body.get_operators_reader().unwrap().into_iter();
                    read += operators
                        .filter(|operator| matches!(operator, Ok(wasmparser::Operator::GlobalGet { .. })))
                        .count();
                }
                _ => {}
            }
        }
        assert_eq!(offsets, [wasmparser::Operator::I32Const { value: 3 }]);
        // The stack pointer, which changes, is still read: once by each library.
        assert_eq!(read, 2);
    }

    #[test]
    fn a_component_of_one_module_stays_as_it_is_to_its_callers() {
        let alone = r#"(component
            (core module $m (func (export "run") (result i32) (i32.const 5)))
            (core instance $i (instantiate $m))
            (func (export "run") (result u32) (canon lift (core func $i "run"))))"#;
        assert_eq!(run(&fuse(&wat::parse_str(alone).unwrap()).unwrap()), 5);
    }

    #[test]
    fn refuses_what_one_module_cannot_do() {
        let check = |text: &str, expected: &str| {
            let error = fuse(&wat::parse_str(text).unwrap()).unwrap_err();
            assert!(format!("{error:#}").contains(expected), "{error:#}");
        };
        let started = r#"(component (core module $m (func $f) (start $f)) (core instance (instantiate $m)))"#;
        check(started, "has a start function");
        // The second function is made after the first, which needs the memory already.
        check(
            r#"(component
                (import "f" (func $f (param "text" string)))
                (import "g" (func $g))
                (core module $m (memory (export "memory") 1))
                (core module $user (import "" "f" (func (param i32 i32))))
                (core module $n (import "" "g" (func)))
                (core instance $i (instantiate $m))
                (core func $lowered (canon lower (func $f) (memory $i "memory")))
                (core instance $given (export "f" (func $lowered)))
                (core instance (instantiate $user (with "" (instance $given))))
                (core func $late (canon lower (func $g)))
                (core instance $other (export "g" (func $late)))
                (core instance (instantiate $n (with "" (instance $other)))))"#,
            "that the component makes after them",
        );
        assert!(fuse(b"no component").is_err());
    }
}
