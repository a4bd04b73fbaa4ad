//! One program from source to report.
//!
//! A program is a script whose value is that of its last expression, or a function body that returns: which one it is
//! shows when it is compiled, before anything of it has run, so nothing runs twice.

use rquickjs::context::EvalOptions;
use rquickjs::promise::PromiseState;
use rquickjs::{Ctx, Error, Object, Persistent, Promise, Value};

use crate::bindings::exports::motor::host::interpreter::{self, Fault, Program, Report};
use crate::console::Console;
use crate::engine::{CONSOLE, Engine, REJECTIONS};
use crate::{clock, cut, fault, random};

/// The code around a program that returns. One line with the program's first, so that lines stay as they are.
const BODY_BEFORE: &str = "(async()=>{";
const BODY_AFTER: &str = "\n})()";
const BODY_COLUMNS_BEFORE: u32 = 11;

/// The engine's words for a `return` outside a function.
const RETURN_OUTSIDE: &str = "return not in a function";

/// Runs `program` and reports its result.
pub fn run(engine: &Engine, program: Program) -> Report {
    clock::set(program.now_ms);
    random::seed(program.seed);
    CONSOLE.set(Console::new(program.max_console_bytes as usize));
    #[cfg(feature = "connected")]
    engine.context.with(|ctx| crate::connected::grant(&ctx, program.grants));
    let outcome = outcome(engine, program.source).map(|mut json| {
        let truncated = cut::with_marker(&mut json, program.max_result_bytes as usize);
        interpreter::Value { json, truncated }
    });
    let (console, console_truncated) = CONSOLE.take().into_parts();
    Report { outcome, console, console_truncated }
}

/// A started program: the promise of its value, and how to read places in it.
struct Started {
    promise: Persistent<Promise<'static>>,
    columns_before: u32,
    /// The promise is of an object that holds the script's value, not of the value.
    is_script: bool,
}

fn outcome(engine: &Engine, source: String) -> Result<String, Fault> {
    let started = engine.context.with(|ctx| start(&ctx, source))?;
    loop {
        match engine.runtime.execute_pending_job() {
            Ok(true) => {}
            Ok(false) => break,
            Err(job) => {
                return job.0.with(|ctx| Err(fault::of_thrown(&ctx, &ctx.catch(), started.columns_before)));
            }
        }
    }
    engine.context.with(|ctx| finish(&ctx, started))
}

fn start(ctx: &Ctx<'_>, source: String) -> Result<Started, Fault> {
    let script = if plainly_returns(&source) { None } else { Some(evaluate(ctx, source.as_str(), true)) };
    let (promise, columns_before, is_script) = match script {
        Some(Ok(promise)) => (promise, 0, true),
        Some(Err(thrown)) if !is_return_outside(&thrown) => return Err(thrown.into_fault(ctx, 0)),
        _ => {
            let body = [BODY_BEFORE, &source, BODY_AFTER].concat();
            let promise = evaluate(ctx, body, false).map_err(|thrown| thrown.into_fault(ctx, BODY_COLUMNS_BEFORE))?;
            (promise, BODY_COLUMNS_BEFORE, false)
        }
    };
    Ok(Started { promise: Persistent::save(ctx, promise), columns_before, is_script })
}

/// Whether the first `return` of the source can only be the program's own, so that compiling it as a script need not be
/// tried: nothing before it opens a block or could hold the word as text, and it is not a property's name. Most short
/// programs are like that, and the try costs a fifth of their time. `false` decides nothing.
fn plainly_returns(source: &str) -> bool {
    let Some(position) = source.find("return") else { return false };
    let (before, from) = source.split_at(position);
    let ends_word =
        |text: char| !(text.is_alphanumeric() || matches!(text, '_' | '$' | '\\' | '\u{200c}' | '\u{200d}'));
    !before.contains(['{', '"', '\'', '`', '/', '#'])
        && !before.contains("<!--")
        && !before.contains("-->")
        && before.chars().next_back().is_none_or(ends_word)
        && before.trim_end().chars().next_back().is_none_or(|last| last != '.')
        && from.chars().nth("return".len()).is_none_or(ends_word)
}

/// Why a program did not start.
enum NotStarted<'js> {
    Thrown(Value<'js>),
    Refused(Error),
}

