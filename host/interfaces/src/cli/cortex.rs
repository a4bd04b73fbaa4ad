//! `motor cortex`: how an agent reflects (SPEC CX-6 to CX-10).

mod guidance;
mod reflector;

use std::fmt::Write as _;

use agent::{CortexStatus, ReflectReply, ReflectRequest};
use base::text::Foreign;
use clap::{Args, Subcommand};
use cortex::{Belief, CycleOutcome, GuidanceRecord, ReflectionRecord, SoulDrift, TokenUse, UsedReflector};
use ledger::PeerId;

use super::Done;
use super::consent::unasked;
use super::context::Context;
use crate::client::Call;
use crate::exit::CommandExit;
use crate::http::CortexSwitch;
use crate::output::table::TextTable;
use crate::output::text;

/// Characters of a text of the model on the screen.
const MAX_SHOWN: usize = 300;

/// Subcommands of `motor cortex`.
#[derive(Debug, Subcommand)]
pub(super) enum CortexCommand {
    /// Show whether it reflects, with which model, and its latest cycle
    Status,
    /// List the beliefs that steer the agent now
    Beliefs,
    /// List the promises with a time that reflections found, and their state
    Commitments,
    /// Close a commitment that was kept
    Done(guidance::KeyArgs),
    /// Close a commitment that is void
    Drop(guidance::KeyArgs),
    /// List the advice of reflections to the agent
    Directives,
    /// Remove a directive from the agent's prompt
    Dismiss(guidance::KeyArgs),
    /// List the latest signals: overdue commitments, drift from `SOUL.md`
    Signals(HistoryArgs),
    /// List the latest cycles with their effects, the newest first
    History(HistoryArgs),
    /// Reflect now; costs one model call
    Reflect(ReflectArgs),
    /// Reflect again after `off`
    On,
    /// Stop reflecting until `on`; peers are assessed by hand meanwhile
    Off,
    /// List, approve and withdraw reflectors: components that build the prompts and read the replies
    #[command(subcommand)]
    Reflector(reflector::ReflectorCommand),
}

/// Arguments of `motor cortex history`.
#[derive(Debug, Args)]
pub(super) struct HistoryArgs {
    /// Number of entries to list
    #[arg(long, default_value_t = 50, value_name = "N")]
    limit: usize,
}

/// Arguments of `motor cortex reflect`.
#[derive(Debug, Args)]
pub(super) struct ReflectArgs {
    /// Peer to look at beside those with new activity; repeatable
    #[arg(long = "peer", value_name = "PEER")]
    peers: Vec<PeerId>,
}

pub(super) async fn run(command: CortexCommand, context: &Context) -> Done {
    context
        .with_host(async |session| {
            let agent = context.agent();
            match command {
                CortexCommand::Status => {
                    let status: CortexStatus = session.ask(&Call::get(format!("/v1/cortex?agent={agent}"))).await?;
                    context.answer(&status, || show(&status))?;
                }
                CortexCommand::Beliefs => {
                    let path = format!("/v1/cortex/beliefs?agent={agent}");
                    let beliefs: Vec<Belief> = session.ask(&Call::get(path)).await?;
                    context.answer(&beliefs, || list(&beliefs, context.output.columns))?;
                }
                CortexCommand::History(HistoryArgs { limit }) => {
                    let path = format!("/v1/cortex/history?agent={agent}&limit={limit}");
                    let records: Vec<ReflectionRecord> = session.ask(&Call::get(path)).await?;
                    context.answer(&records, || history(&records))?;
                }
                CortexCommand::Reflect(ReflectArgs { peers }) => {
                    let request = ReflectRequest { agent, peers };
                    let call = Call::post("/v1/cortex/reflections", &request)?.with(unasked(context).await?);
                    // A second host must not pay for the same cycle again.
                    let reply: ReflectReply = session.ask_once(&call).await?;
                    context.answer(&reply, || cycle(&reply.record))?;
                    if reply.reflected.is_none() {
                        return Ok(CommandExit::Failed);
                    }
                }
                CortexCommand::Commitments => guidance::commitments(session, context).await?,
                CortexCommand::Done(arguments) => guidance::close(arguments, true, session, context).await?,
                CortexCommand::Drop(arguments) => guidance::close(arguments, false, session, context).await?,
                CortexCommand::Directives => guidance::directives(session, context).await?,
                CortexCommand::Dismiss(arguments) => guidance::dismiss(arguments, session, context).await?,
                CortexCommand::Signals(HistoryArgs { limit }) => guidance::signals(limit, session, context).await?,
                CortexCommand::Reflector(command) => return reflector::run(command, session, context).await,
                CortexCommand::On | CortexCommand::Off => {
                    let switch = CortexSwitch { agent, enabled: matches!(command, CortexCommand::On) };
                    let call = Call::post("/v1/cortex/switch", &switch)?.with(unasked(context).await?);
                    let status: CortexStatus = session.ask(&call).await?;
                    context.answer(&status, || state(&status))?;
                }
            }
            Ok(CommandExit::Ok)
        })
        .await
}

