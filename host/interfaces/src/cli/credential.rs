//! `motor credential`: secrets that runs may use and nothing displays (SPEC VAULT-2). A value comes from a prompt or
//! from standard input: never from an argument, which every process on the machine could read.

use std::io::{IsTerminal as _, Read as _};

use agent::SetCredential;
use base::{CredentialName, Refusal, RefusalCode};
use clap::Subcommand;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde_json::json;
use vault::{CredentialInfo, CredentialSource};

use super::Done;
use super::consent::{confirm, unasked};
use super::context::{Context, usage};
use crate::client::Call;
use crate::exit::CommandExit;
use crate::output::table::TextTable;
use crate::words::card::Card;

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
                    context.answer(&json!({ "name": name, "set": true, "warnings": kept.warnings }), || {
                        format!("{name} is set; write {} where it belongs", name.placeholder())
                    })?;
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
                    context.answer(&json!({ "name": name, "deleted": true }), || format!("{name} is forgotten"))?;
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
            CredentialSource::Vault => "vault",
            CredentialSource::Environment => "environment",
        };
        let sent = if credential.domains.is_empty() { "nowhere".to_owned() } else { credential.domains.join(", ") };
        let raw = if credential.raw { "; components may see it" } else { "" };
        table.row([
            credential.name.to_string(),
            from.to_owned(),
            credential.skill.clone().unwrap_or_else(|| "all".to_owned()),
            format!("{sent}{raw}"),
        ]);
    }
    table.render(columns)
}
