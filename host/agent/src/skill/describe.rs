//! Asking a skill's components for their tools for a review: sandboxed, with nothing granted (SPEC HOST-7, SKILL-9).
//!
//! A component can only affect itself: it has no files, no network, no credentials and no input, and ends with its
//! limits. Nothing else of an unapproved skill is ever run.

use std::time::Duration;

use runtime::Outcome;
use skills::review::SkillReview;
use skills::trust::Described;
use skills::{SkillForm, Taken};

use super::Skills;
use super::inspect;
use toolbox::CompileTurn;

/// Number of components that are asked, and the time limit of each answer.
const MAX_ASKED: usize = 16;
const PATIENCE: Duration = Duration::from_secs(2);
/// Characters of a bare component's description of itself.
const MAX_DESCRIPTION: usize = 1_024;
/// Bytes of its instructions.
const MAX_BODY: usize = 64 * 1024;

impl Skills {
    /// Adds the tools of each component to the facts, and returns a bare component's self-description.
    pub(super) async fn describe(&self, taken: &Taken, facts: &mut SkillReview) -> Option<Described> {
        let sandboxes = &self.environment.sandboxes;
        let limits = self.environment.config().limits;
        let limits = limits.with_deadline(limits.deadline().min(PATIENCE));
        // Its first answer counts: a component may answer differently each time.
        let known = taken.standing.record.as_ref().and_then(|record| record.described.clone());
        let mut described = known.clone();
        let of = facts.components.len().min(MAX_ASKED);
        for (asked, fact) in facts.components.iter_mut().filter(|fact| fact.problem.is_none()).enumerate() {
            if asked >= MAX_ASKED {
                fact.problem = Some(format!("the skill has more than {MAX_ASKED} components: this one was not asked"));
                continue;
            }
            let Some(file) = taken.snapshot.files.get(&fact.path) else { continue };
            let turn = CompileTurn { number: asked + 1, of };
            match sandboxes.component(file.hash, &file.bytes, &fact.path, turn).await {
                Ok(toolset) => {
                    fact.tools = toolset.tools.iter().map(inspect::tool).collect();
                    if taken.snapshot.form == SkillForm::Component
                        && known.is_none()
                        && let Outcome::Returned(Some(about)) = toolset.component.about(limits).await.outcome
                    {
                        described = Some(Described {
                            description: about.description.chars().take(MAX_DESCRIPTION).collect(),
                            body: cut(about.instructions, MAX_BODY),
                        });
                    }
                }
                Err(refusal) => fact.problem = Some(refusal.reason),
            }
        }
        if let Some(described) = &described {
            facts.description.clone_from(&described.description);
            facts.instructions = Some(described.body.clone());
        }
        described
    }
}

fn cut(mut text: String, most: usize) -> String {
    text.truncate(text.floor_char_boundary(most));
    text
}
