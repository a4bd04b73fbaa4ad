//! What the keeper of a library is asked to do, from any thread, and how it waits for that and for changes.
//!
//! It knows no skills. Orders are a list under a lock that is held for no longer than it takes to add to it, and a counter of
//! the system that wakes the keeper.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;
use tokio::sync::oneshot;

/// Told when everything was looked at.
pub(super) type Look = oneshot::Sender<()>;

#[derive(Debug)]
pub(super) struct Inbox {
    bell: OwnedFd,
    /// None: nobody looks any more.
    looks: Mutex<Option<Vec<Look>>>,
    stop: AtomicBool,
}

impl Inbox {
    pub(super) fn new() -> io::Result<Self> {
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { bell, looks: Mutex::new(Some(Vec::new())), stop: AtomicBool::new(false) })
    }

    /// Asks for a look at everything, which begins after this. An error when nobody looks any more.
    pub(super) fn look(&self) -> oneshot::Receiver<()> {
        let (done, looked) = oneshot::channel();
        if let Some(looks) = self.looks.lock().as_mut() {
            looks.push(done);
        }
        self.ring();
        looked
    }

    /// Nobody looks any more: whoever waits is told so.
    pub(super) fn end(&self) {
        *self.looks.lock() = None;
    }

    /// Asks for an end.
    pub(super) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
        self.ring();
    }

    pub(super) fn stopped(&self) -> &AtomicBool {
        &self.stop
    }

    /// The orders up to now.
    pub(super) fn take(&self) -> Vec<Look> {
        self.looks.lock().as_mut().map(std::mem::take).unwrap_or_default()
    }

    fn ring(&self) {
        // It fails only when it rings already.
        rustix::io::write(&self.bell, &1_u64.to_ne_bytes()).ok();
    }

    /// Waits for orders or for something to be heard, no longer than `most`, and says whether something was heard. Orders that
    /// came are to be taken after every wait: the bell rings once.
    pub(super) fn wait(&self, watch: Option<BorrowedFd<'_>>, most: Option<Duration>) -> bool {
        let mut waiting = vec![PollFd::new(&self.bell, PollFlags::IN)];
        waiting.extend(watch.map(|watch| PollFd::from_borrowed_fd(watch, PollFlags::IN)));
        let most = most.and_then(|most| Timespec::try_from(most).ok());
        match poll(&mut waiting, most.as_ref()) {
            Ok(_) => {}
            Err(Errno::INTR) => return false,
            Err(error) => {
                // Without memory for this there is little else to do than to try later.
                tracing::warn!(%error, "waiting for changes of skills failed");
                std::thread::sleep(Duration::from_millis(100));
                return false;
            }
        }
        let rang = |at: usize| waiting.get(at).is_some_and(|fd| !fd.revents().is_empty());
        if rang(0) {
            rustix::io::read(&self.bell, &mut [0; 8]).ok();
        }
        rang(1)
    }
}
