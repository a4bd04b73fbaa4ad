//! The models that an endpoint offers, and the model servers that run on this machine.

use std::time::Duration;

use futures_util::future::join_all;
use llm::{ModelError, ModelErrorKind, ModelRef, Provider};
use serde_json::Value;

use crate::failure::ProviderFailure;
use crate::settings::{ModelLimits, ProviderSettings};
use crate::{anthropic, client_of, gemini, openai};

/// The most names of models that are read from one endpoint.
const MAX_MODELS: usize = 1_000;
/// The largest list that is read, in bytes.
const MAX_LIST_BYTES: usize = 4 << 20;
/// How long a server on this machine may take to answer.
const LOCAL: Duration = Duration::from_millis(700);
/// Customary addresses of servers with the API of OpenAI: LM Studio, llama.cpp, vLLM.
const COMPATIBLE: [&str; 3] = ["http://127.0.0.1:1234/v1", "http://127.0.0.1:8080/v1", "http://127.0.0.1:8000/v1"];

/// A model server that runs on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalServer {
    /// The provider to name it by.
    pub provider: Provider,
    /// The base URL of the server.
    pub base_url: String,
    /// The names of the models it offers.
    pub models: Vec<String>,
}

/// The names of the models that a provider offers, sorted as the provider has them.
///
/// # Errors
/// A [`ModelError`] if the endpoint cannot be reached, refuses the key, or lists nothing that can be read.
pub async fn models(provider: Provider, settings: &ProviderSettings) -> Result<Vec<String>, ModelError> {
    let reference = ModelRef { provider, model: "*".to_owned() };
    let (connection, redactor) = client_of(&reference, settings)?;
    let manner = match provider {
        Provider::Anthropic => &anthropic::MANNER,
        Provider::Gemini => &gemini::MANNER,
        _ => &openai::MANNER,
    };
    let path = if provider == Provider::Gemini { "/models?pageSize=1000" } else { "/models" };
    let list = async {
        let mut reply = connection.get(path, manner, &settings.limits).await?;
        let mut bytes = Vec::new();
        while let Some(more) = reply.next().await? {
            bytes.extend_from_slice(&more);
            if bytes.len() > MAX_LIST_BYTES {
                return Err(ProviderFailure::new(ModelErrorKind::Malformed, "the list of models is too long"));
            }
        }
        names(&bytes).ok_or_else(|| ProviderFailure::new(ModelErrorKind::Malformed, "no list of models came back"))
    };
    list.await.map_err(|failure| ModelError {
        model: reference.to_string(),
        kind: failure.kind,
        message: redactor.clean(failure.message),
        retry_after_ms: None,
    })
}

/// The servers that answer at their customary addresses on this machine, and Ollama where it is configured to be.
pub async fn local_servers(settings: &ProviderSettings) -> Vec<LocalServer> {
    let limits = ModelLimits { connect: LOCAL, idle: LOCAL, deadline: LOCAL, ..settings.limits };
    let asked = COMPATIBLE.map(|url| (Provider::Compatible, Some(url))).into_iter().chain([(Provider::Ollama, None)]);
    let found = asked.map(async |(provider, url)| {
        let mut asked = ProviderSettings { ollama: settings.ollama.clone(), limits, ..ProviderSettings::default() };
        if let Some(url) = url {
            // A key that belongs to another server is not sent to it.
            asked.openai.base_url = Some(url.to_owned());
        }
        let base_url = asked.address(provider)?.base_url;
        let models = models(provider, &asked).await.ok().filter(|models| !models.is_empty())?;
        Some(LocalServer { provider, base_url, models })
    });
    join_all(found).await.into_iter().flatten().collect()
}

/// The names in a list, in the form of OpenAI, which most servers have, or of Gemini.
fn names(bytes: &[u8]) -> Option<Vec<String>> {
    let list: Value = serde_json::from_slice(bytes).ok()?;
    let entries = list.get("data").or_else(|| list.get("models"))?.as_array()?;
    let name = |entry: &Value| {
        let name = entry.get("id").or_else(|| entry.get("name"))?.as_str()?;
        let name = name.strip_prefix("models/").unwrap_or(name);
        // A name that no reference can hold is of no use.
        format!("compatible/{name}").parse::<ModelRef>().ok().map(|reference| reference.model)
    };
    Some(entries.iter().filter_map(name).take(MAX_MODELS).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_as_providers_write_them() {
        for (list, expected) in [
            (
                r#"{"object": "list", "data": [{"id": "a:8b", "object": "model"}, {"id": "b"}]}"#,
                Some(vec!["a:8b", "b"]),
            ),
            (r#"{"models": [{"name": "models/gemini-x", "displayName": "X"}]}"#, Some(vec!["gemini-x"])),
            (r#"{"data": [{"id": "with\u0007bell"}, {"id": 7}, {}, {"id": "good"}]}"#, Some(vec!["good"])),
            (r#"{"data": []}"#, Some(vec![])),
            (r#"{"error": "no"}"#, None),
            ("<html>", None),
        ] {
            let names = names(list.as_bytes());
            assert_eq!(names, expected.map(|names| names.into_iter().map(str::to_owned).collect()), "{list}");
        }
    }
}
