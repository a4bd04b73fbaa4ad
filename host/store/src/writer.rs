//! The one thread that writes. It takes all the commits that are waiting, writes them as one group, syncs once, and only
//! then answers each (group commit). It survives a full disk by looking before it writes; after a write or sync that
//! failed it acknowledges nothing more, because what reached the disk is then not known.

use std::fs::File;
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use tokio::sync::oneshot;

use crate::batch::Changes;
use crate::tables::Tables;
use crate::{Faults, StoreError};

/// A group takes no more commits once it has this many bytes: the first to wait should not wait for everyone.
const GROUP_BYTES: usize = 4 << 20;

/// Writes are refused while the disk has less room than this beyond what they need. It is what the engine may need to
/// turn its journal and memory into tables, and the host to say what happened.
pub(crate) const RESERVE_BYTES: u64 = 16 << 20;

type Answer = oneshot::Sender<Result<(), StoreError>>;

enum Request {
    Commit { changes: Changes, answer: Answer },
    Close { answer: Answer },
}

/// The handle to the writing thread. Dropping it waits for the commits that were accepted.
pub(crate) struct Writer {
    // Both are taken when the writer is dropped: the thread ends when its requests do.
    requests: Option<Sender<Request>>,
    thread: Option<JoinHandle<()>>,
    is_closed: AtomicBool,
}

impl Writer {
    pub(crate) fn spawn(committer: Committer) -> Result<Self, StoreError> {
        let (requests, incoming) = channel();
        let thread = std::thread::Builder::new()
            .name("store-writer".to_owned())
            .spawn(move || committer.run(&incoming))
            .map_err(|source| StoreError::io("starting the writer", source))?;
        Ok(Self { requests: Some(requests), thread: Some(thread), is_closed: AtomicBool::new(false) })
    }

    /// Returns when `changes` are durable.
    pub(crate) async fn commit(&self, changes: Changes) -> Result<(), StoreError> {
        self.ask(|answer| Request::Commit { changes, answer }).await
    }

    /// Stops the thread once everything before is durable.
    pub(crate) async fn close(&self) -> Result<(), StoreError> {
        self.is_closed.store(true, Ordering::SeqCst);
        match self.ask(|answer| Request::Close { answer }).await {
            // It was closed before.
            Err(StoreError::Closed) => Ok(()),
            result => result,
        }
    }

    async fn ask(&self, request: impl FnOnce(Answer) -> Request) -> Result<(), StoreError> {
        let (answer, answered) = oneshot::channel();
        if let Some(requests) = &self.requests {
            // When the thread is gone the request is dropped, and its sender with it: that is the answer.
            requests.send(request(answer)).ok();
        }
        answered.await.unwrap_or_else(|_| {
            // A thread that ended without being asked to did so in the middle of a write.
            Err(if self.is_closed.load(Ordering::SeqCst) { StoreError::Closed } else { StoreError::Poisoned })
        })
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        drop(self.requests.take());
        if let Some(thread) = self.thread.take() {
            // A panic there was answered as an error already.
            thread.join().ok();
        }
    }
}

/// What the writing thread owns.
pub(crate) struct Committer {
    pub(crate) tables: Tables,
    /// The state directory, to ask for the room on its disk.
    pub(crate) directory: File,
    pub(crate) reserve_bytes: u64,
    pub(crate) faults: Arc<dyn Faults>,
    pub(crate) is_poisoned: bool,
}

impl Committer {
    fn run(mut self, requests: &Receiver<Request>) {
        while let Ok(first) = requests.recv() {
            let mut changes = Changes::new();
            let mut answers = Vec::new();
            let mut closing = None;
            let mut bytes = 0;
            let mut next = Some(first);
            while let Some(request) = next.take() {
                match request {
                    Request::Commit { changes: more, answer } => {
                        bytes += size(&more);
                        // In the order of arrival: the later change to a key wins.
                        changes.extend(more);
                        answers.push(answer);
                    }
                    Request::Close { answer } => {
                        closing = Some(answer);
                        break;
                    }
                }
                if bytes < GROUP_BYTES {
                    next = requests.try_recv().ok();
                }
            }
            let result = self.commit(changes, bytes);
            for answer in answers {
                // Whoever does not wait for the answer has no use for it.
                answer.send(result.clone()).ok();
            }
            if let Some(answer) = closing {
                answer.send(result).ok();
                return;
            }
        }
    }

    fn commit(&mut self, changes: Changes, bytes: usize) -> Result<(), StoreError> {
        if changes.is_empty() {
            return Ok(());
        }
        if self.is_poisoned {
            return Err(StoreError::Poisoned);
        }
        self.check_room(bytes)?;
        let result = self.write(changes);
        if let Err(error) = &result {
            self.is_poisoned = true;
            tracing::error!(%error, "storage failed: nothing more is stored until the host is started again");
        }
        result
    }

    fn write(&self, changes: Changes) -> Result<(), StoreError> {
        self.faults.before_write().map_err(|source| StoreError::io("writing the journal", source))?;
        self.faults.before_sync().map_err(|source| StoreError::io("syncing the journal", source))?;
        self.tables.write(changes)?;
        self.faults.after_sync();
        Ok(())
    }

    /// Refuses a write for which there is no room, while nothing is half written yet.
    fn check_room(&self, bytes: usize) -> Result<(), StoreError> {
        // A file system that cannot say is asked by writing.
        let Ok(disk) = rustix::fs::fstatvfs(self.directory.as_fd()) else { return Ok(()) };
        let free = disk.f_bavail.saturating_mul(disk.f_frsize);
        if free < self.reserve_bytes.saturating_add(bytes as u64) { Err(StoreError::Full) } else { Ok(()) }
    }
}

fn size(changes: &Changes) -> usize {
    changes.iter().map(|((_, key), value)| key.len() + value.as_ref().map_or(0, Vec::len)).sum()
}
