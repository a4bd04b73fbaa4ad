//! Packing a built project into a `.skill` archive: the same files give the same bytes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::{Cursor, Write as _};
use std::path::{Path, PathBuf};
use std::{fs, io};

use base::{ContentHash, Refusal, RefusalCode};
use skills::snapshot::{is_history, read_archive};
use skills::{SkillBounds, SkillForm};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

use crate::project::{Kind, Project};

/// A tool of the component, for the instructions that are written for a packed tool.
#[derive(Debug, Clone)]
pub struct ToolLine {
    /// Name of the tool.
    pub name: String,
    /// Description for its review and for models.
    pub description: String,
}

/// The archive or component of a project.
#[derive(Debug, Clone)]
pub struct PackedSkill {
    /// Path of the archive.
    pub path: PathBuf,
    /// Hash of its bytes.
    pub hash: ContentHash,
    /// Paths of the files in the archive.
    pub files: Vec<String>,
}

/// Packs a built project into `build/NAME.skill`. A tool gets a `SKILL.md` from its description and its tools.
///
/// # Errors
/// If it is a reflector, a neuron or not built, a file cannot be read, or the result would not be a valid skill.
pub fn pack(project: &Project, tools: &[ToolLine]) -> Result<PackedSkill, Refusal> {
    let (name, built) = (project.name(), project.component());
    let not_packed = match project.manifest.kind {
        Kind::Tool | Kind::Skill => None,
        Kind::Reflector => Some((
            "a reflector",
            format!(
                "copy `{}` into `reflectors` of the home, then `motor cortex reflector approve {name}`",
                built.display()
            ),
        )),
        Kind::Neuron => {
            Some(("a neuron", format!("`motor neuron propose {name} {}` takes the component", built.display())))
        }
    };
    if let Some((kind, remedy)) = not_packed {
        let reason = format!("{kind} is not packed: it is its component alone, and no skill");
        return Err(Refusal::new(RefusalCode::InvalidRequest, reason).with_remedy(remedy));
    }
    let component = fs::read(project.component()).map_err(|error| {
        Refusal::new(RefusalCode::NotFound, format!("there is no built component: {error}"))
            .with_remedy(format!("`motor build {}` first", project.directory.display()))
    })?;
    let mut files = BTreeMap::from([(format!("{}.wasm", project.name()), component)]);
    let failed = |path: &Path, error: io::Error| {
        Refusal::new(RefusalCode::StorageFailed, format!("`{}`: {error}", path.display()))
    };
    match project.manifest.kind {
        Kind::Reflector | Kind::Neuron => {}
        Kind::Tool => {
            files.insert("SKILL.md".to_owned(), skill_of_tool(project, tools).into_bytes());
            match fs::read(project.proposal()) {
                Ok(policy) => drop(files.insert("policy.json".to_owned(), policy)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(failed(&project.proposal(), error)),
            }
        }
        Kind::Skill => {
            let root = project.directory.join("skill");
            let (mut own, mut hidden) = (BTreeMap::new(), BTreeSet::new());
            collect(&root, "", &mut own, &mut hidden).map_err(|error| failed(&root, error))?;
            check_names(&own, &hidden, &files)?;
            files.extend(own);
        }
    }
    let bytes = archive(&files).map_err(|error| failed(&project.build_directory(), io::Error::other(error)))?;
    let path = project.component().with_extension("skill");
    check(project, &bytes)?;
    fs::write(&path, &bytes).map_err(|error| failed(&path, error))?;
    Ok(PackedSkill { path, hash: ContentHash::of(&bytes), files: files.into_keys().collect() })
}

/// Reads the archive as the host will.
fn check(project: &Project, bytes: &[u8]) -> Result<(), Refusal> {
    let invalid = |reason: String| {
        Refusal::new(RefusalCode::InvalidRequest, format!("it would not be a valid skill: {reason}"))
            .with_remedy("mend the file, then pack again")
    };
    let snapshot = read_archive(bytes, &SkillBounds::default()).map_err(|error| invalid(error.to_string()))?;
    debug_assert_eq!(snapshot.form, SkillForm::Archive);
    let entry = format!("{}.skill", project.name());
    let manifest = snapshot.manifest(&entry).map_err(|error| invalid(error.to_string()))?;
    if manifest.name != project.manifest.name {
        return Err(invalid(format!(
            "`SKILL.md` has the name `{}`, and the project `{}`",
            manifest.name,
            project.name()
        )));
    }
    Ok(())
}

fn skill_of_tool(project: &Project, tools: &[ToolLine]) -> String {
    let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let description = match one_line(&project.manifest.description) {
        text if text.is_empty() => format!("Tools of the component `{}`.", project.name()),
        text => text,
    };
    // A string of JSON is one of YAML too.
    let description = serde_json::Value::from(description);
    let mut text = format!("---\nname: {}\ndescription: {description}\n---\n\n# Tools\n\n", project.name());
    for tool in tools {
        writeln!(text, "- `{}`: {}", tool.name, one_line(&tool.description)).ok();
    }
    text
}

/// Refuses files of a skill that would take the place of a built one, and names that are hidden.
fn check_names(
    own: &BTreeMap<String, Vec<u8>>,
    hidden: &BTreeSet<String>,
    built: &BTreeMap<String, Vec<u8>>,
) -> Result<(), Refusal> {
    let refused =
        |reason: String, remedy: &str| Err(Refusal::new(RefusalCode::InvalidRequest, reason).with_remedy(remedy));
    if !hidden.is_empty() {
        let names = hidden.iter().map(String::as_str).collect::<Vec<_>>().join("`, `");
        let reason = format!("`{names}` in `skill` would come to all who take the skill: hidden, or an editor's copy");
        return refused(reason, "move it out of `skill`, or give it a name without a dot before it or a `~` behind it");
    }
    if let Some(path) = own.keys().find(|path| built.contains_key(*path)) {
        let reason = format!("`skill/{path}` would take the place of the component that was built and tested");
        return refused(reason, "remove it from `skill`: the built component is packed without it");
    }
    Ok(())
}

/// Reads files, and the paths of those that are hidden. Left out are `.git`, which is no part of a skill, and `.DS_Store`, which the
/// host reads in no archive: the packed files have the hash of the reviewed directory.
fn collect(
    directory: &Path,
    prefix: &str,
    files: &mut BTreeMap<String, Vec<u8>>,
    hidden: &mut BTreeSet<String>,
) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name().into_string().map_err(|_| io::Error::other("a name is not UTF-8"))?;
        let path = format!("{prefix}{name}");
        match entry.file_type()? {
            _ if is_history(&path) || name == ".DS_Store" => {}
            _ if name.starts_with('.') || name.ends_with('~') => drop(hidden.insert(path)),
            kind if kind.is_dir() => collect(&entry.path(), &format!("{path}/"), files, hidden)?,
            kind if kind.is_file() => drop(files.insert(path, fs::read(entry.path())?)),
            _ => return Err(io::Error::other(format!("`{path}` is neither a file nor a directory"))),
        }
    }
    Ok(())
}

