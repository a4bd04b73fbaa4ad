//! New projects: a directory that builds as it is.

use std::path::Path;
use std::{fs, io};

use base::{Refusal, RefusalCode};
use skills::SkillName;

use crate::project::{FILE, Kind, Language, Project, ProjectManifest};
use crate::sdk::{self, Embedded};

const RUST: &[Embedded] = &[
    ("Cargo.toml", include_str!("../templates/rust/Cargo.toml.txt")),
    ("src/lib.rs", include_str!("../templates/rust/lib.rs.txt")),
    (".gitignore", "/build\n/target\n"),
];
const PYTHON: &[Embedded] = &[
    ("src/app.py", include_str!("../templates/python/app.py.txt")),
    ("src/motor.py", include_str!("../templates/python/motor.py.txt")),
    ("wit/project.wit", include_str!("../templates/python/project.wit")),
    (".gitignore", "/build\n/.toolchain\n__pycache__\n"),
];
const JAVASCRIPT: &[Embedded] = &[
    ("src/tool.js", include_str!("../templates/javascript/tool.js.txt")),
    ("wit/project.wit", include_str!("../templates/javascript/project.wit")),
    ("package.json", include_str!("../templates/javascript/package.json.txt")),
    (".gitignore", "/build\n/node_modules\n"),
];
const C: &[Embedded] = &[
    ("src/tools.c", include_str!("../templates/c/tools.c.txt")),
    ("src/motor.c", include_str!("../templates/c/motor.c.txt")),
    ("src/motor.h", include_str!("../templates/c/motor.h.txt")),
    ("wit/project.wit", include_str!("../templates/c/project.wit")),
    (".gitignore", "/build\n/.toolchain\n"),
];
const REFLECTOR_RUST: &[Embedded] = &[
    ("Cargo.toml", include_str!("../templates/reflector/rust/Cargo.toml.txt")),
    ("src/lib.rs", include_str!("../templates/reflector/rust/lib.rs.txt")),
    (".gitignore", "/build\n/target\n"),
];
const REFLECTOR_PYTHON: &[Embedded] = &[
    ("src/app.py", include_str!("../templates/reflector/python/app.py.txt")),
    ("wit/project.wit", include_str!("../templates/reflector/project.wit")),
    (".gitignore", "/build\n/.toolchain\n__pycache__\n"),
];
const REFLECTOR_JAVASCRIPT: &[Embedded] = &[
    ("src/reflector.js", include_str!("../templates/reflector/javascript/reflector.js.txt")),
    ("wit/project.wit", include_str!("../templates/reflector/project.wit")),
    ("package.json", include_str!("../templates/javascript/package.json.txt")),
    (".gitignore", "/build\n/node_modules\n"),
];
/// Every language has the same tool, so the cases are the same.
const CASES: &[Embedded] = &[
    ("cases/greets.json", include_str!("../templates/cases/greets.json")),
    ("cases/refuses-an-empty-name.json", include_str!("../templates/cases/refuses-an-empty-name.json")),
    ("cases/needs-a-name.json", include_str!("../templates/cases/needs-a-name.json")),
];
/// Every language has the same reflector too.
const REFLECTOR_CASES: &[Embedded] = &[
    ("cases/composes-a-prompt.json", include_str!("../templates/reflector/cases/composes-a-prompt.json")),
    ("cases/reads-a-reply.json", include_str!("../templates/reflector/cases/reads-a-reply.json")),
    ("cases/refuses-garbage.json", include_str!("../templates/reflector/cases/refuses-garbage.json")),
];
const POLICY: &str = include_str!("../templates/policy.json");
const SKILL: &str = include_str!("../templates/SKILL.md.txt");

/// Creates the project `name` in a new directory.
///
/// # Errors
/// If there is no such scaffold, or the directory exists or cannot be written. A directory that was begun is left in place.
pub fn create(directory: &Path, kind: Kind, language: Language, name: &SkillName) -> Result<Project, Refusal> {
    let sources = sources(kind, language)?;
    let failed = |error: io::Error| {
        let reason = format!("cannot create `{}`: {error}", directory.display());
        match error.kind() {
            io::ErrorKind::AlreadyExists => Refusal::new(RefusalCode::InvalidRequest, reason)
                .with_remedy("choose another name, or another place with `--dir DIR`"),
            _ => Refusal::new(RefusalCode::StorageFailed, reason),
        }
    };
    if let Some(parent) = directory.parent() {
        fs::create_dir_all(parent).map_err(failed)?;
    }
    fs::create_dir(directory).map_err(failed)?;
    let manifest = ProjectManifest { kind, name: name.clone(), language, description: description(kind) };
    write_files(directory, &manifest, sources).map_err(failed)?;
    Project::open(directory)
}

fn description(kind: Kind) -> String {
    match kind {
        Kind::Tool => "Says hello to a person. Use it to greet somebody by name.".to_owned(),
        Kind::Skill | Kind::Reflector => String::new(),
    }
}

/// The files of a scaffold in its language.
fn sources(kind: Kind, language: Language) -> Result<&'static [Embedded], Refusal> {
    Ok(match (kind, language) {
        (Kind::Reflector, Language::Rust) => REFLECTOR_RUST,
        (Kind::Reflector, Language::Python) => REFLECTOR_PYTHON,
        (Kind::Reflector, Language::Js) => REFLECTOR_JAVASCRIPT,
        (Kind::Reflector, Language::C) => {
            let reason = "there is no scaffold of a reflector in C: its layer over the WIT has tools only";
            return Err(Refusal::new(RefusalCode::InvalidRequest, reason)
                .with_remedy("choose `--lang rust`, `--lang python` or `--lang js`"));
        }
        (_, Language::Rust) => RUST,
        (_, Language::Python) => PYTHON,
        (_, Language::Js) => JAVASCRIPT,
        (_, Language::C) => C,
    })
}

