//! Where the endpoints are, their keys, limits and prices. Values come in; the environment is read only through the
//! function that [`ProviderSettings::from_env`] is given.

use std::sync::Arc;
use std::time::Duration;

use base::Secret;
use llm::{PriceTable, Provider};
use serde::{Deserialize, Serialize};

/// One provider's endpoint. Default: its public address, no key.
#[derive(Debug, Clone, Default)]
pub struct Endpoint {
    /// In place of the provider's own address.
    pub base_url: Option<String>,
    /// The API key, if one is set.
    pub key: Option<Secret<String>>,
}

/// Everything needed to reach models.
#[derive(Debug, Clone, Default)]
pub struct ProviderSettings {
    /// `OPENAI_API_KEY`, `OPENAI_BASE_URL`; also serves `compatible/…`.
    pub openai: Endpoint,
    /// `OPENROUTER_API_KEY`, `OPENROUTER_BASE_URL`.
    pub openrouter: Endpoint,
    /// `ANTHROPIC_API_KEY`, `ANTHROPIC_BASE_URL`.
    pub anthropic: Endpoint,
    /// `GEMINI_API_KEY`, `GEMINI_BASE_URL`.
    pub gemini: Endpoint,
    /// `OLLAMA_HOST`, and `OLLAMA_API_KEY` for an Ollama behind a gate.
    pub ollama: Endpoint,
    /// Bounds of one call.
    pub limits: ModelLimits,
    /// When and how often a failed request is made again.
    pub retries: RetryPolicy,
    /// Prices by `provider/model`, for endpoints that do not report costs. Default: the table that ships with the program.
    pub prices: PriceTable,
    /// Values struck out of logged prompts and completions, beside keys. Default: none.
    pub redact: Redact,
    /// Keys that the environment does not have. Default: none.
    pub keys: StoredKeys,
    /// How a model writes. Default: as its provider has it.
    pub writing: Writing,
}

/// How a model writes. A value that is absent is not sent: the provider's own default holds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Writing {
    /// The most tokens of one reply.
    pub output_tokens: Option<u32>,
    /// Randomness of the reply, from 0 to 2.
    pub temperature: Option<f32>,
    /// How much a model that reasons does so.
    pub reasoning: Option<Effort>,
}

/// How much a model reasons before it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effort {
    /// Little: answers come soon.
    Low,
    /// As much as providers recommend.
    Medium,
    /// As much as the model can.
    High,
}

impl Effort {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }

    /// The same in tokens, for APIs that want a number.
    pub(crate) fn tokens(self) -> u32 {
        match self {
            Self::Low => 2_048,
            Self::Medium => 8_192,
            Self::High => 24_576,
        }
    }
}

/// Finds the key for an endpoint by the name of its variable and by the endpoint's address.
#[derive(Clone, Default)]
pub struct StoredKeys(Option<Arc<FindKey>>);

type FindKey = dyn Fn(&str, &str) -> Option<Secret<String>> + Send + Sync;

impl StoredKeys {
    /// With a function of the variable's name and the base URL. It is called for each connection and may block.
    pub fn new(find: impl Fn(&str, &str) -> Option<Secret<String>> + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(find)))
    }

    fn find(&self, variable: &str, base_url: &str) -> Option<Secret<String>> {
        self.0.as_ref()?(variable, base_url)
    }
}

impl std::fmt::Debug for StoredKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StoredKeys")
    }
}

/// Removes values that must not be logged from a text.
#[derive(Clone, Default)]
pub struct Redact(Option<Arc<dyn Fn(String) -> String + Send + Sync>>);

impl Redact {
    /// With a function that gives the text back without it.
    pub fn new(redact: impl Fn(String) -> String + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(redact)))
    }

    pub(crate) fn apply(&self, text: String) -> String {
        match &self.0 {
            Some(redact) => redact(text),
            None => text,
        }
    }
}

impl std::fmt::Debug for Redact {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Redact")
    }
}

