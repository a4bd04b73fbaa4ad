//! Tokens over their life: made, known, expired, revoked, and after a restart.

use base::{Door, TestClock};
use std::time::Duration;

use super::*;
use crate::{Claim, ConsentGate, TokenFile};

struct Home {
    directory: tempfile::TempDir,
    clock: Arc<TestClock>,
}

impl Home {
    fn new() -> Self {
        let clock = Arc::new(TestClock::at(Timestamp::from_millis(1_000)));
        Self { directory: tempfile::tempdir().unwrap(), clock }
    }

    /// The tokens, and a consent of the owner.
    async fn open(&self) -> (ApiTokens, Consent) {
        let store = Store::open(&self.directory.path().join("state")).unwrap();
        let config = self.directory.path().join("config");
        let gate = ConsentGate::open(store.clone(), self.clock.clone(), config.clone()).await.unwrap();
        let token = TokenFile::read(&config).unwrap().unwrap().open(|| unreachable!("it is not sealed")).unwrap();
        let claim = Claim { door: Door::Token, token: Some(Secret::new(token.expose().to_owned())) };
        (ApiTokens::open(store, self.clock.clone()).unwrap(), gate.admit(claim).await.unwrap())
    }
}

fn new(name: &str, expires_in_ms: Option<u64>) -> NewApiToken {
    NewApiToken { name: name.parse().unwrap(), scope: TokenScope::Agent, agent: None, expires_in_ms }
}

#[tokio::test]
async fn a_token_is_known_until_it_expires_or_is_revoked_and_after_a_restart() {
    let home = Home::new();
    let (tokens, consent) = home.open().await;
    let (lasting, first) = tokens.create(new("lasting", None), consent.clone()).await.unwrap();
    let (short, _) = tokens.create(new("short", Some(500)), consent.clone()).await.unwrap();
    assert_eq!(tokens.identify(lasting.expose()), Some(first.clone()));
    assert!(tokens.identify(short.expose()).is_some());
    home.clock.advance(Duration::from_millis(500));
    assert!(tokens.identify(short.expose()).is_none());
    tokens.store.close().await.unwrap();
    drop(tokens);

    let (tokens, consent) = home.open().await;
    assert_eq!(tokens.identify(lasting.expose()), Some(first.clone()));
    assert_eq!(tokens.list().iter().map(|token| token.name.as_str()).collect::<Vec<_>>(), ["lasting", "short"]);
    assert_eq!(tokens.revoke(&first.name, consent.clone()).await.unwrap(), first);
    assert!(tokens.identify(lasting.expose()).is_none());
    let again = tokens.revoke(&first.name, consent).await.unwrap_err();
    assert!(matches!(again, ConsentError::NoSuchToken(_)), "{again}");
    tokens.store.close().await.unwrap();
    drop(tokens);
    assert!(home.open().await.0.identify(lasting.expose()).is_none());
}

#[tokio::test]
async fn names_are_unique_and_tokens_are_counted() {
    let home = Home::new();
    let (tokens, consent) = home.open().await;
    let (text, _) = tokens.create(new("one", None), consent.clone()).await.unwrap();
    let taken = tokens.create(new("one", None), consent.clone()).await.unwrap_err();
    assert!(matches!(taken, ConsentError::TokenExists(_)), "{taken}");
    for index in 1..MAX_TOKENS {
        tokens.create(new(&format!("token-{index}"), None), consent.clone()).await.unwrap();
    }
    let full = tokens.create(new("one-more", None), consent).await.unwrap_err();
    assert!(matches!(full, ConsentError::TooManyTokens(MAX_TOKENS)), "{full}");
    assert!(tokens.identify(text.expose()).is_some());
    for guess in ["", "motor-api-", &text.expose()[..70], &format!("{} ", text.expose()), &text.expose().to_uppercase()]
    {
        assert!(tokens.identify(guess).is_none(), "{guess:?}");
    }
}

#[test]
fn scopes_are_named_as_in_json() {
    for scope in [TokenScope::Read, TokenScope::Agent] {
        assert_eq!(serde_json::to_value(scope).unwrap(), scope.as_str());
    }
}

#[test]
fn an_api_token_is_recognised_by_its_form_alone() {
    let digits = "0a".repeat(32);
    assert!(ApiTokens::is_token(&format!("motor-api-{digits}")));
    for other in ["", "motor-api-", &digits, &format!("motor-owner-{digits}"), &format!("motor-api-{digits}0")] {
        assert!(!ApiTokens::is_token(other), "{other}");
    }
}
