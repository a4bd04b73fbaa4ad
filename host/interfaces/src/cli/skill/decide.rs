//! The owner's decisions about a skill: `motor skill approve`, `motor skill update` (SPEC CONSENT-1).
//!
//! Each asks once, and shows all that is decided. The very bytes and powers that were shown are sent, so that nothing
//! can be put in their place while the owner reads.

use agent::api::skills::{ApprovalQuestion, ApproveRequest, PolicyBasis, UpdateRequest};
use base::text::{did_you_mean, nearest};
use base::{Refusal, RefusalCode};
use clap::Args;
use skills::policy::PolicyChange;
use skills::{Policy, SkillStatus, SkillSummary};

use super::super::Done;
use super::super::consent::{confirm, given};
use super::super::context::{Context, usage};
use super::super::credential::decision_about;
use super::fetch;
use super::grant::{GrantedArgs, exactly};
use crate::client::Call;
use crate::exit::CommandExit;
use crate::output::text;
use crate::session::Session;
use crate::words::approval::{granted, question_card};
use crate::words::card::{Card, Tone};
use crate::words::facts::{self, NOTHING};
use crate::words::review::shell;

/// Arguments of `motor skill approve`.
#[derive(Debug, Args)]
pub(in crate::cli) struct ApproveArgs {
    /// Its name, or its place as `motor skill list` shows it
    skill: String,
    /// Start from the powers its author asks for, even if a policy was approved before
    #[arg(long)]
    proposed: bool,
    #[command(flatten)]
    granted: GrantedArgs,
}

/// Arguments of `motor skill update`.
#[derive(Debug, Args)]
pub(in crate::cli) struct UpdateArgs {
    /// Its name, or its place
    #[arg(required_unless_present = "all")]
    skill: Option<String>,
    /// Every skill whose source is recorded
    #[arg(long, conflicts_with = "skill")]
    all: bool,
    /// Only compare with the source, and change nothing
    #[arg(long)]
    check: bool,
    #[command(flatten)]
    granted: GrantedArgs,
    /// Domains they may also reach
    #[arg(long, value_delimiter = ',', value_name = "DOMAINS", conflicts_with = "domains")]
    add_domain: Vec<String>,
    /// Domains they may reach no more
    #[arg(long, value_delimiter = ',', value_name = "DOMAINS", conflicts_with = "domains")]
    remove_domain: Vec<String>,
}

/// Runs the command `motor skill approve`.
pub(super) async fn approve(arguments: ApproveArgs, session: &mut Session, context: &Context) -> Done {
    let ApproveArgs { skill, proposed, granted: flags } = arguments;
    let asked = ApproveRequest { skill, hash: None, policy: flags.change()?, proposed, shown: None, saved: Vec::new() };
    let question: ApprovalQuestion = session.ask(&Call::post("/v1/skills/questions", &asked)?).await?;
    // With the token from the environment the card is not read.
    let is_read = given(context)?.is_none();
    if !is_read && !proposed {
        named_alone(&question, &asked.policy)?;
    }
    let word = confirm(&question_card(&question), context).await?;
    let saved = question.saved.iter().map(decision_about).collect();
    let request = ApproveRequest { hash: Some(question.hash), shown: Some(question.policy.clone()), saved, ..asked };
    let approved: SkillSummary = session.ask(&Call::post("/v1/skills/approvals", &request)?.with(word)).await?;
    for warning in &question.warnings {
        context.output.warn(&text::quoted(warning));
    }
    if !is_read {
        let card = granted(
            Card::new(format!("granted to the {} `{}`", question.place.noun(), question.name)),
            &question.policy,
        );
        for row in card.render(context.output.err_columns, context.output.err) {
            context.output.say_trusted(&row);
        }
    }
    let called = shell(&request.skill);
    context.answer(&approved, || {
        let use_it = match question.place.is_tool() {
            true => format!("`motor act --tools {} TASK` can call it", question.name),
            false => format!("`motor act --skill {called} TASK` works by it"),
        };
        format!("{} is {}; {use_it}", question.name, approved.status)
    })?;
    Ok(CommandExit::Ok)
}

/// Runs the command `motor skill update`: the powers if some are named, otherwise the files from their source.
pub(super) async fn update(arguments: UpdateArgs, session: &mut Session, context: &Context) -> Done {
    let UpdateArgs { skill, all, check, granted: flags, add_domain, remove_domain } = arguments;
    let change = flags.change()?;
    let has_powers = change != PolicyChange::default() || !add_domain.is_empty() || !remove_domain.is_empty();
    match skill {
        Some(skill) if has_powers && !check => {
            powers(skill, change, (&add_domain, &remove_domain), session, context).await
        }
        _ if has_powers => {
            let reason = "powers are changed of one skill, and not together with its files";
            Err(usage(reason, "leave `--all` and `--check` out, or the powers").into())
        }
        skill => fetch::fetch(skill.filter(|_| !all), check, session, context).await,
    }
}