fn state(status: &CortexStatus) -> String {
    let CortexStatus { agent, enabled, switched_off, is_reflecting, .. } = status;
    match (enabled, switched_off, is_reflecting) {
        (true, _, true) => format!("{agent}: on, a reflection is under way"),
        (true, _, false) => format!("{agent}: on"),
        (false, true, _) => format!("{agent}: off; `motor cortex on` switches it on"),
        (false, false, _) => format!("{agent}: off by `cortex.enabled`"),
    }
}

fn show(status: &CortexStatus) -> String {
    let CortexStatus {
        model,
        problems,
        activity,
        beliefs,
        open_commitments,
        directives,
        drift,
        last_cycle,
        settings,
        ..
    } = status;
    let model = model.as_deref().unwrap_or("none");
    let mut shown = format!(
        "{}\nmodel: {model}\nreflector: {}\nsince the last cycle: {} interactions, {} new peers, {} runs\nbeliefs: {beliefs} of {}\ncommitments: {open_commitments} open\ndirectives: {directives}\nanswers to peers that are considered first: {}",
        state(status),
        settings.reflector.as_ref().map_or("bundled", |name| name.as_str()),
        activity.interactions,
        activity.new_peers,
        activity.runs,
        settings.max_beliefs,
        settings.consult.as_str()
    );
    if let Some(SoulDrift { finding, cycle, .. }) = drift {
        // Writing to a string cannot fail.
        write!(shown, "\ndrift from SOUL.md (cycle {cycle}): {}", Foreign(finding).visible(MAX_SHOWN)).ok();
    }
    for problem in problems {
        // Writing to a string cannot fail.
        write!(shown, "\nproblem: {}", Foreign(problem).visible(MAX_SHOWN)).ok();
    }
    if let Some(record) = last_cycle {
        write!(shown, "\n{}", cycle(record)).ok();
    }
    shown
}

fn list(beliefs: &[Belief], columns: usize) -> String {
    if beliefs.is_empty() {
        return "no beliefs".to_owned();
    }
    let mut table = TextTable::new(&["KEY", "PEER", "CONFIRMED", "BELIEF"]);
    for Belief { key, value, peer, confirmed_at, .. } in beliefs {
        let peer = peer.as_ref().map_or_else(|| "-".to_owned(), ToString::to_string);
        table.row([key.clone(), peer, text::seconds(*confirmed_at), Foreign(value).visible(MAX_SHOWN)]);
    }
    table.render(columns)
}

fn history(records: &[ReflectionRecord]) -> String {
    if records.is_empty() {
        return "no cycles".to_owned();
    }
    records.iter().map(cycle).collect::<Vec<_>>().join("\n")
}

