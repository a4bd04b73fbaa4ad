//! Commits of landings, in words (SPEC LAND-7).

use agent::{CommitEffect, CommitState, LandedCommit, PlannedCommit};

use super::card::{Card, Tone};
use crate::output::text;

/// The most paths of one kind that a card names.
const MAX_NAMED: usize = 10;

/// Adds the effect on a branch to the card of a landing.
pub(super) fn with_commit(card: Card, commit: Option<&PlannedCommit>) -> Card {
    let Some(commit) = commit else { return card };
    let (branch, id) = (named(&commit.branch), short(commit.id.as_deref().unwrap_or_default()));
    let effect = match commit.effect {
        CommitEffect::Commit => format!("as a commit on {branch}"),
        CommitEffect::Branch => format!("as the branch {branch}; no file is changed"),
        CommitEffect::TakeBack => format!("takes commit {id} off {branch}"),
        CommitEffect::Redo => format!("puts commit {id} back on {branch}"),
        CommitEffect::Keep => format!("commit {id} stays on {branch}: `git revert {id}` takes it back"),
    };
    let tone = if commit.effect == CommitEffect::Keep { Tone::Warning } else { Tone::Plain };
    let mut card = card.toned(tone, "git", effect);
    if let Some(author) = &commit.author {
        card = card.with("author", author);
    }
    if let Some(subject) = commit.message.as_deref().and_then(|message| message.lines().next()) {
        card = card.with("message", subject);
    }
    let own = list(&commit.own);
    let card = if own.is_empty() {
        card
    } else {
        card.toned(Tone::Warning, "with yours", format!("commits your own changes of {own}, too"))
    };
    let left = list(&commit.left_out);
    if left.is_empty() { card } else { card.with("not in it", format!("git ignores {left}")) }
}

fn list(paths: &[String]) -> String {
    let named: Vec<&str> = paths.iter().take(MAX_NAMED).map(String::as_str).collect();
    match paths.len().checked_sub(MAX_NAMED) {
        None | Some(0) => named.join(", "),
        Some(more) => format!("{} and {} more", named.join(", "), text::thousands(more as u64)),
    }
}

/// The result for the commit of a landing, as a sentence.
pub(crate) fn outcome(commit: &LandedCommit) -> String {
    let (branch, id) = (named(&commit.branch), short(&commit.id));
    match commit.state {
        CommitState::Made => format!("commit {id} is on {branch}"),
        CommitState::NotMade if commit.is_new_branch => {
            format!("no branch was made: there is another one with the name {branch} now")
        }
        CommitState::NotMade => format!("no commit was made: {branch} was moved in the meantime; the files are landed"),
        CommitState::TakenBack if commit.is_new_branch => format!("the branch {branch} is deleted"),
        CommitState::TakenBack => format!("{branch} is where it was before commit {id}"),
        CommitState::Kept => format!("commit {id} stays: {branch} has moved on; `git revert {id}` takes it back"),
        CommitState::Waits => {
            let why = commit.reason.as_deref().map(text::one_line).unwrap_or_default();
            format!("commit {id} is not finished ({why}); `motor land --list` tries it again")
        }
    }
}

/// The same in a list of landings.
pub(crate) fn in_brief(commit: &LandedCommit) -> String {
    let (branch, id) = (named(&commit.branch), short(&commit.id));
    match commit.state {
        CommitState::Made => format!("commit {id} on {branch}"),
        CommitState::NotMade => format!("no commit: {branch} was moved"),
        CommitState::TakenBack => format!("commit {id} taken off {branch}"),
        CommitState::Kept => format!("commit {id} stays on {branch}"),
        CommitState::Waits => format!("commit {id} not finished"),
    }
}

fn named(branch: &str) -> String {
    if branch == "HEAD" { "the detached HEAD".to_owned() } else { text::one_line(branch).to_string() }
}

/// As git shortens it, long enough to be unique.
fn short(id: &str) -> &str {
    id.get(..12).unwrap_or(id)
}
