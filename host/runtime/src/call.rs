//! One call of one guest: a sandbox slot, a fresh store, fuel, supervision, and the outcome.

use std::future::Future;
use std::time::Instant;

use tokio_util::sync::CancellationToken;
use wasmtime::Store;

use crate::engine::Runtime;
use crate::limits::Limits;
use crate::limits::YIELD_INTERVAL;
use crate::outcome::{Outcome, Usage, classify};
use crate::supervise::{Supervised, supervise};
use crate::{Limit, LimitExceeded};

/// Runs `work` on `store` with the limits' fuel and deadline. Waits for a slot first; that time is not charged to the
/// guest.
pub(crate) async fn run<S, T, E, W>(
    runtime: &Runtime,
    store: &mut Store<S>,
    limits: &Limits,
    cancel: &CancellationToken,
    work: W,
) -> (Outcome<T, E>, Usage)
where
    S: Send + 'static,
    W: AsyncFnOnce(&mut Store<S>) -> wasmtime::Result<T>,
{
    let place = match supervise(runtime.places().acquire(), limits.deadline(), cancel).await {
        Supervised::Done(Ok(place)) => place,
        Supervised::Cancelled => return (Outcome::Cancelled, Usage::default()),
        Supervised::Done(Err(_)) => return (Outcome::HostFault("the engine is closed".into()), Usage::default()),
        Supervised::DeadlineExceeded => {
            return (Outcome::HostFault("all sandboxes are in use; try later".into()), Usage::default());
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
    (outcome, Usage { fuel, duration: started.elapsed(), ..Usage::default() })
}

/// Keeps the state of a call's future out of its callers' futures: it is large, and most of it is the engine's.
fn boxed<F: Future>(future: F) -> std::pin::Pin<Box<F>> {
    Box::pin(future)
}

fn settle<T, E>(ended: Supervised<wasmtime::Result<T>>, limits: &Limits, stack_bytes: usize) -> Outcome<T, E> {
    match ended {
        Supervised::Done(Ok(value)) => Outcome::Returned(value),
        Supervised::Done(Err(error)) => classify(&error, limits, stack_bytes),
        Supervised::DeadlineExceeded => {
            Outcome::Exceeded(LimitExceeded { limit: Limit::DeadlineMs, value: limits.deadline_ms })
        }
        Supervised::Cancelled => Outcome::Cancelled,
    }
}
