//! Inspecting and compiling components: in a child process, except that bundled components are read in this process.
//!
//! A hostile component can make a validator overflow its stack and a compiler take hours and gigabytes. In a child with
//! resource limits only the child is affected. The child is this program again, so its answer is as trustworthy as its
//! caller; this process treats a component only as bytes. Dropping a future here kills its child.

use std::fs;
use std::os::unix::fs::DirBuilderExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use base::ContentHash;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};
use tokio::runtime::Handle;
use wasmtime::Engine;

use crate::engine::{Lanes, Runtime};
use crate::inspect::{Inspection, check_size, inspect_bundled};
use crate::kept_code::{self, KeptCode};
use crate::load_error::{ComponentOrigin, LoadError, told};
use crate::worker::{self, ANSWER_DONE, ANSWER_REFUSED, ARGUMENT, Job, PROCESSORS};

/// A worker may wait for a processor this many times longer than it may use one: only a busy machine makes it wait.
const PATIENCE: u32 = 10;
/// The time after which a job leaves the quick lane.
const QUICK: Duration = Duration::from_secs(5);
/// Bytes of a worker's standard error that are read.
const MAX_LAST_WORDS_BYTES: u64 = 4096;
/// The largest answer of an inspection: names, schemas and texts have bounds of their own.
const MAX_INSPECTION_BYTES: u64 = 16 << 20;
const SIGKILL: i32 = 9;
const SIGTERM: i32 = 15;
const SIGXCPU: i32 = 24;

impl Runtime {
    /// Inspects a component. Untrusted bytes are read in a child process, and the verdict is cached by content hash.
    ///
    /// # Errors
    /// A [`LoadError`] that names the problem and the remedy.
    pub async fn inspect(&self, bytes: &[u8], origin: ComponentOrigin) -> Result<Arc<Inspection>, LoadError> {
        let max_bytes = self.config().component_bytes;
        if origin == ComponentOrigin::Bundled {
            return inspect_bundled(bytes, max_bytes).map(Arc::new);
        }
        check_size(bytes, max_bytes)?;
        self.inspect_untrusted(bytes, ContentHash::of(bytes)).await
    }

    /// Inspects bytes of a permitted size, which have this hash.
    pub(crate) async fn inspect_untrusted(
        &self,
        bytes: &[u8],
        hash: ContentHash,
    ) -> Result<Arc<Inspection>, LoadError> {
        let verdict = self.verdicts().of(hash, async {
            let answer = in_child(self, Job::Inspect, bytes).await?;
            let inspection = worker::inspection(&answer)?;
            if inspection.hash != hash {
                return Err(LoadError::Worker { message: "it answered about other bytes".to_owned() });
            }
            Ok((inspection, answer.len()))
        });
        verdict.await
    }
}

pub(crate) fn compile_bundled(runtime: &Runtime, bytes: &[u8]) -> Result<wasmtime::component::Component, LoadError> {
    let compiled = runtime
        .engine(ComponentOrigin::Bundled)
        .and_then(|engine| wasmtime::component::Component::from_binary(engine, bytes));
    compiled.map_err(|error| LoadError::NotCompiled { message: told(&error.root_cause().to_string()) })
}

/// Compiles bytes of a permitted size, which have this hash, or takes their code from the cache.
pub(crate) async fn compile_untrusted(
    runtime: &Runtime,
    bytes: &[u8],
    hash: ContentHash,
) -> Result<wasmtime::component::Component, LoadError> {
    if let Some(refused) = runtime.refusals().of(hash) {
        return Err(refused);
    }
    let engine = engine(runtime, ComponentOrigin::Untrusted)?;
    let kept = runtime.config().cache.as_ref().map(|cache| KeptCode::of(cache, engine, hash));
    if let Some(component) =
        kept.as_ref().and_then(|kept| load_kept(runtime, &kept.file()?, ComponentOrigin::Untrusted))
    {
        return Ok(component);
    }
    let code = in_child(runtime, Job::Compile, bytes).await;
    let code = code.inspect_err(|error| runtime.refusals().keep(hash, error))?;
    let component = deserialize(runtime, &code, ComponentOrigin::Untrusted)?;
    if let Some(kept) = kept {
        // Where it cannot be kept, the next start compiles again.
        tokio::task::spawn_blocking(move || kept.keep(&code)).await.ok();
    }
    Ok(component)
}

