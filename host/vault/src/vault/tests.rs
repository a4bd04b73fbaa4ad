//! Values are returned only to those allowed, and no damaged record passes for a valid one.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use base::{RefusalCode, TestClock};
use serde_json::Value;
use store::Scan;

use super::*;
use crate::VaultConfig;

const VALUE: &str = "sk-live-0123456789";

/// A home in a temporary directory, and the inputs of its vault.
struct Home {
    dir: tempfile::TempDir,
    key: Option<&'static str>,
    variables: Vec<(&'static str, &'static str)>,
}

impl Home {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap(), key: None, variables: Vec::new() }
    }

    fn config(&self) -> std::path::PathBuf {
        self.dir.path().join("config")
    }

    fn store(&self) -> Store {
        Store::open(&self.dir.path().join("state")).unwrap()
    }

    fn vault(&self) -> Vault {
        let bound = BTreeMap::from([("token".to_owned(), vec!["api.example.com".to_owned()])]);
        Vault::open(VaultParts {
            store: self.store(),
            clock: Arc::new(TestClock::at(Timestamp::from_millis(7))),
            directory: self.config(),
            key: self.key.map(|key| Secret::new(key.to_owned())),
            keyring: false,
            variables: self.variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            config: VaultConfig { domains: bound, ..VaultConfig::default() },
        })
    }
}

fn name(text: &str) -> CredentialName {
    CredentialName::parse(text).unwrap()
}

fn new(text: &str, skill: Option<&str>, value: &str) -> NewCredential {
    NewCredential {
        name: name(text),
        skill: skill.map(str::to_owned),
        value: Secret::new(value.to_owned()),
        domains: vec!["*.example.com".to_owned()],
        raw: false,
    }
}

fn value_of(vault: &Vault, text: &str, skill: Option<&str>) -> Result<String, Refusal> {
    Ok(vault.for_run(&[name(text)], skill)?.get(text).unwrap().value.expose().clone())
}

fn files_with(dir: &Path, text: &str) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_with(&path, text));
        } else if fs::read(&path).unwrap().windows(text.len()).any(|window| window == text.as_bytes()) {
            found.push(path);
        }
    }
    found
}

#[tokio::test]
async fn a_credential_survives_reopening_and_is_nowhere_in_clear() {
    for key in [
        None,
        Some("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"),
        Some("correct horse battery staple"),
    ] {
        let home = Home { key, ..Home::new() };
        let vault = home.vault();
        vault.set(new("token", None, VALUE)).await.unwrap();
        assert_eq!(value_of(&vault, "token", None).unwrap(), VALUE);
        assert_eq!(vault.warnings().iter().any(|warning| warning.contains("credentials.key")), key.is_none());
        drop(vault);
        let vault = home.vault();
        assert_eq!(value_of(&vault, "token", Some("a-skill")).unwrap(), VALUE);
        let infos = vault.list().unwrap();
        assert_eq!(infos.len(), 1);
        assert_eq!((infos[0].name.as_str(), infos[0].set_at), ("token", Some(Timestamp::from_millis(7))));
        assert_eq!((infos[0].unreadable, &*infos[0].domains[0]), (false, "*.example.com"));
        let run = vault.for_run(&[name("token")], None).unwrap();
        assert!(!format!("{vault:?} {infos:?} {run:?}").contains("sk-live"));
        drop((vault, run));
        assert_eq!(files_with(home.dir.path(), VALUE), Vec::<std::path::PathBuf>::new());
        assert!(!files_with(home.dir.path(), "*.example.com").is_empty(), "the search finds what is in clear");
    }
}

#[tokio::test]
async fn the_key_file_is_for_its_owner_only() {
    let home = Home::new();
    home.vault().set(new("token", None, VALUE)).await.unwrap();
    let file = home.config().join("credentials.key");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    let refusal = value_of(&home.vault(), "token", None).unwrap_err();
    assert!(refusal.reason.contains("read by others") && refusal.remedy.unwrap().contains("chmod 600"));
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(value_of(&home.vault(), "token", None).unwrap(), VALUE);
    fs::rename(&file, home.config().join("away")).unwrap();
    let refusal = value_of(&home.vault(), "token", None).unwrap_err();
    assert!(refusal.reason.contains("is missing"), "{refusal}");
    let refusal = home.vault().set(new("other", None, VALUE)).await.unwrap_err();
    assert!(refusal.reason.contains("is missing"), "no other key is made: {refusal}");
    assert!(!file.exists());
    for content in ["", "not a key\n"] {
        fs::write(&file, content).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        assert!(value_of(&home.vault(), "token", None).unwrap_err().reason.contains("holds no key"));
    }
}

