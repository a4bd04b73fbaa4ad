//! Configuration: flag, environment, file, default, in that order (SPEC CONF-2). Every key records the origin of its
//! value, and an unknown key is an error that names the nearest one.
//!
//! The sections belong to the crates that use them (`motor::Config`, `energy::Config`, `runtime::Limits`); this file
//! lists them and loads them.

mod channels;
mod check;
pub mod edit;
mod models;
mod retention;
mod skills;

use std::collections::BTreeMap;
use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use base::text::{did_you_mean, nearest};
use base::{Refusal, RefusalCode};
use llm::{ModelRef, PriceTable};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use store::Links;

use crate::{Env, Home};

pub use channels::{ChannelsConfig, DirectoryConfig};
pub use check::ConfigFault;
pub use deliveries::{HookConfig, SignalsConfig, TelemetryConfig, WebhookConfig};
pub use models::ModelsConfig;
pub use retention::{Age, ByteSize, RetentionConfig};
pub use skills::SkillsConfig;
pub use toolbox::{CodeConfig, ToolsConfig};

/// Everything that can be configured.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Models and how they are called.
    pub models: ModelsConfig,
    /// Settings of the motor loop.
    pub motor: motor::MotorConfig,
    /// Several runs of one agent.
    pub agent: motor::PlacesConfig,
    /// Thresholds and capacities of runs, fixed when a run starts.
    pub rules: motor::RunRules,
    /// Limits on a run's spending, and prices.
    pub budget: motor::Prices,
    /// Prices of models in US dollars for a million tokens, by `provider/model`. Default: the table that ships with the
    /// program.
    pub prices: PriceTable,
    /// The sandbox for code.
    pub code: CodeConfig,
    /// Limits of one guest call.
    pub limits: runtime::Limits,
    /// Timeouts of individual tools.
    pub tools: ToolsConfig,
    /// The network access of runs and code.
    pub network: network::NetworkConfig,
    /// Credentials from the environment.
    pub credentials: vault::VaultConfig,
    /// Settings of the component engine.
    pub engine: runtime::EngineConfig,
    /// Settings of the energy model.
    pub energy: energy::EnergyConfig,
    /// Receivers of the signals of runs.
    pub signals: SignalsConfig,
    /// The collector of traces.
    pub telemetry: TelemetryConfig,
    /// The directories of skills, and the bounds of one.
    pub skills: SkillsConfig,
    /// How long finished runs are kept.
    pub retention: RetentionConfig,
    /// Who may answer the questions of runs.
    pub consent: consent::ConsentConfig,
    /// Reflection on the past actions of agents.
    pub cortex: cortex::CortexConfig,
    /// Code of agents that reacts to signals.
    pub neurons: neurons::NeuronsConfig,
    /// Ways of messages beside the HTTP API.
    pub channels: ChannelsConfig,
}

/// The origin of a value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "from", content = "name")]
pub enum ValueSource {
    /// No source set the value.
    Default,
    /// The configuration file at this path.
    File(PathBuf),
    /// An environment variable, by name.
    Env(String),
    /// A flag of the command line.
    Flag,
}

impl fmt::Display for ValueSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(path) => write!(f, "file {}", path.display()),
            Self::Env(name) => write!(f, "env {name}"),
            Self::Flag => f.write_str("flag"),
        }
    }
}

/// One key with its effective value.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ConfigEntry {
    /// The key as `section.key`.
    pub key: String,
    /// The value in force.
    pub value: Value,
    /// The source that set the value.
    pub origin: ValueSource,
}

/// The configuration in force, and the origin of each value.
#[derive(Debug, Clone)]
pub struct LoadedConfig {
    /// The values of all keys.
    pub config: Config,
    origins: BTreeMap<String, ValueSource>,
    sources: Sources,
}

/// The sources that a configuration was read from, to read them again.
#[derive(Clone)]
struct Sources {
    home: Home,
    file: Option<PathBuf>,
    env: Env,
    overrides: Vec<(String, String)>,
}

impl fmt::Debug for Sources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sources").field("file", &self.file).finish_non_exhaustive()
    }
}