/// Fills the cache with a bundled component's code, once for each engine and component.
pub(crate) async fn prepare(runtime: &Runtime, bytes: &[u8]) -> Result<(), LoadError> {
    let config = runtime.config();
    let (Some(cache), Some(_)) =
        (config.cache.as_ref().filter(|cache| cache.to_str().is_some()), &config.compile_worker)
    else {
        return Ok(());
    };
    let failed = |error: &dyn std::fmt::Display| LoadError::Worker { message: told(&error.to_string()) };
    let engine = engine(runtime, ComponentOrigin::Bundled)?;
    let done = cache.join("prepared").join(kept_code::name(engine, ContentHash::of(bytes)));
    if done.is_file() {
        return Ok(());
    }
    in_child(runtime, Job::Prepare, bytes).await?;
    let noted =
        done.parent().map_or(Ok(()), |directory| fs::DirBuilder::new().recursive(true).mode(0o700).create(directory));
    noted.and_then(|()| fs::write(&done, "")).map_err(|error| failed(&error))
}

/// The limits of one job.
struct JobLimits<'a> {
    /// `None` for bundled components, which never queue.
    lanes: Option<&'a Lanes>,
    seconds: u64,
    memory_bytes: u64,
    answer_bytes: u64,
}

impl JobLimits<'_> {
    fn of(runtime: &Runtime, job: Job) -> JobLimits<'_> {
        let config = runtime.config();
        match job {
            Job::Inspect => JobLimits {
                lanes: Some(runtime.inspecting()),
                seconds: config.inspect_seconds,
                memory_bytes: config.inspect_memory_bytes,
                answer_bytes: MAX_INSPECTION_BYTES,
            },
            Job::Compile | Job::Prepare => JobLimits {
                lanes: (job == Job::Compile).then(|| runtime.compiling()),
                seconds: config.compile_seconds,
                memory_bytes: config.compile_memory_bytes,
                // Compiled code is a few times larger than its source.
                answer_bytes: config.component_bytes.saturating_mul(8),
            },
        }
    }

    fn memory(&self) -> String {
        format!("{} MiB of memory", self.memory_bytes >> 20)
    }

    fn processor(&self) -> String {
        format!("{} s of processor time", self.seconds.saturating_mul(PROCESSORS))
    }
}

/// Runs a job in a worker when its turn comes, and returns the answer.
async fn in_child(runtime: &Runtime, job: Job, bytes: &[u8]) -> Result<Vec<u8>, LoadError> {
    let bounds = JobLimits::of(runtime, job);
    let Some(lanes) = bounds.lanes else { return run(runtime, job, bytes, &bounds).await };
    take_turns(lanes, || run(runtime, job, bytes, &bounds)).await?
}

/// Runs a job in the quick lane. A slow job continues in the slow lane; if that is full, it is aborted and restarted
/// when there is room, so that it never holds the quick lane for longer.
async fn take_turns<T, F: Future<Output = T>>(lanes: &Lanes, start: impl Fn() -> F) -> Result<T, LoadError> {
    let closed = |_| LoadError::Worker { message: "the host is shutting down".to_owned() };
    {
        let turn = lanes.quick.acquire().await.map_err(closed)?;
        let job = start();
        tokio::pin!(job);
        if let Ok(done) = tokio::time::timeout(QUICK, &mut job).await {
            return Ok(done);
        }
        if let Ok(_slow) = lanes.slow.try_acquire() {
            drop(turn);
            return Ok(job.await);
        }
    }
    let _slow = lanes.slow.acquire().await.map_err(closed)?;
    Ok(start().await)
}

