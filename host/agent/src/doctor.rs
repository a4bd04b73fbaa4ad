//! The configuration, the missing parts, and the one command that mends each (SPEC CONF-3).

mod state;

use std::fs;

use llm::{ModelErrorKind, Role};
use providers::StoredKeys;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::ModelsConfig;
use crate::{Env, Home};
pub use state::examine_without_host;

/// Severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Works as it should.
    Ok,
    /// Works, but deserves attention.
    Warning,
    /// Does not work; has to be mended.
    Problem,
}

/// One result of the examination.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// Name of the examined part.
    pub name: String,
    /// Severity of this finding.
    pub level: Severity,
    /// The result, in one sentence.
    pub message: String,
    /// The command or action that mends it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

impl Finding {
    fn ok(name: &str, message: impl Into<String>) -> Self {
        Self { name: name.to_owned(), level: Severity::Ok, message: message.into(), remedy: None }
    }

    fn warning(name: &str, message: impl Into<String>, remedy: Option<String>) -> Self {
        Self { name: name.to_owned(), level: Severity::Warning, message: message.into(), remedy }
    }

    fn problem(name: &str, message: impl Into<String>, remedy: Option<String>) -> Self {
        Self { name: name.to_owned(), level: Severity::Problem, message: message.into(), remedy }
    }
}

/// Examines the directory of the home.
#[must_use]
pub fn home_finding(home: &Home) -> Finding {
    const NAME: &str = "home";
    let path = home.path().display();
    match fs::metadata(home.path()) {
        Ok(metadata) if metadata.is_dir() => match tempfile::tempfile_in(home.path()) {
            Ok(_) => Finding::ok(NAME, format!("{path} is there and can be written")),
            Err(error) => Finding::problem(
                NAME,
                format!("{path} cannot be written: {error}"),
                Some(format!("chown {path}, or pass `--home DIR`")),
            ),
        },
        Ok(_) => Finding::problem(NAME, format!("{path} is not a directory"), Some("pass `--home DIR`".to_owned())),
        Err(_) => Finding::ok(NAME, format!("{path} will be made by the first command that needs it")),
    }
}

/// The models of all roles, and the sandbox: all that needs neither the state nor an external request.
fn machine_findings(config: &ModelsConfig, env: &Env, keys: StoredKeys) -> Vec<Finding> {
    let mut findings = model_findings(config, env, keys);
    findings.push(pages_finding());
    findings
}

fn model_findings(config: &ModelsConfig, env: &Env, keys: StoredKeys) -> Vec<Finding> {
    let roles = config.roles();
    let settings = providers::ProviderSettings { keys, ..config.providers(env) };
    let named = [
        ("model: motor", Role::Motor),
        ("model: fast", Role::Fast),
        ("model: smart", Role::Smart),
        ("model: cortex", Role::Cortex),
    ];
    named
        .into_iter()
        .map(|(name, role)| {
            // The other roles may stay unset: conversations and the cortex say so where they need them.
            match roles.resolve(role) {
                Err(error) if role != Role::Motor => {
                    Finding::ok(name, format!("not set; `{}` would set it", error.role.variable()))
                }
                Err(error) => Finding::problem(name, error.to_string(), Some("motor setup".to_owned())),
                Ok(model) => match providers::connect(model, &settings) {
                    Ok(_) => Finding::ok(name, model.to_string()),
                    Err(error) => {
                        let remedy = (error.kind == ModelErrorKind::Auth)
                            .then(|| "motor setup keeps a key; or export the variable".to_owned());
                        Finding::problem(name, error.to_string(), remedy)
                    }
                },
            }
        })
        .collect()
}

fn pages_finding() -> Finding {
    let fast = runtime::engine::pagemap_scan();
    let message = if fast {
        "the kernel finds touched pages (PAGEMAP_SCAN): sandboxes start at full speed"
    } else {
        "the kernel does not offer PAGEMAP_SCAN (Linux 6.7): a sandbox start costs some page faults more"
    };
    Finding::ok("sandbox", message)
}
