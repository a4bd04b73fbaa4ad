//! Checks beyond the type of a value, and the report about a value that does not fit.
//!
//! A value that would only fail later, at the next start or in each run, is refused where it is set.

use std::path::Path;

use base::{Refusal, RefusalCode};

use super::{Config, ValueSource};
use crate::{doctor, reflection};

/// The command that corrects a file as text.
const EDIT: &str = "motor config edit";

/// A value of a source, or a whole file, that is not taken.
#[derive(Debug, Clone)]
pub struct ConfigFault {
    /// The key as `section.key`; empty if the whole file does not fit.
    pub key: String,
    /// The reason, and the remedy in words.
    pub refusal: Refusal,
    /// The one command that mends it.
    pub fix: String,
}

impl ConfigFault {
    pub(super) fn new(key: &str, origin: &ValueSource, is_known: bool, reason: String) -> Self {
        let (fix, remedy) = match origin {
            ValueSource::File(_) if is_known => {
                let fix = format!("motor config unset {}", doctor::quoted(key));
                let remedy = format!("`{fix}` takes it out of the file");
                (fix, remedy)
            }
            ValueSource::File(_) => (EDIT.to_owned(), format!("correct the file with `{EDIT}`")),
            ValueSource::Env(name) => (format!("unset {name}"), format!("correct or unset the variable `{name}`")),
            ValueSource::Flag | ValueSource::Default => {
                ("motor config show".to_owned(), "`motor config show` lists every key".to_owned())
            }
        };
        let refusal = Refusal::new(RefusalCode::InvalidRequest, reason).with_remedy(remedy);
        Self { key: key.to_owned(), refusal, fix }
    }

    /// About a file that is not TOML.
    pub(super) fn unparsed(refusal: Refusal) -> Self {
        Self { key: String::new(), refusal, fix: EDIT.to_owned() }
    }

    /// About a file that cannot be read as text.
    pub(super) fn unreadable(path: &Path, refusal: Refusal) -> Self {
        let path = path.display().to_string();
        let fix = format!("mv {} {}", doctor::quoted(&path), doctor::quoted(&format!("{path}.old")));
        Self { key: String::new(), refusal, fix }
    }
}

impl Config {
    /// Checks the numbers of every section. The settings of `section` are also parsed as the start of a host does, which
    /// may read files.
    pub(super) fn check(&self, section: &str) -> Result<(), String> {
        self.models.check()?;
        self.motor.check()?;
        self.agent.check()?;
        self.rules.check()?;
        self.code.check()?;
        self.limits.check()?;
        self.credentials.check()?;
        self.energy.validate().map_err(|error| error.to_string())?;
        self.neurons.validate().map_err(|error| error.to_string())?;
        reflection::check(&self.cortex)?;
        let parsed = match section {
            "network" => self.network.check(),
            "signals" | "telemetry" => network::Gate::new(&self.network)
                .and_then(|gate| deliveries::check(&self.signals, &self.telemetry, &gate)),
            _ => Ok(()),
        };
        parsed.map_err(doctor::reason)
    }
}
