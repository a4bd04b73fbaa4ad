//! `motor owner`: the token that stands for the owner (SPEC CONSENT-1).
//!
//! A new token is made and sealed here, where the passphrase is typed: the host gets the finished file and never sees a
//! passphrase. Every change makes a new token, because the old one may have been read before.

use base::{Refusal, RefusalCode, Secret, Timestamp};
use clap::Subcommand;
use consent::{ConsentError, FileState, OwnerPassphrase, OwnerStatus, OwnerToken, TokenFile};
use zeroize::Zeroizing;

use super::answers::PrintedToken;
use super::consent::{at, declined, file, given, gone, nobody, show, terminal, unseal, yes};
use super::context::Context;
use super::terminal::Terminal;
use super::{CliError, Done};
use crate::client::{Call, OwnerProof};
use crate::exit::CommandExit;
use crate::http::NewToken;
use crate::output::text;
use crate::session::Session;
use crate::words::card::Card;

/// Subcommands of `motor owner`.
#[derive(Debug, Subcommand)]
pub(super) enum OwnerCommand {
    /// Show how the owner's token is kept
    Status,
    /// Seal it with a passphrase, so that other programs of the same user cannot consent
    Seal,
    /// Remove the passphrase from the token
    Unseal,
    /// Replace it with a new one; the old one is refused at once
    Rotate,
    /// Print it, for `MOTOR_OWNER_TOKEN` in unattended use
    Token,
}

/// How the new token is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TokenForm {
    Plain,
    Sealed,
}

pub(super) async fn run(command: OwnerCommand, context: &Context) -> Done {
    context
        .with_host(async |session| {
            let status: OwnerStatus = session.ask(&Call::get("/v1/owner")).await?;
            match command {
                OwnerCommand::Status => {
                    context.answer(&status, || told(&status))?;
                    Ok(CommandExit::Ok)
                }
                OwnerCommand::Token => print(context).await,
                OwnerCommand::Seal => replace(TokenForm::Sealed, session, context).await,
                OwnerCommand::Unseal => replace(TokenForm::Plain, session, context).await,
                OwnerCommand::Rotate => {
                    let kept = if status.sealed { TokenForm::Sealed } else { TokenForm::Plain };
                    replace(kept, session, context).await
                }
            }
        })
        .await
}

fn told(status: &OwnerStatus) -> String {
    let kept = match (status.since, status.sealed) {
        (None, _) => "the host knows no token of the owner: nobody can consent".to_owned(),
        (Some(since), true) => format!("sealed with a passphrase since {}", since_when(since)),
        (Some(since), false) => format!("in plain since {}: programs of this user can read it", since_when(since)),
    };
    let file = match status.file {
        FileState::Good => "the one that the host knows",
        FileState::Missing if status.sealed => "missing: restore `config/owner.token` from a backup",
        FileState::Missing => "missing: the next host makes a new token",
        FileState::Other => {
            "not the one that the host knows: restore `config/owner.token` from a backup, or, when it was never sealed, \
             delete it and start the host again, which makes a new token"
        }
        _ => "not usable: it has to be a file of its owner alone (`chmod 600`), with the token in it",
    };
    let refused = if status.refused > 0 {
        format!("\nrefused   {} since the host started", status.refused)
    } else {
        String::new()
    };
    format!("token     {kept}\nfile      {file}{refused}")
}

fn since_when(at: Timestamp) -> String {
    text::seconds(at)
}

/// Prints the token, after a person at the terminal said that it may be seen.
async fn print(context: &Context) -> Done {
    let terminal = terminal("printing the token")?;
    let card = Card::new("print the owner's token?").with(
        "means",
        "whoever has it can consent to everything in your name: answer runs, approve actions, allow domains, set \
         credentials",
    );
    show(&terminal, &card, context).await?;
    if !yes(&terminal, "print it? [y/N] ").await? {
        return Err(declined().into());
    }
    let token = unseal(file(context)?, &terminal).await?;
    if context.output.is_json() {
        context.output.print_json(&PrintedToken { token: token.expose() })?;
    } else {
        context.output.print_trusted(token.expose())?;
    }
    Ok(CommandExit::Ok)
}