#[tokio::test]
async fn a_wrong_key_is_refused_and_makes_no_other() {
    let right = Some("correct horse battery staple");
    let mut home = Home { key: right, ..Home::new() };
    home.vault().set(new("token", None, VALUE)).await.unwrap();
    for wrong in [None, Some("wrong horse battery staple"), Some("weak"), Some(&*"0123456789abcdef".repeat(4).leak())] {
        home.key = wrong;
        let vault = home.vault();
        for refusal in [
            value_of(&vault, "token", None).unwrap_err(),
            vault.set(new("token", None, VALUE)).await.unwrap_err(),
            vault.set(new("another", None, VALUE)).await.unwrap_err(),
        ] {
            assert_eq!(refusal.code, RefusalCode::CredentialsNeeded, "{refusal}");
            assert!(refusal.remedy.is_some() && refusal.reason.contains("cannot be decrypted"), "{refusal}");
        }
        let infos = vault.list().unwrap();
        assert!(infos.len() == 1 && infos[0].unreadable);
        assert!(vault.for_run(&[], None).is_ok(), "a run that needs none goes on");
        assert!(!home.config().join("credentials.key").exists(), "it does not fall through to a file");
    }
    home.key = right;
    assert_eq!(value_of(&home.vault(), "token", None).unwrap(), VALUE);
    // The remedy: without the key, credentials can still be listed and deleted, and then there is a new key.
    home.key = Some("another horse battery staple");
    let vault = home.vault();
    vault.delete(&name("token"), None).await.unwrap();
    vault.set(new("token", None, "sk-live-anew-1234")).await.unwrap();
    assert_eq!(value_of(&vault, "token", None).unwrap(), "sk-live-anew-1234");
}

#[tokio::test]
async fn a_weak_key_is_refused_with_the_reason() {
    let home = Home { key: Some("too short"), ..Home::new() };
    let refusal = home.vault().set(new("token", None, VALUE)).await.unwrap_err();
    assert!(refusal.reason.contains("16 characters") && refusal.remedy.is_some(), "{refusal}");
    assert!(home.vault().list().unwrap().is_empty());
}

#[tokio::test]
async fn the_skills_own_comes_before_shared_before_the_environment() {
    let variables = vec![("VAULT_TOKEN", "of-the-environment"), ("VAULT_ONLY_HERE", "environment-only-1")];
    let home = Home { variables, ..Home::new() };
    let vault = home.vault();
    let found = |skill| value_of(&vault, "token", skill).unwrap();
    assert_eq!(found(None), "of-the-environment");
    vault.set(new("token", None, "of-all-skills")).await.unwrap();
    assert_eq!((found(None), found(Some("mail"))), ("of-all-skills".into(), "of-all-skills".into()));
    vault.set(new("token", Some("mail"), "of-the-skill")).await.unwrap();
    assert_eq!((found(None), found(Some("mail"))), ("of-all-skills".into(), "of-the-skill".into()));
    assert_eq!(found(Some("mailer")), "of-all-skills");

    let run = vault.for_run(&[name("Only-Here"), name("Only-Here")], None).unwrap();
    assert_eq!(run.granted().len(), 1);
    let granted = run.get("Only-Here").unwrap();
    assert!(granted.value.expose() == "environment-only-1" && granted.domains.is_empty() && !granted.raw);
    // A credential that was not granted is unavailable, and yet is scrubbed.
    assert!(run.get("token").is_none());
    for (value, placeholder) in [
        ("of-the-skill", "token"),
        ("of-all-skills", "token"),
        ("of-the-environment", "token"),
        ("environment-only-1", "only_here"),
    ] {
        assert_eq!(run.scrubber().text(format!("[{value}]")), format!("[<credential:{placeholder}>]"));
    }
    vault.delete(&name("token"), Some("mail")).await.unwrap();
    assert_eq!(found(Some("mail")), "of-all-skills");
    let listed: Vec<_> = vault.list().unwrap().into_iter().map(|info| (info.name.to_string(), info.source)).collect();
    let environment = CredentialSource::Environment;
    assert_eq!(
        listed,
        [
            ("token".to_owned(), CredentialSource::Vault),
            ("only_here".to_owned(), environment),
            ("token".to_owned(), environment)
        ]
    );
    assert_eq!(vault.list().unwrap()[2].domains, ["api.example.com"]);
}

