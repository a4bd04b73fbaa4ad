//! What is configured, what is missing, and the one command that mends it (SPEC CONF-3).

use std::fs;

use llm::{ModelErrorKind, Role};
use serde::Serialize;

use crate::config::Loaded;
use crate::{Env, Home};

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// As it should be.
    Ok,
    /// Works, but look at it.
    Warning,
    /// Does not work.
    Problem,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What.
    pub name: &'static str,
    /// How it is.
    pub level: Level,
    /// In one sentence.
    pub message: String,
    /// What mends it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

/// Looks at everything that can be looked at without a request to anyone.
#[must_use]
pub fn examine(home: &Home, config: &Loaded, env: &Env) -> Vec<Finding> {
    let mut findings = vec![home_finding(home)];
    findings.extend(model_findings(config, env));
    findings.push(pages_finding());
    findings
}

fn home_finding(home: &Home) -> Finding {
    let path = home.path().display();
    let (level, message, remedy) = match fs::metadata(home.path()) {
        Ok(metadata) if metadata.is_dir() => match tempfile::tempfile_in(home.path()) {
            Ok(_) => (Level::Ok, format!("{path} is there and can be written"), None),
            Err(error) => (
                Level::Problem,
                format!("{path} cannot be written: {error}"),
                Some(format!("chown {path}, or pass `--home DIR`")),
            ),
        },
        Ok(_) => (Level::Problem, format!("{path} is not a directory"), Some("pass `--home DIR`".to_owned())),
        Err(_) => (Level::Ok, format!("{path} will be made by the first command that needs it"), None),
    };
    Finding { name: "home", level, message, remedy }
}

fn model_findings(config: &Loaded, env: &Env) -> Vec<Finding> {
    let roles = config.config.models.roles();
    let settings = config.config.models.providers(env);
    let named = [
        ("model: motor", Role::Motor),
        ("model: fast", Role::Fast),
        ("model: smart", Role::Smart),
        ("model: cortex", Role::Cortex),
    ];
    named
        .into_iter()
        .map(|(name, role)| {
            // Only the motor role is used so far: the others may stay unset.
            let unset = if role == Role::Motor { Level::Problem } else { Level::Ok };
            match roles.resolve(role) {
                Err(error) if unset == Level::Ok => Finding {
                    name,
                    level: Level::Ok,
                    message: format!("not set; `{}` would set it", error.role.variable()),
                    remedy: None,
                },
                Err(error) => Finding {
                    name,
                    level: unset,
                    message: error.to_string(),
                    remedy: Some(format!("export {}=ollama/qwen3:8b", role.variable())),
                },
                Ok(model) => match providers::connect(model, &settings) {
                    Ok(_) => Finding { name, level: Level::Ok, message: format!("{model}"), remedy: None },
                    Err(error) => {
                        let remedy =
                            (error.kind == ModelErrorKind::Auth).then(|| "export the variable it names".to_owned());
                        Finding { name, level: Level::Problem, message: error.to_string(), remedy }
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
    Finding { name: "sandbox", level: Level::Ok, message: message.to_owned(), remedy: None }
}
