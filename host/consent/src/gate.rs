//! The gate: it admits the holder of the owner's token, and returns a [`Consent`].
//!
//! The host keeps the SHA-256 of the token, and compares hashes in constant time. A token is replaced in three durable
//! steps: the host comes to know the new one beside the old, the file is replaced, the old one is forgotten. A crash
//! between them leaves a file that the host knows, and the next host finishes the replacement that the file shows.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use base::{Clock, ConsentRecord, ContentHash, Door, Secret, Timestamp};
use parking_lot::RwLock;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::{Batch, Store, Table, create_file, replace_file};

use crate::attempts::Attempts;
use crate::sign_ins::SignIns;
use crate::{ConsentConfig, ConsentError, FILE_NAME, OwnerToken, TokenFile};

/// Where the host's knowledge of the token is.
const KEY: &str = "owner/token";
/// Who consents. There is one owner.
pub(crate) const OWNER: &str = "owner";

/// A claim to be the owner.
#[derive(Debug)]
pub struct Claim {
    /// The door that the claim came through.
    pub door: Door,
    /// The token that proves it.
    pub token: Option<Secret<String>>,
}

/// The owner's consent. Only [`ConsentGate::admit`] and [`ConsentGate::signed_in`] make one. It is stored as a [`ConsentRecord`], and no record turns back:
///
/// ```
/// let stored = r#"{ "givenBy": "owner", "door": "terminal", "at": 0 }"#;
/// serde_json::from_str::<base::ConsentRecord>(stored).unwrap();
/// fn decide(consent: consent::Consent) -> base::ConsentRecord { consent.into() }
/// ```
/// ```compile_fail,E0277
/// let stored = r#"{ "givenBy": "owner", "door": "terminal", "at": 0 }"#;
/// serde_json::from_str::<consent::Consent>(stored).unwrap();
/// ```
/// ```compile_fail,E0423
/// fn forge(record: base::ConsentRecord) -> consent::Consent { consent::Consent(record) }
/// ```
#[derive(Debug, Clone)]
pub struct Consent(pub(crate) ConsentRecord);

impl Consent {
    /// The same consent, given in a message of the owner to the built-in cognition (SPEC CONSENT-1). It is recorded as such.
    #[must_use]
    pub fn by_message(self) -> Self {
        Self(ConsentRecord { door: Door::Message, ..self.0 })
    }
}

impl From<Consent> for ConsentRecord {
    fn from(consent: Consent) -> Self {
        consent.0
    }
}

/// A token in place of another.
#[derive(Debug)]
pub struct Replacement {
    /// The new token, which proves that the file is good.
    pub token: OwnerToken,
    /// The file with the new token.
    pub file: TokenFile,
}

/// The host's knowledge of the token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct KnownToken {
    /// The hash of the token.
    hash: ContentHash,
    /// That of the one that is about to be in its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    next: Option<ContentHash>,
    /// Whether it was sealed. Then no other is ever made on its own.
    sealed: bool,
    since: Timestamp,
}

/// Whether the file of the home holds the token that the host knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FileState {
    /// The file holds the token.
    Good,
    /// There is no such file.
    Missing,
    /// It holds another token.
    Other,
    /// It cannot be read, or not as a token.
    Unusable,
}

/// The public status of the owner's token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OwnerStatus {
    /// Whether a passphrase is needed to use the one in the file.
    pub sealed: bool,
    /// Since when it is the token. None when the host knows none: then nothing needs less than everything, and is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// The state of the file.
    pub file: FileState,
    /// Tokens that were refused since the host started.
    pub refused: u64,
}

impl OwnerStatus {
    /// The status of a home's token without a gate: `directory` is the home's directory `config`. Changes nothing.
    ///
    /// # Errors
    /// If the host's knowledge of the token cannot be read.
    pub fn read(store: &Store, directory: &Path) -> Result<Self, ConsentError> {
        Ok(Self::of(store.get::<KnownToken>(Table::Meta, KEY)?.as_ref(), directory))
    }

