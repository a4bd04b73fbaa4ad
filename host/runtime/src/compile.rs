//! Compiling: here for what is part of this program, in a child for everything else.
//!
//! A hostile component can make a compiler take hours and gigabytes. In a child with resource limits that ends with
//! the child. The child is this program again, so what it sends back is as trustworthy as the code that asked; a
//! component never reaches this process as anything but bytes and the child's output.

use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Command;

use crate::engine::Runtime;
use crate::load::{LoadError, Origin};
use crate::worker::{ANSWER_COMPILED, ANSWER_REFUSED, ARGUMENT};

pub(crate) fn in_process(runtime: &Runtime, bytes: &[u8]) -> Result<wasmtime::component::Component, LoadError> {
    runtime
        .engine(Origin::Bundled)
        .and_then(|engine| wasmtime::component::Component::from_binary(engine, bytes))
        .map_err(|error| LoadError::NotCompiled { message: error.root_cause().to_string() })
}

pub(crate) async fn in_child(runtime: &Runtime, bytes: &[u8]) -> Result<wasmtime::component::Component, LoadError> {
    let config = runtime.config();
    let turn = runtime.compiling().acquire().await;
    let _turn = turn.map_err(|error| LoadError::Worker { message: error.to_string() })?;
    let program = config.compile_worker.as_ref().ok_or(LoadError::NoCompileWorker)?;
    let mut command = Command::new(program);
    command
        .arg(ARGUMENT)
        .arg(config.compile_seconds.to_string())
        .arg(config.compile_memory_bytes.to_string())
        .args(&config.cache)
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    let failed = |error: std::io::Error| LoadError::Worker { message: error.to_string() };
    let mut child = command.spawn().map_err(failed)?;
    let (Some(mut stdin), Some(mut stdout)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(LoadError::Worker { message: "no pipes".to_owned() });
    };
    // Compiled code is a few times its source; anything far beyond is not an answer.
    let most = config.component_bytes.saturating_mul(4);
    let exchange = async {
        let send = async move {
            // A worker that refused early has closed its end; what it said is what counts.
            stdin.write_all(bytes).await.ok();
        };
        let mut answer = Vec::new();
        let mut limited = (&mut stdout).take(most);
        let ((), read) = tokio::join!(send, limited.read_to_end(&mut answer));
        read?;
        Ok::<_, std::io::Error>((answer, child.wait().await?))
    };
    let seconds = config.compile_seconds;
    let (answer, status) = tokio::time::timeout(Duration::from_secs(seconds), exchange)
        .await
        .map_err(|_| LoadError::CompileLimit { limit: format!("{seconds} s") })?
        .map_err(failed)?;
    match answer.split_first() {
        Some((&ANSWER_COMPILED, code)) if status.success() => deserialize(runtime, code),
        Some((&ANSWER_REFUSED, message)) if status.success() => {
            Err(LoadError::NotCompiled { message: String::from_utf8_lossy(message).into_owned() })
        }
        _ => {
            let (memory, seconds) = (config.compile_memory_bytes >> 20, config.compile_seconds);
            Err(LoadError::CompileLimit { limit: format!("{memory} MiB of memory or {seconds} s of processor time") })
        }
    }
}

#[expect(unsafe_code, reason = "the one place that loads compiled code, out of the child this process started")]
fn deserialize(runtime: &Runtime, code: &[u8]) -> Result<wasmtime::component::Component, LoadError> {
    let broken = |error: wasmtime::Error| LoadError::Worker { message: error.root_cause().to_string() };
    let engine = runtime.engine(Origin::Untrusted).map_err(broken)?;
    // SAFETY: `deserialize` trusts its input to be the output of this version of wasmtime. It is: `code` came over a
    // private pipe from a child running this program's own compiler, and from nowhere else.
    unsafe { wasmtime::component::Component::deserialize(engine, code) }.map_err(broken)
}
