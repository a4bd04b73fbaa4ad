//! The webhook: every signal is posted to the owner's URL, signed, until it is acknowledged with 2xx.
//!
//! It survives an endpoint that fails, redirects, is gone or never answers: the signal is kept and tried again, in
//! order. The secret is read for each attempt, so a changed or late one is used without a restart, and it is in no
//! message.

#[cfg(test)]
pub(crate) mod tests;

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use base::{Clock, CredentialName, Random, Refusal, RefusalCode};
use network::{Gate, Webhook};
use signals::Signal;
use store::{Batch, Store, Table, blocking};
use tokio::sync::OnceCell;
use vault::{Vault, compute};

use crate::DeliverParts;
use crate::config::WebhookConfig;
use crate::line::{Consumer, RetrySchedule};
use crate::scrubbed::scrubbed;

/// The name of the webhook's position.
pub(crate) const NAME: &str = "webhook";
/// The pause after the first failure, at most.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The key of the home's name for receivers, in the table of single values.
const HOME_KEY: &str = "deliver/home";

/// Posts signals to a URL.
pub(crate) struct PostWebhook {
    webhook: Webhook,
    secret: CredentialName,
    longest: Duration,
    vault: Vault,
    clock: Arc<dyn Clock>,
    random: Arc<Random>,
    store: Store,
    /// Distinguishes the signals of this home from those of another, which has the same ids.
    home: OnceCell<String>,
}

/// The receiver of the settings.
pub(crate) fn receiver(config: &WebhookConfig, gate: &Gate) -> Result<Webhook, Refusal> {
    let timeout = Duration::from_secs(config.timeout_seconds.clamp(1, 300));
    Webhook::new(gate, &config.url, timeout).map_err(|blocked| {
        let reason = format!("the setting `signals.webhook.url` is wrong: {}", blocked.reason);
        Refusal::new(RefusalCode::InvalidRequest, reason).with_remedy(blocked.remedy)
    })
}

impl PostWebhook {
    pub fn new(config: &WebhookConfig, parts: &DeliverParts) -> Result<Self, Refusal> {
        Ok(Self {
            webhook: receiver(config, &parts.gate)?,
            secret: config.secret.clone(),
            longest: Duration::from_secs(config.max_backoff_seconds.clamp(1, 86_400)),
            vault: parts.vault.clone(),
            clock: parts.clock.clone(),
            random: parts.random.clone(),
            store: parts.store.clone(),
            home: OnceCell::new(),
        })
    }

    /// The home's name for receivers: made once, and durable before it is first sent.
    async fn home(&self) -> Result<&str, String> {
        let make = async {
            if let Some(home) = self.store.get::<String>(Table::Meta, HOME_KEY)? {
                return Ok(home);
            }
            let home = format!("{:016x}{:016x}", self.random.next_u64(), self.random.next_u64());
            let mut batch = Batch::new();
            batch.put(Table::Meta, HOME_KEY, &home)?;
            self.store.commit(batch).await?;
            Ok::<_, store::StoreError>(home)
        };
        self.home.get_or_try_init(|| make).await.map(String::as_str).map_err(|error| error.to_string())
    }

    /// `v1=` and the HMAC-SHA-256 of `<timestamp>.<body>` in hexadecimal.
    async fn signature(&self, timestamp: u64, body: &[u8]) -> Result<String, String> {
        let mut signed = format!("{timestamp}.").into_bytes();
        signed.extend_from_slice(body);
        let (vault, name) = (self.vault.clone(), self.secret.clone());
        // The key may have to come from the keyring.
        let code = blocking(move || {
            let secrets = vault.for_run(std::slice::from_ref(&name), None)?;
            let secret = secrets.get(name.as_str()).ok_or_else(|| {
                Refusal::new(RefusalCode::CredentialsNeeded, format!("credential `{name}` is not set"))
            })?;
            Ok(compute::hmac_sha256(secret, &signed))
        });
        let code = code.await.map_err(|refusal| format!("it cannot be signed: {refusal}"))?;
        Ok(code.iter().fold("v1=".to_owned(), |mut text, byte| {
            // Writing to a string cannot fail.
            write!(text, "{byte:02x}").ok();
            text
        }))
    }
}

#[async_trait::async_trait]
impl Consumer for PostWebhook {
    fn name(&self) -> &'static str {
        NAME
    }

    fn retries(&self) -> RetrySchedule {
        RetrySchedule { first: FIRST_PAUSE, longest: self.longest, most: None }
    }

    fn wants(&self, _: &Signal, _: bool) -> bool {
        true
    }

    async fn deliver(&self, signal: &Signal) -> Result<(), String> {
        let body = scrubbed(&self.vault, signal).await?;
        let timestamp = self.clock.now().as_millis() / 1_000;
        let headers = [
            ("content-type", "application/json".to_owned()),
            ("user-agent", concat!("motor/", env!("CARGO_PKG_VERSION")).to_owned()),
            ("motor-signal-id", signal.id.to_string()),
            ("motor-timestamp", timestamp.to_string()),
            ("motor-signature", self.signature(timestamp, &body).await?),
            ("idempotency-key", format!("{}-{}", self.home().await?, signal.id)),
        ];
        let status = self.webhook.post(&headers, body).await.map_err(|error| error.to_string())?;
        if status.is_success() {
            return Ok(());
        }
        Err(format!("{} answers {}", self.webhook.place(), status.as_u16()))
    }
}
