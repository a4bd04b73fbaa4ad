//! The environment's variables, injected: nothing below the binary reads the process's own.

use std::collections::BTreeMap;
use std::sync::Arc;

/// Looks a variable up. An empty value counts as unset.
pub type Env = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// The variables of this process.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "the process's variables")]
pub fn of_process() -> Env {
    Arc::new(|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
}

/// The variables of this process that hold credentials: `VAULT_*` (SPEC VAULT-1).
#[must_use]
#[expect(clippy::disallowed_methods, reason = "the process's variables")]
pub fn vault_variables_of_process() -> BTreeMap<String, String> {
    let credentials = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
        let name = name.into_string().ok().filter(|name| name.starts_with("VAULT_"))?;
        Some((name, value.into_string().ok().filter(|value| !value.is_empty())?))
    };
    std::env::vars_os().filter_map(credentials).collect()
}

/// Variables from a list, for tests.
#[must_use]
pub fn of_list(variables: &[(&str, &str)]) -> Env {
    let variables: Vec<(String, String)> =
        variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Arc::new(move |name| {
        variables.iter().find(|(known, value)| known == name && !value.is_empty()).map(|(_, value)| value.clone())
    })
}
