//! The gate against wrong tokens, lost and foreign files, and crashes while the token is replaced.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use base::{Refusal, RefusalCode, RunId, TestClock};
use store::Faults;

use super::*;
use crate::{ElicitedQuestion, OwnerPassphrase};

struct Home {
    directory: tempfile::TempDir,
}

impl Home {
    fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }

    fn config(&self) -> PathBuf {
        self.directory.path().join("config")
    }

    async fn open(&self) -> ConsentGate {
        self.open_on(Store::open(&self.directory.path().join("state")).unwrap()).await
    }

    async fn open_on(&self, store: Store) -> ConsentGate {
        let clock = Arc::new(TestClock::at(Timestamp::from_millis(1_000)));
        ConsentGate::open(store, clock, self.config()).await.unwrap()
    }

    fn file(&self) -> Option<TokenFile> {
        TokenFile::read(&self.config()).unwrap()
    }

    fn token(&self) -> OwnerToken {
        self.file().unwrap().open(|| Ok(passphrase())).unwrap()
    }
}

fn passphrase() -> Secret<String> {
    Secret::new("correct horse battery".to_owned())
}

fn claim(door: Door, token: &str) -> Claim {
    Claim { door, token: Some(Secret::new(token.to_owned())) }
}

fn of(token: &OwnerToken) -> Claim {
    claim(Door::Terminal, token.expose())
}

async fn opens(gate: &ConsentGate, token: &OwnerToken) -> bool {
    gate.admit(of(token)).await.is_ok()
}

fn sealed() -> Replacement {
    let token = OwnerToken::random().unwrap();
    let file = TokenFile::sealed(&token, &OwnerPassphrase::new(passphrase()).unwrap()).unwrap();
    Replacement { token, file }
}

fn plain() -> Replacement {
    let token = OwnerToken::random().unwrap();
    Replacement { file: TokenFile::plain(token.clone()), token }
}

#[tokio::test(start_paused = true)]
async fn the_owner_is_let_through_and_nobody_else() {
    let home = Home::new();
    let gate = home.open().await;
    let token = home.token();
    for door in [Door::Terminal, Door::Token, Door::Web, Door::Elicitation, Door::Message] {
        let consent = gate.admit(claim(door, token.expose())).await.unwrap();
        let expected = ConsentRecord { given_by: "owner".to_owned(), door, at: Timestamp::from_millis(1_000) };
        assert_eq!(ConsentRecord::from(consent), expected);
    }
    let other = OwnerToken::random().unwrap();
    for (claim, expected) in [
        (claim(Door::Model, token.expose()), "a model cannot consent"),
        (Claim { door: Door::Terminal, token: None }, "carries no token"),
        (claim(Door::Terminal, other.expose()), "not the one"),
        (claim(Door::Terminal, ""), "not the one"),
        (claim(Door::Terminal, &token.expose()[..75]), "not the one"),
        (claim(Door::Terminal, &token.expose()[12..]), "not the one"),
        (claim(Door::Token, &token.hash().to_string()), "not the one"),
    ] {
        let refusal: Refusal = gate.admit(claim).await.unwrap_err().into();
        assert_eq!(refusal.code, RefusalCode::ConsentNeeded, "{refusal:?}");
        assert!(refusal.reason.contains(expected) && refusal.remedy.is_some(), "{refusal:?}");
        assert!(!format!("{refusal:?}").contains(&token.expose()[12..]));
    }
    // Wrong attempts do not lock the owner out.
    assert!(opens(&gate, &token).await);
    assert_eq!(gate.status().refused, 5);
}

#[tokio::test]
async fn a_consent_given_in_a_message_is_recorded_as_such() {
    let home = Home::new();
    let gate = home.open().await;
    let consent = gate.admit(of(&home.token())).await.unwrap();
    let expected = ConsentRecord { door: Door::Message, ..ConsentRecord::from(consent.clone()) };
    assert_eq!(ConsentRecord::from(consent.by_message()), expected);
}

#[tokio::test]
async fn a_home_keeps_its_token_and_the_state_only_its_hash() {
    let home = Home::new();
    let token = {
        home.open().await;
        home.token()
    };
    let gate = home.open().await;
    assert_eq!(home.token().expose(), token.expose());
    assert!(opens(&gate, &token).await);
    let status = gate.status();
    assert_eq!((status.sealed, status.file, status.since.is_some()), (false, FileState::Good, true));
    drop(gate);
    assert!(!holds(&home.directory.path().join("state"), token.expose().as_bytes()));
    assert!(!holds(&home.directory.path().join("state"), &token.expose().as_bytes()[12..]));
}

fn holds(directory: &Path, needle: &[u8]) -> bool {
    fs::read_dir(directory).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() {
            return holds(&path, needle);
        }
        fs::read(&path).unwrap().windows(needle.len()).any(|window| window == needle)
    })
}

