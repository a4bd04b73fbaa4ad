//! The owner's word on the command line (SPEC CONSENT-1): asked on the controlling terminal, or given beforehand with
//! `MOTOR_OWNER_TOKEN`. Never by a flag, and never from standard input.
//!
//! After a yes the token is read from the home, and its passphrase asked for when it is sealed. So a program that only
//! starts this one gets no further than the question.

use agent::Home;
use base::{Door, Refusal, RefusalCode};
use consent::{ConsentError, OwnerToken, TokenFile};

use super::card::Card;
use super::context::Context;
use super::terminal::Terminal;
use crate::client::{Call, Word};
use crate::output::Palette;

/// The variable that stands for the owner where nobody sits.
pub(super) const VARIABLE: &str = "MOTOR_OWNER_TOKEN";
/// How often a passphrase may be mistyped.
const TRIES: u32 = 3;
/// How often a question is put.
const QUESTIONS: u32 = 3;

/// Has the owner say yes to what the card says.
///
/// # Errors
/// `consent_needed` when nobody can be asked, or the answer is no.
pub(super) async fn confirm(card: &Card, context: &Context) -> Result<Word, Refusal> {
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

/// The owner's word for what takes rights away: it is not asked for, but it has to be the owner's.
///
/// # Errors
/// `consent_needed` when the token is sealed and nobody can be asked for its passphrase.
pub(super) async fn unasked(context: &Context) -> Result<Word, Refusal> {
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
    Ok(Word { door: Door::Token, token })
}

/// The call with the owner's token, if that is at hand without a question: then energy does not bind it (SPEC EN-3).
pub(super) fn signed(call: Call, context: &Context) -> Call {
    let opened = || {
        let file = file(context).ok().filter(|file| !file.is_sealed())?;
        Some(Word { door: Door::Token, token: open(file).ok()? })
    };
    match given(context).ok().flatten().or_else(opened) {
        Some(word) => call.with(word),
        None => call,
    }
}

/// The word of whoever sits at the terminal, after the question was answered there.
///
/// # Errors
/// When the token cannot be read, or the passphrase is not the one.
pub(super) async fn at(terminal: &Terminal, context: &Context) -> Result<Word, Refusal> {
    let token = match given(context)? {
        Some(word) => word.token,
        None => unseal(file(context)?, terminal).await?,
    };
    Ok(Word { door: Door::Terminal, token })
}

/// The word that was given beforehand.
///
/// # Errors
/// When it cannot be one.
pub(super) fn given(context: &Context) -> Result<Option<Word>, Refusal> {
    let Some(text) = (context.env)(VARIABLE).filter(|text| !text.is_empty()) else { return Ok(None) };
    let token = OwnerToken::parse(&text).ok_or_else(|| {
        Refusal::new(RefusalCode::ConsentNeeded, format!("what `{VARIABLE}` holds is not an owner's token"))
            .with_remedy("set it to what `motor owner token` prints, or unset it and be asked on the terminal")
    })?;
    Ok(Some(Word { door: Door::Token, token }))
}

/// Shows a card page by page.
///
/// # Errors
/// When the terminal is gone.
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

/// Asks for a yes. What is neither yes nor no is asked again; what stays unclear is no.
///
/// # Errors
/// When the terminal is gone.
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

/// The token's file.
///
/// # Errors
/// When there is none, or it cannot be used.
pub(super) fn file(context: &Context) -> Result<TokenFile, Refusal> {
    let home = Home::locate(context.globals.home.clone(), &*context.env)?;
    TokenFile::read(&home.config())?.ok_or_else(|| {
        Refusal::new(RefusalCode::ConsentNeeded, "the home has no file with the owner's token")
            .with_remedy("restore `config/owner.token` from a backup; `motor owner status` says more")
    })
}

/// The token in the file; the terminal is asked for the passphrase when there is one.
///
/// # Errors
/// When the passphrase is not the one.
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

/// Nobody can be asked.
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

/// The terminal went away while somebody was asked there.
pub(super) fn gone(error: &std::io::Error) -> Refusal {
    Refusal::new(RefusalCode::ConsentNeeded, format!("the terminal gave no answer: {error}"))
}

/// A thing that takes a person at a terminal, whatever token there is.
///
/// # Errors
/// When there is none.
pub(super) fn terminal(what: &str) -> Result<Terminal, Refusal> {
    Terminal::open().ok_or_else(|| {
        Refusal::new(RefusalCode::ConsentNeeded, format!("{what} takes a terminal, and there is none"))
            .with_remedy("run it in a terminal")
    })
}
