//! The approval of a skill as the owner is asked for it (SPEC SKILL-9).

use agent::api::skills::{ApprovalQuestion, Mention, MentionKind};
use skills::Policy;

use super::card::{Card, Tone};
use super::facts::{self, NOTHING};
use crate::output::text;

/// Names of a kind that a card lists; the review has all.
const MAX_NAMED: usize = 12;

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
    let mut label = "mentions";
    for (tone, line) in mentions(&question.mentions) {
        card = card.toned(tone, std::mem::take(&mut label), line);
    }
    for info in &question.saved {
        let facts = format!("{}, sent to {}; {}", info.name, info.domains.join(", "), facts::saved(info));
        card = card.toned(Tone::Warning, "saved key", text::quoted(&facts));
    }
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

/// The names that the text mentions, a line for each kind: those that are not granted before the others.
fn mentions(all: &[Mention]) -> Vec<(Tone, String)> {
    let kinds = [
        (MentionKind::Domain, false, "domains, not granted"),
        (MentionKind::Credential, false, "credentials, not granted"),
        (MentionKind::Command, false, "commands that do not work here"),
        (MentionKind::Domain, true, "domains, granted"),
        (MentionKind::Credential, true, "credentials, granted"),
    ];
    let line = |(kind, granted, words): (MentionKind, bool, &str)| {
        let found = all.iter().filter(|one| (one.kind, one.granted) == (kind, granted));
        let names: Vec<String> = found.map(|one| text::quoted(&one.name)).collect();
        let (shown, rest) = names.split_at(names.len().min(MAX_NAMED));
        let more = if rest.is_empty() { String::new() } else { format!(" and {} more: see the review", rest.len()) };
        let tone = if granted { Tone::Warning } else { Tone::Plain };
        (!shown.is_empty()).then(|| (tone, format!("{words}: {}{more}", shown.join(", "))))
    };
    kinds.into_iter().filter_map(line).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_text_are_marked_as_granted_or_not() {
        let one = |kind, name: &str, granted| Mention { kind, name: name.to_owned(), granted };
        let mut all = vec![
            one(MentionKind::Domain, "glot.io", false),
            one(MentionKind::Domain, "webhook.site", false),
            one(MentionKind::Credential, "OPENAI_API_KEY", false),
            one(MentionKind::Command, "npx", false),
            one(MentionKind::Domain, "api.tables.dev", true),
        ];
        let lines: Vec<String> = mentions(&all).into_iter().map(|(_, line)| line).collect();
        assert_eq!(
            lines,
            [
                "domains, not granted: glot.io, webhook.site",
                "credentials, not granted: OPENAI_API_KEY",
                "commands that do not work here: npx",
                "domains, granted: api.tables.dev",
            ]
        );
        assert!(mentions(&[]).is_empty());
        all.extend((0..20).map(|number| one(MentionKind::Credential, &format!("KEY_{number}\u{202e}"), false)));
        let credentials = mentions(&all).swap_remove(1).1;
        assert!(
            credentials.ends_with(" and 9 more: see the review") && !credentials.contains('\u{202e}'),
            "{credentials}"
        );
    }
}
