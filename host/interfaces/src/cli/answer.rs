//! `motor task respond`, `approve`, `retry`, and the same questions where a run is followed: each question is shown
//! whole on the terminal, and the answer names exactly the question shown (SPEC ASK-1, APPR-1).

use agent::{ApproveTask, RespondRequest, RetryTask};
use base::{ContentHash, Random, Refusal, RefusalCode, RunId};
use clap::Args;
use llm::MicroUsd;
use motor::{Approval, CommandReply, Question, RetryReply, RunTrace, Scope, Waiting};

use super::consent::{self, at, declined, given, gone, nobody, show, yes};
use super::context::now;
use super::context::{Context, usage};
use super::input;
use super::newest::{self, Fitting, or_fitting};
use super::terminal::Terminal;
use super::{CliError, Done};
use crate::client::{Call, OwnerProof};
use crate::exit::CommandExit;
use crate::output::text;
use crate::session::Session;
use crate::words::card::Card;

/// The command that answers a question.
pub(super) const RESPOND: &str = "motor task respond";
/// The command that decides on a run's approval request.
pub(super) const APPROVE: &str = "motor task approve";
/// Words that agree: a line that begins with one, or almost, is never taken for a refusal.
const AGREEMENTS: [&str; 7] = ["yes", "yeah", "yep", "yup", "okay", "sure", "allow"];
/// How often a question is put before it is left unanswered.
const QUESTIONS: u32 = 3;

/// Arguments of `motor task respond`.
#[derive(Debug, Args)]
pub(super) struct RespondArgs {
    /// The run [default: the newest that asks], and the answer [default: asked for, after the question]
    #[arg(value_name = "RUN] [ANSWER")]
    words: Vec<String>,
}

/// Arguments of `motor task approve`.
#[derive(Debug, Args)]
pub(super) struct ApproveTaskArgs {
    /// Id of the run [default: the newest that asks for consent]
    run: Option<RunId>,
    /// Refuse the actions it asks for
    #[arg(long, conflicts_with = "scope")]
    deny: bool,
    /// For how long: `once`, `run`, `session` or `always` [default: asked for, else the shortest]
    #[arg(long = "for", value_name = "TIME", value_parser = parse_scope)]
    scope: Option<Scope>,
    /// Allow only these actions, by number, and refuse the others
    #[arg(long, value_delimiter = ',', value_name = "NUMBERS", conflicts_with = "deny")]
    only: Vec<usize>,
    /// Reason, or another way to go: for the model
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Decide only this request, `apr_…`: other waiting requests are left alone
    #[arg(long, value_name = "ID")]
    id: Option<String>,
}

/// Arguments of `motor task retry`.
#[derive(Debug, Args)]
pub(super) struct RetryArgs {
    /// Id of the run [default: the newest that failed]
    run: Option<RunId>,
    /// Instructions for the new attempt
    #[arg(long, value_name = "TEXT")]
    guidance: Option<String>,
    /// Domains it may reach beside those it was granted
    #[arg(long, value_delimiter = ',', value_name = "DOMAINS")]
    domains: Vec<String>,
    /// Requests it may send also after it has read from the web, beside those it was granted
    #[arg(long, value_delimiter = ',', value_name = "SHAPES")]
    writes: Vec<String>,
    /// Model calls of the attempt [default: 15]
    #[arg(long, value_name = "N")]
    max_iterations: Option<u32>,
    /// US dollars the run may spend on models from now on, over all its attempts, such as `0.50`
    #[arg(long, value_name = "USD", value_parser = input::usd)]
    budget_usd: Option<MicroUsd>,
}

fn parse_scope(text: &str) -> Result<Scope, String> {
    let all = [Scope::Once, Scope::Run, Scope::Session, Scope::Always];
    let known = || all.map(Scope::as_str).join(", ");
    all.into_iter().find(|scope| scope.as_str() == text).ok_or_else(|| format!("expected one of {}", known()))
}

