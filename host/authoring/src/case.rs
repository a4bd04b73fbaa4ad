//! Test cases of a project: a JSON file for each call, with the expected output or error.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

use base::{Refusal, RefusalCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Project;

/// A call, and the expected result.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// Name of the file without `.json`.
    #[serde(skip)]
    pub name: String,
    #[serde(skip)]
    path: PathBuf,
    /// Name of the tool that is called.
    pub tool: String,
    /// Arguments of the call, as JSON.
    #[serde(default)]
    pub arguments: Value,
    /// Text files of its workspace, by path.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, String>,
    /// Domains that it may reach. Default none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub domains: Vec<String>,
    /// Name of the recorded site that answers its requests: `sites/NAME.json` of the project. Default none: the real servers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub site: Option<String>,
    /// Credentials that it is granted for `domains`, by name, with values for the test. Only with `site`: nothing of them leaves.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub credentials: BTreeMap<String, String>,
    /// The expected result; absent until it is recorded with `--bless`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect: Option<Expected>,
}

/// The expected result of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Expected {
    /// It succeeds with this output. JSON is compared as JSON.
    Output {
        /// Text that the tool returns.
        output: String,
    },
    /// The call fails with this error.
    Error {
        /// `denied`, `missing`, `bad_input`, `limit`, `failed` or `trap`.
        error: String,
        /// The exact message, if it matters.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    },
}

/// The observed result of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observed {
    /// The kind of error, if it failed.
    pub error: Option<String>,
    /// Its output, or the message of the error.
    pub text: String,
}

/// The verdict on one case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "verdict", content = "reason")]
pub enum Verdict {
    /// The result is as expected.
    Passed,
    /// The result differs; the text shows both.
    Failed(String),
}

/// The case of a project with this name, without `.json`.
///
/// # Errors
/// If there is none, or it cannot be read.
pub fn case(project: &Project, name: &str) -> Result<Case, Refusal> {
    let found = cases(project, Some(name))?.into_iter().find(|case| case.name == name);
    found.ok_or_else(|| {
        let reason = format!("there is no case `{name}` in `{}`", project.cases().display());
        Refusal::new(RefusalCode::NotFound, reason).with_remedy("name one of its files, without `.json`")
    })
}

/// The cases of a project, by name; only those whose names contain `filter`, if it is given.
///
/// # Errors
/// If the project has no cases, or a file of them cannot be read; the error names the file.
pub fn cases(project: &Project, filter: Option<&str>) -> Result<Vec<Case>, Refusal> {
    let directory = project.cases();
    let none = || {
        let reason = format!("there are no cases in `{}`", directory.display());
        Refusal::new(RefusalCode::NotFound, reason)
            .with_remedy("write `NAME.json` with `tool` and `arguments`, then `motor test --bless`")
    };
    let mut paths: Vec<PathBuf> = match fs::read_dir(&directory) {
        Ok(entries) => entries.filter_map(|entry| Some(entry.ok()?.path())).collect(),
        Err(_) => return Err(none()),
    };
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    paths.sort();
    let mut cases = paths.into_iter().map(read).collect::<Result<Vec<_>, _>>()?;
    cases.retain(|case| filter.is_none_or(|filter| case.name.contains(filter)));
    if cases.is_empty() { Err(none()) } else { Ok(cases) }
}

fn read(path: PathBuf) -> Result<Case, Refusal> {
    let invalid = |reason: String| {
        Refusal::new(RefusalCode::InvalidRequest, format!("`{}`: {reason}", path.display())).with_remedy(
            "a case is `{\"tool\": …, \"arguments\": {…}, \"expect\": {\"output\": …}}`, with `files`, `domains` and `site` if needed",
        )
    };
    let text = fs::read_to_string(&path).map_err(|error| invalid(error.to_string()))?;
    let mut case: Case = serde_json::from_str(&text).map_err(|error| invalid(error.to_string()))?;
    if let Some(file) = case.files.keys().find(|file| !is_below(file)) {
        return Err(invalid(format!("the file `{file}` would lie outside the workspace")));
    }
    if let Some(site) = case.site.as_ref().filter(|site| !is_file_name(site)) {
        return Err(invalid(format!("the site `{site}` is not the name of a file in `sites`, without `.json`")));
    }
    if case.site.is_none() && !case.credentials.is_empty() {
        return Err(invalid("it has `credentials` and no `site`: they are for recorded sites only".to_owned()));
    }
    case.name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    case.path = path;
    Ok(case)
}

fn is_file_name(name: &str) -> bool {
    let mut parts = Path::new(name).components();
    matches!((parts.next(), parts.next()), (Some(Component::Normal(_)), None))
}

fn is_below(path: &str) -> bool {
    !path.is_empty() && Path::new(path).components().all(|part| matches!(part, Component::Normal(_)))
}

impl Case {
    /// A call without files, network and expectation.
    #[must_use]
    pub fn of_call(tool: String, arguments: Value) -> Self {
        Self { tool, arguments, ..Self::default() }
    }

