//! The writer thread. It takes all waiting commits, writes them as one group, syncs once, and only then answers each
//! (group commit). It survives a full disk by checking before it writes; after a failed write or sync it acknowledges
//! nothing more, because the data that reached the disk is then unknown.

use std::fs::File;
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::{oneshot, watch};

use crate::batch::BatchChanges;
use crate::tables::Tables;
use crate::watermark::{COMMITS_KEY, Watermark};
use crate::{Faults, StoreError, Table, record};

/// A group takes no more commits once it has this many bytes, so that the first one does not wait for all others.
const GROUP_BYTES: usize = 4 << 20;

/// Writes are refused while the disk has less room than this beyond their own size. The engine may need it to turn its
/// journal and memory into tables, and the host to report the failure.
pub const RESERVE_BYTES: u64 = 16 << 20;

/// The pause after a commit before the mark is updated, and the number of commits after which it is updated without
/// one.
const PAUSE: Duration = Duration::from_millis(2);
const MAX_UNMARKED: u64 = 16;

type CommitAnswer = oneshot::Sender<Result<(), StoreError>>;

enum CommitRequest {
    Commit { changes: BatchChanges, answer: CommitAnswer },
    Close { answer: CommitAnswer },
}

/// The handle to the writer thread. Dropping it waits for the accepted commits.
pub(crate) struct CommitWriter {
    // Both are taken when the writer is dropped: the thread ends when its request channel closes.
    requests: Option<Sender<CommitRequest>>,
    thread: Option<JoinHandle<()>>,
    is_closed: AtomicBool,
    pub(crate) is_poisoned: watch::Receiver<bool>,
}

impl CommitWriter {
    pub(crate) fn spawn(committer: Committer) -> Result<Self, StoreError> {
        let (requests, incoming) = channel();
        let is_poisoned = committer.is_poisoned.subscribe();
        let thread = std::thread::Builder::new()
            .name("store-writer".to_owned())
            .spawn(move || committer.run(&incoming))
            .map_err(|source| StoreError::io("starting the writer", source))?;
        Ok(Self { requests: Some(requests), thread: Some(thread), is_closed: AtomicBool::new(false), is_poisoned })
    }

    /// Returns when `changes` are durable.
    pub(crate) async fn commit(&self, changes: BatchChanges) -> Result<(), StoreError> {
        self.ask(|answer| CommitRequest::Commit { changes, answer }).await
    }

    /// Stops the thread once all earlier commits are durable.
    pub(crate) async fn close(&self) -> Result<(), StoreError> {
        self.is_closed.store(true, Ordering::SeqCst);
        match self.ask(|answer| CommitRequest::Close { answer }).await {
            // It was closed before.
            Err(StoreError::Closed) => Ok(()),
            result => result,
        }
    }

    async fn ask(&self, request: impl FnOnce(CommitAnswer) -> CommitRequest) -> Result<(), StoreError> {
        let (answer, answered) = oneshot::channel();
        if let Some(requests) = &self.requests {
            // If the thread is gone the request is dropped, and with it the answer's sender, which ends the wait.
            requests.send(request(answer)).ok();
        }
        answered.await.unwrap_or_else(|_| {
            // A thread that ended unasked did so in the middle of a write.
            Err(if self.is_closed.load(Ordering::SeqCst) { StoreError::Closed } else { StoreError::Poisoned })
        })
    }
}

impl Drop for CommitWriter {
    fn drop(&mut self) {
        drop(self.requests.take());
        if let Some(thread) = self.thread.take() {
            // A panic there was already answered as an error.
            thread.join().ok();
        }
    }
}

/// The state of the writer thread.
pub(crate) struct Committer {
    pub(crate) tables: Tables,
    /// The state directory, for checking the room on its disk.
    pub(crate) directory: File,
    pub(crate) reserve_bytes: u64,
    /// The number of the last commit.
    pub(crate) commits: u64,
    pub(crate) mark: Watermark,
    /// The number in the mark.
    pub(crate) marked: u64,
    pub(crate) faults: Arc<dyn Faults>,
    /// Whether a write or sync failed, after which nothing more is acknowledged.
    pub(crate) is_poisoned: watch::Sender<bool>,
}