    fn of(known: Option<&KnownToken>, directory: &Path) -> Self {
        let file = match TokenFile::read(directory) {
            Ok(None) => FileState::Missing,
            Ok(Some(file)) if known.is_some_and(|known| known.accepts(file.hash())) => FileState::Good,
            Ok(Some(_)) => FileState::Other,
            Err(_) => FileState::Unusable,
        };
        let (sealed, since) = (known.is_some_and(|known| known.sealed), known.map(|known| known.since));
        Self { sealed, since, file, refused: 0 }
    }
}

/// The one gate of a home.
#[derive(Debug)]
pub struct ConsentGate {
    pub(crate) config: ConsentConfig,
    store: Store,
    pub(crate) clock: Arc<dyn Clock>,
    /// The home's directory `config`.
    directory: PathBuf,
    known: RwLock<Option<KnownToken>>,
    pub(crate) attempts: Attempts,
    pub(crate) sign_ins: SignIns,
    /// Held while the token is replaced.
    replacing: tokio::sync::Mutex<()>,
}

impl ConsentGate {
    /// Opens the gate of a home; a home without a token gets one. A token that cannot be made or read is logged:
    /// then every claim is refused.
    ///
    /// # Errors
    /// If the host's knowledge of the token cannot be read.
    pub async fn open(store: Store, clock: Arc<dyn Clock>, directory: PathBuf) -> Result<Self, ConsentError> {
        let known = RwLock::new(store.get::<KnownToken>(Table::Meta, KEY)?);
        let (attempts, sign_ins) = (Attempts::default(), SignIns::default());
        let replacing = tokio::sync::Mutex::default();
        let config = ConsentConfig::default();
        let gate = Self { config, store, clock, directory, known, attempts, sign_ins, replacing };
        if let Err(error) = gate.settle().await {
            tracing::warn!(%error, "the owner's token cannot be used");
        }
        Ok(gate)
    }

    /// The gate with these settings.
    #[must_use]
    pub fn with_config(self, config: ConsentConfig) -> Self {
        Self { config, ..self }
    }

    /// Lets the owner through, and says so. The right token is never kept waiting; the answer to wrong ones comes late.
    ///
    /// # Errors
    /// When it is a model that asks, or the token is missing or not the owner's.
    pub async fn admit(&self, claim: Claim) -> Result<Consent, ConsentError> {
        match self.judge(&claim) {
            Ok(consent) => {
                self.attempts.right();
                Ok(consent)
            }
            Err(ConsentError::Wrong) => Err(self.attempts.wrong().await),
            Err(error) => Err(error),
        }
    }

    fn judge(&self, claim: &Claim) -> Result<Consent, ConsentError> {
        match claim.door {
            Door::Terminal | Door::Token | Door::Web | Door::Elicitation | Door::Message => {}
            // A model, and every door that this gate does not know.
            _ => return Err(ConsentError::Model),
        }
        let token = claim.token.as_ref().ok_or(ConsentError::Missing)?;
        let known = self.known().ok_or(ConsentError::Unset)?;
        // The same error as for a wrong token: the form of a token is not revealed.
        let given = OwnerToken::parse(token.expose()).ok_or(ConsentError::Wrong)?.hash();
        let is = |hash: &ContentHash| verify_slices_are_equal(hash.as_bytes(), given.as_bytes()).is_ok();
        let (current, next) = (is(&known.hash), known.next.as_ref().is_some_and(is));
        if current || next {
            let record = ConsentRecord { given_by: OWNER.to_owned(), door: claim.door, at: self.clock.now() };
            return Ok(Consent(record));
        }
        Err(ConsentError::Wrong)
    }

    /// Puts another token in the place of the owner's. When this returns, the old one is refused, the file holds the new
    /// one, and both are durable.
    ///
    /// # Errors
    /// When the claim is refused, the new file does not hold the new token, or the disk fails; after a failure the token
    /// that the file holds is let through.
    pub async fn replace(&self, claim: Claim, new: Replacement) -> Result<OwnerStatus, ConsentError> {
        let _one_at_a_time = self.replacing.lock().await;
        self.admit(claim).await?;
        if new.file.hash() != new.token.hash() {
            return Err(ConsentError::Mismatch);
        }
        self.install(self.known(), &new.file).await?;
        Ok(self.status())
    }

