//! The models of all roles, and the answer of the one that does the work: one request of at most 16 tokens.

use base::Refusal;
use llm::{ModelErrorKind, ModelRef, Provider, Role};
use providers::{ProviderSettings, StoredKeys};
use store::{HomeLock, Store, blocking};

use super::{Check, Finding, Severity};
use crate::config::ModelsConfig;
use crate::host::open_vault;
use crate::models::ModelAccess;
use crate::{Env, Host, HostOptions, ModelAnswer, setup};

const ANSWER: Check = Check::new("model_answer", "model: answer");
const ROLES: [(Check, Role); 4] = [
    (Check::new("model_motor", "model: motor"), Role::Motor),
    (Check::new("model_fast", "model: fast"), Role::Fast),
    (Check::new("model_smart", "model: smart"), Role::Smart),
    (Check::new("model_cortex", "model: cortex"), Role::Cortex),
];
/// The most tokens of the answer: the fewest that every provider takes as a limit.
const MAX_TOKENS: u32 = 16;
/// How long the answer may take, in seconds.
const PATIENCE_SECONDS: u64 = 30;

/// The models of all roles, without a request.
pub(super) fn findings(config: &ModelsConfig, env: &Env, keys: StoredKeys) -> Vec<Finding> {
    let roles = config.roles();
    let settings = ProviderSettings { keys, ..config.providers(env) };
    let finding = |(check, role): (Check, Role)| match roles.resolve(role) {
        // The other roles may stay unset: conversations and the cortex say so where they need them.
        Err(error) if role != Role::Motor => check.ok(format!("not set; `{}` would set it", error.role.variable())),
        Err(error) => check.problem(error.to_string(), "motor setup"),
        Ok(model) => match providers::connect(model, &settings) {
            Ok(_) => check.ok(model.to_string()),
            Err(error) if error.kind == ModelErrorKind::Auth => check.problem(error.to_string(), mend(model)),
            Err(error) => check.problem(error.to_string(), "motor setup"),
        },
    };
    ROLES.into_iter().map(finding).collect()
}

/// The command that sets a model up again: its key and its address.
fn mend(model: &ModelRef) -> String {
    format!("motor setup --model {}", super::quoted(&model.to_string()))
}

/// The finding in place of a request that was not wanted.
#[must_use]
pub fn unasked() -> Finding {
    ANSWER.finding(Severity::Skipped, "not asked: `--offline`", None)
}

impl Host {
    /// Asks the model of runs for one word, with at most 16 tokens and without retries, and tells how long it took.
    pub async fn ask_model_once(&self) -> Finding {
        let access = self.runs.environment.model_access();
        let Some(model) = model_to_ask(&access.config) else { return nothing_to_ask() };
        let connecting = blocking({
            let model = model.clone();
            move || connect(access, &model)
        });
        answered(&model, connecting.await).await
    }
}

/// As [`Host::ask_model_once`], for a home without a host. The home is free again when the model is asked.
pub async fn ask_without_host(options: &HostOptions) -> Finding {
    let config = options.config.config.models.clone();
    let Some(model) = model_to_ask(&config) else { return nothing_to_ask() };
    let opened = || -> Result<_, Refusal> {
        let _lock = HomeLock::acquire(options.home.path())?;
        let store = Store::open(&options.home.state())?;
        let access = ModelAccess {
            config: config.clone(),
            prices: options.config.config.price_table(),
            env: options.env.clone(),
            vault: open_vault(options, &store),
            saving: None,
        };
        connect(access, &model)
    };
    // A home without a state has no keys, and is not created for this.
    let connected = if store::exists(&options.home.state()) {
        opened()
    } else {
        let settings = brief(config).providers(&options.env);
        providers::connect(&model, &settings).map_err(|error| crate::models::refusal(&error))
    };
    answered(&model, connected).await
}

fn nothing_to_ask() -> Finding {
    ANSWER.finding(Severity::Skipped, "not asked: no model is set, or the one set answers from a file", None)
}

/// The model of runs. A recording makes no request.
fn model_to_ask(config: &ModelsConfig) -> Option<ModelRef> {
    config.roles().resolve(Role::Motor).ok().filter(|model| model.provider != Provider::Replay).cloned()
}

/// The settings of a request that is made once and is over soon.
fn brief(config: ModelsConfig) -> ModelsConfig {
    ModelsConfig {
        output_tokens: Some(MAX_TOKENS),
        reasoning: None,
        deadline_seconds: PATIENCE_SECONDS,
        idle_seconds: PATIENCE_SECONDS,
        retries: 0,
        constrained: false,
        ..config
    }
}

type Connected = std::sync::Arc<dyn llm::Model>;

fn connect(access: ModelAccess, model: &ModelRef) -> Result<Connected, Refusal> {
    let access = ModelAccess { config: brief(access.config), ..access };
    let scrubber = access.vault.scrubber()?;
    access.connect(Some(&model.to_string()), None, Some(scrubber))
}

async fn answered(model: &ModelRef, connected: Result<Connected, Refusal>) -> Finding {
    let answer = match connected {
        Ok(connected) => setup::ask(&*connected).await,
        Err(refusal) => Err(refusal),
    };
    finding(model, answer)
}

fn finding(model: &ModelRef, answer: Result<ModelAnswer, Refusal>) -> Finding {
    match answer {
        Ok(answer) => ANSWER.ok(format!("`{}` answered in {} ms", answer.model, answer.elapsed_ms)),
        Err(refusal) => {
            // Its remedy is this very examination.
            let message = format!("`{model}` of {} gave no answer: {}", model.provider, refusal.reason);
            ANSWER.problem(message, mend(model))
        }
    }
}

#[cfg(test)]
mod tests {
    use base::RefusalCode;

    use super::*;

    #[test]
    fn a_failure_names_the_provider_and_one_command() {
        let model: ModelRef = "openai/gpt".parse().unwrap();
        let refused = |code| finding(&model, Err(Refusal::new(code, "refused").with_remedy("ask the doctor")));
        for code in [RefusalCode::CredentialsNeeded, RefusalCode::ModelUnavailable] {
            let finding = refused(code);
            assert_eq!(finding.status, Severity::Problem);
            assert_eq!(finding.message, "`openai/gpt` of openai gave no answer: refused");
            assert_eq!(finding.fix.as_deref(), Some("motor setup --model openai/gpt"));
        }
        let answer = ModelAnswer { model: "openai/gpt".into(), text: "ready".into(), elapsed_ms: 7 };
        assert_eq!(finding(&model, Ok(answer)).message, "`openai/gpt` answered in 7 ms");
    }

    #[test]
    fn the_request_is_brief_and_a_recording_is_not_asked() {
        let config = ModelsConfig { output_tokens: Some(9_000), retries: 9, ..ModelsConfig::default() };
        assert_eq!((brief(config.clone()).output_tokens, brief(config.clone()).retries), (Some(16), 0));
        assert_eq!(model_to_ask(&config), None);
        let asks = |name: &str| {
            model_to_ask(&ModelsConfig { motor: Some(name.parse().unwrap()), ..ModelsConfig::default() }).is_some()
        };
        assert!(asks("openai/gpt") && !asks("replay/turns.jsonl"));
    }
}
