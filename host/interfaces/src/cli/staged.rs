//! `motor task staged`, `send` and `discard`: the writes that a run staged (SPEC LAND-5).

use std::str::FromStr;

use agent::{DiscardStaged, SendStaged, ShownWrite, StagedStatus, StagedTask, StagedWrite};
use base::{Refusal, RefusalCode, RunId};
use clap::Args;

use super::context::{Context, usage};
use super::newest::{Choice, Fitting, leading_run, or_fitting};
use super::task::or_newest;
use super::{Done, consent};
use crate::client::{Call, OwnerProof};
use crate::exit::CommandExit;
use crate::output::text;
use crate::session::Session;
use crate::words::card::Card;
use crate::words::staged::{card, line};

/// Arguments of `motor task staged`.
#[derive(Debug, Args)]
pub(super) struct StagedArgs {
    /// The run [default: the newest]
    run: Option<RunId>,
}

/// Arguments of `motor task send`.
#[derive(Debug, Args)]
pub(super) struct SendArgs {
    /// The run [default: the newest with held writes], and numbers of writes, such as `3` or `'#3'` [default: all held]
    #[arg(value_name = "RUN] [NUMBER")]
    words: Vec<String>,
    /// Send a write whose outcome is unknown once more, with the same idempotency key
    #[arg(long, requires = "words")]
    again: bool,
}

/// Arguments of `motor task discard`.
#[derive(Debug, Args)]
pub(super) struct DiscardArgs {
    /// The run [default: the newest with held writes], and numbers of writes, such as `3` or `'#3'` [default: all held]
    #[arg(value_name = "RUN] [NUMBER")]
    words: Vec<String>,
}

/// The number of a staged write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WriteNumber(u32);

impl FromStr for WriteNumber {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = text.strip_prefix('#').unwrap_or(text);
        let number = number.parse().ok().filter(|number| *number > 0);
        number.map(Self).ok_or_else(|| "expected the number of a staged write, such as `3`".to_owned())
    }
}

/// The run and the numbers of writes behind it.
///
/// # Errors
/// If a word is neither.
fn targets(words: Vec<String>) -> Result<(Option<RunId>, Vec<WriteNumber>), Refusal> {
    let (run, words) = leading_run(words)?;
    let number = |word: &String| {
        let parsed = word.parse::<WriteNumber>();
        parsed.map_err(|expected| usage(format!("{} is not a run or a number", text::quoted(word)), &expected))
    };
    let writes: Result<_, _> = words.iter().map(number).collect();
    Ok((run, writes?))
}

/// Runs the command `motor task staged`.
pub(super) async fn show(arguments: StagedArgs, session: &mut Session, context: &Context) -> Done {
    let run = or_newest(arguments.run, session, context).await?;
    let task = fetch(&run, session).await?;
    let output = &context.output;
    if task.writes.is_empty() && !output.is_json() {
        output.say(&format!("run {run} has staged no writes"));
        return Ok(CommandExit::Ok);
    }
    context.answer(&task, || {
        let card = whole(&task);
        card.render(output.columns, output.out).join("\n")
    })?;
    if task.held > 0 && !output.is_json() {
        output.say(&format!(
            "`motor task send {run}` sends those that are held, `motor task discard {run}` discards them"
        ));
    }
    Ok(CommandExit::Ok)
}

/// The card of all writes of a run.
pub(super) fn whole(task: &StagedTask) -> Card {
    let writes = text::plural(task.writes.len() as u64, "write");
    card(format!("{} has staged {writes}, {} of them held", task.run_id, task.held), task, task.writes.iter())
}