/// Bounds of one model call (SPEC LLM-1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelLimits {
    /// To open a connection. Default 10 s.
    pub connect: Duration,
    /// Without a byte from the endpoint, before and within a reply. Default 120 s: a local model may think that long
    /// before its first word.
    pub idle: Duration,
    /// For a call with all its retries. Default 300 s.
    pub deadline: Duration,
    /// Of one reply on the wire, in bytes. Default 16 MiB: the longest replies of today's models are under one.
    pub response_bytes: usize,
}

impl Default for ModelLimits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            idle: Duration::from_secs(120),
            deadline: Duration::from_secs(300),
            response_bytes: 16 << 20,
        }
    }
}

/// Exponential backoff with jitter (SPEC LLM-1). A Retry-After that is longer than the backoff wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// How often a request is made again. Default 4.
    pub max: usize,
    /// The first wait; it doubles. Default 500 ms.
    pub first: Duration,
    /// The longest wait of the backoff. Default 30 s.
    pub longest: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { max: 4, first: Duration::from_millis(500), longest: Duration::from_secs(30) }
    }
}

/// The address of a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointAddress {
    /// The address that the paths of requests are put behind.
    pub base_url: String,
    /// The customary variable of its key.
    pub key_variable: &'static str,
    /// Whether a key is known.
    pub has_key: bool,
}

/// Where requests for a model go.
pub(crate) struct Target {
    pub base_url: String,
    pub key: Option<Secret<String>>,
    pub key_variable: &'static str,
    pub url_variable: &'static str,
}

/// A setting without which a provider cannot be asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RequiredSettings {
    Key { provider: Provider, variable: &'static str },
    BaseUrl { variable: &'static str },
    Known { provider: Provider },
}

impl std::fmt::Display for RequiredSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Key { provider, variable } => {
                write!(f, "no key for `{provider}`: set `{variable}`")
            }
            Self::BaseUrl { variable } => {
                write!(
                    f,
                    "`compatible/` needs the endpoint's address: set `{variable}` or `models.openai_url`, for example \
                     `http://127.0.0.1:8080/v1`"
                )
            }
            Self::Known { provider } => write!(f, "`{provider}` has no endpoint"),
        }
    }
}

