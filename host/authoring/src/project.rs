//! A project's directory, and the file that describes it: `motor-project.toml`.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use base::{Refusal, RefusalCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use skills::SkillName;

/// The file that makes a directory a project.
pub(crate) const FILE: &str = "motor-project.toml";

/// The product of a project.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A component for the home's directory `tools`.
    Tool,
    /// A skill: instructions in `skill/`, and a component with its tools.
    Skill,
    /// A reflector: a component for the home's directory `reflectors`.
    Reflector,
    /// A neuron: a component that a home takes with its scenarios.
    Neuron,
}

/// The language of a project.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Language {
    /// Built by cargo for `wasm32-wasip2`.
    Rust,
    /// Python, built with componentize-py.
    Python,
    /// JavaScript, built by componentize-qjs.
    Js,
    /// TypeScript, built as JavaScript without its types.
    Ts,
    /// C, built by zig's clang.
    C,
}

/// The project in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Project {
    /// Directory that holds the project file.
    pub directory: PathBuf,
    /// Content of its project file.
    pub manifest: ProjectManifest,
}

/// The content of `motor-project.toml`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProjectManifest {
    /// The product of the project.
    pub kind: Kind,
    /// Name of the component, and of the skill that it is packed into.
    pub name: SkillName,
    /// Language of the sources.
    pub language: Language,
    /// Purpose of a tool, for `motor pack`. A skill has it in `SKILL.md`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
}

impl Project {
    /// Reads the project in a directory.
    ///
    /// # Errors
    /// If the directory is not a project, or its file is invalid.
    pub fn open(directory: &Path) -> Result<Self, Refusal> {
        let path = directory.join(FILE);
        let text = std::fs::read_to_string(&path).map_err(|error| {
            let reason = format!("`{}` is not a project: cannot read `{FILE}`: {error}", directory.display());
            Refusal::new(RefusalCode::NotFound, reason).with_remedy("make one with `motor new tool NAME --lang rust`")
        })?;
        let manifest = toml::from_str(&text).map_err(|error| {
            let reason = format!("`{}`: {}", path.display(), error.message());
            Refusal::new(RefusalCode::InvalidRequest, reason)
                .with_remedy("it has `kind`, `name`, `language`, and for a tool `description`")
        })?;
        let directory = std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned());
        Ok(Self { directory, manifest })
    }

    /// Name of the component.
    #[must_use]
    pub fn name(&self) -> &str {
        self.manifest.name.as_str()
    }

    /// Directory of everything that is built. It can be deleted.
    #[must_use]
    pub fn build_directory(&self) -> PathBuf {
        self.directory.join("build")
    }

    /// Path of the built component.
    #[must_use]
    pub fn component(&self) -> PathBuf {
        self.build_directory().join(format!("{}.wasm", self.name()))
    }

    /// Path of the policy that the author proposes. A reflector or neuron has none.
    #[must_use]
    pub fn proposal(&self) -> PathBuf {
        match self.manifest.kind {
            Kind::Tool | Kind::Reflector | Kind::Neuron => self.directory.join("policy.json"),
            Kind::Skill => self.directory.join("skill/policy.json"),
        }
    }

    /// Path of the scenarios for the quarantine of a neuron.
    #[must_use]
    pub fn scenarios(&self) -> PathBuf {
        self.directory.join("scenarios.json")
    }

    /// Directory of the test cases.
    #[must_use]
    pub fn cases(&self) -> PathBuf {
        self.directory.join("cases")
    }

    /// Path of a recorded site, by its name in a case.
    #[must_use]
    pub fn site(&self, name: &str) -> PathBuf {
        self.directory.join("sites").join(format!("{name}.json"))
    }
}

impl Kind {
    /// Whether its component is built without WASI.
    pub(crate) const fn is_pure(self) -> bool {
        matches!(self, Self::Reflector | Self::Neuron)
    }
}

impl Language {
    /// All languages with a scaffold.
    pub const ALL: [Self; 5] = [Self::Rust, Self::Python, Self::Js, Self::Ts, Self::C];

    /// The language's name on the command line.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Rust => "rust",
            Self::Python => "python",
            Self::Js => "js",
            Self::Ts => "ts",
            Self::C => "c",
        }
    }
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Language {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|language| language.as_str() == text).ok_or_else(|| {
            let all = Self::ALL.map(Self::as_str).join(", ");
            format!("there are scaffolds for {all}; a component of any other language works too, see docs/wit.md")
        })
    }
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "tool" => Ok(Self::Tool),
            "skill" => Ok(Self::Skill),
            "reflector" => Ok(Self::Reflector),
            "neuron" => Ok(Self::Neuron),
            _ => Err("write `tool`, `skill`, `reflector` or `neuron`".to_owned()),
        }
    }
}