/// Starts a worker, and reads its answer.
async fn run(runtime: &Runtime, job: Job, bytes: &[u8], bounds: &JobLimits<'_>) -> Result<Vec<u8>, LoadError> {
    let failed = |error: std::io::Error| LoadError::Worker { message: error.to_string() };
    let program = runtime.config().compile_worker.as_ref().ok_or(LoadError::NoCompileWorker)?;
    let mut command = Command::new(program);
    command
        .arg(ARGUMENT)
        .arg(job.as_str())
        .arg(bounds.seconds.to_string())
        .arg(bounds.memory_bytes.to_string())
        // The worker takes its arguments as text: a path that is not UTF-8 would name another directory there.
        .args(runtime.config().cache.as_ref().filter(|cache| job == Job::Prepare && cache.to_str().is_some()))
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let mut child = Worker(Some(command.spawn().map_err(failed)?));
    let pipes = child.0.as_mut().map(|child| (child.stdin.take(), child.stdout.take(), child.stderr.take()));
    let Some((Some(mut stdin), Some(stdout), Some(stderr))) = pipes else {
        return Err(LoadError::Worker { message: "no pipes".to_owned() });
    };
    let exchange = async {
        let send = async move {
            // A worker that refuses early closes its end of the pipe; its answer counts.
            stdin.write_all(bytes).await.ok();
        };
        let ((), answer, words) =
            tokio::join!(send, read(stdout, bounds.answer_bytes), read(stderr, MAX_LAST_WORDS_BYTES));
        Ok::<_, std::io::Error>((answer?, words?, child.end().await?))
    };
    let patience = Duration::from_secs(bounds.seconds).saturating_mul(PATIENCE);
    let (mut answer, words, status) = tokio::time::timeout(patience, exchange)
        .await
        .map_err(|_| LoadError::WorkerTimeout { seconds: patience.as_secs() })?
        .map_err(failed)?;
    if answer.len() as u64 >= bounds.answer_bytes {
        return Err(LoadError::CompileLimit { limit: format!("{} MiB of answer", bounds.answer_bytes >> 20) });
    }
    match answer.first() {
        Some(&ANSWER_DONE) if status.success() => {
            answer.remove(0);
            Ok(answer)
        }
        Some(&ANSWER_REFUSED) if status.success() => Err(worker::from_json(answer.get(1..).unwrap_or_default())
            .unwrap_or_else(|error| LoadError::Worker { message: format!("its refusal cannot be read: {error}") })),
        _ => Err(death(status, &String::from_utf8_lossy(&words), bounds)),
    }
}

/// A worker that is killed if its caller's future is dropped, and reaped in either case: the runtime leaves a dropped
/// child a zombie until the next child exits.
struct Worker(Option<Child>);

impl Worker {
    async fn end(&mut self) -> std::io::Result<ExitStatus> {
        let status = match &mut self.0 {
            Some(child) => child.wait().await?,
            None => return Err(std::io::ErrorKind::NotFound.into()),
        };
        self.0 = None;
        Ok(status)
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if let (Some(mut child), Ok(runtime)) = (self.0.take(), Handle::try_current()) {
            child.start_kill().ok();
            runtime.spawn(async move { child.wait().await.ok() });
        }
    }
}

async fn read(pipe: impl AsyncRead + Unpin, max_bytes: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    pipe.take(max_bytes).read_to_end(&mut bytes).await?;
    Ok(bytes)
}

/// Why a worker died without an answer.
fn death(status: ExitStatus, words: &str, bounds: &JobLimits<'_>) -> LoadError {
    // The standard library's messages for an allocation, a mapping and a thread that the memory limit forbade.
    let memory = ["memory allocation of", "Cannot allocate memory", "Resource temporarily unavailable"];
    if status.success() {
        return LoadError::Worker { message: "it ended without an answer".to_owned() };
    }
    match status.signal() {
        Some(SIGXCPU) => return LoadError::CompileLimit { limit: bounds.processor() },
        Some(SIGKILL | SIGTERM) => {
            return LoadError::Worker {
                message: format!("it was ended from outside ({status}), perhaps for want of memory"),
            };
        }
        _ => (),
    }
    if memory.iter().any(|sign| words.contains(sign)) {
        return LoadError::CompileLimit { limit: bounds.memory() };
    }
    if words.contains("has overflowed its stack") {
        return LoadError::Nested;
    }
    // If the limit leaves no room to start, the loader or the allocator dies without these messages.
    if bounds.memory_bytes < MIN_MEMORY_BYTES {
        return LoadError::CompileLimit { limit: bounds.memory() };
    }
    let words = words.lines().find(|line| !line.trim().is_empty()).unwrap_or("no reason given");
    LoadError::WorkerCrash { status: status.to_string(), words: told(words) }
}