    /// Writes its files to a workspace.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn write_files(&self, workspace: &Path) -> Result<(), Refusal> {
        for (path, text) in &self.files {
            crate::sdk::write(&workspace.join(path), text).map_err(|error| {
                Refusal::new(RefusalCode::StorageFailed, format!("cannot write the file `{path}` of a case: {error}"))
            })?;
        }
        Ok(())
    }

    /// Compares an observed result with the expected one.
    #[must_use]
    pub fn judge(&self, observed: &Observed) -> Verdict {
        let passed = match (&self.expect, observed.error.as_deref()) {
            (None, _) => {
                let seen = observed.describe();
                return Verdict::Failed(format!("it expects nothing yet; {seen}; `motor test --bless` records that"));
            }
            (Some(Expected::Output { output }), None) => is_same(output, &observed.text),
            (Some(Expected::Error { error, message }), Some(seen)) => {
                error == seen && message.as_ref().is_none_or(|message| *message == observed.text)
            }
            _ => false,
        };
        if passed {
            return Verdict::Passed;
        }
        let expected = self.expect.as_ref().map(Expected::describe).unwrap_or_default();
        Verdict::Failed(format!("expected {expected}, but {}", observed.describe()))
    }

    /// Records an observed result as the expected one in the case's file.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn bless(&self, observed: Observed) -> Result<(), Refusal> {
        let expect = match observed.error {
            None => Expected::Output { output: observed.text },
            Some(error) => Expected::Error { error, message: Some(observed.text) },
        };
        let blessed = Self { expect: Some(expect), ..self.clone() };
        let failed = |error: String| {
            Refusal::new(RefusalCode::StorageFailed, format!("cannot write `{}`: {error}", self.path.display()))
        };
        let mut text = serde_json::to_string_pretty(&blessed).map_err(|error| failed(error.to_string()))?;
        text.push('\n');
        fs::write(&self.path, text).map_err(|error| failed(error.to_string()))
    }
}

impl Expected {
    fn describe(&self) -> String {
        match self {
            Self::Output { output } => format!("the output {output:?}"),
            Self::Error { error, message: None } => format!("the error `{error}`"),
            Self::Error { error, message: Some(message) } => format!("the error `{error}`: {message}"),
        }
    }
}

impl Observed {
    fn describe(&self) -> String {
        match &self.error {
            None => format!("it returned {:?}", self.text),
            Some(error) => format!("it failed with `{error}`: {}", self.text),
        }
    }
}

fn is_same(expected: &str, observed: &str) -> bool {
    let json = |text: &str| serde_json::from_str::<Value>(text).ok().filter(|value| !value.is_string());
    expected == observed || json(expected).is_some_and(|expected| json(observed) == Some(expected))
}

#[cfg(test)]
mod tests {
    use skills::SkillName;

    use super::*;
    use crate::{Kind, Language};

    fn observed(error: Option<&str>, text: &str) -> Observed {
        Observed { error: error.map(str::to_owned), text: text.to_owned() }
    }

    #[test]
    fn a_case_passes_for_exactly_its_result() {
        for (expect, error, text, passes) in [
            (r#"{"output": "a"}"#, None, "a", true),
            (r#"{"output": "a"}"#, None, "b", false),
            (r#"{"output": "a"}"#, Some("failed"), "a", false),
            (r#"{"output": "{\"x\": 1}"}"#, None, r#"{"x":1}"#, true),
            (r#"{"output": "{\"x\": 1}"}"#, None, r#"{"x":2}"#, false),
            (r#"{"error": "bad_input"}"#, Some("bad_input"), "any", true),
            (r#"{"error": "bad_input"}"#, Some("failed"), "any", false),
            (r#"{"error": "bad_input"}"#, None, "bad_input", false),
            (r#"{"error": "bad_input", "message": "m"}"#, Some("bad_input"), "m", true),
            (r#"{"error": "bad_input", "message": "m"}"#, Some("bad_input"), "n", false),
            ("null", None, "a", false),
        ] {
            let case: Case = serde_json::from_str(&format!(r#"{{"tool": "t", "expect": {expect}}}"#)).unwrap();
            let verdict = case.judge(&observed(error, text));
            assert_eq!(verdict == Verdict::Passed, passes, "{expect} {error:?} {text}: {verdict:?}");
        }
    }

    #[test]
    fn what_is_blessed_passes_afterwards() {
        let root = tempfile::tempdir().unwrap();
        let name = SkillName::parse("greeter").unwrap();
        let project = crate::create(&root.path().join("p"), Kind::Tool, Language::Js, &name).unwrap();
        let path = project.cases().join("new.json");
        fs::write(&path, r#"{"tool": "greet", "arguments": {"name": "B"}, "files": {"a/b.txt": "x"}}"#).unwrap();
        let one = || cases(&project, Some("new")).unwrap().remove(0);
        for seen in [observed(None, "hello"), observed(Some("limit"), "too much")] {
            assert!(matches!(one().judge(&seen), Verdict::Failed(_)));
            one().bless(seen.clone()).unwrap();
            assert_eq!(one().judge(&seen), Verdict::Passed);
        }
        one().write_files(root.path()).unwrap();
        assert_eq!(fs::read_to_string(root.path().join("a/b.txt")).unwrap(), "x");
    }

    #[test]
    fn an_invalid_case_names_its_file() {
        let root = tempfile::tempdir().unwrap();
        let name = SkillName::parse("greeter").unwrap();
        let project = crate::create(&root.path().join("p"), Kind::Tool, Language::Js, &name).unwrap();
        let path = project.cases().join("odd.json");
        for text in [
            "{",
            r#"{"tool": "t", "expcet": {}}"#,
            r#"{"tool": "t", "files": {"../x": ""}}"#,
            r#"{"tool": "t", "site": "../x"}"#,
            r#"{"tool": "t", "credentials": {"key": "x"}}"#,
        ] {
            fs::write(&path, text).unwrap();
            let refused = cases(&project, None).unwrap_err();
            assert!(refused.reason.contains("odd.json"), "{refused:?}");
        }
        assert!(cases(&Project { directory: root.path().into(), ..project }, None).is_err());
    }
}
