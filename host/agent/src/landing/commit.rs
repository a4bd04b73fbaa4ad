//! The commit of a landing: its message with the run's trailers, and its being taken back (SPEC LAND-7).

use std::path::Path;

use base::text::{cut, is_invisible};
use base::{ContentHash, Refusal, RefusalCode, RunId};
use landing::{CommitEnd, CommitProgress, Plan};
use motor::RunStatus;
use repository::{Draft, Intent, Place, Repository, Standing};

use super::failure::failed;
use crate::Runs;
use crate::api::changes::LandRequest;
use crate::api::commits::{CommitEffect, CommitState, LandedCommit, PlannedCommit};

/// The longest subject of a commit that is made of a task, in characters.
const MAX_TASK_SUBJECT: usize = 72;
/// The longest subject that the owner gives, in characters.
const MAX_SUBJECT: usize = 200;
/// The longest message that the owner gives, in bytes.
const MAX_MESSAGE: usize = 16 << 10;

/// A commit that is asked for, without its changes.
#[derive(Debug)]
pub(super) struct Wanted {
    place: Place,
    /// Subject and body of the message.
    text: String,
    run: RunId,
    /// Of the file that `motor receipt show --out` writes.
    receipt: Option<ContentHash>,
}

/// The effect of a landing on a branch, ready to be carried out.
pub(super) enum CommitStep {
    Make { repository: Box<Repository>, draft: Draft, message: String },
    Back { intent: Intent },
    Keep { intent: Intent },
}

impl Runs {
    /// The commit that a request asks for.
    pub(super) async fn wanted(
        &self,
        id: &RunId,
        task: &str,
        request: &LandRequest,
    ) -> Result<Option<Wanted>, Refusal> {
        let place = match (&request.branch, &request.commit) {
            (Some(name), _) => Place::Branch(name.clone()),
            (None, Some(_)) => Place::Head,
            (None, None) => return Ok(None),
        };
        if request.undoes.is_some() {
            let reason = "taking a landing back makes no commit";
            return Err(Refusal::new(RefusalCode::InvalidRequest, reason)
                .with_remedy("leave `commit` and `branch` out: a commit of the landing is taken back with it"));
        }
        let given = request.commit.as_ref().and_then(|commit| commit.message.as_deref());
        if given.is_some_and(|message| message.len() > MAX_MESSAGE) {
            let reason = format!("the message has more than {} KiB", MAX_MESSAGE >> 10);
            return Err(Refusal::new(RefusalCode::InvalidRequest, reason));
        }
        let is_over = matches!(self.trace(id)?.status, RunStatus::Completed | RunStatus::Failed | RunStatus::Cancelled);
        let receipt = match is_over {
            true => {
                let text = self.receipt(id).await?.text();
                let text = text.map_err(|error| Refusal::new(RefusalCode::Failed, error.to_string()))?;
                Some(ContentHash::of(text.as_bytes()))
            }
            // It has none yet.
            false => None,
        };
        Ok(Some(Wanted { place, text: text(given, task, id), run: id.clone(), receipt }))
    }
}

impl Wanted {
    /// Looks at the repository; nothing is written.
    pub fn draft(&self, plan: &Plan, tainted: bool) -> Result<CommitStep, Refusal> {
        let (repository, draft) = landing::draft(plan, &self.place).map_err(|error| failed(&error))?;
        Ok(CommitStep::Make { repository: Box::new(repository), draft, message: self.message(tainted) })
    }

    fn message(&self, tainted: bool) -> String {
        let mut message = format!("{}\n\nMotor-Run: {}\n", self.text, self.run);
        if let Some(receipt) = &self.receipt {
            message.push_str(&format!("Motor-Receipt: sha256:{}\n", receipt.hex()));
        }
        if tainted {
            message.push_str("Motor-Tainted: yes\n");
        }
        message
    }
}

/// Subject and body of a message, without control characters and invisible ones.
fn text(given: Option<&str>, task: &str, run: &RunId) -> String {
    let clean = |line: &str| line.chars().filter(|c| !c.is_control() && !is_invisible(*c)).collect::<String>();
    let lines = |text: &str| text.lines().map(|line| clean(line).trim_end().to_owned()).collect::<Vec<_>>();
    let (lines, max) = match given.map(lines).filter(|lines| lines.iter().any(|line| !line.is_empty())) {
        Some(given) => (given, MAX_SUBJECT),
        None => (lines(task).into_iter().filter(|line| !line.is_empty()).take(1).collect(), MAX_TASK_SUBJECT),
    };
    let mut lines = lines.iter().skip_while(|line| line.is_empty());
    let subject = lines.next().map(|line| cut(line.trim(), max)).unwrap_or_else(|| format!("Changes of {run}"));
    let body: Vec<&str> = lines.map(String::as_str).collect();
    let body = body.join("\n");
    let body = body.trim_matches('\n');
    if body.is_empty() { subject } else { format!("{subject}\n\n{body}") }
}