/// A person's reply to a waiting run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum AnswerInput {
    Answer(String),
    Decision { grant: bool, only: Vec<ContentHash>, scope: Scope, reason: Option<String> },
}

/// Runs the command `motor task respond`.
pub(super) async fn respond(arguments: RespondArgs, session: &mut Session, context: &Context) -> Done {
    let (run, words) = newest::leading_run(arguments.words)?;
    let mut words = words.into_iter();
    let answer = words.next();
    if words.next().is_some() {
        let reason =
            if run.is_some() { "the answer has several words" } else { "the first word is not the id of a run" };
        return Err(usage(reason, "`motor task respond RUN ANSWER`, the answer in quotes").into());
    }
    let run = or_fitting(run, Fitting::Question, newest::Choice::Shown, session, context).await?;
    let trace = trace(&run, session).await?;
    let waiting = waits(&trace)?;
    let Waiting::Input(question) = waiting else {
        return Err(wrong(
            format!("run `{run}` waits for consent, not for an answer"),
            format!("motor task approve {run}"),
        )
        .into());
    };
    let (said, word) = match (given(context)?, answer) {
        (Some(word), Some(answer)) => (AnswerInput::Answer(answer), word),
        (Some(_), None) if Terminal::open().is_none() => {
            return Err(usage("there is no answer, and no terminal to ask at", "write it behind the run's id").into());
        }
        (_, answer) => {
            let terminal = Terminal::open().ok_or_else(nobody)?;
            show(&terminal, &Card::of(&trace, waiting, now()), context).await?;
            let said = match answer {
                Some(answer) => {
                    show(&terminal, &Card::new("the answer").with("answer", &answer), context).await?;
                    yes(&terminal, "send it? [y/N] ").await?.then_some(AnswerInput::Answer(answer))
                }
                None => put(&terminal, question).await?,
            };
            (said.ok_or_else(declined)?, at(&terminal, context).await?)
        }
    };
    tell(&trace, waiting, said, word, session, context).await
}

/// Runs the command `motor task approve`.
pub(super) async fn approve(arguments: ApproveTaskArgs, session: &mut Session, context: &Context) -> Done {
    let ApproveTaskArgs { run, deny, scope, only, reason, id } = arguments;
    let run = or_fitting(run, Fitting::Consent, newest::Choice::Shown, session, context).await?;
    let trace = trace(&run, session).await?;
    let waiting = waits(&trace)?;
    let Waiting::Approval(approval) = waiting else {
        return Err(wrong(
            format!("run `{run}` waits for an answer, not for consent"),
            format!("motor task respond {run}"),
        )
        .into());
    };
    if let Some(id) = id.filter(|id| *id != approval.id) {
        let reason = format!("`{}` does not wait; `{}` does", text::one_line(&id), approval.id);
        return Err(wrong(reason, format!("motor task status {run}")).into());
    }
    let first = approval.choices.first().copied().unwrap_or_default();
    let only = numbered(&only, approval)?;
    let (said, word) = if let Some(word) = given(context)? {
        (AnswerInput::Decision { grant: !deny, only, scope: scope.unwrap_or(first), reason }, word)
    } else {
        let terminal = Terminal::open().ok_or_else(nobody)?;
        show(&terminal, &Card::of(&trace, waiting, now()), context).await?;
        let said = match (deny, scope) {
            (true, _) => {
                let refused = Choice { grant: false, only, scope: first, instead: None };
                yes(&terminal, "refuse it? [y/N] ").await?.then_some(refused)
            }
            (false, Some(scope)) => {
                let prompt = format!("allow {} for {}? [y/N] ", what(&only, approval), in_words(scope));
                yes(&terminal, &prompt).await?.then_some(Choice { grant: true, only, scope, instead: None })
            }
            (false, None) => choose(&terminal, approval, &only).await?,
        };
        let Choice { grant, only, scope, instead } = said.ok_or_else(declined)?;
        let reason = reason.or(instead);
        (AnswerInput::Decision { grant, only, scope, reason }, at(&terminal, context).await?)
    };
    tell(&trace, waiting, said, word, session, context).await
}