/// Memory below which a worker cannot even start.
const MIN_MEMORY_BYTES: u64 = 32 << 20;

pub(crate) fn engine(runtime: &Runtime, origin: ComponentOrigin) -> Result<&Engine, LoadError> {
    runtime.engine(origin).map_err(|error| LoadError::Worker { message: told(&error.root_cause().to_string()) })
}

/// The component whose code is in a file of the cache; `None` if the engine refuses it.
#[expect(unsafe_code, reason = "loads compiled code that this program left in its cache")]
pub(crate) fn load_kept(
    runtime: &Runtime,
    file: &Path,
    origin: ComponentOrigin,
) -> Option<wasmtime::component::Component> {
    // SAFETY: as in `deserialize`: the file came from this program or a child of it, by way of a cache that only its owner can write
    // to (checked by the one who opened it), and it is replaced and removed, but never written to.
    let mapped = unsafe { wasmtime::component::Component::deserialize_file(engine(runtime, origin).ok()?, file) };
    // Where the file system forbids to execute its files, a copy is executed.
    mapped.ok().or_else(|| deserialize(runtime, &fs::read(file).ok()?, origin).ok())
}

#[expect(unsafe_code, reason = "loads compiled code: out of this program, or of a child it started")]
pub(crate) fn deserialize(
    runtime: &Runtime,
    code: &[u8],
    origin: ComponentOrigin,
) -> Result<wasmtime::component::Component, LoadError> {
    let engine = engine(runtime, origin)?;
    // SAFETY: `deserialize` trusts its input to be the output of this version of wasmtime. It is: `code` came over a
    // private pipe from a child running this program's own compiler, or is part of this program since it was built
    // (`precompiled.rs`), or is a copy of either in the cache (`load_kept`).
    unsafe { wasmtime::component::Component::deserialize(engine, code) }.map_err(|error| {
        // If the engine refuses sound code, the component needs more than one slot of its pool has.
        let message = told(&error.root_cause().to_string());
        let remedy = if message.contains("memory has a minimum") {
            "raise `limits.memory_bytes`, or build it with a smaller initial memory"
        } else {
            "build it of fewer parts, or with smaller tables"
        };
        LoadError::TooLargeForSandbox { message, remedy: remedy.into() }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_death_is_told_by_its_cause() {
        let bounds = JobLimits { lanes: None, seconds: 10, memory_bytes: 512 << 20, answer_bytes: 1 };
        for (status, words, expected, is_about_the_bytes) in [
            (SIGXCPU, "", "20 s of processor time", true),
            (6, "memory allocation of 16 bytes failed", "512 MiB of memory", true),
            (6, "\nthread 'main' (7) has overflowed its stack\n", "nested too deeply", true),
            (101 << 8, "thread 'main' panicked at x.rs:1:2:\nwhy", "crashed", false),
            (SIGKILL, "", "from outside", false),
            (0, "", "without an answer", false),
        ] {
            let error = death(ExitStatus::from_raw(status), words, &bounds);
            assert!(error.to_string().contains(expected), "{error}");
            assert_eq!(error.is_about_the_bytes(), is_about_the_bytes, "{error}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn slow_jobs_delay_others_by_seconds_and_are_done_all_the_same() {
        let lanes = Lanes::new([1, 2]);
        let began = tokio::time::Instant::now();
        let job = async |seconds: u64| {
            let work = || async { tokio::time::sleep(Duration::from_secs(seconds)).await };
            take_turns(&lanes, work).await.unwrap();
            began.elapsed().as_secs()
        };
        // Five jobs of ten minutes each, and behind them two of one second.
        let (a, b, c, d, e, quick, last) =
            tokio::join!(job(600), job(600), job(600), job(600), job(600), job(1), job(1));
        assert_eq!((quick, last), (5 * QUICK.as_secs() + 1, 5 * QUICK.as_secs() + 2));
        assert_eq!([a, b, c, d, e], [600, 605, 1_200, 1_205, 1_800]);
    }
}
