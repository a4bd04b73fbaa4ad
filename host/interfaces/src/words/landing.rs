//! The card of a landing, and the changes of a run in few words (SPEC LAND-2, LAND-3).

use agent::{ActRequest, ChangedFile, LandingPlan, PathChange, PathKind, PlannedOutcome, PlannedPath};
use base::text::Foreign;

use super::card::{Card, Tone};
use super::commit::with_commit;
use crate::output::text;

/// The most paths of one kind that a card names; the rest is counted.
const MAX_NAMED: usize = 100;

/// The card that the owner says yes to: losses first.
pub(crate) fn card(plan: &LandingPlan) -> Card {
    let title = match plan.undoes {
        Some(landing) => format!("take back landing {landing} of {}", plan.run_id),
        None => format!("land the changes of {}", plan.run_id),
    };
    let mut card = Card::new(title);
    for (index, directory) in plan.directories.iter().filter(|directory| !directory.read_only).enumerate() {
        card = card.with(if index == 0 { "in" } else { "" }, directory.path.to_string_lossy());
    }
    card = with_commit(card, plan.commit.as_ref());
    let done = |path: &&PlannedPath| matches!(path.outcome, PlannedOutcome::Clean | PlannedOutcome::Merged);
    let of = |wanted: &dyn Fn(&PlannedPath) -> bool| -> Vec<&PlannedPath> {
        plan.paths.iter().filter(done).filter(|path| wanted(path)).collect()
    };
    let file = |path: &PlannedPath| path.kind != PathKind::Directory;
    let card = named(card, "deletes", Tone::Alarm, &of(&|path| file(path) && path.change == PathChange::Deleted));
    let card = named(card, "run later", Tone::Warning, &of(&|path| path.executed_later.is_some()));
    let card = named(card, "merges", Tone::Warning, &of(&|path| path.outcome == PlannedOutcome::Merged));
    let clean = |path: &PlannedPath| path.outcome == PlannedOutcome::Clean && file(path);
    let card = named(card, "changes", Tone::Plain, &of(&|path| clean(path) && path.change == PathChange::Changed));
    let card = named(card, "creates", Tone::Plain, &of(&|path| clean(path) && path.change == PathChange::Created));
    let made = of(&|path| !file(path) && path.change == PathChange::Created).len();
    let removed = of(&|path| !file(path) && path.change == PathChange::Deleted).len();
    let mut directories = Vec::new();
    if removed > 0 {
        directories.push(format!("{} removed if empty", text::thousands(removed as u64)));
    }
    if made > 0 {
        directories.push(format!("{} made", text::thousands(made as u64)));
    }
    let mut card = if directories.is_empty() { card } else { card.with("folders", directories.join(", ")) };
    let left = |outcome| plan.paths.iter().filter(|path| path.outcome == outcome).collect::<Vec<_>>();
    card = named(card, "conflicts", Tone::Alarm, &left(PlannedOutcome::Conflict));
    card = named(card, "not landed", Tone::Plain, &left(PlannedOutcome::Refused));
    match plan.web_sources.as_slice() {
        [] => card,
        sources => card.toned(
            Tone::Warning,
            "tainted by",
            format!("the run has read untrusted content of {}; † marks what it wrote afterwards", sources.join(", ")),
        ),
    }
}

/// The card of a run whose changes are landed as soon as it completes.
pub(crate) fn trusted_card(request: &ActRequest) -> Card {
    let mut card = Card::new("land all changes of this run when it completes").with("task", &request.task);
    for (index, directory) in request.directories.iter().filter(|directory| !directory.read_only).enumerate() {
        card = card.with(if index == 0 { "in" } else { "" }, directory.path.to_string_lossy());
    }
    card.toned(
        Tone::Warning,
        "note",
        "its changes are not shown first; a conflict lands nothing, and `motor undo` takes them back",
    )
}

fn named(mut card: Card, label: &'static str, tone: Tone, paths: &[&PlannedPath]) -> Card {
    for (index, path) in paths.iter().take(MAX_NAMED).enumerate() {
        let label = if index == 0 { label } else { "" };
        let mark = if path.after_web { " †" } else { "" };
        let why = path.reason.as_deref().or(path.executed_later.as_deref());
        let why = why.map(|why| format!(": {why}")).unwrap_or_default();
        card = card.toned(tone, label, format!("{}{mark}{why}", path.path));
    }
    match paths.len().checked_sub(MAX_NAMED) {
        None | Some(0) => card,
        Some(more) => card.toned(tone, "", format!("and {} more", text::thousands(more as u64))),
    }
}

/// The changes of a run, in a line: `2 changed, 1 created, 1 deleted (+12 −3)`.
pub(crate) fn summary(files: &[ChangedFile]) -> String {
    let kinds = [
        (PathChange::Deleted, "deleted"),
        (PathChange::Renamed, "renamed"),
        (PathChange::Changed, "changed"),
        (PathChange::Created, "created"),
    ];
    let counted = kinds.iter().filter_map(|(kind, word)| {
        let count = files.iter().filter(|file| file.change == *kind && file.kind != PathKind::Directory).count();
        (count > 0).then(|| format!("{} {word}", text::thousands(count as u64)))
    });
    let counted: Vec<_> = counted.collect();
    let added: u64 = files.iter().filter_map(|file| file.added).sum();
    let removed: u64 = files.iter().filter_map(|file| file.removed).sum();
    match counted.is_empty() {
        true if files.is_empty() => "nothing changed".to_owned(),
        true => format!("{} of directories", text::plural(files.len() as u64, "change")),
        false => format!("{} (+{} −{})", counted.join(", "), text::thousands(added), text::thousands(removed)),
    }
}

/// The heading of a changed file: a letter as git has it, the path, and where it was.
pub(crate) fn heading(file: &ChangedFile) -> (Tone, String) {
    let (tone, letter) = match file.change {
        PathChange::Deleted => (Tone::Alarm, "D"),
        PathChange::Renamed => (Tone::Plain, "R"),
        PathChange::Changed => (Tone::Plain, "M"),
        PathChange::Created => (Tone::Calm, "A"),
    };
    let slash = if file.kind == PathKind::Directory { "/" } else { "" };
    let from = file.from.as_deref().map(|from| format!("{} → ", Foreign(from).escaped(400))).unwrap_or_default();
    let mark = if file.after_web { " †" } else { "" };
    (tone, format!("{letter} {from}{}{slash}{mark}", Foreign(&file.path).escaped(400)))
}