/// Runs the command `motor task retry`.
pub(super) async fn retry(arguments: RetryArgs, session: &mut Session, context: &Context) -> Done {
    let RetryArgs { run, guidance, domains, writes, max_iterations, budget_usd } = arguments;
    let request = RetryTask { guidance, domains, writes, max_iterations, budget_usd, key: Some(key()) };
    let choice = if request.widens() { newest::Choice::Shown } else { newest::Choice::Free };
    let run = or_fitting(run, Fitting::Failed, choice, session, context).await?;
    let mut call = Call::post(format!("/v1/tasks/{run}/retries"), &request)?;
    if request.widens() {
        let trace = trace(&run, session).await?;
        let mut card = Card::new(format!("{run} of agent {} is to be tried again with more than it had", trace.agent));
        card = card.with("task", &trace.task);
        for (label, patterns) in [("reaches", &request.domains), ("writes to", &request.writes)] {
            if !patterns.is_empty() {
                card = card.with(label, patterns.join(", "));
            }
        }
        if let Some(cap) = budget_usd {
            card = card.with("may spend", format!("{cap} on models, over all its attempts"));
        }
        call = call.with(consent::confirm(&card, context).await?);
    } else {
        call = consent::signed(call, context);
    }
    let retried: RetryReply = session.ask(&call).await?;
    context.answer(&retried, || format!("{run} is tried again: attempt {}", retried.attempt_index + 1))?;
    goes_on(&run, session, context);
    Ok(CommandExit::Ok)
}

/// Asks the run's question at the terminal. Returns `None` if no answer was given; the run keeps waiting.
///
/// # Errors
/// If the terminal is gone.
pub(super) async fn ask(
    terminal: &Terminal,
    trace: &RunTrace,
    waiting: &Waiting,
    context: &Context,
) -> Result<Option<AnswerInput>, Refusal> {
    show(terminal, &Card::of(trace, waiting, now()), context).await?;
    match waiting {
        Waiting::Input(question) => put(terminal, question).await,
        Waiting::Approval(approval) => {
            let chosen = choose(terminal, approval, &[]).await?;
            Ok(chosen.map(|Choice { grant, only, scope, instead: reason }| AnswerInput::Decision {
                grant,
                only,
                scope,
                reason,
            }))
        }
    }
}

/// The request that sends a reply to a run, bound to exactly the question shown.
///
/// # Errors
/// Only if the reply cannot be written as JSON.
pub(super) fn call(run: &RunId, waiting: &Waiting, said: AnswerInput, word: OwnerProof) -> Result<Call, Refusal> {
    let call = match said {
        AnswerInput::Answer(answer) => {
            let request = RespondRequest { answer, question: Some(waiting.id().to_owned()), key: Some(key()) };
            Call::post(format!("/v1/tasks/{run}/answer"), &request)?
        }
        AnswerInput::Decision { grant, only, scope, reason } => {
            let actions = match waiting {
                Waiting::Approval(approval) => approval.items.iter().map(|item| item.action_hash).collect(),
                Waiting::Input(_) => Vec::new(),
            };
            let approval = Some(waiting.id().to_owned());
            let request = ApproveTask { approval, actions, grant, only, scope, reason, key: Some(key()) };
            Call::post(format!("/v1/tasks/{run}/approval"), &request)?
        }
    };
    Ok(call.with(word))
}

/// The command that answers a run's question or approval request.
pub(super) fn command(run: &RunId, waiting: &Waiting) -> String {
    match waiting {
        Waiting::Input(_) => format!("{RESPOND} {run}"),
        Waiting::Approval(_) => format!("{APPROVE} {run}"),
    }
}