/// Variables with names of their own; every other key is `MOTOR_<SECTION>_<KEY>`.
const CUSTOMARY: [(&str, &str); 10] = [
    ("OPENAI_BASE_URL", "models.openai_url"),
    ("OPENROUTER_BASE_URL", "models.openrouter_url"),
    ("ANTHROPIC_BASE_URL", "models.anthropic_url"),
    ("GEMINI_BASE_URL", "models.gemini_url"),
    ("OLLAMA_HOST", "models.ollama_url"),
    ("LLM_FAST_MODEL", "models.fast"),
    ("LLM_SMART_MODEL", "models.smart"),
    ("LLM_MOTOR_MODEL", "models.motor"),
    ("LLM_CORTEX_MODEL", "models.cortex"),
    ("LLM_DEFAULT_MODEL", "models.default"),
];

/// The largest configuration file that is read, in bytes.
const MAX_FILE_BYTES: u64 = 1 << 20;

impl Config {
    /// The settings of the loop, with those of its other sections.
    #[must_use]
    pub fn of_loop(&self) -> motor::MotorConfig {
        motor::MotorConfig { budget: self.budget.clone(), rules: self.rules, places: self.agent, ..self.motor.clone() }
    }

    /// The price of every model, also those set at the older place.
    #[must_use]
    pub fn price_table(&self) -> PriceTable {
        let mut table = self.prices.clone();
        self.models.prices.iter().for_each(|(model, price)| table.insert(model, *price));
        table
    }
}

impl LoadedConfig {
    /// Loads the configuration: `file`, otherwise the home's own if it exists; `overrides` are `section.key` and
    /// value.
    ///
    /// # Errors
    /// If a named file is missing, or any source has an unknown key or an invalid value.
    pub fn load(home: &Home, file: Option<&Path>, env: &Env, overrides: &[(String, String)]) -> Result<Self, Refusal> {
        let (loaded, faults) = Self::examine(home, file, env, overrides)?;
        faults.into_iter().next().map_or(Ok(loaded), |fault| Err(fault.refusal))
    }

    /// As [`LoadedConfig::load`], but values of the file or the environment that do not fit are left out and reported, so
    /// that an examination goes on without them.
    ///
    /// # Errors
    /// If a named file is missing, or an override does not fit.
    pub fn examine(
        home: &Home,
        file: Option<&Path>,
        env: &Env,
        overrides: &[(String, String)],
    ) -> Result<(Self, Vec<ConfigFault>), Refusal> {
        let mut faults = Vec::new();
        let mut tree = to_tree(&Config::default())?;
        let known = keys(&tree);
        let mut origins = BTreeMap::new();
        let path = file.map_or_else(|| home.config_file(), Path::to_owned);
        let values = match read_file(&path, file.is_some()) {
            // The path of a missing file is a mistake of this command.
            Err(fault) if file.is_some() && !path.exists() => return Err(fault.refusal),
            read => read.unwrap_or_else(|fault| {
                faults.push(fault);
                Map::new()
            }),
        };
        for (key, value) in flatten(&values, &known) {
            faults.extend(set(&mut tree, &mut origins, &known, &key, value, ValueSource::File(path.clone())).err());
        }
        for key in &known {
            let own = format!("MOTOR_{}", key.to_uppercase().replace('.', "_"));
            let customary = CUSTOMARY.iter().find(|(_, of)| of == key).map(|(name, _)| (*name).to_owned());
            for name in customary.into_iter().chain([own]) {
                if let Some(text) = env(&name) {
                    faults
                        .extend(set(&mut tree, &mut origins, &known, key, scalar(&text), ValueSource::Env(name)).err());
                }
            }
        }
        for (key, text) in overrides {
            set(&mut tree, &mut origins, &known, key, scalar(text), ValueSource::Flag)
                .map_err(|fault| fault.refusal)?;
        }
        let config: Config = serde_json::from_value(tree)
            .map_err(|error| invalid(format!("the configuration does not fit: {error}")))?;
        let (home, file, env) = (home.clone(), file.map(Path::to_owned), env.clone());
        let sources = Sources { home, file, env, overrides: overrides.to_vec() };
        Ok((Self { config, origins, sources }, faults))
    }

