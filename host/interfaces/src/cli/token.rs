//! `motor token`: tokens of other programs for the HTTP API (SPEC API-1).

use std::time::Duration;

use base::TokenName;
use clap::{Args, Subcommand, ValueEnum};
use consent::{ApiToken, NewApiToken, TokenScope};

use super::Done;
use super::consent::{confirm, unasked};
use super::context::Context;
use crate::client::Call;
use crate::duration;
use crate::exit::CommandExit;
use crate::http::CreatedToken;
use crate::output::table::TextTable;
use crate::output::text;
use crate::words::card::Card;

/// Subcommands of `motor token`.
#[derive(Debug, Subcommand)]
pub(super) enum TokenCommand {
    /// Make a token for a program and print it, this once
    Create(CreateArgs),
    /// List the tokens: names, never their text
    List,
    /// Revoke a token: it is refused at once
    Revoke {
        /// Name of the token
        name: TokenName,
    },
}

/// Arguments of `motor token create`.
#[derive(Debug, Args)]
pub(super) struct CreateArgs {
    /// Name of the token, such as the program that gets it
    #[arg(long)]
    name: TokenName,
    /// `read`: look at runs, signals and skills; `agent`: also delegate, follow and cancel. With `--agent` only for that
    /// agent
    #[arg(long, value_enum)]
    scope: ScopeArg,
    /// Time until it is refused, such as `30d` or `8h` [default: never]
    #[arg(long, value_name = "TIME", value_parser = lifetime)]
    expires: Option<Duration>,
}

/// A scope as it is typed.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum ScopeArg {
    Read,
    Agent,
}

pub(super) async fn run(command: TokenCommand, context: &Context) -> Done {
    context
        .with_host(async |session| {
            match command {
                TokenCommand::Create(arguments) => {
                    let CreateArgs { name, scope, expires } = arguments;
                    let (agent, expires_in_ms) = (context.globals.agent.clone(), expires.map(duration::millis));
                    let new = NewApiToken { name, scope: scope.into(), agent, expires_in_ms };
                    let word = confirm(&card(&new), context).await?;
                    let created: CreatedToken = session.ask(&Call::post("/v1/tokens", &new)?.with(word)).await?;
                    if context.output.is_json() {
                        context.output.print_json(&created)?;
                    } else {
                        context.output.print_trusted(&created.token)?;
                    }
                }
                TokenCommand::List => {
                    let tokens: Vec<ApiToken> = session.ask(&Call::get("/v1/tokens")).await?;
                    context.answer(&tokens, || list(&tokens, context.output.columns))?;
                }
                TokenCommand::Revoke { name } => {
                    let word = unasked(context).await?;
                    let call = Call::delete(format!("/v1/tokens/{name}")).with(word);
                    let revoked: ApiToken = session.ask(&call).await?;
                    context.answer(&revoked, || format!("revoked {}", revoked.name))?;
                }
            }
            Ok(CommandExit::Ok)
        })
        .await
}

impl From<ScopeArg> for TokenScope {
    fn from(scope: ScopeArg) -> Self {
        match scope {
            ScopeArg::Read => Self::Read,
            ScopeArg::Agent => Self::Agent,
        }
    }
}

/// A number of days, or a duration of at most one day.
fn lifetime(text: &str) -> Result<Duration, String> {
    match text.strip_suffix('d').map(str::parse::<u32>) {
        Some(Ok(days @ 1..=3_650)) => Ok(Duration::from_secs(u64::from(days) * 24 * 60 * 60)),
        Some(_) => Err("give 1 to 3650 days, such as `30d`".to_owned()),
        None => duration::parse(text).map_err(|error| error.to_string()),
    }
}

fn card(new: &NewApiToken) -> Card {
    let powers = match new.scope {
        TokenScope::Agent => "delegate tasks, run programs, follow and cancel runs, at the cost of their energy",
        _ => "look at runs with their steps and results, at signals and skills",
    };
    let agent = new.agent.as_ref().map_or_else(|| "every agent of this home".to_owned(), ToString::to_string);
    let expires = new
        .expires_in_ms
        .map_or_else(|| "never".to_owned(), |millis| format!("in {}", text::age(Duration::from_millis(millis))));
    Card::new(format!("make the token {} for another program?", new.name))
        .with("may", format!("{powers}; it consents to nothing"))
        .with("for", agent)
        .with("expires", expires)
}

fn list(tokens: &[ApiToken], columns: usize) -> String {
    if tokens.is_empty() {
        return "no tokens: `motor token create --name NAME --scope agent` makes one".to_owned();
    }
    let mut table = TextTable::new(&["NAME", "SCOPE", "AGENT", "CREATED", "EXPIRES"]);
    for token in tokens {
        table.row([
            token.name.to_string(),
            token.scope.as_str().to_owned(),
            token.agent.as_ref().map_or_else(|| "all".to_owned(), ToString::to_string),
            text::seconds(token.created_at),
            token.expires_at.map_or_else(|| "never".to_owned(), text::seconds),
        ]);
    }
    table.render(columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lifetimes_are_days_or_durations() {
        assert_eq!(lifetime("30d"), Ok(Duration::from_secs(30 * 86_400)));
        assert_eq!(lifetime("8h"), Ok(Duration::from_secs(8 * 3_600)));
        for text in ["0d", "3651d", "-1d", "d", "1.5d", "soon", "25h"] {
            assert!(lifetime(text).is_err(), "{text}");
        }
    }
}
