//! Counts the requests that depend on this host: a host that lasts as long as its command stays while there are any.

use tokio::sync::watch;

/// Counts requests that another command waits for.
#[derive(Debug, Clone)]
pub(super) struct Attachments(watch::Sender<usize>);

/// One of the counted requests, until dropped.
#[derive(Debug)]
pub(super) struct Attachment(watch::Sender<usize>);

impl Attachments {
    pub(super) fn new() -> Self {
        Self(watch::Sender::new(0))
    }

    pub(super) fn attach(&self) -> Attachment {
        self.0.send_modify(|count| *count += 1);
        Attachment(self.0.clone())
    }

    pub(super) fn count(&self) -> usize {
        *self.0.borrow()
    }

    /// Waits until no request is left.
    pub(super) async fn nobody(&self) {
        // An error means that there is no sender, and `self` is one.
        self.0.subscribe().wait_for(|count| *count == 0).await.ok();
    }
}

impl Drop for Attachment {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count = count.saturating_sub(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn waits_for_the_last() {
        let attached = Attachments::new();
        attached.nobody().await;
        let (first, second) = (attached.attach(), attached.attach());
        drop(first);
        assert_eq!(attached.count(), 1);
        let waiting = tokio::spawn({
            let attached = attached.clone();
            async move { attached.nobody().await }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        drop(second);
        waiting.await.unwrap();
    }
}
