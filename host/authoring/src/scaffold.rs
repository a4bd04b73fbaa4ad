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
    ("src/motor/clock.js", include_str!("../templates/javascript/motor/clock.js.txt")),
    ("src/motor/credentials.js", include_str!("../templates/javascript/motor/credentials.js.txt")),
    ("src/motor/credentials.d.ts", include_str!("../templates/javascript/motor/credentials.d.ts.txt")),
    ("src/motor/files.js", include_str!("../templates/javascript/motor/files.js.txt")),
    ("src/motor/files.d.ts", include_str!("../templates/javascript/motor/files.d.ts.txt")),
    ("src/motor/network.js", include_str!("../templates/javascript/motor/network.js.txt")),
    ("src/motor/network.d.ts", include_str!("../templates/javascript/motor/network.d.ts.txt")),
    ("src/motor/random.js", include_str!("../templates/javascript/motor/random.js.txt")),
    ("src/motor/text.js", include_str!("../templates/javascript/motor/text.js.txt")),
    ("src/motor/text.d.ts", include_str!("../templates/javascript/motor/text.d.ts.txt")),
    ("src/motor/tool.js", include_str!("../templates/javascript/motor/tool.js.txt")),
    ("src/motor/tool.d.ts", include_str!("../templates/javascript/motor/tool.d.ts.txt")),
    ("wit/project.wit", include_str!("../templates/javascript/project.wit")),
    ("package.json", include_str!("../templates/javascript/package.json.txt")),
    (".gitignore", "/build\n/node_modules\n"),
];
const C: &[Embedded] = &[
    ("src/tools.c", include_str!("../templates/c/tools.c.txt")),
    ("src/motor.c", include_str!("../templates/c/motor.c.txt")),
    ("src/motor.h", include_str!("../templates/c/motor.h.txt")),
    ("src/wasi.c", include_str!("../templates/c/wasi.c.txt")),
    ("src/json.c", JSON_C),
    ("src/json.h", JSON_H),
    ("wit/project.wit", include_str!("../templates/c/project.wit")),
    (".gitignore", "/build\n/.toolchain\n"),
];
/// Every kind in C reads JSON.
const JSON_C: &str = include_str!("../templates/c/json.c.txt");
const JSON_H: &str = include_str!("../templates/c/json.h.txt");
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
const REFLECTOR_C: &[Embedded] = &[
    ("src/reflector.c", include_str!("../templates/reflector/c/reflector.c.txt")),
    ("src/json.c", JSON_C),
    ("src/json.h", JSON_H),
    ("wit/project.wit", include_str!("../templates/reflector/project.wit")),
    (".gitignore", "/build\n/.toolchain\n"),
];
const NEURON_RUST: &[Embedded] = &[
    ("Cargo.toml", include_str!("../templates/reflector/rust/Cargo.toml.txt")),
    ("src/lib.rs", include_str!("../templates/neuron/rust/lib.rs.txt")),
    (".gitignore", "/build\n/target\n"),
];
const NEURON_JAVASCRIPT: &[Embedded] = &[
    ("src/neuron.js", include_str!("../templates/neuron/javascript/neuron.js.txt")),
    ("wit/project.wit", include_str!("../templates/neuron/project.wit")),
    ("package.json", include_str!("../templates/javascript/package.json.txt")),
    (".gitignore", "/build\n/node_modules\n"),
];
const NEURON_C: &[Embedded] = &[
    ("src/neuron.c", include_str!("../templates/neuron/c/neuron.c.txt")),
    ("src/json.c", JSON_C),
    ("src/json.h", JSON_H),
    ("wit/project.wit", include_str!("../templates/neuron/project.wit")),
    (".gitignore", "/build\n/.toolchain\n"),
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
/// Every language has the same neuron, with the scenarios of its quarantine.
const NEURON_CASES: &[Embedded] = &[
    ("cases/emits-a-high-price.json", include_str!("../templates/neuron/cases/emits-a-high-price.json")),
    ("cases/stays-silent.json", include_str!("../templates/neuron/cases/stays-silent.json")),
    (
        "cases/refuses-a-signal-without-a-summary.json",
        include_str!("../templates/neuron/cases/refuses-a-signal-without-a-summary.json"),
    ),
    ("scenarios.json", include_str!("../templates/neuron/scenarios.json")),
];
const TSCONFIG: &str = include_str!("../templates/javascript/tsconfig.json");
const POLICY: &str = include_str!("../templates/policy.json");
const SKILL: &str = include_str!("../templates/SKILL.md.txt");

/// The ways to a neuron.
const FOR_NEURONS: &str = "choose `--lang rust`, `--lang js` or `--lang c`, or propose code without a build: `motor neuron propose NAME FILE.js`";

/// Creates the project `name` in a new directory.
///
/// # Errors
/// If there is no such scaffold, or the directory exists or cannot be written. A directory that was begun is left in place.
pub fn create(directory: &Path, kind: Kind, language: Language, name: &SkillName) -> Result<Project, Refusal> {
    let sources = sources(kind, language)?;
    check_name(kind, language, name)?;
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

/// Refuses a name that cargo finds twice in the project.
fn check_name(kind: Kind, language: Language, name: &SkillName) -> Result<(), Refusal> {
    let has_sdk = language == Language::Rust && !kind.is_pure();
    if has_sdk && sdk::CRATES.contains(&name.as_str()) {
        let reason = format!("the name `{name}` is taken: every project in Rust has a crate of that name in `vendor`");
        return Err(Refusal::new(RefusalCode::InvalidRequest, reason).with_remedy("choose another name"));
    }
    Ok(())
}

fn description(kind: Kind) -> String {
    match kind {
        Kind::Tool => "Says hello to a person. Use it to greet somebody by name.".to_owned(),
        Kind::Skill | Kind::Reflector | Kind::Neuron => String::new(),
    }
}

/// The files of a scaffold in its language.
fn sources(kind: Kind, language: Language) -> Result<&'static [Embedded], Refusal> {
    Ok(match (kind, language) {
        (Kind::Reflector, Language::Rust) => REFLECTOR_RUST,
        (Kind::Reflector, Language::Python) => REFLECTOR_PYTHON,
        (Kind::Reflector, Language::Js | Language::Ts) => REFLECTOR_JAVASCRIPT,
        (Kind::Reflector, Language::C) => REFLECTOR_C,
        (Kind::Neuron, Language::Rust) => NEURON_RUST,
        (Kind::Neuron, Language::Js | Language::Ts) => NEURON_JAVASCRIPT,
        (Kind::Neuron, Language::C) => NEURON_C,
        (Kind::Neuron, Language::Python) => {
            let why = "with the engine of Python a component has 18 MiB, and that of a neuron at most 2 MiB";
            return Err(Refusal::new(
                RefusalCode::InvalidRequest,
                format!("there is no scaffold of a neuron in Python: {why}"),
            )
            .with_remedy(FOR_NEURONS));
        }
        (_, Language::Rust) => RUST,
        (_, Language::Python) => PYTHON,
        (_, Language::Js | Language::Ts) => JAVASCRIPT,
        (_, Language::C) => C,
    })
}

fn write_files(directory: &Path, manifest: &ProjectManifest, sources: &[Embedded]) -> io::Result<()> {
    let name = manifest.name.as_str();
    let cases = match manifest.kind {
        Kind::Tool | Kind::Skill => CASES,
        Kind::Reflector => REFLECTOR_CASES,
        Kind::Neuron => NEURON_CASES,
    };
    for (path, text) in sources.iter().chain(cases) {
        let path = match path.strip_suffix(".js") {
            // JavaScript is TypeScript too. The layer has its types beside it.
            Some(stem) if manifest.language == Language::Ts && !path.contains("/motor/") => format!("{stem}.ts"),
            _ => (*path).to_owned(),
        };
        sdk::write(&directory.join(path), &text.replace("{{name}}", name))?;
    }
    sdk::write(&directory.join(FILE), &toml::to_string(manifest).map_err(io::Error::other)?)?;
    sdk::write_wit(directory)?;
    if manifest.language == Language::Rust {
        sdk::write(&directory.join("Cargo.lock"), sdk::LOCK)?;
    }
    // The SDK is for tools, and reflectors and neurons import nothing of WASI.
    match manifest.language {
        _ if manifest.kind.is_pure() => {}
        Language::Rust => sdk::write_sdk(directory)?,
        Language::C | Language::Python | Language::Js | Language::Ts => sdk::write_wasi(directory)?,
    }
    if manifest.language == Language::Ts {
        let text = match manifest.kind.is_pure() {
            // Their sources are those in JavaScript, without types. Those of a tool follow from the layer.
            true => TSCONFIG.replace("\"strict\": true,", "\"strict\": true,\n    \"noImplicitAny\": false,"),
            false => TSCONFIG.to_owned(),
        };
        sdk::write(&directory.join("tsconfig.json"), &text)?;
    }
    match manifest.kind {
        Kind::Tool => sdk::write(&directory.join("policy.json"), POLICY),
        Kind::Skill => {
            sdk::write(&directory.join("skill/policy.json"), POLICY)?;
            sdk::write(&directory.join("skill/SKILL.md"), &SKILL.replace("{{name}}", name))
        }
        Kind::Reflector | Kind::Neuron => Ok(()),
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
    fn the_names_of_the_vendored_crates_are_taken_where_they_are_vendored() {
        let root = tempfile::tempdir().unwrap();
        for name in sdk::CRATES {
            let name = SkillName::parse(name).unwrap();
            let place = |kind: Kind, language: Language| root.path().join(format!("{name}-{kind:?}-{language}"));
            let new = |kind, language| create(&place(kind, language), kind, language, &name);
            for kind in [Kind::Tool, Kind::Skill] {
                let refused = new(kind, Language::Rust).unwrap_err();
                assert!(refused.reason.contains(&format!("`{name}` is taken")), "{refused:?}");
                assert_eq!(refused.remedy.as_deref(), Some("choose another name"));
                assert!(!place(kind, Language::Rust).exists());
            }
            new(Kind::Tool, Language::Python).unwrap();
            new(Kind::Reflector, Language::Rust).unwrap();
        }
        let near = SkillName::parse("motor-sdk-tools").unwrap();
        create(&root.path().join("near"), Kind::Tool, Language::Rust, &near).unwrap();
    }

    #[test]
    fn a_project_in_typescript_is_that_in_javascript_with_types_beside_the_layer() {
        let root = tempfile::tempdir().unwrap();
        let name = SkillName::parse("greeter").unwrap();
        let file = |language: Language, path: &str| {
            let directory = root.path().join(language.as_str());
            if !directory.exists() {
                create(&directory, Kind::Tool, language, &name).unwrap();
            }
            fs::read_to_string(directory.join(path)).ok()
        };
        assert_eq!(file(Language::Ts, "src/tool.ts"), file(Language::Js, "src/tool.js"));
        for module in ["clock", "credentials", "files", "network", "random", "text", "tool"] {
            let path = format!("src/motor/{module}.js");
            let layer = file(Language::Ts, &path).unwrap();
            assert_eq!(Some(&layer), file(Language::Js, &path).as_ref());
            // A module without exports has no types.
            let types = file(Language::Ts, &format!("src/motor/{module}.d.ts"));
            assert_eq!(types.is_some(), layer.contains("export "), "{module}");
        }
        assert!(file(Language::Ts, "tsconfig.json").is_some() && file(Language::Js, "tsconfig.json").is_none());
        assert!(file(Language::Ts, "src/tool.js").is_none());
    }

    #[test]
    fn a_reflector_is_created_in_every_language() {
        let root = tempfile::tempdir().unwrap();
        let name = SkillName::parse("careful").unwrap();
        for (language, source) in [
            (Language::Rust, "src/lib.rs"),
            (Language::Python, "src/app.py"),
            (Language::Js, "src/reflector.js"),
            (Language::C, "src/reflector.c"),
        ] {
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
            // C has no text over several lines, and escapes quotes.
            let source = fs::read_to_string(directory.join(source)).unwrap().replace("\\\"", "\"");
            assert!(system.lines().all(|line| source.contains(line)), "{language}");
            for absent in ["policy.json", "skill", "vendor", "wit/deps"] {
                assert!(!directory.join(absent).exists(), "{language}: {absent}");
            }
        }
    }

    #[test]
    fn a_neuron_is_created_in_the_languages_whose_components_are_small_enough() {
        let root = tempfile::tempdir().unwrap();
        let name = SkillName::parse("prices").unwrap();
        for (language, source) in
            [(Language::Rust, "src/lib.rs"), (Language::Js, "src/neuron.js"), (Language::C, "src/neuron.c")]
        {
            let directory = root.path().join(language.as_str());
            let project = create(&directory, Kind::Neuron, language, &name).unwrap();
            assert_eq!(Project::open(&directory).unwrap(), project);
            assert_eq!((project.manifest.kind, project.manifest.language), (Kind::Neuron, language));
            let cases = crate::cases(&project, None).unwrap();
            assert!(cases.len() == 3 && cases.iter().all(|case| case.tool == "tick"), "{language}: {cases:?}");
            let scenarios = fs::read_to_string(project.scenarios()).unwrap();
            let scenarios: Vec<serde_json::Value> = serde_json::from_str(&scenarios).unwrap();
            assert_eq!(scenarios.len(), 3, "{language}");
            // One neuron in all languages: the kinds of its scenarios are those of its source.
            let source = fs::read_to_string(directory.join(source)).unwrap();
            for kind in scenarios.iter().flat_map(|scenario| scenario["emits"].as_array().unwrap()) {
                assert!(source.contains(&kind.to_string()), "{language}: {kind}");
            }
            for absent in ["policy.json", "skill", "vendor", "wit/deps"] {
                assert!(!directory.join(absent).exists(), "{language}: {absent}");
            }
        }
        let directory = root.path().join("python");
        let refused = create(&directory, Kind::Neuron, Language::Python, &name).unwrap_err();
        assert!(refused.reason.contains("no scaffold of a neuron in Python") && refused.reason.contains("18 MiB"));
        assert!(refused.remedy.unwrap().contains("`motor neuron propose NAME FILE.js`"));
        assert!(!directory.exists());
    }

    #[test]
    fn reflectors_and_neurons_in_rust_depend_on_the_versions_of_the_lock_file() {
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
