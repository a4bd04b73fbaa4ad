//! The advice of a read-only run about a skill (SPEC SKILL-9). It fails closed: from the request for the run until its
//! end with a clear verdict, the advice is that the skill did not pass.

use base::{Refusal, RunId, Timestamp};
use grants::SkillGrant;
use skills::TrustBook;
use skills::trust::{Advisory, Subject};

use super::used::verdict;

/// Bytes of an answer that are kept.
const MAX_TEXT: usize = 8 * 1024;

/// Notes a run's advice about a skill; `None`: it has not ended.
pub(crate) async fn advise(
    trust: &TrustBook,
    skill: &SkillGrant,
    run: &RunId,
    answer: Option<&str>,
    at: Timestamp,
) -> Result<(), Refusal> {
    let SkillGrant { name, place, hash, modes, .. } = skill.clone();
    let subject = Subject { name, place, hash, modes };
    let text = answer.unwrap_or("the review has not ended with a verdict");
    let text = text.get(..text.floor_char_boundary(MAX_TEXT)).unwrap_or_default().to_owned();
    let passed = answer.is_some_and(verdict);
    trust.advised(&subject, Advisory { run_id: run.clone(), passed, text, at }).await?;
    if passed {
        // A bare component's self-description stays as it was shown.
        let known = trust.get(&subject.name, &subject.place, subject.hash)?;
        trust.reviewed(&subject, known.and_then(|record| record.described)).await?;
    }
    Ok(())
}