#[tokio::test]
async fn a_placeholder_that_is_shown_can_be_used_however_the_variable_was_asked_for() {
    let variables = vec![("VAULT_API_KEY", "environment-only-1")];
    let home = Home { variables, ..Home::new() };
    let run = home.vault().for_run(&[name("API-Key")], None).unwrap();
    let shown = run.scrubber().text("environment-only-1".to_owned());
    assert_eq!(shown, "<credential:api_key>");
    for spelling in ["api_key", "API-Key", "API_KEY"] {
        assert_eq!(run.get(spelling).unwrap().value.expose(), "environment-only-1", "{spelling}");
    }
    assert!(run.get("api_key2").is_none());
}

#[tokio::test]
async fn white_space_at_the_ends_is_refused_but_for_the_last_line_break_of_a_file() {
    let home = Home::new();
    let vault = home.vault();
    for padded in [" 0123456789", "0123456789 ", "0123456789\t", "0123456789\n", "\n0123\n456789\n", "0123\n456789 \n"]
    {
        let refusal = vault.set(new("token", None, padded)).await.unwrap_err();
        assert!(refusal.reason.contains("white space") && refusal.remedy.is_some(), "{padded:?}: {refusal}");
        assert!(!format!("{refusal:?}").contains("0123"));
    }
    assert!(vault.list().unwrap().is_empty());
    for (value, kept) in [
        ("0123 456789", "0123 456789"),
        ("-----BEGIN-----\n0123456789\n-----END-----\r\n\n", "-----BEGIN-----\n0123456789\n-----END-----"),
    ] {
        vault.set(new("token", None, value)).await.unwrap();
        assert_eq!(value_of(&vault, "token", None).unwrap(), kept);
    }
}

#[tokio::test]
async fn missing_credentials_are_all_named_with_their_commands() {
    let home = Home::new();
    let refusal = home.vault().for_run(&[name("a"), name("b"), name("a")], None).unwrap_err();
    assert_eq!(refusal.code, RefusalCode::CredentialsNeeded);
    assert_eq!(refusal.reason, "credentials `a` and `b` are not set");
    assert_eq!(
        refusal.remedy.unwrap(),
        "run `motor credential set a --domain DOMAIN` and `motor credential set b --domain DOMAIN`"
    );
    let refusal = home.vault().delete(&name("a"), Some("mail")).await.unwrap_err();
    assert_eq!(
        (refusal.code, &*refusal.reason),
        (RefusalCode::NotFound, "there is no credential `a` of the skill `mail`")
    );
}

#[tokio::test]
async fn values_that_cannot_be_kept_secret_are_refused() {
    let home = Home { variables: vec![("VAULT_SHORT", "short")], ..Home::new() };
    let vault = home.vault();
    for value in ["", "short", "nul\0nul\0nul", "aaaaaaaaaa"] {
        let refusal = vault.set(new("token", None, value)).await.unwrap_err();
        assert_eq!(refusal.code, RefusalCode::InvalidRequest, "{refusal}");
    }
    for skill in ["", "a\0b", &"s".repeat(129)] {
        assert!(vault.set(new("token", Some(skill), VALUE)).await.is_err());
    }
    assert!(!home.config().exists(), "no key was made");
    let refusal = value_of(&vault, "short", None).unwrap_err();
    assert!(refusal.reason.contains("fewer than 8 bytes"), "{refusal}");
    assert!(vault.list().unwrap()[0].unreadable && vault.warnings().len() == 2, "{:?}", vault.warnings());
}