#[tokio::test(start_paused = true)]
async fn the_old_token_is_refused_as_soon_as_there_is_a_new_one() {
    let home = Home::new();
    let gate = home.open().await;
    let old = home.token();
    let new = plain();
    let token = new.token.clone();
    assert_eq!(gate.replace(of(&old), new).await.unwrap().file, FileState::Good);
    assert!(opens(&gate, &token).await && !opens(&gate, &old).await);
    assert_eq!(home.token().expose(), token.expose());
    // Who does not hold the token replaces nothing, nor does a file that holds another.
    assert!(gate.replace(of(&old), plain()).await.is_err());
    assert!(gate.replace(claim(Door::Model, token.expose()), plain()).await.is_err());
    let crossed = Replacement { token: OwnerToken::random().unwrap(), file: plain().file };
    assert!(matches!(gate.replace(of(&token), crossed).await, Err(ConsentError::Mismatch)));
    drop(gate);
    let gate = home.open().await;
    assert!(opens(&gate, &token).await && !opens(&gate, &old).await);
}

#[tokio::test]
async fn a_sealed_token_needs_its_passphrase_and_none_is_made_in_its_place() {
    let home = Home::new();
    let gate = home.open().await;
    let readable = home.token();
    let new = sealed();
    let token = new.token.clone();
    assert!(gate.replace(of(&readable), new).await.unwrap().sealed);
    // The readable token of before is worthless now.
    assert!(!opens(&gate, &readable).await && opens(&gate, &token).await);
    assert_eq!(home.token().expose(), token.expose());
    drop(gate);
    let file = fs::read(home.config().join(FILE_NAME)).unwrap();
    fs::remove_file(home.config().join(FILE_NAME)).unwrap();
    let gate = home.open().await;
    assert_eq!((gate.status().file, home.file().is_none()), (FileState::Missing, true));
    // Its holder is still the owner.
    assert!(opens(&gate, &token).await);
    // Another program's token in its place is refused.
    let planted = plain();
    create_file(&home.config(), FILE_NAME, planted.file.text().expose().as_bytes()).unwrap();
    drop(gate);
    let gate = home.open().await;
    assert_eq!(gate.status().file, FileState::Other);
    assert!(!opens(&gate, &planted.token).await && opens(&gate, &token).await);
    replace_file(&home.config(), FILE_NAME, &file).unwrap();
    assert_eq!(gate.status().file, FileState::Good);
    // And back.
    let new = plain();
    let unsealed = new.token.clone();
    assert!(!gate.replace(of(&token), new).await.unwrap().sealed);
    assert!(opens(&gate, &unsealed).await && !opens(&gate, &token).await);
}

#[tokio::test]
async fn a_file_that_does_not_hold_the_known_token_is_an_error_of_the_start() {
    let home = Home::new();
    let gate = home.open().await;
    gate.settle().await.unwrap();
    gate.replace(of(&home.token()), sealed()).await.unwrap();
    gate.settle().await.unwrap();
    fs::remove_file(home.config().join(FILE_NAME)).unwrap();
    assert!(matches!(gate.settle().await, Err(ConsentError::File { .. })), "the file is missing");
    create_file(&home.config(), FILE_NAME, plain().file.text().expose().as_bytes()).unwrap();
    assert!(matches!(gate.settle().await, Err(ConsentError::File { .. })), "it holds another token");
}

#[tokio::test]
async fn a_lost_file_in_plain_is_made_anew_and_the_old_token_refused() {
    let home = Home::new();
    drop(home.open().await);
    let lost = home.token();
    fs::remove_file(home.config().join(FILE_NAME)).unwrap();
    let gate = home.open().await;
    assert_eq!(gate.status().file, FileState::Good);
    assert!(opens(&gate, &home.token()).await && !opens(&gate, &lost).await);
}

#[tokio::test]
async fn a_home_whose_state_is_new_keeps_the_token_of_its_file() {
    for new in [plain(), sealed()] {
        let home = Home::new();
        create_file(&home.config(), FILE_NAME, new.file.text().expose().as_bytes()).unwrap();
        let gate = home.open().await;
        assert!(opens(&gate, &new.token).await);
        assert_eq!(gate.status().sealed, new.file.is_sealed());
    }
    // A token that cannot be read admits no one, and is not replaced.
    let home = Home::new();
    create_file(&home.config(), FILE_NAME, b"nonsense").unwrap();
    let gate = home.open().await;
    assert!(matches!(gate.admit(of(&OwnerToken::random().unwrap())).await, Err(ConsentError::Unset)));
    assert_eq!((gate.status().since, gate.status().file), (None, FileState::Unusable));
    assert_eq!(fs::read(home.config().join(FILE_NAME)).unwrap(), b"nonsense");
}

/// A store whose host dies at the nth commit.
#[derive(Debug)]
struct DiesAt(AtomicU32);