    /// The public status of the token.
    #[must_use]
    pub fn status(&self) -> OwnerStatus {
        OwnerStatus { refused: self.attempts.total(), ..OwnerStatus::of(self.known().as_ref(), &self.directory) }
    }

    /// Reconciles the file with the host's knowledge of it, as a crash, a restored backup or a first start left them.
    async fn settle(&self) -> Result<(), ConsentError> {
        let file = TokenFile::read(&self.directory)?;
        match (self.known(), file) {
            (None, None) => {
                let made = TokenFile::plain(OwnerToken::random()?);
                create_file(&self.directory, FILE_NAME, made.text().expose().as_bytes())?;
                // As every later host will read it.
                let file = TokenFile::read(&self.directory)?.ok_or(ConsentError::Unset)?;
                self.remember(KnownToken::of(&file, self.clock.now())).await
            }
            // Its state is new: the file of the home is left unchanged.
            (None, Some(file)) => self.remember(KnownToken::of(&file, self.clock.now())).await,
            // A program that could delete it could have read it, unless it was sealed.
            (Some(known), None) if !known.sealed => {
                tracing::warn!(
                    "the file of the owner's token is gone: there is a new one, and the old token is refused"
                );
                self.install(Some(known), &TokenFile::plain(OwnerToken::random()?)).await
            }
            (Some(known), Some(file)) if known.next == Some(file.hash()) => {
                self.remember(KnownToken::of(&file, self.clock.now())).await
            }
            (Some(known), Some(file)) if known.next.is_some() && known.hash == file.hash() => {
                self.remember(KnownToken { next: None, ..known }).await
            }
            (Some(known), file) => match file {
                Some(file) if known.hash == file.hash() => Ok(()),
                _ => Err(ConsentError::File {
                    reason: "is not the one that this host knows".to_owned(),
                    remedy: "give the right one back",
                }),
            },
        }
    }

    /// Puts a file in the place of the one there is, in steps of which each leaves a file that the host knows.
    async fn install(&self, before: Option<KnownToken>, file: &TokenFile) -> Result<(), ConsentError> {
        if let Some(before) = &before {
            self.remember(KnownToken { next: Some(file.hash()), ..before.clone() }).await?;
        }
        if let Err(error) = replace_file(&self.directory, FILE_NAME, file.text().expose().as_bytes()) {
            // Renamed and not synced, or not renamed: only the file can tell, and who starts the next host asks it.
            tracing::warn!(%error, "the owner's token was not replaced");
            return Err(error.into());
        }
        self.remember(KnownToken::of(file, self.clock.now())).await
    }

    async fn remember(&self, known: KnownToken) -> Result<(), ConsentError> {
        let mut batch = Batch::new();
        batch.put(Table::Meta, KEY, &known)?;
        self.store.commit(batch).await?;
        *self.known.write() = Some(known);
        Ok(())
    }

    /// Whether this is the hash of the owner's token.
    pub(crate) fn accepts(&self, token: ContentHash) -> bool {
        self.known.read().as_ref().is_some_and(|known| known.accepts(token))
    }

    /// The hash of the token in force, and whether it is sealed.
    pub(crate) fn token_hash(&self) -> Option<(ContentHash, bool)> {
        self.known.read().as_ref().map(|known| (known.hash, known.sealed))
    }

    fn known(&self) -> Option<KnownToken> {
        self.known.read().clone()
    }
}

impl KnownToken {
    fn of(file: &TokenFile, since: Timestamp) -> Self {
        Self { hash: file.hash(), next: None, sealed: file.is_sealed(), since }
    }

    fn accepts(&self, hash: ContentHash) -> bool {
        self.hash == hash || self.next == Some(hash)
    }
}

#[cfg(test)]
mod tests;