/// Puts a question: the number of a choice stands for it, anything else for itself.
async fn put(terminal: &Terminal, question: &Question) -> Result<Option<AnswerInput>, Refusal> {
    let prompt = match question.choices.len() {
        0 => "answer: ".to_owned(),
        1 => "answer (1, or other words): ".to_owned(),
        many => format!("answer (1 to {many}, or other words): "),
    };
    for _ in 0..QUESTIONS {
        let Some(line) = terminal.ask(&prompt).await.map_err(|error| gone(&error))? else { return Ok(None) };
        if let Some(answer) = answer_of(&line, &question.choices) {
            return Ok(Some(AnswerInput::Answer(answer)));
        }
    }
    Ok(None)
}

fn answer_of(line: &str, choices: &[String]) -> Option<String> {
    let line = line.trim();
    let chosen = line.parse::<usize>().ok().and_then(|number| choices.get(number.checked_sub(1)?));
    chosen.map(String::as_str).or(Some(line)).filter(|answer| !answer.is_empty()).map(str::to_owned)
}

/// Has the owner choose a scope, or refuse. `None` if nothing was chosen.
async fn choose(terminal: &Terminal, approval: &Approval, only: &[ContentHash]) -> Result<Option<Choice>, Refusal> {
    let offered: Vec<String> =
        approval.choices.iter().map(|scope| format!("{} = {}", letter(*scope), in_words(*scope))).collect();
    let some = if approval.items.len() > 1 && only.is_empty() { ", or the numbers of some (y 1,3)" } else { "" };
    let prompt =
        format!("allow {}? {}, n = no{some}, or say what to do instead: ", what(only, approval), offered.join(", "));
    for _ in 0..QUESTIONS {
        let Some(line) = terminal.ask(&prompt).await.map_err(|error| gone(&error))? else { return Ok(None) };
        let (letter, numbers) = line.trim().split_once(' ').unwrap_or((line.trim(), ""));
        let numbers: Result<Vec<usize>, _> =
            numbers.split(',').map(str::trim).filter(|number| !number.is_empty()).map(str::parse).collect();
        let some = numbers.ok().and_then(|numbers| numbered(&numbers, approval).ok());
        if let (Some((grant, scope)), Some(some)) = (choice_of(letter, &approval.choices), some) {
            let only = if some.is_empty() || !only.is_empty() { only.to_vec() } else { some };
            return Ok(Some(Choice { grant, only, scope, instead: None }));
        }
        if let Some(instead) = instead_of(&line) {
            let scope = approval.choices.first().copied().unwrap_or_default();
            return Ok(Some(Choice { grant: false, only: Vec::new(), scope, instead }));
        }
        terminal.write("that is neither a yes nor a no: nothing is decided\n").map_err(|error| gone(&error))?;
    }
    Ok(None)
}

/// The owner's choice at the terminal.
struct Choice {
    grant: bool,
    /// Empty: all that is asked.
    only: Vec<ContentHash>,
    scope: Scope,
    /// Guidance of the owner beside a refusal.
    instead: Option<String>,
}

/// The actions with these numbers, from 1.
///
/// # Errors
/// If a number names no action.
fn numbered(numbers: &[usize], approval: &Approval) -> Result<Vec<ContentHash>, Refusal> {
    let action = |number: &usize| {
        let item = number.checked_sub(1).and_then(|index| approval.items.get(index));
        item.map(|item| item.action_hash).ok_or_else(|| {
            let reason = format!("it asks about {} actions: there is no number {number}", approval.items.len());
            usage(&reason, "`motor task status` shows them with their numbers")
        })
    };
    numbers.iter().map(action).collect()
}

fn what(only: &[ContentHash], approval: &Approval) -> String {
    match (only.len(), approval.items.len()) {
        (0, 1) => "it".to_owned(),
        (0, all) => format!("all {all}"),
        (some, all) => format!("{some} of the {all}"),
    }
}

