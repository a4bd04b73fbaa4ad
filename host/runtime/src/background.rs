//! Guests that no conversation and no run waits for: each call has a thread of its own, at the lowest priority.
//!
//! One that computes until its limit leaves the processors to all others. On the executor's threads it would hold every second
//! one on a machine with two.

use std::future::{Future, poll_fn};
use std::pin::pin;

use tokio::sync::oneshot;

/// The priority of a background thread: 19 is the lowest of those that still advance on a busy machine.
#[cfg(target_os = "linux")]
const PRIORITY: i32 = 19;

/// Runs `work` on a thread of its own. The thread ends with the work, also if the caller goes away before.
///
/// # Errors
/// If there is no thread for it, or the work panicked, in words for a log.
pub(crate) async fn run<R: Send + 'static>(work: impl AsyncFnOnce() -> R + Send + 'static) -> Result<R, String> {
    // Its own: timers of the host's executor end with the host, which may be before the guest does.
    let executor =
        tokio::runtime::Builder::new_current_thread().enable_time().build().map_err(|error| error.to_string())?;
    let (sender, result) = oneshot::channel();
    let body = move || {
        lower();
        let result = executor.block_on(giving_way(work()));
        // A caller that went away does not want it.
        drop(sender.send(result));
    };
    std::thread::Builder::new().name("background".to_owned()).spawn(body).map_err(|error| error.to_string())?;
    result.await.map_err(|_| "the thread of the guest ended early".to_owned())
}

/// `work`, which offers its processor to others each time that the guest yields: a kernel that preempts lazily takes it from code
/// that computes only at the next tick, which may be 10 ms away.
async fn giving_way<R>(work: impl Future<Output = R>) -> R {
    let mut work = pin!(work);
    poll_fn(|context| {
        let polled = work.as_mut().poll(context);
        if polled.is_pending() {
            std::thread::yield_now();
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
