//! Deadline and cancellation of one guest, checked at every yield.
//!
//! A guest that computes yields to the host after each slice of fuel; one that waits is woken by a timer. The common
//! call is over before its first yield and pays for neither timer nor cancellation.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

/// How a supervised future ended.
pub enum SupervisedCall<R> {
    /// The future completed by itself.
    Done(R),
    /// The deadline passed before it completed.
    DeadlineExceeded,
    /// The caller cancelled it.
    Cancelled,
}

/// Runs `work` for at most `deadline`. If it ends early, `work` is dropped as it is.
#[expect(clippy::disallowed_methods, reason = "a busy guest is stopped by real time")]
pub async fn supervise<R>(
    work: impl Future<Output = R>,
    deadline: Duration,
    cancel: &CancellationToken,
) -> SupervisedCall<R> {
    let end = Instant::now() + deadline;
    let mut work = pin!(work);
    let mut timer = None;
    let mut cancelled = None;
    poll_fn(|context| {
        if cancel.is_cancelled() {
            return Poll::Ready(SupervisedCall::Cancelled);
        }
        if let Poll::Ready(result) = work.as_mut().poll(context) {
            return Poll::Ready(SupervisedCall::Done(result));
        }
        // A worker thread busy with guests does not run its timers often enough to be on time, so the clock is read at
        // each yield; the timer is for guests that wait.
        if Instant::now() >= end {
            return Poll::Ready(SupervisedCall::DeadlineExceeded);
        }
        let timer = timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(end.into())));
        if timer.as_mut().poll(context).is_ready() {
            return Poll::Ready(SupervisedCall::DeadlineExceeded);
        }
        let cancelled = cancelled.get_or_insert_with(|| Box::pin(cancel.cancelled()));
        if cancelled.as_mut().poll(context).is_ready() {
            return Poll::Ready(SupervisedCall::Cancelled);
        }
        Poll::Pending
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn ends_what_waits_and_what_spins() {
        let never = CancellationToken::new();
        let short = Duration::from_millis(20);
        assert!(matches!(supervise(async { 1 }, short, &never).await, SupervisedCall::Done(1)));
        let waits = supervise(std::future::pending::<()>(), short, &never).await;
        assert!(matches!(waits, SupervisedCall::DeadlineExceeded));
        let spins = supervise(
            async {
                loop {
                    tokio::task::yield_now().await;
                }
            },
            short,
            &never,
        );
        let spins: SupervisedCall<()> = spins.await;
        assert!(matches!(spins, SupervisedCall::DeadlineExceeded));
    }

    #[tokio::test]
    async fn cancellation_wakes_what_waits() {
        let cancel = CancellationToken::new();
        let later = cancel.clone();
        tokio::spawn(async move { later.cancel() });
        let ended = supervise(std::future::pending::<()>(), Duration::from_secs(3600), &cancel).await;
        assert!(matches!(ended, SupervisedCall::Cancelled));
    }
}
