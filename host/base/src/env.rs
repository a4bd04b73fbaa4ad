//! The environment's variables, injected: nothing below the binary reads the process's own.

use std::sync::Arc;

/// Looks a variable up. An empty value counts as unset.
pub type Env = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// Variables from a list, for tests.
#[must_use]
pub fn env_of_list(variables: &[(&str, &str)]) -> Env {
    let variables: Vec<(String, String)> =
        variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Arc::new(move |name| {
        variables.iter().find(|(known, value)| known == name && !value.is_empty()).map(|(_, value)| value.clone())
    })
}
