//! `policy.json` as found in a skill's directory: a request by its author, who may be anyone (SPEC SKILL-4).
//!
//! It must not act on the file's claims. It survives a file of any content. Invalid parts are left out and reported;
//! claims of a status, a hash, an approval or a credential's value are reported, and count for nothing.

use std::collections::BTreeMap;

use base::CredentialName;
use serde_json::{Map, Value};

use super::bounds::{MAX_ENTRIES, shown, text};
use super::{Policy, inputs};

/// The largest file that is read, in bytes.
const MAX_BYTES: usize = 256 << 10;
/// The most oddities that are reported.
const MAX_CLAIMS: usize = 50;

/// The policy that an author asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct Proposal {
    /// The valid parts of it; `None` if the file cannot be read at all.
    pub policy: Option<Policy>,
    /// The oddities of it, each one sentence.
    pub claims: Vec<String>,
}

/// Reads a proposal leniently: invalid parts are left out and reported.
#[must_use]
pub fn read_proposal(bytes: &[u8]) -> Proposal {
    let mut reader = ProposalReader { claims: Vec::new() };
    let policy = match parse(bytes) {
        Ok(fields) => Some(reader.policy(&fields)),
        Err(problem) => {
            reader.claim(problem);
            None
        }
    };
    Proposal { policy, claims: reader.claims }
}

fn parse(bytes: &[u8]) -> Result<Map<String, Value>, String> {
    if bytes.len() > MAX_BYTES {
        return Err(format!("`policy.json` has more than {} KiB and is not read", MAX_BYTES >> 10));
    }
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    // The parser bounds the depth.
    match serde_json::from_slice(bytes) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) => Err("`policy.json` is no JSON object".to_owned()),
        Err(error) => Err(format!("`policy.json` is no JSON, at line {}", error.line())),
    }
}

struct ProposalReader {
    claims: Vec<String>,
}

impl ProposalReader {
    fn policy(&mut self, fields: &Map<String, Value>) -> Policy {
        let mut policy = Policy::default();
        for (name, value) in fields {
            match name.as_str() {
                "domains" | "allowedDomains" | "allowed_domains" => self.texts(name, value, &mut policy.domains),
                "writes" | "allowedWrites" | "allowed_writes" => self.texts(name, value, &mut policy.writes),
                "tools" | "allowedTools" | "allowed_tools" => self.texts(name, value, &mut policy.tools),
                "requiredCredentials" | "required_credentials" => {
                    self.credentials(name, value, &mut policy.required_credentials);
                }
                "dependencies" => policy.dependencies = self.dependencies(value),
                "inputs" => policy.inputs = self.inputs(value),
                "limits" => policy.limits = self.limits(value),
                "schemaVersion" | "schema_version" | "$schema" => {}
                // The host's own file says which are set.
                "credentials" if is_marks(value) => {}
                "credentialValues" | "credential_values" | "credentials" => self.claim(format!(
                    "`{name}` holds values of credentials: they count for nothing and should not lie there"
                )),
                "status" | "trust" | "approvedBy" | "approved_by" | "approvedAt" | "approved_at" | "contentHash"
                | "content_hash" | "provenance" | "extractedFrom" | "extracted_from" => self.told(name, value),
                _ => self.claim(format!("`{}` is not a field of a policy", shown(name))),
            }
        }
        policy
    }

    fn claim(&mut self, sentence: String) {
        if self.claims.len() < MAX_CLAIMS {
            self.claims.push(sentence);
        } else if self.claims.len() == MAX_CLAIMS {
            self.claims.push("there is more that is odd about it".to_owned());
        }
    }

    /// Reports a claim of the file about itself.
    fn told(&mut self, name: &str, value: &Value) {
        let said = match value {
            Value::Null => return,
            Value::String(text) => shown(text),
            other => shown(&other.to_string()),
        };
        self.claim(format!("it claims that `{name}` is `{said}`, which counts for nothing"));
    }

    fn texts(&mut self, name: &str, value: &Value, into: &mut Vec<String>) {
        for entry in self.entries(name, value) {
            match text(&entry) {
                Ok(()) if into.len() >= MAX_ENTRIES => return self.too_many(name),
                Ok(()) if into.contains(&entry) => {}
                Ok(()) => into.push(entry),
                Err(problem) => self.claim(format!("`{name}` has `{}`, which {problem}", shown(&entry))),
            }
        }
    }

    fn credentials(&mut self, name: &str, value: &Value, into: &mut Vec<CredentialName>) {
        for entry in self.entries(name, value) {
            match CredentialName::parse(&entry) {
                Ok(_) if into.len() >= MAX_ENTRIES => return self.too_many(name),
                Ok(credential) if into.contains(&credential) => {}
                Ok(credential) => into.push(credential),
                Err(error) => self.claim(format!("in `{name}`, {error}")),
            }
        }
    }

    /// The texts of a list, or of one text in place of a list.
    fn entries(&mut self, name: &str, value: &Value) -> Vec<String> {
        let values = match value {
            Value::Array(values) => values.as_slice(),
            Value::Null => &[],
            one => std::slice::from_ref(one),
        };
        let (texts, others): (Vec<_>, Vec<_>) = values.iter().partition(|value| value.is_string());
        if !others.is_empty() {
            self.claim(format!("`{name}` has entries that are no text"));
        }
        texts.into_iter().filter_map(Value::as_str).map(str::to_owned).collect()
    }

    fn too_many(&mut self, name: &str) {
        self.claim(format!("`{name}` has more than {MAX_ENTRIES} entries: the rest is left out"));
    }

    fn dependencies(&mut self, value: &Value) -> BTreeMap<String, Value> {
        let Value::Object(fields) = value else {
            self.no_object("dependencies", value);
            return BTreeMap::new();
        };
        let dependencies = fields.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        let alone = Policy { dependencies, ..Policy::default() };
        match super::bounds::check(&alone) {
            Ok(()) => alone.dependencies,
            Err(problem) => {
                self.claim(format!("its dependencies are left out: {problem}"));
                BTreeMap::new()
            }
        }
    }

    fn inputs(&mut self, value: &Value) -> Option<Value> {
        match value {
            Value::Null => None,
            Value::Object(schema) if schema.is_empty() => None,
            schema => match inputs::check_schema(schema) {
                Ok(()) => Some(schema.clone()),
                Err(problem) => {
                    self.claim(format!("its inputs are left out: {problem}"));
                    None
                }
            },
        }
    }

    fn limits(&mut self, value: &Value) -> BTreeMap<String, u64> {
        let Value::Object(fields) = value else {
            self.no_object("limits", value);
            return BTreeMap::new();
        };
        let mut limits = BTreeMap::new();
        for (name, value) in fields {
            match (text(name), value.as_u64()) {
                (Ok(()), Some(_)) if limits.len() >= MAX_ENTRIES => {
                    self.too_many("limits");
                    return limits;
                }
                (Ok(()), Some(number)) => {
                    limits.insert(name.clone(), number);
                }
                _ => self.claim(format!("the limit `{}` is no name with a whole number", shown(name))),
            }
        }
        limits
    }

    fn no_object(&mut self, name: &str, value: &Value) {
        if !value.is_null() {
            self.claim(format!("`{name}` is no JSON object and is left out"));
        }
    }
}

/// Names with `[set]`, as the host writes them.
fn is_marks(value: &Value) -> bool {
    value.as_object().is_some_and(|fields| fields.values().all(|mark| mark == "[set]"))
}

#[cfg(test)]
mod tests;
