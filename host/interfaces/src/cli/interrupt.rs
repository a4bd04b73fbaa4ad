//! Ctrl-C and SIGTERM.

use tokio::signal::unix::{SignalKind, signal};

/// A wish to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wish {
    /// Ctrl-C: somebody does not want this any more.
    Interrupt,
    /// SIGTERM: the machine or a supervisor wants the process to be gone.
    Terminate,
}

/// Waits for the wish to end. Where signals cannot be waited for, they end the process as they always did.
pub(super) async fn requested() -> Wish {
    let (Ok(mut interrupt), Ok(mut terminate)) = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        tracing::warn!("signals cannot be waited for");
        return std::future::pending().await;
    };
    tokio::select! {
        _ = interrupt.recv() => Wish::Interrupt,
        _ = terminate.recv() => Wish::Terminate,
    }
}
