//! File work beside the async runtime.

use base::{Refusal, RefusalCode};
use tokio::task::JoinError;

/// Runs file work on a thread where it may block.
pub async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Refusal> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(broke_off(&error)))
}

/// Why work on another thread has no result. The error's own text has a number that means nothing to people.
pub fn broke_off(error: &JoinError) -> Refusal {
    if error.is_cancelled() {
        return Refusal::new(RefusalCode::TryLater, "the host is shutting down").with_remedy("try again");
    }
    Refusal::new(RefusalCode::Failed, "the host failed while it worked on this")
        .with_remedy("try again; the host's log says where it failed")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn work_that_broke_off_is_told_without_its_number() {
        let stopped = tokio::spawn(std::future::pending::<()>());
        stopped.abort();
        let refusal = broke_off(&stopped.await.unwrap_err());
        assert_eq!((refusal.code, refusal.reason.as_str()), (RefusalCode::TryLater, "the host is shutting down"));
        let failed = blocking::<()>(|| panic!("why")).await.unwrap_err();
        assert_eq!(failed.code, RefusalCode::Failed);
        for refusal in [refusal, failed] {
            assert!(!refusal.reason.contains("task") && refusal.remedy.is_some(), "{refusal:?}");
        }
        assert_eq!(blocking(|| Ok(7)).await, Ok(7));
    }
}
