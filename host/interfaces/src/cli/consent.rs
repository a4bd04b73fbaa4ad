//! The owner's word on the command line (SPEC CONSENT-1): asked on the controlling terminal, or given beforehand with
//! `MOTOR_OWNER_TOKEN`. Never by a flag, and never from standard input.
//!
//! After a yes the token is read from the home, and its passphrase asked for when it is sealed. So a program that only
//! starts this one gets no further than the question.

use agent::Home;
use base::{Door, Refusal, RefusalCode};
use consent::{ConsentError, OwnerToken, TokenFile};

use super::context::Context;
use super::terminal::Terminal;
use crate::client::{Call, OwnerProof};
use crate::output::Palette;
use crate::words::card::Card;

/// The variable that holds the owner's token where no person can be asked.
pub(super) const VARIABLE: &str = "MOTOR_OWNER_TOKEN";
/// How often a passphrase may be mistyped.
const TRIES: u32 = 3;
/// How often a question is put.
const QUESTIONS: u32 = 3;

/// Asks the owner to consent to the card.
///
/// # Errors
/// `consent_needed` if no terminal is available, or the answer is no.
pub(super) async fn confirm(card: &Card, context: &Context) -> Result<OwnerProof, Refusal> {
    if let Some(word) = given(context)? {
        return Ok(word);
    }
    let terminal = Terminal::open().ok_or_else(nobody)?;
    show(&terminal, card, context).await?;
    if !yes(&terminal, "yes or no? [y/N] ").await? {
        return Err(declined());
    }
    at(&terminal, context).await
}

/// The owner's word for an action that takes rights away: no question is asked, but the owner's token is needed.
///
/// # Errors
/// `consent_needed` if the token is sealed and no terminal is available for its passphrase.
pub(super) async fn unasked(context: &Context) -> Result<OwnerProof, Refusal> {
    if let Some(word) = given(context)? {
        return Ok(word);
    }
    let file = file(context)?;
    let token = if file.is_sealed() {
        let terminal = Terminal::open().ok_or_else(nobody)?;
        unseal(file, &terminal).await?
    } else {
        open(file)?
    };
    Ok(OwnerProof { door: Door::Token, token })
}

/// The call with the owner's token, if that is at hand without a question: then energy does not bind it (SPEC EN-3).
pub(super) fn signed(call: Call, context: &Context) -> Call {
    let opened = || {
        let file = file(context).ok().filter(|file| !file.is_sealed())?;
        Some(OwnerProof { door: Door::Token, token: open(file).ok()? })
    };
    match given(context).ok().flatten().or_else(opened) {
        Some(word) => call.with(word),
        None => call,
    }
}

/// The word of the person at the terminal, after they answered the question there.
///
/// # Errors
/// If the token cannot be read, or the passphrase is wrong.
pub(super) async fn at(terminal: &Terminal, context: &Context) -> Result<OwnerProof, Refusal> {
    let token = match given(context)? {
        Some(word) => word.token,
        None => unseal(file(context)?, terminal).await?,
    };
    Ok(OwnerProof { door: Door::Terminal, token })
}

/// The owner's word from the environment, if it is set.
///
/// # Errors
/// If its value is not an owner's token.
pub(super) fn given(context: &Context) -> Result<Option<OwnerProof>, Refusal> {
    let Some(text) = (context.env)(VARIABLE).filter(|text| !text.is_empty()) else { return Ok(None) };
    let token = OwnerToken::parse(&text).ok_or_else(|| {
        Refusal::new(RefusalCode::ConsentNeeded, format!("what `{VARIABLE}` holds is not an owner's token"))
            .with_remedy("set it to what `motor owner token` prints, or unset it and be asked on the terminal")
    })?;
    Ok(Some(OwnerProof { door: Door::Token, token }))
}

