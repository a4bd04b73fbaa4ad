//! `motor chat`: a conversation of the owner with the agent (SPEC COG-1, CONSENT-1).
//!
//! Every line is one message. On a terminal its person is asked for the token's passphrase, if there is one; without a terminal the
//! lines of standard input are messages too, and only the owner's token in the environment makes them the owner's.

mod input;
mod kept;
mod runs;
mod view;

use std::io::IsTerminal as _;

use base::Random;
use clap::Args;
use cognition::ChatEvent;
use ledger::ChannelName;
use llm::Role;
use tokio::sync::mpsc;

use super::consent::{at, given, nobody};
use super::context::Context;
use super::terminal::Terminal;
use super::{CliError, Done, setup};
use crate::client::{Call, OwnerProof};
use crate::exit::CommandExit;
use crate::http::{MessageReply, NewChatMessage};
use crate::session::Session;
use input::TypedLine;
use kept::ChatCommand;
use runs::RunLines;
use view::ChatView;

/// Entries that are read to find the last event: a turn has at most about a hundred.
const MIN_READ: usize = 200;

/// Arguments of `motor chat`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct ChatArgs {
    #[command(subcommand)]
    command: Option<ChatCommand>,
    /// Number of earlier events to show first
    #[arg(long, value_name = "N", default_value_t = 20)]
    history: usize,
    /// Channel of the conversation: each has a history of its own
    #[arg(long, value_name = "NAME", default_value = "chat")]
    channel: ChannelName,
}

pub(super) async fn run(arguments: ChatArgs, context: &Context) -> Done {
    match &arguments.command {
        Some(command) => kept::run(command, context).await,
        None => talk(&arguments, context).await,
    }
}

async fn talk(arguments: &ChatArgs, context: &Context) -> Done {
    let terminal = std::io::stdin().is_terminal().then(Terminal::open).flatten();
    match &terminal {
        Some(terminal) => setup::offer(terminal, &[Role::Smart, Role::Fast, Role::Motor], context).await?,
        None => drop(given(context)?.ok_or_else(nobody)?),
    }
    context
        .with_host(async |session| {
            // The first host of a home makes the token.
            let proof = match &terminal {
                Some(terminal) => at(terminal, context).await?,
                None => given(context)?.ok_or_else(nobody)?,
            };
            let lines = input::lines(terminal.as_ref());
            let view = ChatView::new(&context.output, terminal);
            session.take_up_runs().await?;
            let mut chat = Chat {
                arguments,
                context,
                proof,
                view,
                runs: RunLines::new(),
                after: None,
                random: Random::from_system(),
            };
            chat.history(session).await?;
            chat.talk(session, lines).await
        })
        .await
}

/// A conversation at this command.
struct Chat<'a> {
    arguments: &'a ChatArgs,
    context: &'a Context,
    proof: OwnerProof,
    view: ChatView<'a>,
    runs: RunLines,
    /// The last event that was shown.
    after: Option<u64>,
    random: Random,
}

impl Chat<'_> {
    fn path(&self, rest: &str) -> String {
        let (channel, agent) = (&self.arguments.channel, self.context.agent());
        format!("/v1/conversations/{channel}{rest}?agent={agent}")
    }

    async fn history(&mut self, session: &mut Session) -> Result<(), CliError> {
        // More than are shown, to know where new ones begin: many entries of a turn under way are no events.
        let path = format!("{}&limit={}", self.path(""), self.arguments.history.max(MIN_READ));
        let earlier: Vec<ChatEvent> = session.ask(&Call::get(path)).await?;
        self.after = earlier.last().map(|event| event.id);
        let (before, shown) = earlier.split_at(earlier.len().saturating_sub(self.arguments.history));
        for event in before {
            self.view.track(event);
        }
        for event in shown {
            self.view.earlier(event)?;
        }
        Ok(())
    }

    /// Until the input ends and nothing is under way.
    async fn talk(&mut self, session: &mut Session, mut lines: mpsc::Receiver<TypedLine>) -> Done {
        let mut has_input = true;
        loop {
            let mut events = session.events(&self.path("/events"), self.after).await?;
            // Those of the history, or of a host that is gone.
            for run in self.view.running() {
                self.runs.follow(run, session);
            }
            self.view.prompt();
            loop {
                if !has_input && self.view.is_quiet() {
                    return Ok(CommandExit::Ok);
                }
                tokio::select! {
                    biased;
                    event = events.next() => {
                        let Some(event) = event else { break };
                        self.after = event.id.or(self.after);
                        // An event of a newer host that this client does not know: nothing it could show.
                        let Ok(event) = serde_json::from_str::<ChatEvent>(&event.data) else { continue };
                        self.runs.take(&event, session);
                        self.view.show(&event)?;
                    }
                    line = self.runs.next() => self.view.run_line(&line),
                    line = lines.recv(), if has_input => match line {
                        Some(TypedLine::Text(text)) => {
                            self.view.typed();
                            match text.trim().is_empty() {
                                true => self.view.prompt(),
                                false => self.send(session, text).await?,
                            }
                        }
                        Some(TypedLine::Failed(refusal)) => return Err(refusal.into()),
                        None => has_input = false,
                    },
                }
            }
            if !session.succeed().await? {
                self.context.output.say("the host stopped");
                return Ok(CommandExit::TryLater);
            }
            session.take_up_runs().await?;
        }
    }

    async fn send(&mut self, session: &mut Session, text: String) -> Result<(), CliError> {
        let message = NewChatMessage {
            agent: self.context.agent(),
            channel: self.arguments.channel.clone(),
            peer: None,
            text,
            // A host that ends before it answers gets the same message once more, under the same key.
            key: Some(format!("line-{:016x}{:016x}", self.random.next_u64(), self.random.next_u64())),
        };
        let call = Call::post("/v1/messages", &message)?.with(self.proof.clone());
        match session.ask::<MessageReply>(&call).await {
            Ok(accepted) => self.view.sent(accepted.event),
            Err(refusal) => self.view.refused(&refusal)?,
        }
        Ok(())
    }
}