impl ProviderSettings {
    /// Reads the customary variables (SPEC CONF-3). Empty values count as unset.
    #[must_use]
    pub fn from_env(get: &dyn Fn(&str) -> Option<String>) -> Self {
        let get = |name: &str| get(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
        let endpoint = |url: &str, key: &str| Endpoint { base_url: get(url), key: get(key).map(Secret::new) };
        Self {
            openai: endpoint("OPENAI_BASE_URL", "OPENAI_API_KEY"),
            openrouter: endpoint("OPENROUTER_BASE_URL", "OPENROUTER_API_KEY"),
            anthropic: endpoint("ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY"),
            gemini: endpoint("GEMINI_BASE_URL", "GEMINI_API_KEY"),
            ollama: endpoint("OLLAMA_HOST", "OLLAMA_API_KEY"),
            ..Self::default()
        }
    }

    /// The address and key for a provider. A key may be absent where the address was set: local servers have none.
    pub(crate) fn target(&self, provider: Provider) -> Result<Target, RequiredSettings> {
        let target = self.place(provider)?;
        let is_own = self.endpoint(provider).is_some_and(|endpoint| endpoint.base_url.is_none());
        if target.key.is_none() && is_own && provider != Provider::Ollama {
            return Err(RequiredSettings::Key { provider, variable: target.key_variable });
        }
        Ok(target)
    }

    /// Checks that text is an address of this provider, as connecting to it does.
    ///
    /// # Errors
    /// With the reason, without the text.
    pub fn check_address(provider: Provider, url: &str) -> Result<(), String> {
        let mut settings = Self::default();
        if let Some(endpoint) = settings.endpoint_mut(provider) {
            endpoint.base_url = Some(url.to_owned());
        }
        let target = settings.place(provider).map_err(|missing| missing.to_string())?;
        crate::http::base_url(&target.base_url).map(|_| ())
    }

    /// The address of a provider, and whether it has a key. `None` if its address is not known.
    #[must_use]
    pub fn address(&self, provider: Provider) -> Option<EndpointAddress> {
        let Target { base_url, key, key_variable, .. } = self.place(provider).ok()?;
        Some(EndpointAddress { base_url, key_variable, has_key: key.is_some() })
    }

    /// The endpoint of a provider. `None` for recordings, which have none.
    pub fn endpoint_mut(&mut self, provider: Provider) -> Option<&mut Endpoint> {
        match provider {
            Provider::OpenAi | Provider::Compatible => Some(&mut self.openai),
            Provider::OpenRouter => Some(&mut self.openrouter),
            Provider::Anthropic => Some(&mut self.anthropic),
            Provider::Gemini => Some(&mut self.gemini),
            Provider::Ollama => Some(&mut self.ollama),
            _ => None,
        }
    }

    fn endpoint(&self, provider: Provider) -> Option<&Endpoint> {
        match provider {
            Provider::OpenAi | Provider::Compatible => Some(&self.openai),
            Provider::OpenRouter => Some(&self.openrouter),
            Provider::Anthropic => Some(&self.anthropic),
            Provider::Gemini => Some(&self.gemini),
            Provider::Ollama => Some(&self.ollama),
            _ => None,
        }
    }

    fn place(&self, provider: Provider) -> Result<Target, RequiredSettings> {
        let endpoint = self.endpoint(provider).ok_or(RequiredSettings::Known { provider })?;
        let set = endpoint.base_url.as_deref();
        let (base_url, key_variable, url_variable) = match provider {
            Provider::OpenAi => {
                (set.unwrap_or("https://api.openai.com/v1").to_owned(), "OPENAI_API_KEY", "OPENAI_BASE_URL")
            }
            Provider::Compatible => {
                let url = set.ok_or(RequiredSettings::BaseUrl { variable: "OPENAI_BASE_URL" })?;
                (url.to_owned(), "OPENAI_API_KEY", "OPENAI_BASE_URL")
            }
            Provider::OpenRouter => {
                let url = set.unwrap_or("https://openrouter.ai/api/v1").to_owned();
                (url, "OPENROUTER_API_KEY", "OPENROUTER_BASE_URL")
            }
            Provider::Anthropic => {
                let url = with_version(set.unwrap_or("https://api.anthropic.com"), "v1");
                (url, "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL")
            }
            Provider::Gemini => {
                let url = with_version(set.unwrap_or("https://generativelanguage.googleapis.com"), "v1beta");
                (url, "GEMINI_API_KEY", "GEMINI_BASE_URL")
            }
            Provider::Ollama => (ollama_url(set.unwrap_or("http://127.0.0.1:11434")), "OLLAMA_API_KEY", "OLLAMA_HOST"),
            _ => return Err(RequiredSettings::Known { provider }),
        };
        let key = endpoint.key.clone().or_else(|| self.keys.find(key_variable, &base_url));
        Ok(Target { base_url, key, key_variable, url_variable })
    }
}

/// By custom the variable holds the address without the version that the paths begin with.
fn with_version(url: &str, version: &str) -> String {
    let url = url.trim_end_matches('/');
    let last = url.rsplit('/').next().unwrap_or_default();
    let versioned = last.strip_prefix('v').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    if versioned { url.to_owned() } else { format!("{url}/{version}") }
}

/// `OLLAMA_HOST` as Ollama itself reads it: scheme and port may be absent, and a server that listens on every address is
/// asked on this machine's own.
fn ollama_url(host: &str) -> String {
    let (scheme, rest) = host.split_once("://").unwrap_or(("http", host));
    let rest = rest.trim_end_matches('/');
    let rest = rest.strip_suffix("/v1").unwrap_or(rest);
    let (authority, path) = rest.split_once('/').map_or((rest, String::new()), |(a, path)| (a, format!("/{path}")));
    let has_port = authority
        .rsplit_once(':')
        .is_some_and(|(_, port)| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()));
    let port = match (has_port, host.contains("://"), scheme) {
        (true, ..) | (false, true, "https") => "",
        (false, true, _) => ":80",
        _ => ":11434",
    };
    let authority = if authority.is_empty() { "127.0.0.1" } else { authority };
    let authority = authority.replacen("0.0.0.0", "127.0.0.1", 1);
    format!("{scheme}://{authority}{port}{path}/v1")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(values: &[(&str, &str)]) -> ProviderSettings {
        ProviderSettings::from_env(&|name| {
            values.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        })
    }

