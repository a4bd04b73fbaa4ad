//! `motor credential`: secrets that runs may use and nothing displays (SPEC VAULT-2). A value comes from a prompt or
//! from standard input: never from an argument, which every process on the machine could read.

use std::io::{IsTerminal as _, Read as _};

use agent::{PendingDecision, SetCredential};
use base::{CredentialName, Refusal, RefusalCode};
use clap::Subcommand;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use vault::{CredentialInfo, CredentialSource};

use super::Done;
use super::answers::{AcceptedCredential, DeletedCredential, RejectedCredential, SetCredentialAnswer};
use super::consent::{confirm, unasked};
use super::context::{Context, usage};
use crate::client::Call;
use crate::exit::CommandExit;
use crate::output::table::TextTable;
use crate::output::text;
use crate::words::card::Card;
use crate::words::facts::saved;

/// The longest value that is read, in bytes. The vault has the last word.
const MAX_BYTES: u64 = 128 << 10;

/// Subcommands of `motor credential`.
#[derive(Debug, Subcommand)]
pub(super) enum CredentialCommand {
    /// Store a credential, encrypted. The value is asked for, or read from standard input
    Set {
        /// Its name: `<credential:NAME>` stands for it in tasks and requests
        name: CredentialName,
        /// A domain it may be sent to; more than one with commas or by repeating
        #[arg(long = "domain", value_delimiter = ',', value_name = "DOMAIN", required_unless_present = "no_domain")]
        domains: Vec<String>,
        /// It is sent nowhere: tools may only compute with it
        #[arg(long, conflicts_with = "domains")]
        no_domain: bool,
        /// Only for this skill
        #[arg(long, value_name = "SKILL")]
        skill: Option<String>,
        /// Let components of a run that is granted it see the value itself
        #[arg(long)]
        raw: bool,
    },
    /// List names, domains and sources; never values
    List,
    /// Agree to a credential that a run saved: later runs of its skill may use it
    Accept {
        /// Name of the credential
        name: CredentialName,
        /// That of this skill; needed if several skills have one of this name
        #[arg(long, value_name = "SKILL")]
        skill: Option<String>,
    },
    /// Remove a credential that a run saved
    Reject {
        /// Name of the credential
        name: CredentialName,
        /// That of this skill; needed if several skills have one of this name
        #[arg(long, value_name = "SKILL")]
        skill: Option<String>,
    },
    /// Delete a credential
    Delete {
        /// Name of the credential
        name: CredentialName,
        /// That of this skill
        #[arg(long, value_name = "SKILL")]
        skill: Option<String>,
    },
}

pub(super) async fn run(command: CredentialCommand, context: &Context) -> Done {
    match command {
        CredentialCommand::Set { name, domains, no_domain: _, skill, raw } => {
            let prompt = format!("value of {name}: ");
            let reading = tokio::task::spawn_blocking(move || value(&prompt));
            let value = reading.await.unwrap_or_else(|_| Err(unreadable("it broke off")))?;
            let request = SetCredential { name: name.clone(), value, domains, skill, raw };
            let card = card(&request);
            let call = Call::post("/v1/credentials", &request)?;
            context
                .with_host(async |session| {
                    let word = confirm(&card, context).await?;
                    let kept: StoreReply = session.ask(&call.with(word)).await?;
                    for warning in &kept.warnings {
                        context.output.warn(warning);
                    }
                    let set = SetCredentialAnswer { name: name.clone(), set: true, warnings: kept.warnings };
                    context.answer(&set, || format!("{name} is set; write {} where it belongs", name.placeholder()))?;
                    Ok(CommandExit::Ok)
                })
                .await
        }
        CredentialCommand::List => {
            context
                .with_host(async |session| {
                    let credentials: Vec<CredentialInfo> = session.ask(&Call::get("/v1/credentials")).await?;
                    if credentials.is_empty() && !context.output.is_json() {
                        context.output.say("no credentials; `motor credential set NAME --domain DOMAIN` keeps one");
                        return Ok(CommandExit::Ok);
                    }
                    context.answer(&credentials, || list(&credentials, context.output.columns))?;
                    Ok(CommandExit::Ok)
                })
                .await
        }
        CredentialCommand::Accept { name, skill } => {
            context
                .with_host(async |session| {
                    let all: Vec<CredentialInfo> = session.ask(&Call::get("/v1/credentials")).await?;
                    let shown = waiting(all, &name, skill.as_deref())?;
                    let word = confirm(&saved_card(&shown), context).await?;
                    let decision = decision_about(&shown);
                    let call = Call::post("/v1/credentials/pending/acceptances", &decision)?;
                    let accepted: CredentialInfo = session.ask(&call.with(word)).await?;
                    let answer = AcceptedCredential { name: name.clone(), skill: accepted.skill, accepted: true };
                    context.answer(&answer, || {
                        format!("{name} is accepted; later runs of {} may use it", decision.skill.unwrap_or_default())
                    })?;
                    Ok(CommandExit::Ok)
                })
                .await
        }
        CredentialCommand::Reject { name, skill } => {
            let decision = PendingDecision { name: name.clone(), skill, saved_at: None };
            let call = Call::post("/v1/credentials/pending/rejections", &decision)?;
            context
                .with_host(async |session| {
                    let word = unasked(context).await?;
                    let rejected: CredentialInfo = session.ask(&call.with(word)).await?;
                    let answer = RejectedCredential { name: name.clone(), skill: rejected.skill, rejected: true };
                    context.answer(&answer, || format!("{name} is rejected and removed"))?;
                    Ok(CommandExit::Ok)
                })
                .await
        }
        CredentialCommand::Delete { name, skill } => {
            let query = skill
                .as_deref()
                .map(|skill| format!("?skill={}", utf8_percent_encode(skill, NON_ALPHANUMERIC)))
                .unwrap_or_default();
            let call = Call::delete(format!("/v1/credentials/{name}{query}"));
            context
                .with_host(async |session| {
                    let word = unasked(context).await?;
                    session.ask::<serde_json::Value>(&call.with(word)).await?;
                    let answer = DeletedCredential { name: name.clone(), deleted: true };
                    context.answer(&answer, || format!("{name} is forgotten"))?;
                    Ok(CommandExit::Ok)
                })
                .await
        }
    }
}

