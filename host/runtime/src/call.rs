//! One call of one guest: a sandbox slot, a fresh store, fuel, supervision, and the outcome.

use std::future::Future;
use std::time::Instant;

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
    let place = match supervise(runtime.places().acquire(), limits.deadline(), cancel).await {
        SupervisedCall::Done(Ok(place)) => place,
        SupervisedCall::Cancelled => return (Outcome::Cancelled, CallUsage::default()),
        SupervisedCall::Done(Err(_)) => {
            return (Outcome::HostFault("the engine is closed".into()), CallUsage::default());
        }
        SupervisedCall::DeadlineExceeded => {
            return (Outcome::HostFault("all sandboxes are in use; try later".into()), CallUsage::default());
        }
    };
    #[expect(clippy::disallowed_methods, reason = "guests take real time")]
    let started = Instant::now();
    let stack = runtime.config().stack_bytes;
    let outcome = match store.set_fuel(limits.fuel).and_then(|()| store.fuel_async_yield_interval(Some(YIELD_INTERVAL)))
    {
        Ok(()) => settle(supervise(boxed(work(&mut *store)), limits.deadline(), cancel).await, limits, stack),
        Err(error) => Outcome::HostFault(error.to_string()),
    };
    drop(place);
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
        SupervisedCall::DeadlineExceeded => {
            Outcome::Exceeded(LimitExceeded { limit: Limit::DeadlineMs, value: limits.deadline_ms })
        }
        SupervisedCall::Cancelled => Outcome::Cancelled,
    }
}
