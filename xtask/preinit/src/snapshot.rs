//! The snapshot itself: an instance of the core module, its init function run, its state written back into the module.
//!
//! Wizer's own wasmtime glue would switch on features of wasmtime that the host leaves off (and build it twice), so the
//! few lines of it that are needed are here.

use wasmtime::component::Component;
use wasmtime::component::types::ComponentItem;
use wasmtime::error::Context as _;
use wasmtime::{Config, Engine, Instance, Linker, Module, Result, Store, Val, bail};
use wasmtime_wizer::{InstanceState, SnapshotVal, ValType, Wizer};

/// Runs `init` of `core` and returns the module with the state it left, without the export `init`.
pub async fn take(core: &[u8], init: &str) -> Result<Vec<u8>> {
    let mut wizer = Wizer::new();
    wizer.init_func(init).keep_init_func(false);
    let (context, instrumented) = wizer.instrument(core)?;

    let engine = engine()?;
    let module = Module::new(&engine, &instrumented).context("cannot compile the module")?;
    let mut store = Store::new(&engine, ());
    // An import that init calls would put this machine into the snapshot: it traps instead.
    let mut linker = Linker::new(&engine);
    linker.define_unknown_imports_as_traps(&module)?;
    let instance = linker.instantiate_async(&mut store, &module).await.context("cannot instantiate the module")?;
    let function = instance
        .get_typed_func::<(), ()>(&mut store, init)
        .with_context(|| format!("the module must export a function `{init}` without parameters and results"))?;
    function.call_async(&mut store, ()).await.with_context(|| format!("`{init}` trapped"))?;

    let mut state = State { store, instance, missing: None };
    let snapshot = wizer.snapshot(&context, &mut state).await?;
    match state.missing {
        None => Ok(snapshot),
        Some(name) => bail!("the instrumented module has no `{name}` to take the snapshot from"),
    }
}

/// The imports of a core module.
pub fn imports_of_core(core: &[u8]) -> Result<Vec<String>> {
    let module = Module::new(&engine()?, core)?;
    Ok(module.imports().map(|import| format!("`{}` `{}`", import.module(), import.name())).collect())
}

/// The imports of a component, but those that are only names for types: there is nothing to call in them.
pub fn imports_of_component(component: &[u8]) -> Result<Vec<String>> {
    let engine = engine()?;
    let component = Component::new(&engine, component)?;
    let is_called = |item: &ComponentItem| match item {
        ComponentItem::ComponentInstance(instance) => {
            instance.exports(&engine).any(|(_, export)| !matches!(export.ty, ComponentItem::Type(_)))
        }
        ComponentItem::Type(_) => false,
        _ => true,
    };
    let component = component.component_type();
    let imports = component.imports(&engine).filter(|(_, import)| is_called(&import.ty));
    Ok(imports.map(|(name, _)| format!("`{name}`")).collect())
}

fn engine() -> Result<Engine> {
    Engine::new(&Config::new())
}

/// The state of an initialised instance as Wizer reads it.
struct State {
    store: Store<()>,
    instance: Instance,
    /// An export that was asked for and is not there: Wizer's trait cannot fail.
    missing: Option<String>,
}

impl InstanceState for State {
    async fn global_get(&mut self, name: &str, _type_hint: ValType) -> SnapshotVal {
        let value = self.instance.get_global(&mut self.store, name).map(|global| global.get(&mut self.store));
        match value {
            Some(Val::I32(value)) => SnapshotVal::I32(value),
            Some(Val::I64(value)) => SnapshotVal::I64(value),
            Some(Val::F32(bits)) => SnapshotVal::F32(bits),
            Some(Val::F64(bits)) => SnapshotVal::F64(bits),
            Some(Val::V128(value)) => SnapshotVal::V128(value.as_u128()),
            _ => {
                self.missing = Some(name.to_owned());
                SnapshotVal::I32(0)
            }
        }
    }

    async fn memory_contents(&mut self, name: &str, contents: impl FnOnce(&[u8]) + Send) {
        match self.instance.get_memory(&mut self.store, name) {
            Some(memory) => contents(memory.data(&self.store)),
            None => {
                self.missing = Some(name.to_owned());
                contents(&[]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A module with a global and a byte of memory that its `init` sets to 7, and `get`, which returns their sum.
    const SETS_SEVEN: &str = r#"(module
        (memory (export "memory") 1)
        (global $state (mut i32) (i32.const 0))
        (func (export "init") (global.set $state (i32.const 7)) (i32.store8 (i32.const 4096) (i32.const 7)))
        (func (export "get") (result i32) (i32.add (global.get $state) (i32.load8_u (i32.const 4096)))))"#;

    async fn get(module: &[u8]) -> i32 {
        let engine = engine().unwrap();
        let mut store = Store::new(&engine, ());
        let module = Module::new(&engine, module).unwrap();
        let instance = Linker::new(&engine).instantiate_async(&mut store, &module).await.unwrap();
        let get = instance.get_typed_func::<(), i32>(&mut store, "get").unwrap();
        get.call_async(&mut store, ()).await.unwrap()
    }

    #[tokio::test]
    async fn keeps_the_state_and_drops_the_init_function() {
        let before = wat::parse_str(SETS_SEVEN).unwrap();
        assert_eq!(get(&before).await, 0);
        let after = take(&before, "init").await.unwrap();
        assert_eq!(get(&after).await, 14);
        let module = Module::new(&engine().unwrap(), &after).unwrap();
        let exports: Vec<_> = module.exports().map(|export| export.name().to_owned()).collect();
        assert_eq!(exports, ["memory", "get"]);
    }

    #[test]
    fn names_for_types_are_no_imports() {
        let check = |text: &str, expected: &[&str]| {
            assert_eq!(imports_of_component(&wat::parse_str(text).unwrap()).unwrap(), expected, "{text}");
        };
        check("(component)", &[]);
        check(r#"(component (import "a:b/types" (instance (type $t u8) (export "t" (type (eq $t))))))"#, &[]);
        check(r#"(component (import "a:b/c" (instance (export "f" (func)))))"#, &["`a:b/c`"]);
        check(r#"(component (import "f" (func)))"#, &["`f`"]);
    }

    #[tokio::test]
    async fn refuses_what_it_cannot_initialise() {
        let check = async |text: &str, expected: &str| {
            let error = take(&wat::parse_str(text).unwrap(), "init").await.unwrap_err();
            assert!(format!("{error:#}").contains(expected), "{error:#}");
        };
        check("(module)", "must export a function `init`").await;
        check("(module (func (export \"init\") (param i32)))", "must export a function `init`").await;
        check("(module (func (export \"init\") unreachable))", "`init` trapped").await;
        check("(module (import \"a\" \"b\" (func $b)) (func (export \"init\") (call $b)))", "`init` trapped").await;
    }
}