/// The question before a credential is kept. Not even the length of its value is shown.
fn card(request: &SetCredential) -> Card {
    let to =
        if request.domains.is_empty() { "nowhere: for computing only".to_owned() } else { request.domains.join(", ") };
    let card = Card::new("keep a credential?").with("name", request.name.as_str()).with("sent to", to);
    let card = match &request.skill {
        Some(skill) => card.with("for", format!("the skill {skill}")),
        None => card,
    };
    if request.raw { card.with("seen by", "components of runs that are granted it") } else { card }
}

/// The one credential of that name that waits.
fn waiting(all: Vec<CredentialInfo>, name: &CredentialName, skill: Option<&str>) -> Result<CredentialInfo, Refusal> {
    let mut found = all.into_iter().filter(|info| {
        info.pending.as_ref().is_some_and(|facts| !facts.expired)
            && info.name == *name
            && skill.is_none_or(|skill| info.skill.as_deref() == Some(skill))
    });
    match (found.next(), found.next()) {
        (Some(only), None) => Ok(only),
        (Some(_), Some(_)) => {
            let reason = format!("credentials `{name}` of several skills wait");
            Err(Refusal::new(RefusalCode::IllegalState, reason).with_remedy("add `--skill SKILL`"))
        }
        (None, _) => Err(Refusal::new(RefusalCode::NotFound, format!("no saved credential `{name}` waits"))
            .with_remedy("`motor credential list` shows those that do")),
    }
}

pub(super) fn decision_about(shown: &CredentialInfo) -> PendingDecision {
    PendingDecision { name: shown.name.clone(), skill: shown.skill.clone(), saved_at: shown.set_at }
}

/// The question before a saved credential becomes usable.
fn saved_card(shown: &CredentialInfo) -> Card {
    Card::new("let later runs use a credential that a run saved?")
        .with("name", shown.name.as_str())
        .with("for", format!("the skill {}", text::quoted(shown.skill.as_deref().unwrap_or_default())))
        .with("sent to", text::quoted(&shown.domains.join(", ")))
        .with("saved", saved(shown))
}

#[derive(Debug, Deserialize)]
struct StoreReply {
    warnings: Vec<String>,
}

/// The value: typed where a person sits, else the whole of standard input without its last line break.
fn value(prompt: &str) -> Result<String, Refusal> {
    let stdin = std::io::stdin();
    let mut value = String::new();
    if stdin.is_terminal() {
        value = rpassword::prompt_password(prompt).map_err(|error| unreadable(&error.to_string()))?;
    } else {
        stdin.lock().take(MAX_BYTES + 1).read_to_string(&mut value).map_err(|error| unreadable(&error.to_string()))?;
        if value.ends_with('\n') {
            value.pop();
            if value.ends_with('\r') {
                value.pop();
            }
        }
    }
    if value.is_empty() {
        return Err(usage("the value is empty", "type it at the prompt, or write `… | motor credential set NAME …`"));
    }
    Ok(value)
}

fn unreadable(reason: &str) -> Refusal {
    Refusal::new(RefusalCode::InvalidRequest, format!("the value cannot be read: {reason}"))
}

fn list(credentials: &[CredentialInfo], columns: usize) -> String {
    let mut table = TextTable::new(&["NAME", "FROM", "FOR", "SENT TO"]);
    for credential in credentials {
        let from = match credential.source {
            _ if credential.pending.as_ref().is_some_and(|facts| facts.expired) => "expired",
            _ if credential.pending.is_some() => "pending",
            CredentialSource::Vault => "vault",
            CredentialSource::Environment => "environment",
        };
        let sent = if credential.domains.is_empty() { "nowhere".to_owned() } else { credential.domains.join(", ") };
        let raw = if credential.raw { "; components may see it" } else { "" };
        let note = if credential.pending.is_some() { format!("; {}", saved(credential)) } else { String::new() };
        table.row([
            credential.name.to_string(),
            from.to_owned(),
            credential.skill.clone().unwrap_or_else(|| "all".to_owned()),
            format!("{sent}{raw}{note}"),
        ]);
    }
    table.render(columns)
}
