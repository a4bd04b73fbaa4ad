//! The taint of a run: the sources that it has read from the web (SPEC TAINT-1). It only grows.

use std::sync::Arc;

use parking_lot::Mutex;

/// Where untrusted content came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebSource {
    /// The host, as the gate understood it.
    pub host: String,
}

/// The sources that a run has read from the web. Cheap to clone; clones share.
#[derive(Debug, Clone, Default)]
pub struct Taint(Arc<Mutex<Vec<WebSource>>>);

/// Sources that are named when they are shown; more are counted only.
const MAX_SOURCES: usize = 64;

impl Taint {
    /// A run that has read these before.
    #[must_use]
    pub fn of(sources: Vec<WebSource>) -> Self {
        Self(Arc::new(Mutex::new(sources)))
    }

    /// Adds a source, if it is new.
    pub fn add(&self, source: WebSource) {
        let mut sources = self.0.lock();
        if sources.len() < MAX_SOURCES && !sources.contains(&source) {
            sources.push(source);
        }
    }

    /// The sources, oldest first.
    #[must_use]
    pub fn sources(&self) -> Vec<WebSource> {
        self.0.lock().clone()
    }
}
