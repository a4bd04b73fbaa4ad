//! The card of a plan: the access of its run, and the worst that it could do with it (SPEC LAND-6).

use agent::TaskPlan;
use base::text::Foreign;

use super::card::{Card, Tone};
use super::explanation::rows;

/// The card that the owner agrees to.
pub(crate) fn card(plan: &TaskPlan) -> Card {
    let TaskPlan { request, explanation, at_worst, notes, reason } = plan;
    let hash = request.plan.as_ref().map(|plan| plan.hash.short()).unwrap_or_default();
    let mut card = Card::new(format!("plan {hash} for a run of agent {}", request.agent)).with("task", &request.task);
    if let Some(reason) = reason {
        card = card.with("model says", reason);
    }
    let mut last = "";
    for (label, line) in rows(explanation) {
        let label = if std::mem::replace(&mut last, label) == label { "" } else { label };
        card = card.with(label, line);
    }
    for (index, line) in at_worst.iter().enumerate() {
        card = card.toned(Tone::Alarm, if index == 0 { "at worst" } else { "" }, line);
    }
    for (index, note) in notes.iter().chain(&explanation.warnings).enumerate() {
        card = card.toned(Tone::Warning, if index == 0 { "note" } else { "" }, note);
    }
    for problem in &explanation.problems {
        card = card.toned(Tone::Alarm, "missing", &problem.reason);
    }
    if let Some(drafting) = drafting(plan) {
        card = card.with("drafted", drafting);
    }
    card
}

/// The cost of the draft in words, if a model drafted it.
pub(crate) fn drafting(plan: &TaskPlan) -> Option<String> {
    let drafting = plan.request.plan.as_ref()?.drafting.as_ref()?;
    let again = if drafting.requests > 1 { " in two requests" } else { "" };
    let cost = drafting.cost_usd.map(|cost| format!(", ${cost:.4}")).unwrap_or_default();
    Some(format!(
        "by {}{again}: {} tokens in, {} out{cost}",
        Foreign(&drafting.model).visible(80),
        drafting.input_tokens,
        drafting.output_tokens
    ))
}