    fn check(values: &[(&str, &str)], provider: Provider, expected: Result<&str, &str>) {
        let found = settings(values).target(provider);
        match (found, expected) {
            (Ok(target), Ok(url)) => assert_eq!(target.base_url, url),
            (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{error}"),
            (found, _) => panic!("{values:?}: {:?}", found.map(|target| target.base_url)),
        }
    }

    #[test]
    fn a_missing_key_names_its_variable() {
        check(&[], Provider::OpenAi, Err("`OPENAI_API_KEY`"));
        check(&[("OPENAI_API_KEY", " ")], Provider::OpenAi, Err("`OPENAI_API_KEY`"));
        check(&[], Provider::OpenRouter, Err("`OPENROUTER_API_KEY`"));
        check(&[], Provider::Anthropic, Err("`ANTHROPIC_API_KEY`"));
        check(&[], Provider::Gemini, Err("`GEMINI_API_KEY`"));
        check(&[], Provider::Compatible, Err("`OPENAI_BASE_URL`"));
        check(&[("GEMINI_API_KEY", "k")], Provider::Gemini, Ok("https://generativelanguage.googleapis.com/v1beta"));
    }

    #[test]
    fn addresses_are_read_as_is_the_custom() {
        check(&[("OPENAI_BASE_URL", "http://h/v1")], Provider::OpenAi, Ok("http://h/v1"));
        check(&[("OPENAI_BASE_URL", "http://h/v1")], Provider::Compatible, Ok("http://h/v1"));
        check(&[("ANTHROPIC_BASE_URL", "http://h")], Provider::Anthropic, Ok("http://h/v1"));
        check(&[("ANTHROPIC_BASE_URL", "http://h/v1/")], Provider::Anthropic, Ok("http://h/v1"));
        check(&[], Provider::Ollama, Ok("http://127.0.0.1:11434/v1"));
        check(&[("OLLAMA_HOST", "0.0.0.0")], Provider::Ollama, Ok("http://127.0.0.1:11434/v1"));
        check(&[("OLLAMA_HOST", "box:80/")], Provider::Ollama, Ok("http://box:80/v1"));
        check(&[("OLLAMA_HOST", "https://box/ai")], Provider::Ollama, Ok("https://box/ai/v1"));
        check(&[("OLLAMA_HOST", "http://box")], Provider::Ollama, Ok("http://box:80/v1"));
    }

    #[test]
    fn a_stored_key_is_asked_for_by_its_address_and_only_without_one_in_the_environment() {
        let stored = |values: &[(&str, &str)], provider| {
            let mut settings = settings(values);
            settings.keys = StoredKeys::new(|variable, address| {
                let is_bound = (variable, address) == ("OPENAI_API_KEY", "https://api.openai.com/v1");
                is_bound.then(|| Secret::new("stored".to_owned()))
            });
            settings.target(provider).ok().and_then(|target| Some(target.key?.expose().clone()))
        };
        assert_eq!(stored(&[], Provider::OpenAi).as_deref(), Some("stored"));
        assert_eq!(stored(&[("OPENAI_API_KEY", "own")], Provider::OpenAi).as_deref(), Some("own"));
        assert_eq!(stored(&[("OPENAI_BASE_URL", "https://api.openai.com.evil.example/v1")], Provider::OpenAi), None);
        assert_eq!(stored(&[], Provider::Gemini), None);
    }

    #[test]
    fn settings_do_not_print_keys() {
        let printed = format!("{:?}", settings(&[("OPENAI_API_KEY", "sk-canary")]));
        assert!(!printed.contains("sk-canary") && printed.contains("[secret]"));
    }
}
