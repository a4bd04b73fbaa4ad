//! A saved credential is used by no run before the owner agrees, is known to every scrubber, and replaces nothing.

use std::collections::BTreeMap;

use base::{RefusalCode, TestClock};

use super::*;
use crate::VaultConfig;

const VALUE: &str = "sk-live-0123456789";

struct Home {
    vault: Vault,
    clock: Arc<TestClock>,
    _directory: tempfile::TempDir,
}

fn home() -> Home {
    let directory = tempfile::tempdir().unwrap();
    let clock = Arc::new(TestClock::at(Timestamp::from_millis(7)));
    let vault = Vault::open(VaultParts {
        store: Store::open(&directory.path().join("state")).unwrap(),
        clock: clock.clone(),
        directory: directory.path().join("config"),
        key: None,
        keyring: false,
        variables: BTreeMap::from([("VAULT_FROM_OUTSIDE".to_owned(), "outside-value-1".to_owned())]),
        config: VaultConfig { pending_hours: 1, ..VaultConfig::default() },
    });
    Home { vault, clock, _directory: directory }
}

fn name(text: &str) -> CredentialName {
    CredentialName::parse(text).unwrap()
}

fn run(text: &str) -> base::RunId {
    base::RunId::parse(text).unwrap()
}

fn new(text: &str, value: &str, of: &str) -> NewPending {
    NewPending {
        name: name(text),
        skill: "mail".to_owned(),
        value: Secret::new(value.to_owned()),
        domains: vec!["api.mail.dev".to_owned()],
        run: run(of),
    }
}

async fn refused(vault: &Vault, new: NewPending) -> RefusalCode {
    vault.save(new).await.unwrap_err().code
}

#[tokio::test]
async fn a_saved_credential_is_usable_by_its_skill_once_it_is_accepted() {
    let Home { vault, .. } = home();
    let before = vault.scrubber().unwrap();
    vault.save(new("key", VALUE, "run_1")).await.unwrap();
    // Known to scrubbers, granted to none, listed apart.
    assert_eq!(vault.scrubber().unwrap().text(format!("x {VALUE}")), "x <credential:key>");
    assert_eq!(before.text(VALUE.to_owned()), VALUE);
    assert_eq!(vault.for_run(&[name("key")], Some("mail")).unwrap_err().code, RefusalCode::CredentialsNeeded);
    assert!(vault.list().unwrap().iter().all(|info| info.source == CredentialSource::Environment));
    let pending = vault.pending().await.unwrap();
    let facts = pending[0].pending.clone().unwrap();
    assert_eq!((facts.run_id, facts.bytes, facts.expired), (run("run_1"), 18, false));
    assert!(!format!("{pending:?}").contains("0123456789"));

    let shown = pending[0].set_at;
    let other = Some(Timestamp::from_millis(99));
    assert_eq!(vault.accept(&name("key"), "mail", other).await.unwrap_err().code, RefusalCode::NotFound);
    assert_eq!(vault.accept(&name("key"), "bank", shown).await.unwrap_err().code, RefusalCode::NotFound);
    vault.accept(&name("key"), "mail", shown).await.unwrap();
    let secrets = vault.for_run(&[name("key")], Some("mail")).unwrap();
    let granted = secrets.get("key").unwrap();
    assert_eq!((granted.value.expose().as_str(), &*granted.domains[0]), (VALUE, "api.mail.dev"));
    assert!(vault.for_run(&[name("key")], None).is_err());
    assert_eq!(vault.accept(&name("key"), "mail", shown).await.unwrap_err().code, RefusalCode::NotFound);
    assert!(vault.pending().await.unwrap().is_empty());
}