/// Runs the command `motor task send`. Each write is one request, so that each result is shown when it is there.
pub(super) async fn send(arguments: SendArgs, session: &mut Session, context: &Context) -> Done {
    let SendArgs { words, again } = arguments;
    let (run, writes) = targets(words)?;
    if again && writes.is_empty() {
        return Err(usage("`--again` takes the numbers of writes", "`motor task staged` lists them").into());
    }
    let run = or_fitting(run, Fitting::Held, Choice::Shown, session, context).await?;
    let task = fetch(&run, session).await?;
    let chosen = chosen(&task, &writes)?;
    if chosen.is_empty() {
        let refusal = Refusal::new(RefusalCode::IllegalState, format!("run `{run}` has no write that is held"));
        return Err(refusal.with_remedy(format!("`motor task staged {run}` lists its writes")).into());
    }
    let title = match chosen.as_slice() {
        [write] => format!("#{} of {run} is to be sent", write.number),
        several => format!("{} writes of {run} are to be sent, in this order", several.len()),
    };
    let proof = consent::confirm(&card(title, &task, chosen.iter().copied()), context).await?;
    let (mut sent, mut exit) = (Vec::new(), CommandExit::Ok);
    for write in chosen {
        let done = send_one(&run, write, again, proof.clone(), session).await?;
        let (is_sent, is_good) = (done.status == StagedStatus::Sent, is_good(&done));
        if !context.output.is_json() {
            context.output.print(&line(&done))?;
        }
        sent.push(done);
        if !is_good {
            exit = CommandExit::Failed;
        }
        if !is_sent {
            break;
        }
    }
    if context.output.is_json() {
        context.output.print_json(&sent)?;
    }
    Ok(exit)
}

async fn send_one(
    run: &RunId,
    write: &StagedWrite,
    again: bool,
    proof: OwnerProof,
    session: &mut Session,
) -> Result<StagedWrite, Refusal> {
    let writes = vec![ShownWrite { number: write.number, hash: write.hash }];
    let call = Call::post(format!("/v1/tasks/{run}/staged/send"), &SendStaged { writes, again })?.with(proof);
    let sent: Vec<StagedWrite> = session.ask_once(&call).await?;
    let missing = || Refusal::new(RefusalCode::Failed, "the host said nothing about the write");
    sent.into_iter().next().ok_or_else(missing)
}

/// Whether a write was sent, and the server took it.
fn is_good(write: &StagedWrite) -> bool {
    let took = write.response.as_ref().is_some_and(|response| (200..400).contains(&response.status));
    write.status == StagedStatus::Sent && took
}

/// Runs the command `motor task discard`.
pub(super) async fn discard(arguments: DiscardArgs, session: &mut Session, context: &Context) -> Done {
    let (run, writes) = targets(arguments.words)?;
    let run = or_fitting(run, Fitting::Held, Choice::Asked, session, context).await?;
    // It takes something away: the owner's token is needed, and no question.
    let proof = consent::unasked(context).await?;
    let task = drop_writes(&run, writes.iter().map(|number| number.0).collect(), proof, session).await?;
    context.answer(&task, || task.writes.iter().map(line).collect::<Vec<_>>().join("\n"))?;
    Ok(CommandExit::Ok)
}

/// Discards writes of a run; all that are held if none is named.
pub(super) async fn drop_writes(
    run: &RunId,
    writes: Vec<u32>,
    proof: OwnerProof,
    session: &mut Session,
) -> Result<StagedTask, Refusal> {
    let call = Call::post(format!("/v1/tasks/{run}/staged/discard"), &DiscardStaged { writes })?;
    session.ask(&call.with(proof)).await
}

pub(super) async fn fetch(run: &RunId, session: &mut Session) -> Result<StagedTask, Refusal> {
    session.ask(&Call::get(format!("/v1/tasks/{run}/staged"))).await
}

/// The named writes, or all that are held.
///
/// # Errors
/// If a number names no write.
fn chosen<'a>(task: &'a StagedTask, named: &[WriteNumber]) -> Result<Vec<&'a StagedWrite>, Refusal> {
    if named.is_empty() {
        return Ok(task.writes.iter().filter(|write| write.status == StagedStatus::Held).collect());
    }
    let find = |number: &WriteNumber| {
        task.writes.iter().find(|write| write.number == number.0).ok_or_else(|| {
            let reason = format!("run `{}` has no staged write #{}", task.run_id, number.0);
            Refusal::new(RefusalCode::NotFound, reason)
                .with_remedy(format!("`motor task staged {}` lists its writes", task.run_id))
        })
    };
    named.iter().map(find).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_with_and_without_a_sign() {
        assert_eq!("3".parse(), Ok(WriteNumber(3)));
        assert_eq!("#12".parse(), Ok(WriteNumber(12)));
        for wrong in ["", "#", "0", "-1", "#0", "x", "##1", "1.5", "4294967296"] {
            assert!(wrong.parse::<WriteNumber>().is_err(), "{wrong}");
        }
    }
}
