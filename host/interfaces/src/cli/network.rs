//! `motor network`: the owner's decisions about domains, in force at once in the runs they are about (SPEC NET-3).

use agent::{Decision, DecisionLevel, DomainVerdict};
use base::{Refusal, RunId};
use clap::{Args, Subcommand};
use network::Shape;

use super::Done;
use super::answers::MadeDecision;
use super::consent::{confirm, unasked};
use super::context::{Context, usage};
use super::task::or_newest;
use crate::client::Call;
use crate::exit::CommandExit;
use crate::output::table::TextTable;
use crate::session::Session;
use crate::words::card::Card;

/// Subcommands of `motor network`.
#[derive(Debug, Subcommand)]
pub(super) enum NetworkCommand {
    /// Allow a run, or all runs of the agent, to reach a domain
    Allow {
        #[command(flatten)]
        about: DecisionScope,
        /// Also allow these requests after it has read from the web: all requests, if only a domain is named
        #[arg(long)]
        writes: bool,
    },
    /// Refuse a domain, even if something else allows it
    Deny {
        #[command(flatten)]
        about: DecisionScope,
    },
    /// Withdraw an earlier decision
    Forget {
        #[command(flatten)]
        about: DecisionScope,
    },
    /// List the decisions in force
    List,
}

/// The subject of a decision, and how long it lasts.
#[derive(Debug, Args)]
pub(super) struct DecisionScope {
    /// `example.com`, `*.example.com` or `*`, with `:PORT` if it is not 80 or 443; with `--writes` also requests, as in
    /// `'POST example.com/path'`
    pattern: Shape,
    /// For this run [default: the newest of the agent]
    #[arg(long, value_name = "RUN", conflicts_with_all = ["session", "always"])]
    run: Option<RunId>,
    /// For all runs of the agent, until the host ends
    #[arg(long, conflicts_with = "always")]
    session: bool,
    /// For all runs of the agent, for good
    #[arg(long)]
    always: bool,
}

impl DecisionScope {
    async fn decision(
        self,
        verdict: DomainVerdict,
        session: &mut Session,
        context: &Context,
    ) -> Result<Decision, Refusal> {
        let level = match (self.session, self.always) {
            (true, _) => DecisionLevel::Session,
            (_, true) => DecisionLevel::Always,
            _ => DecisionLevel::Run,
        };
        if level == DecisionLevel::Session && session.is_own() {
            let reason = "no host stays, so the session would end with this command";
            return Err(usage(reason, "take `--always`, or start `motor serve` in another terminal"));
        }
        let run = match level {
            DecisionLevel::Run => Some(or_newest(self.run, session, context).await?),
            _ => None,
        };
        let agent = context.agent();
        Ok(Decision { pattern: self.pattern, verdict, level, agent, run, decided_at: None, consent: None })
    }
}

pub(super) async fn run(command: NetworkCommand, context: &Context) -> Done {
    context
        .with_host(async |session| {
            let (about, verdict, forgotten) = match command {
                NetworkCommand::Allow { about, writes: false } => (about, DomainVerdict::Allow, false),
                NetworkCommand::Allow { about, writes: true } => (about, DomainVerdict::AllowWrites, false),
                NetworkCommand::Deny { about } => (about, DomainVerdict::Deny, false),
                NetworkCommand::Forget { about } => (about, DomainVerdict::Deny, true),
                NetworkCommand::List => {
                    let decisions: Vec<Decision> = session.ask(&Call::get("/v1/network/decisions")).await?;
                    if decisions.is_empty() && !context.output.is_json() {
                        context.output.say("no decisions; `motor network allow DOMAIN --run RUN` makes one");
                        return Ok(CommandExit::Ok);
                    }
                    context.answer(&decisions, || list(&decisions, context.output.columns))?;
                    return Ok(CommandExit::Ok);
                }
            };
            let decision = about.decision(verdict, session, context).await?;
            let path = if forgotten { "/v1/network/withdrawals" } else { "/v1/network/decisions" };
            let consent = match (verdict, forgotten) {
                // It takes something away: the owner's word, and no question.
                (DomainVerdict::Deny, false) => unasked(context).await?,
                _ => confirm(&card(&decision, forgotten, context), context).await?,
            };
            let made: Decision = session.ask(&Call::post(path, &decision)?.with(consent)).await?;
            context.answer(&MadeDecision { decision: &made, forgotten }, || {
                let what = if forgotten { "forgotten" } else { word(made.verdict) };
                format!("{} is {what} for {}", made.pattern, whose(&made))
            })?;
            Ok(CommandExit::Ok)
        })
        .await
}

/// The question before a decision is made or taken back.
fn card(decision: &Decision, forgotten: bool, context: &Context) -> Card {
    let title = match (forgotten, decision.verdict) {
        (true, _) => "take back what was decided about a domain?",
        (false, DomainVerdict::AllowWrites) if decision.pattern.is_whole_host() => {
            "let runs send everything to a domain, whatever they have read from the web?"
        }
        (false, DomainVerdict::AllowWrites) => "let runs send these requests, whatever they have read from the web?",
        (false, _) => "let runs reach a domain?",
    };
    let label = if decision.pattern.is_whole_host() { "domain" } else { "requests" };
    let card = Card::new(title).with(label, decision.pattern.to_string()).with("for", whose(decision));
    match &context.globals.home {
        Some(home) => card.with("home", home.display().to_string()),
        None => card,
    }
}

fn word(verdict: DomainVerdict) -> &'static str {
    match verdict {
        DomainVerdict::Allow => "allowed",
        DomainVerdict::AllowWrites => "allowed, writing included,",
        DomainVerdict::Deny => "refused",
    }
}

fn whose(decision: &Decision) -> String {
    match (&decision.run, decision.level) {
        (Some(run), _) => format!("run {run}"),
        (None, DecisionLevel::Session) => format!("agent {} until the host ends", decision.agent),
        (None, _) => format!("agent {} for good", decision.agent),
    }
}

fn list(decisions: &[Decision], columns: usize) -> String {
    let mut table = TextTable::new(&["DOMAIN", "DECISION", "FOR"]);
    for decision in decisions {
        let word = word(decision.verdict).trim_end_matches(',').to_owned();
        table.row([decision.pattern.to_string(), word, whose(decision)]);
    }
    table.render(columns)
}
