//! Verdicts on untrusted components, cached by content: a component that takes seconds to inspect takes them once.

use std::collections::HashMap;
use std::sync::Arc;

use base::ContentHash;
use parking_lot::Mutex;
use tokio::sync::OnceCell;

use crate::inspect::Inspection;
use crate::load_error::LoadError;

/// Verdicts that are kept, and the bytes of their answers together. In memory a verdict takes a few times that.
const MAX_VERDICTS: usize = 256;
const MAX_BYTES: usize = 16 << 20;

type InspectionVerdict = Result<Arc<Inspection>, LoadError>;

/// The verdicts of this process.
#[derive(Default)]
pub(crate) struct Verdicts(Mutex<KeptVerdict>);

#[derive(Default)]
struct KeptVerdict {
    cells: HashMap<ContentHash, Arc<OnceCell<InspectionVerdict>>>,
    bytes: usize,
}

impl Verdicts {
    /// The verdict on the bytes of `hash`. If there is none yet, `inspect` returns it with the size of its answer.
    /// Concurrent callers wait for one inspection; if its caller is dropped, the next one restarts it.
    pub async fn of(
        &self,
        hash: ContentHash,
        inspect: impl Future<Output = Result<(Inspection, usize), LoadError>>,
    ) -> Result<Arc<Inspection>, LoadError> {
        let cell = {
            let mut kept = self.0.lock();
            let is_full = kept.cells.len() >= MAX_VERDICTS || kept.bytes > MAX_BYTES;
            if is_full && !kept.cells.contains_key(&hash) {
                *kept = KeptVerdict::default();
            }
            kept.cells.entry(hash).or_default().clone()
        };
        let verdict = cell.get_or_try_init(|| async {
            match inspect.await {
                Ok((inspection, bytes)) => {
                    self.0.lock().bytes += bytes;
                    Ok(Ok(Arc::new(inspection)))
                }
                Err(error) if error.is_about_the_bytes() => Ok(Err(error)),
                Err(error) => Err(error),
            }
        });
        verdict.await?.clone()
    }
}

/// Refusals of the compiler, by content: a component that exhausts the limits does so once, not on every request.
#[derive(Default)]
pub(crate) struct Refusals(Mutex<HashMap<ContentHash, LoadError>>);

impl Refusals {
    /// The reason these bytes were refused, if they were.
    pub fn of(&self, hash: ContentHash) -> Option<LoadError> {
        self.0.lock().get(&hash).cloned()
    }

    /// Keeps a refusal, unless the same bytes may be accepted another time.
    pub fn keep(&self, hash: ContentHash, error: &LoadError) {
        if error.is_about_the_bytes() {
            let mut kept = self.0.lock();
            if kept.len() >= MAX_VERDICTS {
                kept.clear();
            }
            kept.insert(hash, error.clone());
        }
    }
}
