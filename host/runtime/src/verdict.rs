//! Verdicts about untrusted components, kept by content: a component that takes seconds to inspect takes them once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use base::ContentHash;
use tokio::sync::OnceCell;

use crate::inspect::Inspection;
use crate::load::LoadError;

/// Verdicts that are kept; one holds at most a few megabytes of schemas, and normally a few kilobytes.
const MAX_VERDICTS: usize = 256;

type Verdict = Result<Arc<Inspection>, LoadError>;

/// What this process found out about components.
#[derive(Default)]
pub(crate) struct Verdicts(Mutex<HashMap<ContentHash, Arc<OnceCell<Verdict>>>>);

impl Verdicts {
    /// The verdict about the bytes of `hash`, from `inspect` if there is none yet. Callers that ask at the same time wait
    /// for one inspection; if its caller goes away, the next one starts it again.
    pub async fn of(
        &self,
        hash: ContentHash,
        inspect: impl Future<Output = Result<Inspection, LoadError>>,
    ) -> Result<Arc<Inspection>, LoadError> {
        let cell = {
            let mut verdicts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if verdicts.len() >= MAX_VERDICTS && !verdicts.contains_key(&hash) {
                verdicts.clear();
            }
            verdicts.entry(hash).or_default().clone()
        };
        let verdict = cell.get_or_try_init(|| async {
            match inspect.await {
                Err(error) if !error.is_about_the_bytes() => Err(error),
                verdict => Ok(verdict.map(Arc::new)),
            }
        });
        verdict.await?.clone()
    }
}