    /// The configuration without any source.
    #[must_use]
    pub fn of_defaults(home: &Home) -> Self {
        let nothing: Env = std::sync::Arc::new(|_| None);
        let sources = Sources { home: home.clone(), file: None, env: nothing, overrides: Vec::new() };
        Self { config: Config::default(), origins: BTreeMap::new(), sources }
    }

    /// Reads the same sources again.
    ///
    /// # Errors
    /// As [`LoadedConfig::load`].
    pub fn reload(&self) -> Result<Self, Refusal> {
        let Sources { home, file, env, overrides } = &self.sources;
        Self::load(home, file.as_deref(), env, overrides)
    }

    /// The path of the file, which may not exist.
    pub(crate) fn path(&self) -> PathBuf {
        self.sources.file.clone().unwrap_or_else(|| self.sources.home.config_file())
    }

    /// With the configuration of which only the keys that are `taken` are from here, and the others from `before`.
    pub(crate) fn with(mut self, config: Config, taken: impl Fn(&str) -> bool, before: &Self) -> Self {
        self.config = config;
        self.origins.retain(|key, _| taken(key));
        let kept = before.origins.iter().filter(|(key, _)| !taken(key));
        self.origins.extend(kept.map(|(key, origin)| (key.clone(), origin.clone())));
        self
    }

    /// Every key, sorted, with its effective value and origin.
    #[must_use]
    pub fn entries(&self) -> Vec<ConfigEntry> {
        let Ok(tree) = to_tree(&self.config) else { return Vec::new() };
        keys(&tree)
            .into_iter()
            .map(|key| ConfigEntry {
                value: at(&tree, &key).cloned().unwrap_or(Value::Null),
                origin: self.origins.get(&key).cloned().unwrap_or(ValueSource::Default),
                key,
            })
            .collect()
    }
}

fn to_tree(config: &Config) -> Result<Value, Refusal> {
    serde_json::to_value(config).map_err(|error| Refusal::new(RefusalCode::Failed, error.to_string()))
}

/// `section.key` for every existing key; maps within a section (prices) count as one key.
fn keys(tree: &Value) -> Vec<String> {
    let sections = tree.as_object().into_iter().flatten();
    let mut keys: Vec<String> = sections
        .flat_map(|(section, values)| {
            values.as_object().into_iter().flatten().map(move |(key, _)| format!("{section}.{key}"))
        })
        .collect();
    keys.sort();
    keys
}

/// Splits `section.key`; the name of a model has dots of its own.
fn parts(key: &str) -> (&str, &str) {
    key.split_once('.').unwrap_or((key, ""))
}

fn at<'a>(tree: &'a Value, key: &str) -> Option<&'a Value> {
    let (section, name) = parts(key);
    tree.get(section)?.get(name)
}

/// Whether the key is the price of a model, which need not be listed before it is set.
#[must_use]
pub fn is_price(key: &str) -> bool {
    matches!(parts(key), ("prices", model) if model.parse::<ModelRef>().is_ok())
}

/// The values by key. A section that is not known is taken apart too, so that its keys are compared with the known ones.
fn flatten(values: &Map<String, Value>, known: &[String]) -> Vec<(String, Value)> {
    let is_section = |section: &str| known.iter().any(|key| parts(key).0 == section);
    let mut flat = Vec::new();
    for (section, value) in values {
        match value {
            Value::Object(entries) if !entries.is_empty() || is_section(section) => {
                flat.extend(entries.iter().map(|(key, value)| (format!("{section}.{key}"), value.clone())));
            }
            other => flat.push((section.clone(), other.clone())),
        }
    }
    flat
}

