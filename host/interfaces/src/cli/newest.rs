//! The run that a command takes if none is named: the agent's newest that fits the command. It is always named before
//! anything is done to it; if several fit and no person confirms the choice, the command is refused.

use agent::{StagedTask, TaskSummary};
use base::{Refusal, RefusalCode, RunId};
use motor::RunStatus;

use super::consent::{declined, given, yes};
use super::context::{Context, usage};
use super::staged;
use super::terminal::Terminal;
use crate::client::Call;
use crate::output::text;
use crate::session::Session;

/// At most so many runs are named if several fit.
const NAMED: usize = 5;
/// Columns of a task beside its run.
const TASK_COLUMNS: usize = 60;

/// The runs that a command works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fitting {
    /// Waits for an answer.
    Question,
    /// Runs that wait for consent.
    Consent,
    /// Runs that have failed.
    Failed,
    /// Runs that are not over.
    Open,
    /// Has staged writes that are held.
    Held,
}

impl Fitting {
    fn statuses(self) -> Vec<RunStatus> {
        let all = RunStatus::ALL.into_iter();
        match self {
            Self::Question => vec![RunStatus::AwaitingInput],
            Self::Consent => vec![RunStatus::AwaitingApproval],
            Self::Failed => vec![RunStatus::Failed],
            Self::Open => all.filter(|status| !status.is_terminal()).collect(),
            Self::Held => all.collect(),
        }
    }

    /// The state of a fitting run, for sentences.
    fn verb(self) -> &'static str {
        match self {
            Self::Question => "waits for an answer",
            Self::Consent => "waits for consent",
            Self::Failed => "has failed",
            Self::Open => "is under way or waits",
            Self::Held => "holds staged writes",
        }
    }
}

/// Whether the choice of the run needs a person, if several fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Choice {
    /// The newest is taken.
    Free,
    /// The command shows the run in a question of its own, on a terminal.
    Shown,
    /// The command asks no question: the run is named in one on a terminal.
    Asked,
}

/// The named run, or the newest fitting one of the agent, which is named on stderr.
///
/// # Errors
/// `not_found` if no run fits, `invalid_request` if several fit and no terminal is available to confirm the choice,
/// `consent_needed` if the person declines.
pub(super) async fn or_fitting(
    run: Option<RunId>,
    fitting: Fitting,
    choice: Choice,
    session: &mut Session,
    context: &Context,
) -> Result<RunId, Refusal> {
    if let Some(run) = run {
        return Ok(run);
    }
    let found = find(fitting, session, context).await?;
    let Some(newest) = found.first() else {
        let reason = format!("no run of agent `{}` {}", context.agent(), fitting.verb());
        return Err(Refusal::new(RefusalCode::NotFound, reason)
            .with_remedy("`motor task list` shows its runs, `motor task list --all` those of other agents"));
    };
    // With the owner's token in the environment no question is asked, even on a terminal.
    let terminal = if given(context)?.is_some() { None } else { Terminal::open() };
    match (choice, terminal) {
        (Choice::Asked, Some(terminal)) => {
            let question = format!("{}: is this the run? [y/N] ", label(newest));
            if !yes(&terminal, &question).await? {
                return Err(declined());
            }
        }
        (Choice::Asked | Choice::Shown, None) if found.len() > 1 => return Err(several(&found, fitting)),
        _ => context.output.say(&label(newest)),
    }
    Ok(newest.run_id.clone())
}

/// The agent's fitting runs, newest first.
async fn find(fitting: Fitting, session: &mut Session, context: &Context) -> Result<Vec<TaskSummary>, Refusal> {
    let mut found: Vec<TaskSummary> = Vec::new();
    for status in fitting.statuses() {
        let path = format!("/v1/tasks?limit=1000&status={status}&agent={}", context.agent());
        let runs: Vec<TaskSummary> = session.ask(&Call::get(path)).await?;
        found.extend(runs);
    }
    if fitting == Fitting::Held {
        let mut held = Vec::new();
        for run in found.into_iter().filter(|run| run.staged > 0) {
            let task: StagedTask = staged::fetch(&run.run_id, session).await?;
            if task.held > 0 {
                held.push(run);
            }
        }
        found = held;
    }
    found.sort_by_key(|run| std::cmp::Reverse((run.created_at, run.run_id.to_string())));
    Ok(found)
}

fn label(run: &TaskSummary) -> String {
    format!("run {}: {}", run.run_id, text::brief(&text::one_line(&run.task), TASK_COLUMNS))
}

fn several(found: &[TaskSummary], fitting: Fitting) -> Refusal {
    let named: Vec<_> = found.iter().take(NAMED).map(|run| run.run_id.to_string()).collect();
    let more = found.len().saturating_sub(named.len());
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let count = text::plural(found.len() as u64, "run");
    let reason = format!("{count} fit, each {}: {}{more}", fitting.verb(), named.join(", "));
    usage(&reason, "name the run")
}

/// The run in front of other words, if the first word is one.
///
/// # Errors
/// If the first word begins like a run's id and is not one.
pub(super) fn leading_run(words: Vec<String>) -> Result<(Option<RunId>, Vec<String>), Refusal> {
    let mut rest = words.into_iter();
    match rest.next() {
        Some(first) if first.starts_with("run_") && !first.contains(' ') => {
            let run =
                RunId::parse(&first).map_err(|error| usage(error.to_string(), "`motor task list` shows the ids"))?;
            Ok((Some(run), rest.collect()))
        }
        first => Ok((None, first.into_iter().chain(rest).collect())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn a_run_is_told_from_other_words() {
        let run = RunId::parse("run_1").unwrap();
        assert_eq!(leading_run(words(&["run_1", "yes"])).unwrap(), (Some(run), words(&["yes"])));
        for other in [&[][..], &["3", "4"], &["yes"], &["run_1 is right"]] {
            assert_eq!(leading_run(words(other)).unwrap(), (None, words(other)));
        }
        assert!(leading_run(words(&["run_A", "yes"])).is_err());
    }

    #[test]
    fn each_command_fits_the_statuses_it_works_on() {
        for status in RunStatus::ALL {
            let fits = |fitting: Fitting| fitting.statuses().contains(&status);
            assert_eq!(fits(Fitting::Open), !status.is_terminal(), "{status}");
            assert_eq!(fits(Fitting::Question) || fits(Fitting::Consent), status.is_waiting(), "{status}");
            assert_eq!(fits(Fitting::Failed), status == RunStatus::Failed, "{status}");
        }
    }
}
