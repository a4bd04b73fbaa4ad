//! Real model endpoints behind the [`llm::Model`] port: OpenAI and compatible servers, OpenRouter, Ollama,
//! Anthropic, Gemini; and `replay` files, so that one function connects every reference.
//!
//! Architecture invariants: this crate knows HTTP and wire formats and nothing of runs, tools or policy. Everything an
//! endpoint sends is untrusted: bodies are bounded, their words are cut before they reach a message, and no error text
//! holds a key. Keys go only to the endpoint they are for; redirects are not followed.
//!
//! There is one adapter for each API: [`openai`] for everything with chat completions, Ollama among it, [`anthropic`] and
//! [`gemini`]. An adapter turns a conversation into a request, and events into a reply ([`receive::Assembly`]); `receive`
//! reads the connection, `draft` holds the reply, `finish` knows the names of reasons, `remedy` the settings that help.
//! The adapters are our own: they bound every reply, send reasoning state back byte for byte, and accept replies that
//! deviate from the documented API.

mod anthropic;
#[cfg(test)]
mod billed;
mod draft;
mod failure;
mod finish;
mod gemini;
mod http;
mod offer;
mod openai;
mod receive;
mod remedy;
mod retry;
pub mod settings;

use std::path::Path;
use std::sync::Arc;

use llm::{Model, ModelError, ModelErrorKind, ModelRef, Provider, Replay};

pub use offer::{LocalServer, local_servers, models};
pub use settings::{
    Effort, Endpoint, EndpointAddress, ModelLimits, ProviderSettings, Redact, RetryPolicy, StoredKeys, Writing,
};

use crate::failure::Redactor;
use crate::retry::Retrying;
use crate::settings::RequiredSettings;

/// Connects a model. Nothing is sent yet.
///
/// # Errors
/// [`ModelErrorKind::Auth`] when a key is missing, naming the variable to set; [`ModelErrorKind::Rejected`] when the base
/// URL is not one or a recording cannot be read.
pub fn connect(reference: &ModelRef, settings: &ProviderSettings) -> Result<Arc<dyn Model>, ModelError> {
    let name = reference.to_string();
    if reference.provider == Provider::Replay {
        return Ok(Arc::new(Replay::open(Path::new(&reference.model))?));
    }
    let (connection, redactor) = client_of(reference, settings)?;
    let retrying = |attempt: Arc<dyn retry::Attempt>| Retrying {
        name: name.clone(),
        attempt,
        retries: settings.retries,
        deadline: settings.limits.deadline,
        redactor,
        redact: settings.redact.clone(),
        price: settings.prices.of(&name),
    };
    let limits = settings.limits;
    Ok(Arc::new(retrying(match reference.provider {
        Provider::Anthropic => Arc::new(anthropic::Anthropic::new(connection, limits)),
        Provider::Gemini => Arc::new(gemini::Gemini::new(connection, limits)),
        _ => Arc::new(openai::OpenAi::new(connection, limits)),
    })))
}

/// The connection to the endpoint of a model, and the redactor of its key.
fn client_of(
    reference: &ModelRef,
    settings: &ProviderSettings,
) -> Result<(http::ProviderClient, Redactor), ModelError> {
    let refuse = |kind, message| ModelError { model: reference.to_string(), kind, message, retry_after_ms: None };
    let target = settings.target(reference.provider).map_err(|missing| {
        let kind = match missing {
            RequiredSettings::Key { .. } => ModelErrorKind::Auth,
            RequiredSettings::BaseUrl { .. } | RequiredSettings::Known { .. } => ModelErrorKind::Rejected,
        };
        refuse(kind, missing.to_string())
    })?;
    let client = http::client(&settings.limits).map_err(|message| refuse(ModelErrorKind::Rejected, message))?;
    let base = http::base_url(&target.base_url).map_err(|message| refuse(ModelErrorKind::Rejected, message))?;
    let redactor = Redactor::new(target.key.clone());
    let origin = remedy::RequestOrigin {
        model: reference.clone(),
        key_variable: target.key_variable,
        url_variable: target.url_variable,
    };
    let writing = settings.writing;
    Ok((http::ProviderClient { client, base, key: target.key, origin, writing }, redactor))
}
