//! Scripts that lie in the workspace: run as a program is, with their result given to the program that asked. They get
//! nothing that the program does not have, so this adds no power; without it a program would have to copy them.

use rquickjs::context::EvalOptions;
use rquickjs::{Ctx, Function, Object, Result, Value};

/// Adds `evaluate` to the functions for the JavaScript side.
pub fn install<'js>(ctx: &Ctx<'js>, natives: &Object<'js>) -> Result<()> {
    natives.set("evaluate", Function::new(ctx.clone(), evaluate)?)
}

/// The promise of a script's result. Its frames carry its own name, so that the place of an error in it is told from a
/// place in the program.
fn evaluate<'js>(ctx: Ctx<'js>, path: String, source: String) -> Result<Value<'js>> {
    let mut options = EvalOptions::default();
    options.filename = Some(path);
    // One line with the script's first, so that lines stay as they are.
    ctx.eval_with_options(["(async()=>{", &source, "\n})()"].concat(), options)
}
