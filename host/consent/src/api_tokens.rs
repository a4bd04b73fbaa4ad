//! Tokens of programs that use the HTTP API: each has a scope, and is known by its hash alone (SPEC API-1).

use std::collections::HashMap;
use std::sync::Arc;

use base::{AgentName, Clock, ConsentRecord, ContentHash, Secret, Timestamp, TokenName};
use parking_lot::RwLock;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::{Batch, Scan, Store, Table};

use crate::token::{is_token, random};
use crate::{Consent, ConsentError};

/// How a token begins in text, so that it is recognised where it was left by mistake.
const PREFIX: &str = "motor-api-";
/// Keys of the stored tokens begin with this; the name follows.
const KEY: &str = "api-token/";
/// Tokens of one home, expired ones included.
const MAX_TOKENS: usize = 256;

/// The extent of a token's powers. None of them includes consent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TokenScope {
    /// Looks at runs, signals, skills and energy.
    Read,
    /// Also starts, follows and cancels runs, and executes programs.
    Agent,
}

impl TokenScope {
    /// The name as it is configured and shown.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Agent => "agent",
        }
    }
}

/// The public facts of a token.
///
/// JSON: `{ "name": "claude-code", "scope": "agent", "agent": "main", "createdAt": 1767225600000 }`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApiToken {
    /// Its name, unique in the home.
    pub name: TokenName,
    /// The extent of its powers.
    pub scope: TokenScope,
    /// The only agent it stands for. Absent: every agent of the home.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentName>,
    /// Time it was made.
    pub created_at: Timestamp,
    /// Time from which it is refused. Absent: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
}

/// A token to make.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NewApiToken {
    /// Its name, unique in the home.
    pub name: TokenName,
    /// The extent of its powers.
    pub scope: TokenScope,
    /// The only agent it may stand for. Default: every agent of the home.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentName>,
    /// Milliseconds until it is refused. Default: never.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "base::whole::option")]
    pub expires_in_ms: Option<u64>,
}

/// A token as it is stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct StoredToken {
    token: ApiToken,
    hash: ContentHash,
    /// The owner's consent to make it.
    consent: ConsentRecord,
}

/// The API tokens of a home.
#[derive(Debug)]
pub struct ApiTokens {
    store: Store,
    clock: Arc<dyn Clock>,
    /// By hash. A hash without salt is enough: 256 random bits cannot be guessed.
    known: RwLock<HashMap<ContentHash, ApiToken>>,
    /// Held while the tokens change.
    changing: tokio::sync::Mutex<()>,
}

impl ApiTokens {
    /// Reads the tokens of a home.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn open(store: Store, clock: Arc<dyn Clock>) -> Result<Self, ConsentError> {
        let stored = store.scan::<StoredToken>(Table::Meta, &Scan::prefix(KEY))?;
        let known = stored.into_iter().map(|(_, stored)| (stored.hash, stored.token)).collect();
        Ok(Self { store, clock, known: RwLock::new(known), changing: tokio::sync::Mutex::default() })
    }

    /// Makes a token. Its text is returned here and nowhere else.
    ///
    /// # Errors
    /// If the name is taken, there are too many, or the store fails.
    pub async fn create(&self, new: NewApiToken, consent: Consent) -> Result<(Secret<String>, ApiToken), ConsentError> {
        let _one_at_a_time = self.changing.lock().await;
        let NewApiToken { name, scope, agent, expires_in_ms } = new;
        if self.find(&name).is_some() {
            return Err(ConsentError::TokenExists(name));
        }
        if self.known.read().len() >= MAX_TOKENS {
            return Err(ConsentError::TooManyTokens(MAX_TOKENS));
        }
        let created_at = self.clock.now();
        let expires_at =
            expires_in_ms.map(|millis| Timestamp::from_millis(created_at.as_millis().saturating_add(millis)));
        let token = ApiToken { name, scope, agent, created_at, expires_at };
        let text = random(PREFIX)?;
        let hash = ContentHash::of(text.expose().as_bytes());
        let stored = StoredToken { token: token.clone(), hash, consent: consent.into() };
        let mut batch = Batch::new();
        batch.put(Table::Meta, key(&token.name), &stored)?;
        self.store.commit(batch).await?;
        tracing::info!(name = %token.name, scope = token.scope.as_str(), "the owner made a token");
        self.known.write().insert(hash, token.clone());
        Ok((text, token))
    }

    /// Every token, by name.
    #[must_use]
    pub fn list(&self) -> Vec<ApiToken> {
        let mut tokens: Vec<ApiToken> = self.known.read().values().cloned().collect();
        tokens.sort_by(|a, b| a.name.cmp(&b.name));
        tokens
    }

    /// Revokes a token: it is refused from now on.
    ///
    /// # Errors
    /// If there is no such token, or the store fails.
    pub async fn revoke(&self, name: &TokenName, consent: Consent) -> Result<ApiToken, ConsentError> {
        let ConsentRecord { given_by: by, door, .. } = consent.into();
        let _one_at_a_time = self.changing.lock().await;
        let (hash, token) = self.find(name).ok_or_else(|| ConsentError::NoSuchToken(name.clone()))?;
        // First, so that it is refused even if the disk fails.
        self.known.write().remove(&hash);
        let mut batch = Batch::new();
        batch.delete(Table::Meta, key(name));
        self.store.commit(batch).await?;
        tracing::info!(%name, by, ?door, "the owner revoked a token");
        Ok(token)
    }

    /// The token with this text, if there is one and it has not expired.
    #[must_use]
    pub fn identify(&self, text: &str) -> Option<ApiToken> {
        if !Self::is_token(text) {
            return None;
        }
        let token = self.known.read().get(&ContentHash::of(text.as_bytes())).cloned()?;
        token.expires_at.is_none_or(|expires_at| self.clock.now() < expires_at).then_some(token)
    }

    /// Whether a text has the form of an API token, known or not.
    #[must_use]
    pub fn is_token(text: &str) -> bool {
        is_token(text, PREFIX)
    }

    fn find(&self, name: &TokenName) -> Option<(ContentHash, ApiToken)> {
        let known = self.known.read();
        known.iter().find(|(_, token)| token.name == *name).map(|(hash, token)| (*hash, token.clone()))
    }
}

fn key(name: &TokenName) -> String {
    format!("{KEY}{name}")
}

#[cfg(test)]
mod tests;
