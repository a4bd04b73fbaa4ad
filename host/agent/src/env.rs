//! The environment's variables, injected: nothing below the binary reads the process's own.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::Env;
pub use base::env_of_list as of_list;

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