/// Changes the record of a credential like an attacker who can write the state.
async fn tampered(home: &Home, change: impl FnOnce(&mut Value)) {
    let store = home.store();
    let key = records::key_of(&name("token"), None);
    let mut record: Value = store.get(Table::Vault, &key).unwrap().unwrap();
    change(&mut record);
    let mut batch = Batch::new();
    batch.put(Table::Vault, key, &record).unwrap();
    store.commit(batch).await.unwrap();
    store.close().await.unwrap();
}

#[tokio::test]
async fn a_record_that_was_changed_is_unreadable_and_never_skipped() {
    type Change = fn(&mut Value);
    let changes: [(&str, Change); 7] = [
        ("nothing", |_| {}),
        ("domains", |record| record["domains"] = serde_json::json!(["evil.example"])),
        ("raw", |record| record["raw"] = true.into()),
        ("name", |record| record["name"] = "other".into()),
        ("skill", |record| record["skill"] = "other".into()),
        ("value", |record| record["value"]["text"] = "AAAA".into()),
        ("shape", |record| *record = Value::Null),
    ];
    for (what, change) in changes {
        // The environment has one of the same name, which must not be used instead.
        let home = Home { variables: vec![("VAULT_TOKEN", "of-the-environment")], ..Home::new() };
        home.vault().set(new("token", None, VALUE)).await.unwrap();
        tampered(&home, change).await;
        let vault = home.vault();
        let is_readable = what == "nothing";
        assert_eq!(vault.list().unwrap()[0].unreadable, !is_readable, "{what}");
        match value_of(&vault, "token", None) {
            Ok(value) => assert!(is_readable && value == VALUE, "{what}"),
            Err(refusal) => {
                assert!(!is_readable, "{what}: {refusal}");
                assert_eq!(refusal.reason, "credential `token` is unreadable: set it again", "{what}");
            }
        }
        vault.set(new("token", None, VALUE)).await.unwrap();
        assert_eq!(value_of(&vault, "token", None).unwrap(), VALUE, "{what}: mended");
    }
}

#[tokio::test]
async fn a_record_that_was_moved_is_unreadable() {
    let home = Home::new();
    home.vault().set(new("token", Some("mail"), VALUE)).await.unwrap();
    let store = home.store();
    let moved: Value = store.get(Table::Vault, records::key_of(&name("token"), Some("mail"))).unwrap().unwrap();
    let mut batch = Batch::new();
    batch.put(Table::Vault, records::key_of(&name("token"), None), &moved).unwrap();
    store.commit(batch).await.unwrap();
    drop(store);
    let vault = home.vault();
    assert!(value_of(&vault, "token", None).is_err());
    assert_eq!(value_of(&vault, "token", Some("mail")).unwrap(), VALUE);
}

#[tokio::test]
async fn without_the_record_of_the_key_nothing_is_given_up() {
    let home = Home::new();
    home.vault().set(new("token", None, VALUE)).await.unwrap();
    let store = home.store();
    let mut batch = Batch::new();
    records::delete_key_record(&mut batch);
    store.commit(batch).await.unwrap();
    drop(store);
    let vault = home.vault();
    assert!(value_of(&vault, "token", None).unwrap_err().reason.contains("record of their key is missing"));
    assert!(vault.set(new("other", None, VALUE)).await.is_err());
    assert_eq!(vault.list().unwrap().len(), 1);
}

#[tokio::test]
async fn a_key_of_an_interrupted_first_time_is_used() {
    let home = Home::new();
    home.vault().set(new("token", None, VALUE)).await.unwrap();
    let file = fs::read(home.config().join("credentials.key")).unwrap();
    // The file was made, and then the host died before its first commit.
    let other = Home::new();
    fs::create_dir(other.config()).unwrap();
    fs::write(other.config().join("credentials.key"), &file).unwrap();
    fs::set_permissions(other.config().join("credentials.key"), fs::Permissions::from_mode(0o600)).unwrap();
    other.vault().set(new("token", None, VALUE)).await.unwrap();
    assert_eq!(fs::read(other.config().join("credentials.key")).unwrap(), file);
    assert_eq!(value_of(&other.vault(), "token", None).unwrap(), VALUE);
}

