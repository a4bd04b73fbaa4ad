//! The approval of a skill as the owner is asked for it (SPEC SKILL-9).

use agent::api::skills::ApprovalQuestion;
use skills::Policy;

use super::card::{Card, Tone};
use super::facts::{self, NOTHING};
use crate::output::text;

/// The card of an approval: the changes, then every power, then the objections.
pub(crate) fn question_card(question: &ApprovalQuestion) -> Card {
    let mut card = Card::new(format!("approve the skill `{}`?", question.name));
    if let Some(changes) = &question.changes {
        let mut label = "changed";
        let powers = changes.powers.iter().map(facts::power_change);
        for (tone, line) in powers.chain(changes.files.iter().map(facts::file_change)) {
            card = card.toned(tone, std::mem::take(&mut label), line);
        }
        if !label.is_empty() {
            card = card.toned(Tone::Calm, label, format!("{NOTHING} since {} was approved", changes.against.short()));
        }
    }
    for warning in &question.warnings {
        card = card.toned(Tone::Warning, "warning", text::quoted(warning));
    }
    card = granted(card, &question.policy);
    for component in &question.components {
        let (heading, lines) = facts::component(component);
        card = card.with("component", heading);
        for (tone, line) in lines {
            card = card.toned(tone, "", line);
        }
    }
    if let Some(instructions) = &question.instructions {
        card = card.with("tells", instructions.trim());
    }
    if let Some(advisory) = &question.advisory {
        let (tone, verdict) = match advisory.passed {
            true => (Tone::Calm, "a read-only run found nothing against it"),
            false => (Tone::Alarm, "a read-only run did not let it pass"),
        };
        card = card.toned(tone, "advice", verdict).with("", advisory.text.trim());
    }
    if let Some(provenance) = &question.provenance {
        card = card
            .with("from", format!("{}, {}", text::quoted(&provenance.source), text::seconds(provenance.fetched_at)));
    }
    card = card.with("place", text::quoted(&question.place.to_string()));
    card = card.toned(facts::tone(question.status), "status", question.status.as_str());
    card.with("hash", question.hash.hex())
}

/// Adds every power on a line of its own; an empty kind says so.
pub(crate) fn granted(mut card: Card, policy: &Policy) -> Card {
    for (label, powers) in facts::powers(policy) {
        let mut label = label;
        if powers.is_empty() {
            card = card.toned(Tone::Calm, label, NOTHING);
        }
        for power in powers {
            card = card.toned(Tone::Warning, std::mem::take(&mut label), power);
        }
    }
    for (label, bounds) in facts::bounds(policy) {
        card = card.with(label, bounds.join("\n"));
    }
    card
}
