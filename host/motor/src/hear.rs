//! Messages of the owner to a run that works.
//!
//! They go through the run's driver, its only writer: it takes them between two steps, and while a tool or the model is at
//! work. A message is durable before it is acknowledged. One that the driver does not take any more is dropped unanswered,
//! and its sender looks at the run again.

use std::time::Duration;

use base::{Refusal, RefusalCode};
use tokio::sync::{Mutex, mpsc};

use crate::command::{Moment, PendingCommand, obey};
use crate::drive::Driver;
use crate::journal::{Journal, JournalError};

/// Messages that wait for the driver, at most: further senders wait with theirs.
const QUEUE: usize = 8;

/// The driver's end of the queue.
pub(crate) type Inbox = Mutex<mpsc::Receiver<PendingCommand>>;

/// A queue of commands to a driver.
pub(crate) fn inbox() -> (mpsc::Sender<PendingCommand>, Inbox) {
    let (sender, receiver) = mpsc::channel(QUEUE);
    (sender, Mutex::new(receiver))
}

impl Driver {
    /// Does `work`, and takes the owner's messages meanwhile. `while_asked`: the work is a request to the model.
    pub(crate) async fn hearing<T>(
        &self,
        journal: &mut Journal,
        while_asked: bool,
        work: impl Future<Output = T>,
    ) -> Result<T, JournalError> {
        let mut work = std::pin::pin!(work);
        let mut inbox = self.inbox.lock().await;
        loop {
            tokio::select! {
                biased;
                done = &mut work => return Ok(done),
                Some(order) = inbox.recv() => self.take(journal, order, while_asked).await?,
            }
        }
    }

    /// Takes the messages that came between two steps.
    pub(crate) async fn take_messages(&self, journal: &mut Journal) -> Result<(), JournalError> {
        let mut inbox = self.inbox.lock().await;
        while let Ok(order) = inbox.try_recv() {
            self.take(journal, order, false).await?;
        }
        Ok(())
    }

    async fn take(&self, journal: &mut Journal, order: PendingCommand, while_asked: bool) -> Result<(), JournalError> {
        // The same message, sent twice at the same time: the first may have been taken since the second was looked up.
        let known = order.command.key().map(|key| journal.reply_to(key)).transpose()?.flatten();
        if let Some(known) = known {
            let same = known.order == order.fingerprint;
            let reply = same.then_some(known.reply).ok_or_else(|| {
                Refusal::new(RefusalCode::InvalidRequest, "the idempotency key was used for another order")
                    .with_remedy("take a new key for a new order")
            });
            // The sender may be gone.
            order.done.send(reply).ok();
            return Ok(());
        }
        obey(journal, order, &self.config, Moment { left: Duration::ZERO, while_asked }).await.map(drop)
    }
}