#[tokio::test]
async fn nothing_is_replaced_and_the_same_is_kept_once() {
    let Home { vault, .. } = home();
    vault.save(new("key", VALUE, "run_1")).await.unwrap();
    vault.save(new("key", VALUE, "run_1")).await.unwrap();
    assert_eq!(vault.pending().await.unwrap().len(), 1);
    assert_eq!(refused(&vault, new("key", "another-value-2", "run_1")).await, RefusalCode::IllegalState);
    assert_eq!(refused(&vault, new("key", VALUE, "run_2")).await, RefusalCode::IllegalState);
    // The value of another credential, and names that are set.
    assert_eq!(refused(&vault, new("second", VALUE, "run_1")).await, RefusalCode::InvalidRequest);
    assert_eq!(refused(&vault, new("from-outside", "another-value-2", "run_1")).await, RefusalCode::IllegalState);
    let set = |text: &str, skill: Option<&str>| NewCredential {
        name: name(text),
        skill: skill.map(str::to_owned),
        value: Secret::new("the-owners-value-3".to_owned()),
        domains: Vec::new(),
        raw: false,
    };
    vault.set(set("shared", None)).await.unwrap();
    vault.set(set("own", Some("mail"))).await.unwrap();
    vault.set(set("free", Some("bank"))).await.unwrap();
    assert_eq!(refused(&vault, new("shared", "another-value-4", "run_1")).await, RefusalCode::IllegalState);
    assert_eq!(refused(&vault, new("own", "another-value-5", "run_1")).await, RefusalCode::IllegalState);
    vault.save(new("free", "another-value-6", "run_1")).await.unwrap();
    // One that the owner sets meanwhile stays.
    vault.set(set("key", Some("mail"))).await.unwrap();
    assert_eq!(vault.accept(&name("key"), "mail", None).await.unwrap_err().code, RefusalCode::IllegalState);
}

#[tokio::test]
async fn values_that_are_no_keys_and_too_many_are_refused() {
    let Home { vault, .. } = home();
    for value in ["short", "line\nbreak-in-it", "bell-\u{7}-in-it", " padded-value-1", &"x9".repeat(1 << 19)] {
        assert_eq!(refused(&vault, new("key", value, "run_1")).await, RefusalCode::InvalidRequest, "{value:.20}");
    }
    for n in 0..MAX_PENDING {
        vault.save(new(&format!("key_{n}"), &format!("value-of-{n:05}"), "run_1")).await.unwrap();
    }
    assert_eq!(refused(&vault, new("one_more", "value-of-more", "run_1")).await, RefusalCode::Busy);
    vault.reject(&name("key_0"), "mail").await.unwrap();
    vault.save(new("one_more", "value-of-more", "run_1")).await.unwrap();
}

#[tokio::test]
async fn one_that_waits_too_long_leaves_a_note_and_then_nothing() {
    let Home { vault, clock, .. } = home();
    vault.save(new("key", VALUE, "run_1")).await.unwrap();
    clock.advance(Duration::from_secs(3_600));
    let pending = vault.pending().await.unwrap();
    assert!(pending[0].pending.as_ref().unwrap().expired);
    assert_eq!(vault.accept(&name("key"), "mail", None).await.unwrap_err().code, RefusalCode::NotFound);
    assert_eq!(vault.saved_by(&run("run_1"), &name("key"), "mail").unwrap().map(|_| ()), None);
    // The name is free again, and the note gives way.
    vault.save(new("key", "another-value-2", "run_2")).await.unwrap();
    assert!(!vault.pending().await.unwrap()[0].pending.as_ref().unwrap().expired);
    clock.advance(Duration::from_secs(7_200));
    vault.pending().await.unwrap();
    assert!(vault.pending().await.unwrap().len() <= 1);
    clock.advance(Duration::from_secs(7_200));
    assert!(vault.pending().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_scrubber_in_use_learns_a_value() {
    let scrubber = Arc::new(Scrubber::default());
    let mut stream = scrubber.stream();
    assert!(scrubber.is_empty());
    scrubber.learn(&name("key"), &Secret::new(VALUE.to_owned()));
    scrubber.learn(&name("key"), &Secret::new(VALUE.to_owned()));
    assert_eq!(scrubber.text(VALUE.to_owned()), "<credential:key>");
    assert_eq!(scrubber.secrets_in(VALUE.as_bytes()).len(), 1);
    let mut read = stream.push(VALUE.as_bytes());
    read.extend(stream.finish());
    assert_eq!(read, b"<credential:key>");
    scrubber.learn(&name("second"), &Secret::new("another-value-2".to_owned()));
    assert_eq!(scrubber.text(format!("{VALUE} another-value-2")), "<credential:key> <credential:second>");
}
