//! Requests to the keeper of a library, from any thread, and how it waits for them and for changes.
//!
//! It knows no skills. Requests are a list under a lock that is held only while adding to it, and an event counter of
//! the system that wakes the keeper.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;
use tokio::sync::oneshot;

/// Notified when everything was looked at.
pub(super) type Look = oneshot::Sender<()>;

#[derive(Debug)]
pub(super) struct Inbox {
    bell: OwnedFd,
    /// `None` after the keeper has ended.
    looks: Mutex<Option<Vec<Look>>>,
    stop: AtomicBool,
}

impl Inbox {
    pub(super) fn new() -> io::Result<Self> {
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { bell, looks: Mutex::new(Some(Vec::new())), stop: AtomicBool::new(false) })
    }

    /// Asks for a look at everything, which begins after this call. The receiver fails if the keeper has ended.
    pub(super) fn look(&self) -> oneshot::Receiver<()> {
        let (done, looked) = oneshot::channel();
        if let Some(looks) = self.looks.lock().as_mut() {
            looks.push(done);
        }
        self.ring();
        looked
    }

    /// Marks the keeper as ended and tells all waiting callers.
    pub(super) fn end(&self) {
        *self.looks.lock() = None;
    }

    /// Asks the keeper to stop.
    pub(super) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
        self.ring();
    }

    pub(super) fn stopped(&self) -> &AtomicBool {
        &self.stop
    }

    /// Takes the requests up to now.
    pub(super) fn take(&self) -> Vec<Look> {
        self.looks.lock().as_mut().map(std::mem::take).unwrap_or_default()
    }

    fn ring(&self) {
        // It fails only if the bell already rings.
        rustix::io::write(&self.bell, &1_u64.to_ne_bytes()).ok();
    }

    /// Waits for requests or changes, no longer than `most`, and tells whether there are changes. Requests must be
    /// taken after every wait: the bell rings once.
    pub(super) fn wait(&self, watch: Option<BorrowedFd<'_>>, most: Option<Duration>) -> bool {
        let mut waiting = vec![PollFd::new(&self.bell, PollFlags::IN)];
        waiting.extend(watch.map(|watch| PollFd::from_borrowed_fd(watch, PollFlags::IN)));
        let most = most.and_then(|most| Timespec::try_from(most).ok());
        match poll(&mut waiting, most.as_ref()) {
            Ok(_) => {}
            Err(Errno::INTR) => return false,
            Err(error) => {
                // Without memory for this there is little else to do than to retry later.
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
