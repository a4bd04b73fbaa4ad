//! A run that is followed and parks: the question is shown where the person sits, and answered right there.
//!
//! The question may be settled elsewhere, expire, or be cancelled: the run's events are listened to while the person
//! thinks, and then the question is taken back. Without a terminal, the command that answers is named.

use base::{Refusal, RunId};
use motor::{CommandReply, Waiting};

use super::answer::{AnswerInput, ask, call, command, trace};
use super::consent::at;
use super::context::{Context, now};
use super::interrupt::UserInterrupt;
use super::terminal::Terminal;
use crate::client::OwnerProof;
use crate::client::events::{Event, EventStream};
use crate::output::text;
use crate::session::Session;

/// How it went on while a run waited.
pub(super) enum ParkedOutcome {
    /// The question was put, answered or not: the events tell the outcome.
    Put,
    /// An event came first; `None` if the host is gone.
    On(Option<Event>),
    /// Ctrl-C or SIGTERM.
    Wished(UserInterrupt),
}

/// Asks the question or approval request `id` of the run, if it is still open.
///
/// # Errors
/// If the run cannot be read.
pub(super) async fn settle(
    session: &mut Session,
    run: &RunId,
    id: &str,
    events: &mut EventStream,
    context: &Context,
) -> Result<ParkedOutcome, Refusal> {
    let trace = trace(run, session).await?;
    // Events of the past are followed as well: their question may have been answered since.
    let Some(waiting) = trace.waiting.as_ref().filter(|waiting| waiting.id() == id) else {
        return Ok(ParkedOutcome::Put);
    };
    let Some(terminal) = Terminal::open() else {
        let limit = text::left(waiting.expires_at().since(now())).map(|left| format!(", for {left} at most"));
        context.output.say_trusted(&context.output.err.yellow(&format!(
            "waiting{}: `{}` answers",
            limit.unwrap_or_default(),
            command(run, waiting)
        )));
        return Ok(ParkedOutcome::Put);
    };
    let asking = async {
        let Some(said) = ask(&terminal, &trace, waiting, context).await? else { return Ok(None) };
        let word = at(&terminal, context).await?;
        Ok(Some((said, word)))
    };
    let answered: Result<Option<(AnswerInput, OwnerProof)>, Refusal> = tokio::select! {
        answered = asking => answered,
        event = events.next() => {
            // The terminal may be gone as well; then the message is lost.
            terminal.write("\n").ok();
            context.output.say("settled elsewhere, or too late: no answer is needed any more");
            return Ok(ParkedOutcome::On(event));
        }
        wish = context.wishes.next() => {
            terminal.write("\n").ok();
            return Ok(ParkedOutcome::Wished(wish));
        }
    };
    if let Err(refusal) = told(answered, run, waiting, session, context).await {
        context.output.warn(&refusal.reason);
        context.output.say(&format!("still waiting: `{}` answers", command(run, waiting)));
    }
    Ok(ParkedOutcome::Put)
}

async fn told(
    answered: Result<Option<(AnswerInput, OwnerProof)>, Refusal>,
    run: &RunId,
    waiting: &Waiting,
    session: &mut Session,
    context: &Context,
) -> Result<(), Refusal> {
    match answered? {
        Some((said, word)) => session.ask::<CommandReply>(&call(run, waiting, said, word)?).await.map(drop),
        None => {
            context.output.say(&format!("not answered: `{}` answers later", command(run, waiting)));
            Ok(())
        }
    }
}