impl<'js> NotStarted<'js> {
    fn of(ctx: &Ctx<'js>, error: Error) -> Self {
        match error {
            Error::Exception => Self::Thrown(ctx.catch()),
            error => Self::Refused(error),
        }
    }

    fn into_fault(self, ctx: &Ctx<'js>, columns_before: u32) -> Fault {
        match self {
            Self::Thrown(thrown) => fault::of_thrown(ctx, &thrown, columns_before),
            Self::Refused(Error::InvalidString(_)) => {
                fault::plain("SyntaxError", "the program contains a NUL character: write it as `\\0`")
            }
            Self::Refused(error) => fault::plain("InternalError", error.to_string()),
        }
    }
}

/// Compiles and starts a source. Both ways of evaluating turn a value that the program throws into a rejected promise,
/// so a thrown value here means that it did not compile.
fn evaluate<'js>(ctx: &Ctx<'js>, source: impl Into<Vec<u8>>, is_script: bool) -> Result<Promise<'js>, NotStarted<'js>> {
    let mut options = EvalOptions::default();
    options.promise = is_script;
    options.filename = Some(fault::FILE_NAME.to_owned());
    ctx.eval_with_options(source, options).map_err(|error| NotStarted::of(ctx, error))
}

fn is_return_outside(thrown: &NotStarted<'_>) -> bool {
    let NotStarted::Thrown(thrown) = thrown else { return false };
    let message = thrown.as_object().and_then(|error| error.get::<_, String>("message").ok());
    message.is_some_and(|message| message == RETURN_OUTSIDE)
}

fn finish(ctx: &Ctx<'_>, started: Started) -> Result<String, Fault> {
    let columns_before = started.columns_before;
    let internal = |error| NotStarted::of(ctx, error).into_fault(ctx, columns_before);
    let mut value = settled(ctx, &started.promise.restore(ctx).map_err(internal)?, columns_before)?;
    if started.is_script {
        value = value.as_object().map_or(Ok(value.clone()), |holder: &Object| holder.get("value")).map_err(internal)?;
        if let Some(promise) = value.as_promise() {
            value = settled(ctx, promise, columns_before)?;
        }
    }
    if let Some(reason) = REJECTIONS.with_borrow(|rejections| rejections.first(ctx)) {
        return Err(fault::of_thrown(ctx, &reason.map_err(internal)?, columns_before));
    }
    if value.is_function() || value.is_symbol() {
        let message = format!("the result is a {}, which JSON cannot hold: return what it gives", value.type_name());
        return Err(fault::plain("TypeError", message));
    }
    match ctx.json_stringify(value).and_then(|json| json.map(|json| json.to_string()).transpose()) {
        Ok(json) => Ok(json.unwrap_or_else(|| "null".to_owned())),
        Err(error) => Err(internal(error)),
    }
}

/// The value of a promise after everything that could run has run.
fn settled<'js>(ctx: &Ctx<'js>, promise: &Promise<'js>, columns_before: u32) -> Result<Value<'js>, Fault> {
    match promise.state() {
        PromiseState::Pending => Err(fault::plain(
            "Error",
            "the program waits for a promise that never settles: nothing is left to run that could settle it",
        )),
        PromiseState::Resolved | PromiseState::Rejected => match promise.result::<Value>() {
            Some(Ok(value)) => Ok(value),
            Some(Err(error)) => Err(NotStarted::of(ctx, error).into_fault(ctx, columns_before)),
            None => Ok(Value::new_undefined(ctx.clone())),
        },
    }
}

/// Touches commonly used parts, so that the snapshot holds the engine's lazily built ones and a heap with room.
pub fn warm_up(engine: &Engine) {
    for source in [include_str!("warm-up.js"), "return 1", "return (", "await null; [1, { a: 'x' }]"] {
        let program = Program {
            source: source.to_owned(),
            seed: 0,
            now_ms: 0,
            max_result_bytes: 4096,
            max_console_bytes: 4096,
            grants: interpreter::Grants::empty(),
        };
        run(engine, program);
    }
    CONSOLE.take();
    engine.runtime.run_gc();
}

#[cfg(test)]
mod tests;
