//! `bc`: calculating with decimals of any length.
//!
//! The interpreter's own counts in floating point, rounds where `bc` cuts, and passes over `obase`. Bounded in digits,
//! steps and depth, each with a message.

mod math;
mod number;
mod parse;
mod run;

use bashkit::{Builtin, BuiltinContext, ExecResult, async_trait, normalize_path, vfs_join};

use number::Fault;
use parse::{Parser, tokens};
use run::Machine;

/// The command `bc` of the shell.
pub(crate) struct Bc;

#[async_trait]
impl Builtin for Bc {
    async fn execute(&self, context: BuiltinContext<'_>) -> bashkit::Result<ExecResult> {
        let (mut math, mut files) = (false, Vec::new());
        for argument in context.args {
            match argument.as_str() {
                "-l" | "--mathlib" | "-lq" | "-ql" => math = true,
                "-q" | "--quiet" | "-s" | "--standard" | "-w" | "--warn" => {}
                option if option.len() > 1 && option.starts_with('-') => {
                    return Ok(ExecResult::err(format!("bc: unrecognized option '{option}'\n"), 1));
                }
                file => files.push(file),
            }
        }
        let mut machine = Machine::new(math);
        for file in files {
            let path = normalize_path(&vfs_join(context.cwd, file));
            let Ok(bytes) = context.fs.read_file(&path).await else {
                return Ok(ended(machine, Err(format!("File {file} is unavailable."))));
            };
            match run(&mut machine, &String::from_utf8_lossy(&bytes)) {
                Ok(true) => {}
                Ok(false) => return Ok(ended(machine, Ok(()))),
                Err(fault) => return Ok(ended(machine, Err(fault))),
            }
        }
        let input = context.stdin.map(ToString::to_string).unwrap_or_default();
        let done = run(&mut machine, &input).map(|_| ());
        Ok(ended(machine, done))
    }
}

fn ended(machine: Machine, done: Result<(), Fault>) -> ExecResult {
    let mut result = ExecResult::ok(machine.out);
    if let Err(fault) = done {
        result.stderr = format!("bc: {fault}\n").into();
        result.exit_code = 1;
    }
    result
}

/// Runs a script as far as it can be read. Whether another one may follow.
fn run(machine: &mut Machine, script: &str) -> Result<bool, Fault> {
    let mut parser = Parser::new(tokens(script)?);
    while let Some(statement) = parser.next()? {
        if !machine.run(&statement)? {
            return Ok(false);
        }
    }
    Ok(true)
}