#[tokio::test]
async fn opening_looks_for_no_key_and_an_empty_vault_costs_nothing() {
    let home = Home::new();
    let vault = home.vault();
    assert!(vault.list().unwrap().is_empty() && vault.warnings().len() == 1);
    assert!(vault.scrubber().unwrap().is_empty());
    assert!(Arc::ptr_eq(&vault.scrubber().unwrap(), &vault.scrubber().unwrap()));
    assert!(!home.config().exists());
    assert_eq!(vault.inner.store.scan::<Value>(Table::Vault, &Scan::all()).unwrap(), []);
}

#[tokio::test]
async fn the_scrubber_follows_every_change() {
    let home = Home::new();
    let vault = home.vault();
    let text = || vault.scrubber().unwrap().text(format!("{VALUE} first-value second-value"));
    vault.set(new("token", None, "first-value")).await.unwrap();
    assert_eq!(text(), format!("{VALUE} <credential:token> second-value"));
    let old = vault.for_run(&[], None).unwrap();
    vault.set(new("token", None, "second-value")).await.unwrap();
    assert_eq!(text(), format!("{VALUE} first-value <credential:token>"));
    assert!(Arc::ptr_eq(&vault.scrubber().unwrap(), &vault.scrubber().unwrap()));
    vault.delete(&name("token"), None).await.unwrap();
    assert!(vault.scrubber().unwrap().is_empty());
    // An unused scrubber is wiped: the vault itself keeps none.
    vault.set(new("token", None, "third-value")).await.unwrap();
    let unused = Arc::downgrade(&vault.scrubber().unwrap());
    assert!(unused.upgrade().is_none());
    assert_eq!(text(), format!("{VALUE} first-value second-value"));
    // A run keeps its scrubber, whose patterns are wiped with the run.
    let weak = Arc::downgrade(old.scrubber());
    assert!(!old.scrubber().is_empty());
    drop(old);
    assert!(weak.upgrade().is_none());
}

#[tokio::test]
async fn many_first_times_at_once_make_one_key() {
    let home = Home::new();
    let vault = home.vault();
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..16 {
        let vault = vault.clone();
        tasks.spawn(async move { vault.set(new(&format!("token{n}"), None, &format!("{VALUE}-{n}"))).await });
    }
    while let Some(result) = tasks.join_next().await {
        result.unwrap().unwrap();
    }
    drop(vault);
    let vault = home.vault();
    for n in 0..16 {
        assert_eq!(value_of(&vault, &format!("token{n}"), None).unwrap(), format!("{VALUE}-{n}"));
    }
}

/// With a separate keyring, as in `key/keyring.rs`.
#[cfg(feature = "keyring")]
#[tokio::test]
#[ignore = "needs a session with a keyring"]
async fn the_key_in_the_keyring_is_the_only_one() {
    let home = Home { key: Some("correct horse battery staple"), ..Home::new() };
    let with_keyring = |keyring| {
        let mut vault = home.vault();
        Arc::get_mut(&mut vault.inner).unwrap().keyring = keyring;
        vault
    };
    with_keyring(true).set(new("token", None, VALUE)).await.unwrap();
    assert!(!home.config().exists());
    assert!(!with_keyring(true).list().unwrap()[0].unreadable);
    assert_eq!(value_of(&with_keyring(true), "token", None).unwrap(), VALUE);
    let refusal = value_of(&with_keyring(false), "token", None).unwrap_err();
    assert!(refusal.reason.contains("keyring"), "{refusal}");
    assert!(with_keyring(false).set(new("other", None, VALUE)).await.is_err());
}

#[tokio::test]
async fn variables_that_cannot_be_granted_are_not_looked_for() {
    let variables = vec![("VAULT_ZEROS", "00000000"), ("VAULT_CREDENTIAL", "credential"), ("VAULT_GOOD", VALUE)];
    let home = Home { variables, ..Home::new() };
    let scrubber = home.vault().scrubber().unwrap();
    let text = format!("credential 00000000 <credential:x> {VALUE}");
    assert_eq!(scrubber.text(text), "credential 00000000 <credential:x> <credential:good>");
}
