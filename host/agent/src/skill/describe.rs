//! Asking a skill's components what they offer, for a review: in the sandbox, with nothing granted (SPEC HOST-7, SKILL-9).
//!
//! What a component does meanwhile it does to itself: it has no files, no network, no credentials and no input, and ends
//! with its limits. Nothing else of a skill that is not approved is ever run.

use runtime::{Limits, Outcome};
use skills::review::Review;
use skills::trust::Described;
use skills::{Form, Taken};

use super::inspect;
use crate::Host;

/// Characters of the description that a bare component gives of itself.
const MOST_DESCRIPTION: usize = 1_024;
/// Bytes of the instructions that it gives.
const MOST_BODY: usize = 64 * 1024;

impl Host {
    /// Adds the tools of each component to the facts, and gives what a bare component says of itself.
    pub(super) async fn describe(&self, taken: &Taken, facts: &mut Review) -> Option<Described> {
        let sandboxes = &self.parts().sandboxes;
        let mut described = None;
        for fact in facts.components.iter_mut().filter(|fact| fact.problem.is_none()) {
            let Some(file) = taken.snapshot.files.get(&fact.path) else { continue };
            match sandboxes.component(file.hash, &file.bytes).await {
                Ok(toolset) => {
                    fact.tools = toolset.tools.iter().map(inspect::tool).collect();
                    if taken.snapshot.form == Form::Component
                        && let Outcome::Returned(Some(about)) = toolset.component.about(Limits::default()).await.outcome
                    {
                        described = Some(Described {
                            description: about.description.chars().take(MOST_DESCRIPTION).collect(),
                            body: cut(about.instructions, MOST_BODY),
                        });
                    }
                }
                Err(refusal) => fact.problem = Some(refusal.reason),
            }
        }
        if let Some(described) = &described {
            facts.description.clone_from(&described.description);
        }
        described
    }
}

fn cut(mut text: String, most: usize) -> String {
    text.truncate(text.floor_char_boundary(most));
    text
}
