//! The worker: a short-lived child that inspects or compiles one component from standard input under resource limits.
//!
//! Validators recurse and take time that is quadratic in the nesting, and compilers take gigabytes. All of it ends with
//! this process: the host only ever sees its answer, or how it died.

use std::io::{self, Read as _, Write as _};
use std::path::PathBuf;

use rustix::process::{Resource, Rlimit, setrlimit};
use serde::{Deserialize, Serialize};
use wasmtime::Engine;

use crate::engine::common_config;
use crate::inspect::{Inspection, inspect};
use crate::load_error::{ComponentOrigin, LoadError, told};

/// The argument that makes a program the worker.
pub const ARGUMENT: &str = "compile-worker";

/// Processors that one worker is expected to use: its limit of processor time is this many times the configured
/// seconds.
pub(crate) const PROCESSORS: u64 = 2;

/// The first byte of an answer.
pub(crate) const ANSWER_DONE: u8 = b'D';
pub(crate) const ANSWER_REFUSED: u8 = b'R';

/// The job that a worker is started for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Job {
    /// Answers with an [`Inspection`] as JSON.
    Inspect,
    /// Answers with compiled code.
    Compile,
    /// Compiles a bundled component into the cache; the answer is empty.
    Prepare,
}

impl Job {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Inspect => "inspect",
            Self::Compile => "compile",
            Self::Prepare => "prepare",
        }
    }
}

/// Runs the worker. `arguments` are those after [`ARGUMENT`]: `inspect`, `compile` or `prepare`, seconds, bytes of
/// memory, and the cache directory, if any.
///
/// # Errors
/// If the limits cannot be set or a pipe breaks; the parent then sees no answer.
pub fn run(arguments: impl IntoIterator<Item = String>) -> io::Result<()> {
    let mut arguments = arguments.into_iter();
    let wrong = |expected: &'static str| io::Error::new(io::ErrorKind::InvalidInput, expected);
    let job = arguments.next().unwrap_or_default();
    let job = [Job::Inspect, Job::Compile, Job::Prepare].into_iter().find(|known| known.as_str() == job);
    let job = job.ok_or_else(|| wrong("expected `inspect`, `compile` or `prepare`"))?;
    let mut number = || arguments.next().and_then(|text| text.parse().ok()).ok_or_else(|| wrong("expected a number"));
    let (seconds, memory): (u64, u64) = (number()?, number()?);
    let limit = |current: u64, maximum: u64| Rlimit { current: Some(current), maximum: Some(maximum) };
    // Counts private writable memory, not reserved address space.
    setrlimit(Resource::Data, limit(memory, memory))?;
    // Processor time over all threads. The soft limit sends SIGXCPU, which tells the parent why the worker died.
    let processor = seconds.saturating_mul(PROCESSORS);
    setrlimit(Resource::Cpu, limit(processor, processor.saturating_add(1)))?;
    setrlimit(Resource::Core, limit(0, 0))?;
    let cache = arguments.next().map(PathBuf::from);

    let mut bytes = Vec::new();
    io::stdin().lock().read_to_end(&mut bytes)?;
    let not = |error: wasmtime::Error| LoadError::NotCompiled { message: told(&error.root_cause().to_string()) };
    let answer = match job {
        // The parent has checked the size.
        Job::Inspect => inspect(&bytes, u64::MAX).map(|inspection| to_json(&inspection)),
        Job::Compile => {
            compile(&bytes, ComponentOrigin::Untrusted, cache).and_then(|compiled| compiled.serialize()).map_err(not)
        }
        Job::Prepare => compile(&bytes, ComponentOrigin::Bundled, cache).map(|_| Vec::new()).map_err(not),
    };
    let (kind, answer) = match answer {
        Ok(answer) => (ANSWER_DONE, answer),
        Err(error) => (ANSWER_REFUSED, to_json(&error)),
    };
    let mut stdout = io::stdout().lock();
    stdout.write_all(&[kind])?;
    stdout.write_all(&answer)?;
    stdout.flush()
}

fn compile(
    bytes: &[u8],
    origin: ComponentOrigin,
    cache: Option<PathBuf>,
) -> wasmtime::Result<wasmtime::component::Component> {
    let engine = Engine::new(&common_config(origin, cache.as_deref())?)?;
    wasmtime::component::Component::from_binary(&engine, bytes)
}

/// Empty if the value has no JSON form, which the parent reports as a failed worker.
fn to_json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_default()
}

/// Reads the JSON of a worker, whose nesting is bounded by [`crate::wit_json::MAX_DEPTH`] and not by the parser.
pub(crate) fn from_json<'a, T: Deserialize<'a>>(json: &'a [u8]) -> serde_json::Result<T> {
    let mut reader = serde_json::Deserializer::from_slice(json);
    reader.disable_recursion_limit();
    T::deserialize(&mut reader)
}

/// An inspection as the worker sends it.
pub(crate) fn inspection(json: &[u8]) -> Result<Inspection, LoadError> {
    from_json(json).map_err(|error| LoadError::Worker { message: format!("its answer cannot be read: {error}") })
}
