//! The engine of this instance: one runtime and one context, built once and never dropped.

use std::cell::{OnceCell, RefCell};

use rquickjs::{Context, Ctx, Function, Object, Result, Runtime, Value};

use crate::console::Console;
use crate::random;
use crate::rejections::Rejections;

/// Bytes of the stack in linear memory that a program may use: about 1,050 plain calls deep. Reaching it is a
/// `RangeError` that the program can catch. A call takes up to 3.3 times as much of the host's own stack (measured),
/// whose end is a trap that it cannot, so this has to be met first: it is, where the host gives 1 MiB. Nesting in the
/// parser takes more, and traps.
const MAX_STACK_BYTES: usize = 300 * 1024;

/// Bytes the program may allocate before the first search for garbage cycles. Most programs end earlier; searching
/// would touch every object of the snapshot, and touched pages are the cost of an instance.
const GC_THRESHOLD_BYTES: usize = 8 * 1024 * 1024;

/// Formats text for the console and installs the globals that programs get beside the language's own.
const PRELUDE: &str = include_str!("prelude.js");

/// An engine and the state a run leaves in it.
pub struct Engine {
    pub runtime: Runtime,
    pub context: Context,
}

thread_local! {
    static ENGINE: OnceCell<Option<Engine>> = const { OnceCell::new() };
    pub static CONSOLE: RefCell<Console> = RefCell::default();
    pub static REJECTIONS: RefCell<Rejections> = RefCell::default();
}

/// Runs `work` with this instance's engine, which is built first when it is not there yet.
///
/// # Panics
/// If there is no memory for the engine: the instance traps.
pub fn with<T>(work: impl FnOnce(&Engine) -> T) -> T {
    ENGINE.with(|engine| match engine.get_or_init(|| build().ok()) {
        Some(engine) => work(engine),
        None => panic!("no memory for the engine"),
    })
}

fn build() -> Result<Engine> {
    let runtime = Runtime::new()?;
    runtime.set_max_stack_size(MAX_STACK_BYTES);
    runtime.set_gc_threshold(GC_THRESHOLD_BYTES);
    runtime.set_host_promise_rejection_tracker(Some(Box::new(|ctx, promise, reason, is_handled| {
        REJECTIONS.with_borrow_mut(|rejections| rejections.track(&ctx, promise, reason, is_handled));
    })));
    let context = Context::full(&runtime)?;
    context.with(|ctx| install(&ctx))?;
    #[cfg(feature = "connected")]
    context.with(|ctx| crate::connected::prepare(&ctx))?;
    Ok(Engine { runtime, context })
}

fn install(ctx: &Ctx<'_>) -> Result<()> {
    let math: Object = ctx.globals().get("Math")?;
    math.set("random", Function::new(ctx.clone(), random::next)?.with_name("random")?)?;

    let is_full = Function::new(ctx.clone(), || CONSOLE.with_borrow(Console::is_full))?;
    let write_line = Function::new(ctx.clone(), |line: String| {
        CONSOLE.with_borrow_mut(|console| console.write_line(&line));
    })?;
    let prelude: Function = ctx.eval(PRELUDE)?;
    prelude.call::<_, Value>((is_full, write_line))?;
    Ok(())
}
