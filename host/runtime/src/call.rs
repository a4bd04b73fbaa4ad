//! One call of one guest: a sandbox slot, a fresh store, fuel, supervision, and the outcome.

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use wasmtime::Store;

use crate::engine::Runtime;
use crate::limits::Limits;
use crate::limits::YIELD_INTERVAL;
use crate::outcome::{CallUsage, Outcome, classify};
use crate::supervise::{SupervisedCall, supervise};
use crate::{Limit, LimitExceeded};

/// Runs `work` on `store` with the limits' fuel and deadline. Waits for a slot first; that time is not charged to the
/// guest.
pub(crate) async fn run<S, T, E, W>(
    runtime: &Runtime,
    store: &mut Store<S>,
    limits: &Limits,
    cancel: &CancellationToken,
    work: W,
) -> (Outcome<T, E>, CallUsage)
where
    S: Send + 'static,
    W: AsyncFnOnce(&mut Store<S>) -> wasmtime::Result<T>,
{
    let _place = match place(runtime.places(), limits, cancel).await {
        Ok(place) => place,
        Err(outcome) => return (outcome, CallUsage::default()),
    };
    guest(runtime, store, limits, cancel, work).await
}

/// The time after the deadline in which a guest on a thread of its own has to end: longer, and one of its operations on files
/// does not return. A pipe without a writer and a network file system without a server are like that.
const LATE: Duration = Duration::from_secs(10);

/// Runs `work` as [`run`] does, on a thread of its own, and then `settle` on it. The guest's operations on files block that
/// thread only, and need no others: handing each operation to another thread costs ten times the operation. `places` are
/// those of the runtime for calls or for scripts.
///
/// # Errors
/// An outcome, if the guest did not run.
pub(crate) async fn run_apart<S, T, E, R>(
    runtime: &Runtime,
    places: &Arc<Semaphore>,
    mut store: Store<S>,
    limits: &Limits,
    cancel: &CancellationToken,
    work: impl AsyncFnOnce(&mut Store<S>) -> wasmtime::Result<T> + Send + 'static,
    settle: impl AsyncFnOnce(Store<S>, Outcome<T, E>, CallUsage) -> R + Send + 'static,
) -> Result<R, Outcome<T, E>>
where
    S: Send + 'static,
    R: Send + 'static,
{
    // Before the thread: calls that wait take none.
    let place = place(places, limits, cancel).await?;
    let (runtime, limits, cancel) = (runtime.clone(), *limits, cancel.child_token());
    // A caller that goes away ends the guest.
    let _ends = cancel.clone().drop_guard();
    let executor = Handle::current();
    let thread = tokio::task::spawn_blocking(move || {
        executor.block_on(async move {
            let (outcome, usage) = guest(&runtime, &mut store, &limits, &cancel, work).await;
            drop(place);
            settle(store, outcome, usage).await
        })
    });
    match supervise(thread, limits.deadline().saturating_add(LATE), &CancellationToken::new()).await {
        SupervisedCall::Done(Ok(settled)) => Ok(settled),
        SupervisedCall::Done(Err(error)) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Err(Outcome::HostFault("the host stops".into())),
        },
        // The guest ends when its operation does, and holds its place until then.
        SupervisedCall::DeadlineExceeded | SupervisedCall::Cancelled => Err(late(&limits)),
    }
}

/// A place for a guest, within the deadline of its call.
///
/// # Errors
/// An outcome, if no place was free in that time, or the call was cancelled.
pub(crate) async fn place<T, E>(
    places: &Arc<Semaphore>,
    limits: &Limits,
    cancel: &CancellationToken,
) -> Result<OwnedSemaphorePermit, Outcome<T, E>> {
    match supervise(places.clone().acquire_owned(), limits.deadline(), cancel).await {
        SupervisedCall::Done(Ok(place)) => Ok(place),
        SupervisedCall::Cancelled => Err(Outcome::Cancelled),
        SupervisedCall::Done(Err(_)) => Err(Outcome::HostFault("the engine is closed".into())),
        SupervisedCall::DeadlineExceeded => Err(Outcome::HostFault("all sandboxes are in use; try later".into())),
    }
}

/// Runs `work` as [`run`] does, in a place that the caller holds.
pub(crate) async fn guest<S, T, E, W>(
    runtime: &Runtime,
    store: &mut Store<S>,
    limits: &Limits,
    cancel: &CancellationToken,
    work: W,
) -> (Outcome<T, E>, CallUsage)
where
    S: Send + 'static,
    W: AsyncFnOnce(&mut Store<S>) -> wasmtime::Result<T>,
{
    #[expect(clippy::disallowed_methods, reason = "guests take real time")]
    let started = Instant::now();
    let stack = runtime.config().stack_bytes;
    let outcome = match store.set_fuel(limits.fuel).and_then(|()| store.fuel_async_yield_interval(Some(YIELD_INTERVAL)))
    {
        Ok(()) => settle(supervise(boxed(work(&mut *store)), limits.deadline(), cancel).await, limits, stack),
        Err(error) => Outcome::HostFault(error.to_string()),
    };
    let fuel = limits.fuel.saturating_sub(store.get_fuel().unwrap_or(0));
    (outcome, CallUsage { fuel, duration: started.elapsed(), ..CallUsage::default() })
}

/// Keeps the state of a call's future out of its callers' futures: it is large, and most of it is the engine's.
fn boxed<F: Future>(future: F) -> std::pin::Pin<Box<F>> {
    Box::pin(future)
}

fn settle<T, E>(ended: SupervisedCall<wasmtime::Result<T>>, limits: &Limits, stack_bytes: usize) -> Outcome<T, E> {
    match ended {
        SupervisedCall::Done(Ok(value)) => Outcome::Returned(value),
        SupervisedCall::Done(Err(error)) => classify(&error, limits, stack_bytes),
        SupervisedCall::DeadlineExceeded => late(limits),
        SupervisedCall::Cancelled => Outcome::Cancelled,
    }
}

fn late<T, E>(limits: &Limits) -> Outcome<T, E> {
    Outcome::Exceeded(LimitExceeded { limit: Limit::DeadlineMs, value: limits.deadline_ms })
}