/// Only a letter or word that was offered is a choice: an empty line is not a yes, and not a no.
fn choice_of(line: &str, choices: &[Scope]) -> Option<(bool, Scope)> {
    let line = line.trim().to_ascii_lowercase();
    let first = choices.first().copied()?;
    if ["n", "no"].contains(&line.as_str()) {
        return Some((false, first));
    }
    choices.iter().find(|scope| line == letter(**scope) || line == scope.as_str()).map(|scope| (true, *scope))
}

/// A refusal in words: the way that the run is to go instead, without a "no" before it. `None` if the line may be a mistyped yes,
/// or the yes of a sentence: a consent and a refusal must not be taken for each other.
fn instead_of(line: &str) -> Option<Option<String>> {
    let line = line.trim();
    let is_end = |character: char| !character.is_alphanumeric();
    let (first, rest) = line.split_at(line.find(is_end).unwrap_or(line.len()));
    let word = first.to_lowercase();
    let rest = rest.trim_start_matches(is_end);
    if ["n", "no"].contains(&word.as_str()) {
        return Some(Some(rest).filter(|rest| !rest.is_empty()).map(str::to_owned));
    }
    let is_alone = !rest.chars().any(char::is_alphabetic);
    let is_yes = ["y", "ok"].contains(&word.as_str()) || AGREEMENTS.iter().any(|yes| is_near(&word, yes));
    let is_scope = ["run", "session", "always", "once"].iter().any(|scope| is_near(&word, scope));
    let is_too_short = word.chars().count() < 3;
    let is_unclear = is_yes || (is_alone && (is_scope || is_too_short));
    (!is_unclear).then(|| Some(line.to_owned()))
}

/// Whether two words are the same but for one letter too many, too few or wrong, or two in the wrong order.
fn is_near(one: &str, other: &str) -> bool {
    let (one, other): (Vec<_>, Vec<_>) = (one.chars().collect(), other.chars().collect());
    let same = one.iter().zip(&other).take_while(|(a, b)| a == b).count();
    let (one, other) = (one.get(same..).unwrap_or_default(), other.get(same..).unwrap_or_default());
    match (one, other) {
        ([_, one @ ..], [_, other @ ..]) if one == other => true,
        ([a, b, one @ ..], [c, d, other @ ..]) if (a, b) == (d, c) && one == other => true,
        ([_, one @ ..], other) | (other, [_, one @ ..]) if one == other => true,
        (one, other) => one == other,
    }
}

fn letter(scope: Scope) -> &'static str {
    match scope {
        Scope::Once => "y",
        Scope::Run => "r",
        Scope::Session => "s",
        Scope::Always => "a",
    }
}

fn in_words(scope: Scope) -> &'static str {
    match scope {
        Scope::Once => "this one time",
        Scope::Run => "this run",
        Scope::Session => "all runs of the agent until the host ends",
        Scope::Always => "all runs of the agent, for good",
    }
}

async fn tell(
    trace: &RunTrace,
    waiting: &Waiting,
    said: AnswerInput,
    word: OwnerProof,
    session: &mut Session,
    context: &Context,
) -> Done {
    let run = &trace.run_id;
    let what = match &said {
        AnswerInput::Answer(_) => "has its answer",
        AnswerInput::Decision { grant: true, .. } => "is allowed what it asked for",
        AnswerInput::Decision { grant: false, .. } => "is refused what it asked for",
    };
    let moved: CommandReply = session.ask(&call(run, waiting, said, word)?).await?;
    context.answer(&moved, || format!("{run} {what}"))?;
    goes_on(run, session, context);
    Ok(CommandExit::Ok)
}

/// A waiting run continues only on a host that stays; a host of this command ends with it.
pub(super) fn goes_on(run: &RunId, session: &Session, context: &Context) {
    if session.is_own() {
        context.output.say(&format!("no host stays: `motor act --resume {run}` goes on with it"));
    }
}

