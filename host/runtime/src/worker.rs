//! The compile worker: a short-lived child that compiles one component from standard input to standard output under
//! resource limits.
//!
//! It survives nothing and need not: whatever a component does to the compiler ends with this process.

use std::io::{self, Read as _, Write as _};
use std::path::PathBuf;

use rustix::process::{Resource, Rlimit, setrlimit};
use wasmtime::Engine;

use crate::engine::common_config;
use crate::load::Origin;

/// The argument that makes a program the worker.
pub const ARGUMENT: &str = "compile-worker";

pub(crate) const ANSWER_COMPILED: u8 = b'C';
pub(crate) const ANSWER_REFUSED: u8 = b'R';

/// Runs the worker. `arguments` are those after [`ARGUMENT`]: seconds, bytes of memory, and the cache directory, if any.
///
/// # Errors
/// When the limits cannot be set or a pipe breaks; the parent then sees no answer.
pub fn run(arguments: impl IntoIterator<Item = String>) -> io::Result<()> {
    let mut arguments = arguments.into_iter();
    let mut number = || -> io::Result<u64> {
        let text = arguments.next().unwrap_or_default();
        text.parse().map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "expected a number"))
    };
    let (seconds, memory) = (number()?, number()?);
    let limit = |value: u64| Rlimit { current: Some(value), maximum: Some(value) };
    // Counts private writable memory, not reserved address space.
    setrlimit(Resource::Data, limit(memory))?;
    // Processor time over all compiler threads.
    setrlimit(Resource::Cpu, limit(seconds.saturating_mul(2)))?;
    setrlimit(Resource::Core, limit(0))?;
    let cache = arguments.next().map(PathBuf::from);

    let mut bytes = Vec::new();
    io::stdin().lock().read_to_end(&mut bytes)?;
    let (kind, answer) = match compile(&bytes, cache) {
        Ok(code) => (ANSWER_COMPILED, code),
        Err(error) => (ANSWER_REFUSED, error.root_cause().to_string().into_bytes()),
    };
    let mut stdout = io::stdout().lock();
    stdout.write_all(&[kind])?;
    stdout.write_all(&answer)?;
    stdout.flush()
}

fn compile(bytes: &[u8], cache: Option<PathBuf>) -> wasmtime::Result<Vec<u8>> {
    let engine = Engine::new(&common_config(Origin::Untrusted, cache.as_deref())?)?;
    wasmtime::component::Component::from_binary(&engine, bytes)?.serialize()
}