impl Faults for DiesAt {
    fn before_write(&self) -> io::Result<()> {
        match self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)) {
            Ok(_) => Ok(()),
            Err(_) => Err(io::Error::other("the host is gone")),
        }
    }
}

#[tokio::test]
async fn a_crash_while_it_is_replaced_leaves_a_token_that_opens() {
    for (lives, replaced) in [(0, false), (1, true), (2, true)] {
        for seal in [false, true] {
            let home = Home::new();
            drop(home.open().await);
            let old = home.token();
            let new = if seal { sealed() } else { plain() };
            let token = new.token.clone();
            let state = home.directory.path().join("state");
            let gate = home.open_on(Store::open_with(&state, Arc::new(DiesAt(AtomicU32::new(lives)))).unwrap()).await;
            assert_eq!(gate.replace(of(&old), new).await.is_ok(), lives == 2, "{lives}");
            drop(gate);
            let gate = home.open().await;
            let status = gate.status();
            assert_eq!((status.file, status.sealed), (FileState::Good, seal && replaced), "{lives}");
            assert_eq!((opens(&gate, &old).await, opens(&gate, &token).await), (!replaced, replaced), "{lives}");
            assert_eq!(home.token().hash(), if replaced { &token } else { &old }.hash(), "{lives}");
        }
    }
    // Between the first commit and the file: the host knew a token that does not exist, and forgets it.
    let home = Home::new();
    let gate = home.open().await;
    let (old, new) = (home.token(), plain());
    let known = gate.known().unwrap();
    gate.remember(KnownToken { next: Some(new.token.hash()), ..known }).await.unwrap();
    assert!(opens(&gate, &old).await);
    drop(gate);
    let gate = home.open().await;
    assert_eq!(gate.known().unwrap().next, None);
    assert!(opens(&gate, &old).await && !opens(&gate, &new.token).await);
}

#[tokio::test]
async fn a_disk_that_fails_keeps_the_old_token() {
    let home = Home::new();
    let gate = home.open().await;
    let old = home.token();
    // Nothing can be written beside the file while a directory stands where its draft goes.
    let draft = home.config().join(format!(".{FILE_NAME}.incomplete"));
    fs::create_dir(&draft).unwrap();
    fs::write(draft.join("x"), "x").unwrap();
    let new = plain();
    let token = new.token.clone();
    assert!(gate.replace(of(&old), new).await.is_err());
    assert!(opens(&gate, &old).await);
    fs::remove_dir_all(&draft).unwrap();
    drop(gate);
    let gate = home.open().await;
    assert!(opens(&gate, &old).await && !opens(&gate, &token).await);
}

#[tokio::test(start_paused = true)]
async fn a_ticket_is_for_one_question_and_one_client() {
    let home = Home::new();
    let gate = home.open().await;
    let (run, other) = (RunId::parse("run_1").unwrap(), RunId::parse("run_2").unwrap());
    let asked = ElicitedQuestion { run: &run, question: "ask_1", client: "token `a`" };
    let ticket = gate.elicit(asked).unwrap();
    let record = ConsentRecord::from(gate.elicited(asked, &ticket).unwrap());
    let at = Timestamp::from_millis(1_000);
    assert_eq!(record, ConsentRecord { given_by: "token `a`".to_owned(), door: Door::Elicitation, at });
    for foreign in [
        ElicitedQuestion { run: &other, ..asked },
        ElicitedQuestion { question: "ask_2", ..asked },
        ElicitedQuestion { client: "token `b`", ..asked },
    ] {
        assert!(matches!(gate.elicited(foreign, &ticket), Err(ConsentError::ForeignTicket)), "{foreign:?}");
    }
    for forged in ["", "ask_1", "ask_1.", &ticket[..ticket.len() - 1], &format!("{ticket}0"), &ticket.to_uppercase()] {
        assert!(matches!(gate.elicited(asked, forged), Err(ConsentError::ForeignTicket)), "{forged}");
    }
    // The next host knows it, and no longer once the token is another.
    drop(gate);
    let gate = home.open().await;
    gate.elicited(asked, &ticket).unwrap();
    gate.replace(of(&home.token()), plain()).await.unwrap();
    assert!(matches!(gate.elicited(asked, &ticket), Err(ConsentError::ForeignTicket)));
    // An owner who sealed it, or said so, is asked alone.
    let off = gate.with_config(ConsentConfig { elicitation: false });
    assert!(matches!(off.elicit(asked), Err(ConsentError::NoElicitation)));
    let gate = off.with_config(ConsentConfig::default());
    let ticket = gate.elicit(asked).unwrap();
    gate.replace(of(&home.token()), sealed()).await.unwrap();
    assert!(matches!(gate.elicit(asked), Err(ConsentError::Sealed)));
    assert!(matches!(gate.elicited(asked, &ticket), Err(ConsentError::Sealed)));
}