#[expect(clippy::result_large_err, reason = "few, and each is shown")]
fn set(
    tree: &mut Value,
    origins: &mut BTreeMap<String, ValueSource>,
    known: &[String],
    key: &str,
    value: Value,
    origin: ValueSource,
) -> Result<(), ConfigFault> {
    if !known.iter().any(|known| known == key) && !is_price(key) {
        let meant = did_you_mean(nearest(key, known.iter().map(|known| (known.as_str(), known))));
        return Err(ConfigFault::new(key, &origin, false, format!("unknown key `{key}` ({origin}){meant}")));
    }
    // A value is checked alone, so that the error names its key and its source.
    let mut trial = tree.clone();
    let (section, name) = parts(key);
    if let Some(Value::Object(values)) = trial.get_mut(section) {
        values.insert(name.to_owned(), value);
    }
    let checked = serde_json::from_value::<Config>(trial.clone()).map_err(|error| error.to_string());
    if let Err(error) = checked.and_then(|config| config.check(section)) {
        return Err(ConfigFault::new(key, &origin, true, format!("`{key}` ({origin}) does not fit: {error}")));
    }
    *tree = trial;
    origins.insert(key.to_owned(), origin);
    Ok(())
}

#[expect(clippy::result_large_err, reason = "few, and each is shown")]
fn read_file(path: &Path, named: bool) -> Result<Map<String, Value>, ConfigFault> {
    let text = read_text(path, named).map_err(|refusal| ConfigFault::unreadable(path, refusal))?;
    text.map_or(Ok(Map::new()), |text| parse(path, &text)).map_err(ConfigFault::unparsed)
}

/// The text of a configuration file; `None` if a file that was not `named` is missing.
fn read_text(path: &Path, named: bool) -> Result<Option<String>, Refusal> {
    match store::read_regular(path, Links::Followed, MAX_FILE_BYTES).map(String::from_utf8) {
        Ok(Ok(text)) => Ok(Some(text)),
        Ok(Err(_)) => Err(unreadable(path, "is not UTF-8 text")),
        // A path below a file is missing too: the code that creates the home reports the error.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) && !named => Ok(None),
        Err(error) => Err(unreadable(path, &format!("cannot be read: {error}"))),
    }
}

fn unreadable(path: &Path, why: &str) -> Refusal {
    Refusal::new(RefusalCode::InvalidRequest, format!("the configuration `{}` {why}", path.display()))
        .with_remedy("name a readable file of text; without a file the defaults hold")
}

fn parse(path: &Path, text: &str) -> Result<Map<String, Value>, Refusal> {
    let table: toml::Table = toml::from_str(text).map_err(|error| {
        let line = error.span().map_or(0, |span| text.get(..span.start).unwrap_or_default().lines().count().max(1));
        let reason = format!("`{}`, line {line}: {}", path.display(), error.message());
        Refusal::new(RefusalCode::InvalidRequest, reason).with_remedy("correct the file with `motor config edit`")
    })?;
    Ok(table.into_iter().map(|(key, value)| (key, json(value))).collect())
}

/// A number that is not finite becomes text, which fits no number: as JSON it would be null, and so a missing limit.
fn json(value: toml::Value) -> Value {
    match value {
        toml::Value::Array(values) => values.into_iter().map(json).collect(),
        toml::Value::Table(table) => table.into_iter().map(|(key, value)| (key, json(value))).collect(),
        toml::Value::Float(number) => {
            serde_json::Number::from_f64(number).map_or_else(|| Value::String(number.to_string()), Value::Number)
        }
        toml::Value::Integer(number) => number.into(),
        toml::Value::Boolean(value) => value.into(),
        toml::Value::String(text) => Value::String(text),
        toml::Value::Datetime(time) => Value::String(time.to_string()),
    }
}

/// A value given as text: a TOML value or a JSON object if it parses, otherwise a string.
fn scalar(text: &str) -> Value {
    let table: Result<toml::Table, _> = toml::from_str(&format!("value = {text}"));
    table
        .ok()
        .and_then(|mut table| table.remove("value"))
        .map(json)
        .or_else(|| serde_json::from_str(text).ok().map(Value::Object))
        .unwrap_or_else(|| Value::String(text.to_owned()))
}

fn invalid(reason: String) -> Refusal {
    Refusal::new(RefusalCode::InvalidRequest, reason).with_remedy("`motor config show` lists every key")
}

#[cfg(test)]
mod tests;