fn cycle(record: &ReflectionRecord) -> String {
    let ReflectionRecord { cycle, triggers, started_at, peers_shown, reflector, tokens, outcome, .. } = record;
    let triggers: Vec<_> = triggers.iter().map(|trigger| trigger.as_str()).collect();
    let mut shown = format!(
        "cycle {cycle}, {} ({}): {peers_shown} peers, {}{}",
        text::seconds(*started_at),
        triggers.join("+"),
        used(tokens),
        reflector.as_ref().map(named).unwrap_or_default()
    );
    let mut line = |words: &str| {
        // Writing to a string cannot fail.
        write!(shown, "\n  {}", Foreign(words).visible(MAX_SHOWN)).ok();
    };
    match outcome {
        CycleOutcome::Skipped { code, reason } => line(&format!("skipped ({}): {reason}", code.as_str())),
        CycleOutcome::Applied {
            assessed,
            beliefs_added,
            beliefs_reaffirmed,
            beliefs_revised,
            beliefs_expired,
            refused,
            summary,
            guidance: GuidanceRecord { commitments_made, commitments_closed, directives, drift },
        } => {
            for assessed in assessed {
                let cortex::AssessedPeer { peer, proposed, trust, info_score } = assessed;
                line(&format!("{peer}: trust {trust:+} (proposed {proposed:+}), info {info_score}/10"));
            }
            for (words, keys) in [
                ("new beliefs", beliefs_added),
                ("reaffirmed", beliefs_reaffirmed),
                ("revised", beliefs_revised),
                ("ended", beliefs_expired),
                ("new commitments", commitments_made),
                ("closed commitments", commitments_closed),
                ("directives", directives),
            ] {
                if !keys.is_empty() {
                    line(&format!("{words}: {}", keys.join(", ")));
                }
            }
            if let Some(finding) = drift {
                line(&format!("drift from SOUL.md: {finding}"));
            }
            for refused in refused {
                line(&format!("left out: {refused}"));
            }
            if !summary.is_empty() {
                line(summary);
            }
        }
    }
    shown
}

fn named(reflector: &UsedReflector) -> String {
    let name = reflector.name.as_ref().map_or("bundled", |name| name.as_str());
    let hash = reflector.hash.map(|hash| format!(" {}", hash.short())).unwrap_or_default();
    format!(", reflector {name}{hash}")
}

fn used(tokens: &TokenUse) -> String {
    let TokenUse { estimated_input, input, output } = tokens;
    match (input, output) {
        (None, None) => format!("about {estimated_input} tokens"),
        (input, output) => {
            let count = |tokens: &Option<u64>| tokens.map_or_else(|| "?".to_owned(), |tokens| tokens.to_string());
            format!("{} + {} tokens (estimated {estimated_input})", count(input), count(output))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_models_stays_on_its_line() {
        let record: ReflectionRecord = serde_json::from_value(serde_json::json!({
            "cycle": 3, "triggers": ["new_peer", "owner"], "startedAt": 0, "durationMs": 5, "peersShown": 1,
            "activity": { "interactions": 0, "incoming": 0, "newPeers": 0, "overdue": 0, "modelReplies": 0, "tokens": 0,
                "toolCalls": 0, "toolFailures": 0 },
            "tokens": { "estimatedInput": 900, "input": 800, "output": 70 },
            "outcome": { "status": "applied", "assessed": [{ "peer": "mai", "proposed": 10, "trust": 3, "infoScore": 1 }],
                "beliefsAdded": ["mai-is-late"], "beliefsReaffirmed": [], "beliefsRevised": [], "beliefsExpired": [],
                "refused": ["belief `x`: no"], "summary": "late\n\u{1b}[2Jagain" },
        }))
        .unwrap();
        let shown = cycle(&record);
        assert_eq!(shown.lines().count(), 5, "{shown}");
        // Of an earlier version: it had no reflector.
        assert!(shown.contains("(new_peer+owner): 1 peers, 800 + 70 tokens (estimated 900)\n"), "{shown}");
        let named = |reflector: serde_json::Value| named(&serde_json::from_value(reflector).unwrap());
        assert_eq!(named(serde_json::json!({})), ", reflector bundled");
        assert_eq!(named(serde_json::json!({ "name": "careful" })), ", reflector careful");
        assert!(shown.contains("mai: trust +3 (proposed +10), info 1/10"), "{shown}");
        assert!(shown.ends_with("late \u{fffd}[2Jagain"), "{shown}");
    }
}