/// The effect of taking a landing back on the branch of its commit. Only as a whole does it take the commit back.
pub(super) fn back(directory: &Path, is_whole: bool) -> Result<Option<CommitStep>, Refusal> {
    let Some(commit) = landing::commit(directory).map_err(|error| failed(&error))? else { return Ok(None) };
    if commit.end == Some(CommitEnd::Elsewhere) {
        return Ok(None);
    }
    let intent = commit.intent.inverse();
    // A repository that is gone has no branch to move.
    let standing = Repository::of(&intent).and_then(|repository| repository.standing(&intent));
    Ok(match standing {
        Ok(Standing::Before) if is_whole => Some(CommitStep::Back { intent }),
        Ok(Standing::After) => None,
        _ => Some(CommitStep::Keep { intent }),
    })
}

impl CommitStep {
    /// Whether there is something to do besides the files.
    pub fn changes(&self) -> bool {
        !matches!(self, Self::Keep { .. })
    }

    /// Whether it leaves the files of the owner alone.
    pub fn spares_files(&self) -> bool {
        matches!(self, Self::Make { draft, .. } if !draft.is_head())
    }

    pub fn planned(&self) -> PlannedCommit {
        let of = |effect, intent: &Intent| PlannedCommit {
            effect,
            branch: intent.branch().to_owned(),
            id: Some(intent.commit().to_owned()),
            parent: None,
            author: None,
            message: None,
            left_out: Vec::new(),
            own: Vec::new(),
        };
        match self {
            Self::Make { draft, message, .. } => PlannedCommit {
                effect: if draft.is_head() { CommitEffect::Commit } else { CommitEffect::Branch },
                branch: draft.branch().to_owned(),
                id: None,
                parent: draft.parent(),
                author: Some(draft.author()),
                message: Some(message.clone()),
                left_out: draft.left_out().to_owned(),
                own: draft.own().to_owned(),
            },
            Self::Back { intent } if intent.makes() => of(CommitEffect::Redo, intent),
            Self::Back { intent } => of(CommitEffect::TakeBack, intent),
            Self::Keep { intent } => of(CommitEffect::Keep, intent),
        }
    }

    /// Writes the objects of a new commit. The second value is a commit that stays in any case.
    pub fn begin(self, seconds: i64) -> Result<(Option<Intent>, Option<LandedCommit>), Refusal> {
        Ok(match self {
            Self::Make { repository, draft, message } => {
                let intent = repository.write(draft, &message, seconds);
                (Some(intent.map_err(|error| failed(&error.into()))?), None)
            }
            Self::Back { intent } => (Some(intent), None),
            Self::Keep { intent } => (None, Some(landed(&intent, CommitState::Kept, None))),
        })
    }
}

/// The state of a commit after its landing.
pub(super) fn reached(intent: &Intent, progress: &CommitProgress) -> LandedCommit {
    match progress {
        CommitProgress::Ended(end) => landed(intent, state(intent, Some(*end)), None),
        CommitProgress::Waits(reason) => landed(intent, CommitState::Waits, Some(reason.clone())),
    }
}

/// The commit of a landing, if it has one.
pub(super) fn of(directory: &Path) -> Result<Option<(LandedCommit, usize)>, Refusal> {
    let found = landing::commit(directory).map_err(|error| failed(&error))?;
    let shown = |commit: landing::LandedCommit| {
        (landed(&commit.intent, state(&commit.intent, commit.end), None), commit.intent.paths())
    };
    Ok(found.map(shown))
}

fn state(intent: &Intent, end: Option<CommitEnd>) -> CommitState {
    match (end, intent.makes()) {
        (None, _) => CommitState::Waits,
        (Some(CommitEnd::Done), true) => CommitState::Made,
        (Some(CommitEnd::Done), false) => CommitState::TakenBack,
        (Some(CommitEnd::Elsewhere), true) => CommitState::NotMade,
        (Some(CommitEnd::Elsewhere), false) => CommitState::Kept,
    }
}

fn landed(intent: &Intent, state: CommitState, reason: Option<String>) -> LandedCommit {
    let (id, branch) = (intent.commit().to_owned(), intent.branch().to_owned());
    LandedCommit { id, branch, is_new_branch: !intent.is_head(), state, reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(given: Option<&str>, task: &str, expected: &str) {
        assert_eq!(text(given, task, &RunId::parse("run_1m80z7dsr02avgg0").unwrap()), expected);
    }

    #[test]
    fn a_message_is_the_owners_or_the_beginning_of_the_task() {
        check(None, "\n  Fix the build\nand more", "Fix the build");
        check(Some(""), "Fix the build", "Fix the build");
        check(Some("Say it\nat once\n\nand why\n\n"), "x", "Say it\n\nat once\n\nand why");
        check(None, "", "Changes of run_1m80z7dsr02avgg0");
        check(None, "a\u{1b}[31mb\u{202e}c\u{7}", "a[31mbc");
        check(Some("\u{200b}\n"), "\u{0}", "Changes of run_1m80z7dsr02avgg0");
        check(None, &"x".repeat(100), &format!("{}…", "x".repeat(72)));
    }
}
