//! Ctrl-C and SIGTERM.
//!
//! It survives a signal that arrives between two events of a run, while no task waits for one: the signal is kept for
//! the next waiter, and wakes one waiter only.

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{Mutex, OnceCell};

/// A wish to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UserInterrupt {
    /// Ctrl-C: a person wants the work to end.
    Interrupt,
    /// SIGTERM: the machine or a supervisor wants the process to be gone.
    Terminate,
}

/// The wishes that reach this process. Until the first one is waited for, signals end the process as they always did: a
/// command that does not listen must not be deaf.
#[derive(Debug, Default)]
pub(super) struct UserInterrupts(OnceCell<Mutex<Option<Listeners>>>);

#[derive(Debug)]
struct Listeners {
    interrupt: Signal,
    terminate: Signal,
}

impl UserInterrupts {
    /// From here on signals are kept for the next waiter. To be called before anything tells others that this process
    /// is there: they may send a signal at once.
    pub(super) async fn listen(&self) {
        self.listeners().await;
    }

    /// Waits for the wish to end. Where signals cannot be waited for, they end the process as they always did.
    pub(super) async fn next(&self) -> UserInterrupt {
        let mut listeners = self.listeners().await.lock().await;
        let Some(Listeners { interrupt, terminate }) = &mut *listeners else { return std::future::pending().await };
        tokio::select! {
            _ = interrupt.recv() => UserInterrupt::Interrupt,
            _ = terminate.recv() => UserInterrupt::Terminate,
        }
    }

    async fn listeners(&self) -> &Mutex<Option<Listeners>> {
        self.0.get_or_init(async || Mutex::new(Listeners::new())).await
    }
}

impl Listeners {
    fn new() -> Option<Self> {
        let listeners = signal(SignalKind::interrupt())
            .and_then(|interrupt| Ok(Self { interrupt, terminate: signal(SignalKind::terminate())? }));
        listeners.inspect_err(|error| tracing::warn!(%error, "signals cannot be waited for")).ok()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rustix::process::{Signal, getpid, kill_process};

    use super::*;

    async fn soon(wishes: &UserInterrupts) -> Option<UserInterrupt> {
        tokio::time::timeout(Duration::from_secs(1), wishes.next()).await.ok()
    }

    #[tokio::test]
    async fn a_signal_between_two_waits_is_not_lost() {
        let wishes = UserInterrupts::default();
        wishes.listen().await;
        kill_process(getpid(), Signal::TERM).unwrap();
        assert_eq!(soon(&wishes).await, Some(UserInterrupt::Terminate));
        let waited = tokio::time::timeout(Duration::from_millis(50), wishes.next()).await;
        assert!(waited.is_err(), "one signal was two wishes");
        kill_process(getpid(), Signal::INT).unwrap();
        assert_eq!(soon(&wishes).await, Some(UserInterrupt::Interrupt));
    }
}