/// Shows a card page by page.
///
/// # Errors
/// If the terminal is gone.
pub(super) async fn show(terminal: &Terminal, card: &Card, context: &Context) -> Result<(), Refusal> {
    let (columns, height) = terminal.size();
    let palette = Palette::new(context.output.err.enabled());
    let rows = card.render(columns, palette);
    let page = height.saturating_sub(2).max(4);
    let all = rows.len();
    let mut shown = 0;
    for chunk in rows.chunks(page) {
        let text: String = chunk.iter().map(|row| format!("{row}\n")).collect();
        terminal.write(&text).map_err(|error| gone(&error))?;
        shown += chunk.len();
        if shown < all {
            let prompt = format!("-- {shown} of {all} lines: Enter for more, `s` for the question -- ");
            let said = terminal.ask(&prompt).await.map_err(|error| gone(&error))?;
            if said.is_none_or(|said| said.trim() == "s") {
                break;
            }
        }
    }
    Ok(())
}

/// Asks for a yes. An answer that is neither yes nor no is asked for again; if it stays unclear, it counts as no.
///
/// # Errors
/// If the terminal is gone.
pub(super) async fn yes(terminal: &Terminal, prompt: &str) -> Result<bool, Refusal> {
    for _ in 0..QUESTIONS {
        let said = terminal.ask(prompt).await.map_err(|error| gone(&error))?;
        match said.as_deref().map(str::trim).map(str::to_ascii_lowercase).as_deref() {
            Some("y" | "yes") => return Ok(true),
            Some("n" | "no" | "") | None => return Ok(false),
            Some(_) => {}
        }
    }
    Ok(false)
}

/// The file of the owner's token.
///
/// # Errors
/// If it is missing, or cannot be used.
pub(super) fn file(context: &Context) -> Result<TokenFile, Refusal> {
    let home = Home::locate(context.globals.home.clone(), &*context.env)?;
    TokenFile::read(&home.config())?.ok_or_else(|| {
        Refusal::new(RefusalCode::ConsentNeeded, "the home has no file with the owner's token")
            .with_remedy("restore `config/owner.token` from a backup; `motor owner status` says more")
    })
}

/// The token in the file; if it is sealed, the terminal is asked for the passphrase.
///
/// # Errors
/// If the passphrase is wrong.
pub(super) async fn unseal(file: TokenFile, terminal: &Terminal) -> Result<OwnerToken, Refusal> {
    if !file.is_sealed() {
        return open(file);
    }
    let mut tries = 1;
    loop {
        let passphrase =
            terminal.ask_secret("passphrase of the owner's token: ").await.map_err(|error| gone(&error))?;
        let file = file.clone();
        // A tenth of a second of work.
        let opening = tokio::task::spawn_blocking(move || file.open(|| Ok(passphrase)));
        let opened = opening.await.unwrap_or(Err(ConsentError::System { action: "opening the token" }));
        match opened {
            Err(ConsentError::Passphrase) if tries < TRIES => {
                tries += 1;
                terminal.write("that is not the passphrase\n").map_err(|error| gone(&error))?;
            }
            other => return Ok(other?),
        }
    }
}

fn open(file: TokenFile) -> Result<OwnerToken, Refusal> {
    Ok(file.open(|| Err(ConsentError::Passphrase))?)
}

/// The refusal if there is no terminal to ask at.
pub(super) fn nobody() -> Refusal {
    Refusal::new(RefusalCode::ConsentNeeded, "only the owner can do this, and there is no terminal to ask at")
        .with_remedy(format!(
            "run it in a terminal, or set `{VARIABLE}` for unattended use (`motor owner token` prints it)"
        ))
}

/// The owner said no.
pub(super) fn declined() -> Refusal {
    Refusal::new(RefusalCode::ConsentNeeded, "nothing was done: the answer was not yes")
}

/// The refusal if the terminal went away during a question.
pub(super) fn gone(error: &std::io::Error) -> Refusal {
    Refusal::new(RefusalCode::ConsentNeeded, format!("the terminal gave no answer: {error}"))
}

/// The terminal for an action that takes a person there, even with a token.
///
/// # Errors
/// If the process has no terminal.
pub(super) fn terminal(what: &str) -> Result<Terminal, Refusal> {
    Terminal::open().ok_or_else(|| {
        Refusal::new(RefusalCode::ConsentNeeded, format!("{what} takes a terminal, and there is none"))
            .with_remedy("run it in a terminal")
    })
}
