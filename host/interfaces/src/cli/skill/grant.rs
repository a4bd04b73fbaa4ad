//! The powers that the owner names on the command line: the same flags where a skill is approved and where its policy
//! is changed. Powers that are not named stay as they were shown.

use std::collections::BTreeMap;
use std::path::PathBuf;

use base::{CredentialName, Refusal};
use clap::Args;
use skills::Policy;
use skills::policy::PolicyChange;

use super::super::context::usage;
use super::super::input;

/// Powers of a skill's runs. `''` empties a kind.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "What its runs may do (`''` for nothing)")]
pub(super) struct GrantedArgs {
    /// Bundled tools: `code`, `fetch`, `bash`, `filesystem`, or single file tools
    #[arg(long, value_delimiter = ',', value_name = "TOOLS")]
    tools: Option<Vec<String>>,
    /// Domains they may reach: `example.com`, `*.example.com` or `*`, with `:PORT` if it is not 80 or 443
    #[arg(long, value_delimiter = ',', value_name = "DOMAINS")]
    domains: Option<Vec<String>>,
    /// Domains they may write to also after they have read from the web
    #[arg(long, value_delimiter = ',', value_name = "DOMAINS")]
    writes: Option<Vec<String>>,
    /// Credentials they may use
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    credentials: Option<Vec<String>>,
    /// A limit of each call that is lower than the configured one, such as `fuel=1000000`
    #[arg(long = "limit", value_name = "NAME=N", value_parser = limit)]
    limits: Vec<(String, u64)>,
    /// A file with the JSON Schema of the inputs that `motor act --skill` accepts with `--input`
    #[arg(long, value_name = "FILE")]
    inputs: Option<PathBuf>,
}

impl GrantedArgs {
    /// The change that the flags ask for.
    ///
    /// # Errors
    /// If the name of a credential is invalid, or the file is not JSON.
    pub(super) fn change(self) -> Result<PolicyChange, Refusal> {
        let credentials = named(self.credentials).map(|names| {
            let names = names.iter().map(|name| CredentialName::parse(name));
            names
                .collect::<Result<Vec<_>, _>>()
                .map_err(|error| usage(error.to_string(), "`motor credential list` shows them"))
        });
        let inputs = self.inputs.map(|path| {
            let schema = input::text_file(&path)?;
            serde_json::from_str(&schema).map_err(|error| {
                let reason = format!("`{}` is not JSON: {error}", path.display());
                usage(reason, "write a JSON Schema: `{ \"type\": \"object\", \"properties\": { … } }`")
            })
        });
        let limits: BTreeMap<String, u64> = self.limits.into_iter().collect();
        Ok(PolicyChange {
            domains: named(self.domains),
            writes: named(self.writes),
            tools: named(self.tools),
            required_credentials: credentials.transpose()?,
            inputs: inputs.transpose()?,
            limits: (!limits.is_empty()).then_some(limits),
        })
    }
}

/// The names in a list; `''` names nothing.
fn named(list: Option<Vec<String>>) -> Option<Vec<String>> {
    list.map(|names| names.iter().map(|name| name.trim()).filter(|name| !name.is_empty()).map(str::to_owned).collect())
}

fn limit(text: &str) -> Result<(String, u64), String> {
    let known = text.split_once('=').and_then(|(name, most)| Some((name.trim().to_owned(), most.trim().parse().ok()?)));
    known.filter(|(name, _)| !name.is_empty()).ok_or_else(|| "write `NAME=N`, such as `fuel=1000000`".to_owned())
}

/// Exactly these powers: the powers shown to the owner are granted, even if the skill's directory changed since.
pub(super) fn exactly(policy: &Policy) -> PolicyChange {
    let Policy { domains, writes, tools, required_credentials, inputs, limits, .. } = policy.clone();
    PolicyChange {
        domains: Some(domains),
        writes: Some(writes),
        tools: Some(tools),
        required_credentials: Some(required_credentials),
        inputs,
        limits: Some(limits),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        granted: GrantedArgs,
    }

    fn change(line: &[&str]) -> Result<PolicyChange, Refusal> {
        Line::try_parse_from([&["x"], line].concat()).unwrap().granted.change()
    }

    #[test]
    fn what_is_not_named_stays() {
        assert_eq!(change(&[]).unwrap(), PolicyChange::default());
        let named =
            change(&["--domains", "a.example, b.example", "--tools", "", "--limit", "fuel=7", "--limit", "x = 2"])
                .unwrap();
        assert_eq!(named.domains.unwrap(), ["a.example", "b.example"]);
        assert_eq!((named.tools, named.writes), (Some(vec![]), None));
        assert_eq!(
            named.limits.unwrap().into_iter().collect::<Vec<_>>(),
            [("fuel".to_owned(), 7), ("x".to_owned(), 2)]
        );
        assert_eq!(change(&["--credentials", ""]).unwrap().required_credentials, Some(vec![]));
    }

    #[test]
    fn what_is_no_grant_is_refused() {
        assert!(change(&["--credentials", "not a name"]).is_err());
        assert!(change(&["--inputs", "/nowhere/at-all.json"]).is_err());
        for line in [
            &["x", "--limit", "fuel"][..],
            &["x", "--limit", "fuel=much"],
            &["x", "--limit", "=1"],
            &["x", "--limit", "a=-1"],
        ] {
            assert!(Line::try_parse_from(line).is_err(), "{line:?}");
        }
    }

    #[test]
    fn what_was_shown_leaves_nothing_open() {
        let all = exactly(&Policy::default());
        let open = [all.domains.is_none(), all.writes.is_none(), all.tools.is_none(), all.limits.is_none()];
        assert!(open.iter().all(|open| !open) && all.required_credentials == Some(vec![]));
    }
}
