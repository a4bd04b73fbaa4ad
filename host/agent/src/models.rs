//! Which model a run uses: the one it names, otherwise the motor role's chain (SPEC CONF-3).

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use base::{CredentialName, Refusal, RefusalCode};
use llm::{ConstrainedModel, Fallback, Model, ModelError, ModelErrorKind, ModelRef, PriceTable, Recorder, Role};
use network::{Host, Scheme, Target, may_be_sent};
use providers::{ProviderSettings, Redact, StoredKeys};
use vault::{Scrubber, Vault};

use crate::Env;
use crate::config::ModelsConfig;
use crate::keeper::{Keeper, SaveScope};
use crate::withhold::Withholding;

/// The access to models: settings, and the places of their keys.
#[derive(Clone)]
pub(crate) struct ModelAccess {
    pub config: ModelsConfig,
    /// The prices of models whose endpoints report no costs.
    pub prices: PriceTable,
    pub env: Env,
    pub vault: Vault,
    /// Of a run: the credentials that it may save, if any.
    pub saving: Option<Option<SaveScope>>,
}

impl ModelAccess {
    /// Connects to the model for a run and hides from it all secrets known to `scrubber`. Nothing is sent yet: missing
    /// keys and models are found here, before the first token. It may block while the vault is opened, or a file.
    ///
    /// # Errors
    /// If no model is configured, a reference is wrong, a key is missing, or the recording cannot be written.
    pub fn connect(
        self,
        named: Option<&str>,
        record: Option<&Path>,
        scrubber: Option<Arc<Scrubber>>,
    ) -> Result<Arc<dyn Model>, Refusal> {
        let settings = self.settings(scrubber.clone());
        let model = match named {
            Some(name) => one(&parse(name)?, &settings)?,
            None => chain(&self.config, &settings, &[Role::Motor])?,
        };
        // On both sides of a recording: it sees requests as a replay gets them, and replies without secrets.
        let model = self.prepared(model, scrubber.clone());
        let saves = self.saving.as_ref().is_some_and(Option::is_some);
        let Some(path) = record else { return Ok(model) };
        let recorder = Recorder::open(model, path)
            .map_err(|error| Refusal::new(RefusalCode::InvalidRequest, format!("`{}`: {error}", path.display())))?;
        match scrubber {
            Some(scrubber) if saves => Ok(Withholding::always(Arc::new(recorder), scrubber)),
            scrubber => Ok(Withholding::wrap(Arc::new(recorder), scrubber)),
        }
    }

    /// Connects to the model of the first role that has one, as [`ModelAccess::connect`] does.
    ///
    /// # Errors
    /// If no role has a model, a reference is wrong, or a key is missing.
    pub fn connect_role(&self, roles: &[Role], scrubber: Option<Arc<Scrubber>>) -> Result<Arc<dyn Model>, Refusal> {
        let model = chain(&self.config, &self.settings(scrubber.clone()), roles)?;
        Ok(self.prepared(model, scrubber))
    }

    fn prepared(&self, model: Arc<dyn Model>, scrubber: Option<Arc<Scrubber>>) -> Arc<dyn Model> {
        let is_constrained = self.config.constrained;
        let model: Arc<dyn Model> = if is_constrained { Arc::new(ConstrainedModel::new(model)) } else { model };
        let Some((scope, scrubber)) = self.saving.clone().zip(scrubber.clone()) else {
            return Withholding::wrap(model, scrubber);
        };
        let saves = scope.is_some();
        let model: Arc<dyn Model> = Arc::new(Keeper { model, scrubber: scrubber.clone(), scope });
        // A run that saves learns secrets later.
        if saves { Withholding::always(model, scrubber) } else { Withholding::wrap(model, Some(scrubber)) }
    }

    fn settings(&self, scrubber: Option<Arc<Scrubber>>) -> ProviderSettings {
        let mut settings = self.config.providers(&self.env);
        settings.prices = self.prices.clone();
        settings.keys = stored_keys(self.vault.clone());
        if let Some(scrubber) = scrubber {
            settings.redact = Redact::new(move |text| scrubber.text(text));
        }
        settings
    }
}

/// The vault's credentials named like the customary variables. As for every request, a credential goes only to the
/// domains that it is bound to.
pub(crate) fn stored_keys(vault: Vault) -> StoredKeys {
    StoredKeys::new(move |variable, address| {
        let name: CredentialName = variable.parse().ok()?;
        let target = Target::parse(address).ok()?;
        let secrets = vault.for_run(&[name], None).ok()?;
        let granted = secrets.granted().first()?;
        // In clear text it stays on this machine or its network.
        let is_near = match target.host() {
            Host::Name(name) => name == "localhost",
            Host::Address(IpAddr::V4(address)) => address.is_loopback() || address.is_private(),
            Host::Address(IpAddr::V6(address)) => address.is_loopback() || address.is_unique_local(),
        };
        if target.scheme() != Scheme::Https && !is_near {
            return None;
        }
        may_be_sent(granted, &target).then(|| granted.value.clone())
    })
}

fn parse(name: &str) -> Result<ModelRef, Refusal> {
    name.parse().map_err(|error| Refusal::new(RefusalCode::InvalidRequest, format!("{error}")))
}

/// The first of `wanted` that has a model, with the fallbacks of its chain.
fn chain(config: &ModelsConfig, settings: &ProviderSettings, wanted: &[Role]) -> Result<Arc<dyn Model>, Refusal> {
    let roles = config.roles();
    let has_model = |role: &&Role| roles.resolve(**role).is_ok();
    let role = wanted.iter().find(has_model).or(wanted.last()).copied().unwrap_or(Role::Motor);
    let unset = |error: llm::RoleUnset| {
        Refusal::new(RefusalCode::ModelUnavailable, error.to_string())
            .with_remedy("`motor setup` asks for one and tries it; `motor demo` needs no model")
    };
    let first = one(roles.resolve(role).map_err(unset)?, settings)?;
    // A fallback without its key is left out; this is not an error.
    let others: Vec<_> =
        roles.fallbacks(role).into_iter().skip(1).filter_map(|model| one(model, settings).ok()).collect();
    Ok(if others.is_empty() { first } else { Arc::new(Fallback::new(first, others)) })
}

fn one(model: &ModelRef, settings: &ProviderSettings) -> Result<Arc<dyn Model>, Refusal> {
    providers::connect(model, settings).map_err(|error| refusal(&error))
}

/// Checks that turns can be recorded in `path`, without opening it: another run may be writing there.
///
/// # Errors
/// If it exists and is not a file, or its directory does not exist.
pub(crate) fn check_recording(path: &Path) -> Result<(), Refusal> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let wrong = if path.exists() && !path.is_file() {
        "it is not a regular file"
    } else if !directory.is_dir() {
        "its directory does not exist"
    } else {
        return Ok(());
    };
    Err(Refusal::new(RefusalCode::InvalidRequest, format!("cannot record in `{}`: {wrong}", path.display())))
}

/// A model error before the run is accepted, as a refusal.
pub(crate) fn refusal(error: &ModelError) -> Refusal {
    let code = match error.kind {
        ModelErrorKind::Auth => RefusalCode::CredentialsNeeded,
        _ => RefusalCode::ModelUnavailable,
    };
    Refusal::new(code, error.to_string()).with_remedy("`motor doctor` says what is configured and what is missing")
}