async fn powers(
    skill: String,
    mut change: PolicyChange,
    (add_domain, remove_domain): (&[String], &[String]),
    session: &mut Session,
    context: &Context,
) -> Done {
    // Asked as a question, as for an approval: a review request would complete a review, even if the change is refused.
    let unchanged = PolicyChange::default();
    let saved = Vec::new();
    let asked =
        ApproveRequest { skill: skill.clone(), hash: None, policy: unchanged, proposed: false, shown: None, saved };
    let question: ApprovalQuestion = session.ask(&Call::post("/v1/skills/questions", &asked)?).await?;
    if question.status != SkillStatus::Approved {
        let reason = format!("the skill is {}, so there is no policy in force", question.status);
        let remedy = format!("approve it with the powers it is to have: `motor skill approve {}`", shell(&skill));
        return Err(Refusal::new(RefusalCode::SkillUntrusted, reason).with_remedy(remedy).into());
    }
    let before = question.policy;
    if !add_domain.is_empty() || !remove_domain.is_empty() {
        change.domains = Some(domains(&before, add_domain, remove_domain)?);
    }
    let after = change.clone().apply(before.clone());
    let card = granted(changed_card(&question.name.to_string(), &before, &after), &after);
    let card = card.with("hash", question.hash.hex());
    let word = confirm(&card, context).await?;
    let request = UpdateRequest { skill: skill.clone(), policy: exactly(&after) };
    let updated: SkillSummary = session.ask(&Call::post("/v1/skills/updates", &request)?.with(word)).await?;
    context.answer(&updated, || format!("the policy of {} is changed; it stays {}", question.name, updated.status))?;
    Ok(CommandExit::Ok)
}

/// That an approval without a person at a terminal grants only powers that its command names, or earlier ones.
fn named_alone(question: &ApprovalQuestion, named: &PolicyChange) -> Result<(), Refusal> {
    let alone = named.clone().apply(Policy::default());
    let Policy { tools, domains, writes, required_credentials, .. } = &question.policy;
    let beyond = named.tools.is_none() && !tools.is_empty()
        || named.domains.is_none() && !domains.is_empty()
        || named.writes.is_none() && !writes.is_empty()
        || *required_credentials != alone.required_credentials;
    if question.basis != PolicyBasis::Proposal || !beyond {
        return Ok(());
    }
    let reason = "its author asks for powers, and no person at a terminal has read them";
    let remedy = "`--proposed` grants them; `--tools`, `--domains`, `--writes` and `--credentials` name others";
    Err(Refusal::new(RefusalCode::ConsentNeeded, reason).with_remedy(remedy))
}

/// The domains of a policy with some more and some fewer.
fn domains(policy: &Policy, more: &[String], fewer: &[String]) -> Result<Vec<String>, Refusal> {
    if let Some(unknown) = fewer.iter().find(|domain| !policy.domains.contains(domain)) {
        let near = nearest(unknown, policy.domains.iter().map(|domain| (domain.as_str(), text::quoted(domain))));
        let reason = format!("`{}` is not among its domains{}", text::quoted(unknown), did_you_mean(near));
        return Err(usage(reason, format!("they are: {}", policy.domains.join(", "))));
    }
    let kept = policy.domains.iter().filter(|domain| !fewer.contains(domain));
    let new = more.iter().filter(|domain| !policy.domains.contains(domain));
    Ok(kept.chain(new).cloned().collect())
}

/// The card with the powers that a change of policy adds and removes.
fn changed_card(name: &str, before: &Policy, after: &Policy) -> Card {
    let mut card = Card::new(format!("change what the skill `{name}` may do?"));
    let all = |policy: &Policy| facts::powers(policy).into_iter().chain(facts::bounds(policy)).collect::<Vec<_>>();
    let (before, after) = (all(before), all(after));
    let of = |kinds: &[(&'static str, Vec<String>)], label: &str| {
        kinds.iter().find(|(kind, _)| *kind == label).map(|(_, lines)| lines.clone()).unwrap_or_default()
    };
    let mut label = "changed";
    let labels = after.iter().chain(&before).map(|(label, _)| *label);
    let mut seen: Vec<&str> = Vec::new();
    for kind in labels {
        if seen.contains(&kind) {
            continue;
        }
        seen.push(kind);
        let (old, new) = (of(&before, kind), of(&after, kind));
        let added =
            new.iter().filter(|line| !old.contains(line)).map(|line| (Tone::Alarm, format!("+ {kind}: {line}")));
        let removed =
            old.iter().filter(|line| !new.contains(line)).map(|line| (Tone::Calm, format!("- {kind}: {line}")));
        for (tone, line) in added.chain(removed) {
            card = card.toned(tone, std::mem::take(&mut label), line);
        }
    }
    if label.is_empty() { card } else { card.toned(Tone::Calm, label, NOTHING) }
}
