//! Guests that no conversation and no run waits for: each call has a thread of its own, at the lowest priority.
//!
//! One that computes until its limit leaves the processors to all others. On a thread of the executor it would hold half of a machine
//! with two processors.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

/// The priority of a background thread: 19 is the lowest of those that still advance on a busy machine.
#[cfg(target_os = "linux")]
const PRIORITY: i32 = 19;
/// How long a guest computes before its thread offers the processor to others. A busy kernel may take long to give it back, so
/// not at each yield.
const TURN: Duration = Duration::from_millis(2);

/// Runs `work` on a thread of its own. The thread ends with the work, also if the caller goes away before.
///
/// # Errors
/// If there is no thread for it, or the work panicked, in words for a log.
pub(crate) async fn run<R: Send + 'static>(work: impl AsyncFnOnce() -> R + Send + 'static) -> Result<R, String> {
    let (sender, result) = oneshot::channel();
    let body = move || {
        lower();
        // Its own: timers of the host's executor end with the host, which may be before the guest does. Made here, because an executor
        // must not be dropped on a thread of another one.
        let executor = tokio::runtime::Builder::new_current_thread().enable_time().build();
        let result = match executor {
            Ok(executor) => Ok(executor.block_on(giving_way(work()))),
            Err(error) => Err(error.to_string()),
        };
        // A caller that went away does not want it.
        drop(sender.send(result));
    };
    std::thread::Builder::new().name("background".to_owned()).spawn(body).map_err(|error| error.to_string())?;
    result.await.unwrap_or_else(|_| Err("the thread of the guest ended early".to_owned()))
}

/// `work`, which offers its processor to others when the guest has had a turn: a kernel that preempts lazily takes it from code that
/// computes only at the next tick, which may be 10 ms away.
#[expect(clippy::disallowed_methods, reason = "threads share real time")]
async fn giving_way<R>(work: impl Future<Output = R>) -> R {
    let mut work = pin!(work);
    let mut began = Instant::now();
    poll_fn(|context| {
        let polled = work.as_mut().poll(context);
        if polled.is_pending() && began.elapsed() >= TURN {
            std::thread::yield_now();
            began = Instant::now();
        }
        polled
    })
    .await
}

/// Lowers the priority of this thread. It cannot be raised again, which is why a thread serves one call.
fn lower() {
    // Elsewhere the call means the whole process. A refusal costs speed, nothing else.
    #[cfg(target_os = "linux")]
    rustix::process::setpriority_process(None, PRIORITY).ok();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    #[cfg(target_os = "linux")]
    async fn the_work_alone_has_the_lowest_priority() {
        let own = || rustix::process::getpriority_process(None).unwrap();
        let before = own();
        assert_eq!(run(async move || own()).await, Ok(PRIORITY));
        assert_eq!(own(), before);
    }

    #[tokio::test]
    async fn a_panic_is_an_error() {
        let ended = run(async || assert_eq!(1, 2)).await;
        assert_eq!(ended, Err("the thread of the guest ended early".to_owned()));
    }
}
