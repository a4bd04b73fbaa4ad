//! Credentials of the environment: a variable `VAULT_API_KEY` is the credential `api_key`.

use std::collections::BTreeMap;

use base::text::Foreign;
use base::{CredentialName, Secret};

use crate::VaultConfig;

const PREFIX: &str = "VAULT_";
/// Characters of an unusable name in a warning.
const MAX_SHOWN: usize = 200;

/// A credential of the environment.
#[derive(Debug)]
pub(crate) struct Variable {
    pub(crate) name: CredentialName,
    pub(crate) value: Secret<String>,
    pub(crate) domains: Vec<String>,
}

/// The credentials among the variables, by name, and warnings about unusable entries.
pub(crate) fn read(variables: BTreeMap<String, String>, config: &VaultConfig) -> (Vec<Variable>, Vec<String>) {
    let (mut found, mut warnings) = (Vec::<Variable>::new(), Vec::new());
    for (variable, value) in variables {
        let value = Secret::new(value);
        let Some(name) = variable.strip_prefix(PREFIX).filter(|_| !value.expose().is_empty()) else { continue };
        match CredentialName::parse(&name.to_ascii_lowercase()) {
            Err(_) => {
                let variable = Foreign(&variable).escaped(MAX_SHOWN);
                warnings.push(format!("`{variable}` names no credential and is not used"));
            }
            Ok(name) if found.iter().any(|other| is_same(other.name.as_str(), name.as_str())) => {
                warnings.push(format!("credential `{name}` is in the environment twice: the first is used"));
            }
            Ok(name) => {
                if let Err(reason) = fitness(&name, value.expose()) {
                    warnings.push(format!("credential `{name}` of the environment cannot be used: {reason}"));
                }
                let domains = config.domains.iter().find(|(bound, _)| is_same(bound, name.as_str()));
                let domains = domains.map(|(_, domains)| domains.clone()).unwrap_or_default();
                found.push(Variable { name, value, domains });
            }
        }
    }
    for bound in config.domains.keys().filter(|bound| !found.iter().any(|it| is_same(bound, it.name.as_str()))) {
        let (shown, variable) = (Foreign(bound).escaped(MAX_SHOWN), folded(bound));
        let variable = Foreign(&variable).escaped(MAX_SHOWN);
        warnings.push(format!("`credentials.domains` names `{shown}`, but `{PREFIX}{variable}` is not set"));
    }
    (found, warnings)
}

/// Whether two names denote the same variable.
pub(crate) fn is_same(left: &str, right: &str) -> bool {
    folded(left) == folded(right)
}

/// The normal form of a name, equal for names of the same variable.
pub(crate) fn folded(name: &str) -> String {
    name.to_ascii_uppercase().replace('-', "_")
}

/// A shorter value would be found, and replaced, in unrelated texts.
const MIN_BYTES: usize = 8;
const MAX_BYTES: usize = 64 << 10;
/// The same goes for repetitive values such as `--------` and `00000000`.
const MIN_DIFFERENT: usize = 4;

/// Whether a value can be kept secret: it can be found wherever it flows back, and is distinct from its own
/// placeholder.
pub(crate) fn fitness(name: &CredentialName, value: &str) -> Result<(), &'static str> {
    let (whole, value) = (value, value.trim());
    let mut bytes: Vec<u8> = value.bytes().filter(|byte| !matches!(byte, b'\r' | b'\n')).collect();
    let count = bytes.len();
    bytes.sort_unstable();
    bytes.dedup();
    let different = bytes.len();
    zeroize::Zeroize::zeroize(&mut bytes);
    let (lower, placeholder) = (zeroize::Zeroizing::new(value.to_ascii_lowercase()), name.placeholder());
    if value.is_empty() {
        Err("it is empty")
    } else if count < MIN_BYTES {
        Err("it has fewer than 8 bytes, which could not be told from other text")
    } else if whole.len() > MAX_BYTES {
        Err("it has more than 64 KiB")
    } else if value.contains('\0') {
        Err("it has a zero byte in it")
    } else if different < MIN_DIFFERENT {
        Err("it has fewer than 4 different bytes, and could not be told from other text")
    } else if placeholder.to_ascii_lowercase().contains(&**lower) || lower.contains("<credential:") {
        Err("it looks like its own placeholder")
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_credentials() {
        let variables = [
            ("VAULT_API_KEY", "0123456789"),
            ("VAULT_Api_Key", "9876543210"),
            ("VAULT_1", "0123456789"),
            ("VAULT_EMPTY", ""),
            ("VAULT_SHORT", "short"),
            ("PATH", "/bin"),
        ];
        let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let domains = [("api-key", "api.example.com"), ("gone", "example.com")];
        let domains = domains.iter().map(|(name, domain)| ((*name).to_owned(), vec![(*domain).to_owned()])).collect();
        let (found, warnings) = read(variables, &VaultConfig { domains, ..VaultConfig::default() });
        let names: Vec<&str> = found.iter().map(|variable| variable.name.as_str()).collect();
        assert_eq!(names, ["api_key", "short"]);
        assert_eq!(found[0].value.expose(), "0123456789");
        assert_eq!(found[0].domains, ["api.example.com"]);
        assert_eq!(warnings.len(), 4, "{warnings:?}");
        assert!(!format!("{found:?} {warnings:?}").contains("01234"));
    }

    #[test]
    fn values_that_cannot_be_kept_secret_are_refused() {
        let name = CredentialName::parse("production").unwrap();
        for (value, expected) in [
            ("", "empty"),
            ("short", "fewer than 8"),
            ("  short   \t", "fewer than 8"),
            (" \n\t  \r\n   ", "empty"),
            ("a\n\r\nb\n\n\n\n\n", "fewer than 8"),
            ("00000000000", "4 different"),
            ("nul\0nulnul", "zero byte"),
            ("Production", "placeholder"),
            (" production", "placeholder"),
            ("x<credential:y>", "placeholder"),
        ] {
            let reason = fitness(&name, value).unwrap_err();
            assert!(reason.contains(expected), "{value:?}: {reason}");
        }
        assert!(fitness(&name, &"0123456789".repeat(6554)).unwrap_err().contains("64 KiB"));
        for value in ["abcdefgh", "pässwort", &"0123456789".repeat(6553), "production2"] {
            assert_eq!(fitness(&name, value), Ok(()), "{value}");
        }
    }
}