/// Sorted, with one time and one mode for all entries.
fn archive(files: &BTreeMap<String, Vec<u8>>) -> zip::result::ZipResult<Vec<u8>> {
    let options = SimpleFileOptions::default()
        .compression_method(CompressionMethod::Deflated)
        .last_modified_time(DateTime::default())
        .unix_permissions(0o644);
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (path, bytes) in files {
        writer.start_file(path.as_str(), options)?;
        writer.write_all(bytes)?;
    }
    Ok(writer.finish()?.into_inner())
}

#[cfg(test)]
mod tests {
    use skills::SkillName;

    use super::*;
    use crate::Language;

    fn project(root: &Path, kind: Kind) -> Project {
        let name = SkillName::parse("greeter").unwrap();
        let project = crate::create(&root.join(format!("{kind:?}")), kind, Language::Rust, &name).unwrap();
        fs::create_dir(project.build_directory()).unwrap();
        fs::write(project.component(), b"\0asm component").unwrap();
        project
    }

    #[test]
    fn the_same_files_give_the_same_bytes_at_any_time_and_place() {
        let tools = [ToolLine { name: "greet".into(), description: "Says: \"hello\"\n\n# and no heading".into() }];
        for kind in [Kind::Tool, Kind::Skill] {
            let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
            let first = project(one.path(), kind);
            let second = project(two.path(), kind);
            let later = std::time::UNIX_EPOCH + std::time::Duration::from_secs(2_000_000_000);
            fs::File::options().append(true).open(second.component()).unwrap().set_modified(later).unwrap();
            let (first, second) = (pack(&first, &tools).unwrap(), pack(&second, &tools).unwrap());
            assert_eq!(fs::read(&first.path).unwrap(), fs::read(&second.path).unwrap());
            assert_eq!(
                (first.hash, first.files),
                (second.hash, vec!["SKILL.md".into(), "greeter.wasm".into(), "policy.json".into()])
            );
        }
    }

    #[test]
    fn a_tool_becomes_a_skill_that_says_what_its_tools_are() {
        let root = tempfile::tempdir().unwrap();
        let mut project = project(root.path(), Kind::Tool);
        project.manifest.description = "Greets: 'x' # \"y\"\n---\nname: evil".to_owned();
        let packed = pack(&project, &[ToolLine { name: "greet".into(), description: "Says\n# hello".into() }]).unwrap();
        let snapshot = read_archive(&fs::read(packed.path).unwrap(), &SkillBounds::default()).unwrap();
        let manifest = snapshot.manifest("greeter.skill").unwrap();
        assert_eq!(manifest.name.as_str(), "greeter");
        assert_eq!(manifest.description, "Greets: 'x' # \"y\" --- name: evil");
        assert!(manifest.body.contains("- `greet`: Says # hello"), "{}", manifest.body);
        assert!(snapshot.proposal.is_some());
    }