fn write_files(directory: &Path, manifest: &ProjectManifest, sources: &[Embedded]) -> io::Result<()> {
    let name = manifest.name.as_str();
    let is_reflector = manifest.kind == Kind::Reflector;
    for (path, text) in sources.iter().chain(if is_reflector { REFLECTOR_CASES } else { CASES }) {
        sdk::write(&directory.join(path), &text.replace("{{name}}", name))?;
    }
    sdk::write(&directory.join(FILE), &toml::to_string(manifest).map_err(io::Error::other)?)?;
    sdk::write_wit(directory)?;
    if manifest.language == Language::Rust {
        sdk::write(&directory.join("Cargo.lock"), sdk::LOCK)?;
    }
    // The SDK is for tools, and a reflector imports nothing of WASI.
    match manifest.language {
        _ if is_reflector => {}
        Language::Rust => sdk::write_sdk(directory)?,
        Language::C | Language::Python => sdk::write_wasi(directory)?,
        Language::Js => {}
    }
    match manifest.kind {
        Kind::Tool => sdk::write(&directory.join("policy.json"), POLICY),
        Kind::Skill => {
            sdk::write(&directory.join("skill/policy.json"), POLICY)?;
            sdk::write(&directory.join("skill/SKILL.md"), &SKILL.replace("{{name}}", name))
        }
        Kind::Reflector => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_is_created_once_and_opens() {
        let root = tempfile::tempdir().unwrap();
        let name = SkillName::parse("my-weather").unwrap();
        for kind in [Kind::Tool, Kind::Skill] {
            for language in Language::ALL {
                let directory = root.path().join(format!("deep/{kind:?}-{language}"));
                let project = create(&directory, kind, language, &name).unwrap();
                assert_eq!((project.manifest.kind, project.manifest.language), (kind, language));
                assert_eq!(Project::open(&directory).unwrap(), project);
                assert!(directory.join("wit/worlds.wit").is_file() && project.proposal().is_file());
                assert_eq!(crate::cases(&project, None).unwrap().len(), CASES.len());
                let refused = create(&directory, kind, language, &name).unwrap_err();
                assert!(refused.remedy.unwrap().contains("another name"));
            }
        }
        let missing = Project::open(root.path()).unwrap_err();
        assert!(missing.remedy.unwrap().contains("motor new tool"));
    }

    #[test]
    fn a_reflector_is_created_in_the_languages_that_can_build_one() {
        let root = tempfile::tempdir().unwrap();
        let name = SkillName::parse("careful").unwrap();
        for (language, source) in
            [(Language::Rust, "src/lib.rs"), (Language::Python, "src/app.py"), (Language::Js, "src/reflector.js")]
        {
            let directory = root.path().join(language.as_str());
            let project = create(&directory, Kind::Reflector, language, &name).unwrap();
            assert_eq!(Project::open(&directory).unwrap(), project);
            assert_eq!((project.manifest.kind, project.manifest.language), (Kind::Reflector, language));
            let cases = crate::cases(&project, None).unwrap();
            let tools: Vec<&str> = cases.iter().map(|case| case.tool.as_str()).collect();
            assert_eq!(tools, ["compose", "interpret", "interpret"], "{language}");
            // One prompt in all languages: that of the case.
            let Some(crate::Expected::Output { output }) = &cases[0].expect else { panic!("{language}") };
            let prompt: serde_json::Value = serde_json::from_str(output).unwrap();
            let system = prompt["system"].as_str().unwrap();
            assert!(system.len() < 500 * 4, "{}", system.len());
            assert!(fs::read_to_string(directory.join(source)).unwrap().contains(system), "{language}");
            for absent in ["policy.json", "skill", "vendor", "wit/deps"] {
                assert!(!directory.join(absent).exists(), "{language}: {absent}");
            }
        }
        let refused = create(&root.path().join("c"), Kind::Reflector, Language::C, &name).unwrap_err();
        assert!(refused.reason.contains("reflector in C"), "{refused:?}");
        assert!(refused.remedy.unwrap().contains("`--lang python`"));
        assert!(!root.path().join("c").exists());
    }

    #[test]
    fn a_reflector_in_rust_depends_on_the_versions_of_the_lock_file() {
        let table = |text: &str| toml::from_str::<toml::Table>(text).unwrap();
        let template = table(include_str!("../templates/reflector/rust/Cargo.toml.txt"));
        let guests = table(include_str!("../../../guest-tools/Cargo.toml"));
        for (name, dependency) in template["dependencies"].as_table().unwrap() {
            assert_eq!(dependency, &guests["workspace"]["dependencies"][name], "{name}");
        }
    }

    #[test]
    fn the_examples_are_projects_with_cases_and_a_policy() {
        let examples = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../guest-tools/examples"));
        for (name, domains, credentials) in [("units", 0, 0), ("exchange-rate", 1, 0), ("open-issues", 1, 1)] {
            let project = Project::open(&examples.join(name)).unwrap();
            assert_eq!(project.name(), name);
            assert!(crate::cases(&project, None).unwrap().iter().all(|case| case.expect.is_some()), "{name}");
            let policy = fs::read_to_string(project.proposal()).unwrap();
            let policy: serde_json::Value = serde_json::from_str(&policy).unwrap();
            let count = |field: &str| policy[field].as_array().unwrap().len();
            assert_eq!((count("domains"), count("requiredCredentials")), (domains, credentials), "{name}");
            let readme = fs::read_to_string(examples.join(name).join("README.md")).unwrap();
            assert_eq!(readme.lines().count(), 5, "{name}");
        }
    }
}