pub(super) async fn trace(run: &RunId, session: &mut Session) -> Result<RunTrace, Refusal> {
    session.ask(&Call::get(format!("/v1/tasks/{run}"))).await
}

fn waits(trace: &RunTrace) -> Result<&Waiting, CliError> {
    trace.waiting.as_ref().ok_or_else(|| {
        let reason = format!("run `{}` is {} and asks nothing", trace.run_id, trace.status);
        Refusal::new(RefusalCode::IllegalState, reason)
            .with_remedy("`motor task list --waiting` shows those that do")
            .into()
    })
}

fn wrong(reason: String, command: String) -> Refusal {
    Refusal::new(RefusalCode::IllegalState, reason).with_remedy(format!("run `{command}`"))
}

/// A request whose answer was lost is sent again: with a key it counts once.
pub(super) fn key() -> String {
    format!("cli-{:016x}", Random::from_system().next_u64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_offered_is_a_choice() {
        let all = [Scope::Once, Scope::Run, Scope::Session, Scope::Always];
        for (line, choices, expected) in [
            ("y", &all[..], Some((true, Scope::Once))),
            (" Y ", &all, Some((true, Scope::Once))),
            ("r", &all, Some((true, Scope::Run))),
            ("session", &all, Some((true, Scope::Session))),
            ("a", &all, Some((true, Scope::Always))),
            ("n", &all, Some((false, Scope::Once))),
            ("no", &all[1..], Some((false, Scope::Run))),
            ("y", &all[1..], None),
            ("a", &all[..1], None),
            ("", &all, None),
            ("yes please", &all, None),
            ("ya", &all, None),
            ("n", &[], None),
        ] {
            assert_eq!(choice_of(line, choices), expected, "{line:?} of {choices:?}");
        }
    }

    #[test]
    fn other_words_are_a_no_that_says_what_to_do_instead() {
        for (line, expected) in [
            ("use port 8080", "use port 8080"),
            (" no, use port 8080 ", "use port 8080"),
            ("No: only the first", "only the first"),
            ("n - wait for Monday", "wait for Monday"),
            ("run the tests first", "run the tests first"),
            ("always ask the other server", "always ask the other server"),
            ("stop", "stop"),
            ("not now", "not now"),
            ("nope", "nope"),
            ("on Monday, not today", "on Monday, not today"),
        ] {
            assert_eq!(instead_of(line), Some(Some(expected.to_owned())), "{line:?}");
        }
        assert_eq!(instead_of("no."), Some(None));
    }

    #[test]
    fn a_mistyped_yes_decides_nothing() {
        let lines = [
            "",
            " ",
            "ye",
            "yess",
            "eys",
            "yse",
            "yes please",
            "Yes, but only once",
            "y 7",
            "y 1,x",
            "ok",
            "okay",
            "sure",
            "yeah go on",
            "ok go on",
            "y but not there",
            "a",
            "sesion",
            "alwyas",
            "rn",
            "r 9",
            "onec",
            "7",
            "?",
            "allow it",
        ];
        for line in lines {
            assert_eq!(instead_of(line), None, "{line:?}");
        }
    }

    #[test]
    fn a_number_is_the_choice_of_that_number_and_else_a_number() {
        let choices = ["red".to_owned(), "blue".to_owned()];
        for (line, choices, expected) in [
            ("2", &choices[..], Some("blue")),
            (" 1\t", &choices, Some("red")),
            ("0", &choices, Some("0")),
            ("3", &choices, Some("3")),
            ("2", &[], Some("2")),
            ("green", &choices, Some("green")),
            ("", &choices, None),
            ("   ", &[], None),
        ] {
            assert_eq!(answer_of(line, choices).as_deref(), expected, "{line:?}");
        }
    }

    #[test]
    fn scopes_are_those_there_are() {
        assert_eq!(parse_scope("always"), Ok(Scope::Always));
        assert!(parse_scope("ever").unwrap_err().contains("session"));
    }
}