    #[test]
    fn what_the_host_would_refuse_is_not_packed() {
        let root = tempfile::tempdir().unwrap();
        let project = project(root.path(), Kind::Skill);
        fs::write(project.directory.join("skill/SKILL.md"), "---\nname: other\ndescription: d\n---\n").unwrap();
        let refused = pack(&project, &[]).unwrap_err();
        assert!(refused.reason.contains("`other`"), "{refused:?}");
        fs::remove_file(project.component()).unwrap();
        assert!(pack(&project, &[]).unwrap_err().remedy.unwrap().contains("motor build"));
    }

    #[test]
    fn a_file_of_a_skill_does_not_take_the_place_of_the_built_component() {
        let root = tempfile::tempdir().unwrap();
        let project = project(root.path(), Kind::Skill);
        let skill = project.directory.join("skill");
        fs::write(skill.join("greeter.wasm"), b"another component").unwrap();
        let refused = pack(&project, &[]).unwrap_err();
        assert_eq!(refused.code, RefusalCode::InvalidRequest);
        assert!(refused.reason.contains("`skill/greeter.wasm`"), "{refused:?}");
        assert!(refused.remedy.unwrap().starts_with("remove it from `skill`"));
        assert!(!project.component().with_extension("skill").exists());
        // Another component is a file of the skill like any other.
        fs::rename(skill.join("greeter.wasm"), skill.join("other.wasm")).unwrap();
        let packed = pack(&project, &[]).unwrap();
        assert_eq!(packed.files, ["SKILL.md", "greeter.wasm", "other.wasm", "policy.json"]);
    }

    #[test]
    fn hidden_files_of_a_skill_are_left_out_or_refused() {
        let root = tempfile::tempdir().unwrap();
        let project = project(root.path(), Kind::Skill);
        let skill = project.directory.join("skill");
        let write = |path: &str| {
            fs::create_dir_all(skill.join(path).parent().unwrap()).unwrap();
            fs::write(skill.join(path), "x").unwrap();
        };
        for path in [".git/config", ".DS_Store", "references/.DS_Store", "references/a.b.md", "references/~a.md"] {
            write(path);
        }
        let packed = pack(&project, &[]).unwrap();
        assert_eq!(packed.files, ["SKILL.md", "greeter.wasm", "policy.json", "references/a.b.md", "references/~a.md"]);
        // The reviewed directory has the same files, and so the same hash.
        let reviewed = root.path().join("greeter");
        for path in &packed.files {
            let (from, to) = (skill.join(path), reviewed.join(path));
            fs::create_dir_all(to.parent().unwrap()).unwrap();
            fs::copy(if path == "greeter.wasm" { project.component() } else { from }, to).unwrap();
        }
        let bounds = SkillBounds::default();
        let archive = read_archive(&fs::read(&packed.path).unwrap(), &bounds).unwrap();
        fs::create_dir(reviewed.join(".git")).unwrap();
        assert_eq!(archive.hash, skills::snapshot::read(&reviewed, &bounds).unwrap().hash);

        fs::remove_file(&packed.path).unwrap();
        for path in [".env", "references/.env", ".vscode/settings.json", "references/.git/config", "SKILL.md~"] {
            write(path);
            let refused = pack(&project, &[]).unwrap_err();
            // Of a directory, itself.
            let name = path.trim_end_matches("/settings.json").trim_end_matches("/config");
            assert_eq!(refused.code, RefusalCode::InvalidRequest, "{path}");
            assert!(refused.reason.starts_with(&format!("`{name}` in `skill`")), "{refused:?}");
            assert!(refused.remedy.unwrap().starts_with("move it out of `skill`"), "{path}");
            assert!(!packed.path.exists(), "{path}");
            match skill.join(name) {
                directory if directory.is_dir() => fs::remove_dir_all(directory).unwrap(),
                file => fs::remove_file(file).unwrap(),
            }
        }
        pack(&project, &[]).unwrap();
    }

    #[test]
    fn reflectors_and_neurons_are_not_packed() {
        let root = tempfile::tempdir().unwrap();
        for (kind, command) in [
            (Kind::Reflector, "then `motor cortex reflector approve greeter`"),
            (Kind::Neuron, "`motor neuron propose greeter "),
        ] {
            let project = project(root.path(), kind);
            let refused = pack(&project, &[]).unwrap_err();
            assert_eq!(refused.code, RefusalCode::InvalidRequest);
            assert!(refused.remedy.unwrap().contains(command), "{command}");
            assert!(!project.component().with_extension("skill").exists(), "{command}");
        }
    }
}