impl Committer {
    fn run(mut self, requests: &Receiver<CommitRequest>) {
        while let Some(first) = self.next(requests) {
            let mut changes = BatchChanges::new();
            let mut answers = Vec::new();
            let mut closing = None;
            let mut bytes = 0;
            let mut next = Some(first);
            while let Some(request) = next.take() {
                match request {
                    CommitRequest::Commit { changes: more, answer } => {
                        bytes += size(&more);
                        // In the order of arrival: the later change to a key wins.
                        changes.extend(more);
                        answers.push(answer);
                    }
                    CommitRequest::Close { answer } => {
                        closing = Some(answer);
                        break;
                    }
                }
                if bytes < GROUP_BYTES {
                    next = requests.try_recv().ok();
                }
            }
            let mut result = self.commit(changes, bytes);
            for answer in answers {
                // The receiver may have been dropped.
                answer.send(result.clone()).ok();
            }
            if let Some(answer) = closing {
                result = result.and_then(|()| self.move_mark());
                answer.send(result).ok();
                return;
            }
        }
    }

    /// The next request. The mark is updated in the pause before it, or after some commits without a pause: like the
    /// mark itself, which is not synced, it may be behind the state and never ahead of it.
    fn next(&mut self, requests: &Receiver<CommitRequest>) -> Option<CommitRequest> {
        if self.commits == self.marked {
            return requests.recv().ok();
        }
        let ended = match requests.recv_timeout(PAUSE) {
            Ok(request) if self.commits - self.marked < MAX_UNMARKED => return Some(request),
            Ok(request) => {
                self.move_mark().inspect_err(|error| self.poison(error)).ok();
                return Some(request);
            }
            Err(error) => error,
        };
        // If the update fails in one pause, the next may succeed; a failing disk is seen by the next commit.
        if let Err(error) = self.move_mark() {
            tracing::warn!(%error, "the mark of the state stays behind it");
        }
        (ended == RecvTimeoutError::Timeout).then(|| requests.recv().ok()).flatten()
    }

    /// Sets the mark to the last commit, unless a failed write or sync left that number unknown.
    fn move_mark(&mut self) -> Result<(), StoreError> {
        if !*self.is_poisoned.borrow() {
            self.mark.advance(self.commits)?;
            self.marked = self.commits;
        }
        Ok(())
    }

    fn poison(&self, error: &StoreError) {
        self.is_poisoned.send_replace(true);
        tracing::error!(%error, "storage failed: nothing more is stored until the host is started again");
    }

    fn commit(&mut self, changes: BatchChanges, bytes: usize) -> Result<(), StoreError> {
        if changes.is_empty() {
            return Ok(());
        }
        if *self.is_poisoned.borrow() {
            return Err(StoreError::Poisoned);
        }
        self.check_room(bytes)?;
        let result = self.write(changes);
        result.inspect_err(|error| self.poison(error))
    }

    fn write(&mut self, mut changes: BatchChanges) -> Result<(), StoreError> {
        let commits = self.commits + 1;
        changes.insert((Table::Meta, COMMITS_KEY.into()), Some(record::encode(Table::Meta, &commits)?));
        self.faults.before_write().map_err(|source| StoreError::io("writing the journal", source))?;
        self.faults.before_sync().map_err(|source| StoreError::io("syncing the journal", source))?;
        self.tables.write(changes)?;
        self.commits = commits;
        self.faults.after_sync();
        Ok(())
    }

    /// Refuses a write that lacks room, while nothing is half written yet.
    fn check_room(&self, bytes: usize) -> Result<(), StoreError> {
        // If the file system cannot tell, the write itself is the test.
        let Ok(disk) = rustix::fs::fstatvfs(self.directory.as_fd()) else { return Ok(()) };
        let free = disk.f_bavail.saturating_mul(disk.f_frsize);
        if free < self.reserve_bytes.saturating_add(bytes as u64) { Err(StoreError::Full) } else { Ok(()) }
    }
}

fn size(changes: &BatchChanges) -> usize {
    changes.iter().map(|((_, key), value)| key.len() + value.as_ref().map_or(0, Vec::len)).sum()
}