async fn replace(kept: TokenForm, session: &mut Session, context: &Context) -> Done {
    let (word, passphrase) = match (given(context)?, kept) {
        (Some(word), TokenForm::Plain) => (word, None),
        // A passphrase is typed at the terminal, even with a token from the environment.
        (_, kept) => {
            let terminal = Terminal::open().ok_or_else(nobody)?;
            let card = match kept {
                TokenForm::Sealed => Card::new("make a new owner's token, sealed with a passphrase?").with(
                    "means",
                    "the old token is refused at once; whoever consents at a terminal types the passphrase; without it \
                     nobody can consent in this home any more",
                ),
                TokenForm::Plain => Card::new("make a new owner's token, without a passphrase?").with(
                    "means",
                    "the old token is refused at once; every program of this user can read the new one, and consent",
                ),
            };
            show(&terminal, &card, context).await?;
            if !yes(&terminal, "do it? [y/N] ").await? {
                return Err(declined().into());
            }
            let word = at(&terminal, context).await?;
            let passphrase = if kept == TokenForm::Sealed { Some(choose(&terminal).await?) } else { None };
            (word, passphrase)
        }
    };
    let token = OwnerToken::random().map_err(Refusal::from)?;
    let file = match passphrase {
        None => TokenFile::plain(token.clone()),
        Some(passphrase) => {
            let token = token.clone();
            let sealing = tokio::task::spawn_blocking(move || TokenFile::sealed(&token, &passphrase));
            let sealed = sealing.await.unwrap_or(Err(ConsentError::System { action: "sealing the token" }));
            sealed.map_err(Refusal::from)?
        }
    };
    let status = send(&token, &file, word, session, context).await?;
    context.answer(&status, || told(&status))?;
    Ok(CommandExit::Ok)
}

/// Replaces the token. If the host's answer was lost, the request is sent again with a token that is refused by then:
/// the content of the file then tells whether the change was made.
async fn send(
    token: &OwnerToken,
    new: &TokenFile,
    word: OwnerProof,
    session: &mut Session,
    context: &Context,
) -> Result<OwnerStatus, CliError> {
    let body = NewToken { token: token.expose().to_owned(), file: new.text().expose().clone() };
    let call = Call::post("/v1/owner/token", &body)?.with(word);
    let (_token, _file) = (Zeroizing::new(body.token), Zeroizing::new(body.file));
    match session.ask(&call).await {
        Ok(status) => Ok(status),
        Err(refusal) if refusal.code == RefusalCode::ConsentNeeded => match file(context) {
            Ok(found) if found.hash() == new.hash() => Ok(session.ask(&Call::get("/v1/owner")).await?),
            _ => Err(refusal.into()),
        },
        Err(refusal) => Err(refusal.into()),
    }
}

/// A new passphrase, typed twice.
async fn choose(terminal: &Terminal) -> Result<OwnerPassphrase, Refusal> {
    let first = terminal.ask_secret("new passphrase (16 characters or more): ").await.map_err(|error| gone(&error))?;
    let chosen = OwnerPassphrase::new(Secret::new(first.expose().clone()))?;
    let again = terminal.ask_secret("the same again: ").await.map_err(|error| gone(&error))?;
    if first.expose() != again.expose() {
        return Err(Refusal::new(RefusalCode::InvalidRequest, "the passphrases differ: nothing was changed"));
    }
    Ok(chosen)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_says_what_to_do() {
        for (sealed, since, file, refused, words) in [
            (false, true, FileState::Good, 0, &["in plain since 1970", "programs of this user"][..]),
            (true, true, FileState::Good, 2, &["sealed", "refused   2"]),
            (true, true, FileState::Missing, 0, &["from a backup"]),
            (false, true, FileState::Missing, 0, &["new token"]),
            (false, true, FileState::Other, 0, &["not the one"]),
            (false, false, FileState::Unusable, 0, &["nobody can consent", "chmod 600"]),
        ] {
            let since = since.then(|| Timestamp::from_millis(1_000));
            let text = told(&OwnerStatus { sealed, since, file, refused });
            assert!(words.iter().all(|word| text.contains(word)), "{text}");
        }
    }
}
