//! Components from JavaScript and TypeScript, with the engine QuickJS.
//!
//! The engine's own imports of WASI are replaced by stubs, so that a component imports no more than its world. The imports of the
//! world itself therefore have another namespace during the build. That is also the only way to requests: componentize-qjs cannot
//! link `wasi:http` beside its engine's `wasi:io`.

use std::path::Path;
use std::process::{Command, Stdio};
use std::{fs, io};

use base::{Refusal, RefusalCode};
use wasmparser::{Parser, Payload};

use crate::project::{Kind, Language, Project};
use crate::toolchain::{missing, run, runs, world};

const WASI: &str = "wasi:";
/// Stands for [`WASI`] during the build, and in the sources of the project. It has the same length.
const OWN: &str = "host:";

/// Builds the component of a project into a file.
pub(crate) async fn build(project: &Project, draft: &Path) -> Result<(), Refusal> {
    let failed = |error: io::Error| {
        let reason = format!("cannot write to `{}`: {error}", project.build_directory().display());
        Refusal::new(RefusalCode::StorageFailed, reason)
    };
    let mut command = program(project, "componentize-qjs")?;
    let wit = project.build_directory().join("wit");
    if wit.exists() {
        fs::remove_dir_all(&wit).map_err(failed)?;
    }
    copy_wit(&project.directory.join("wit"), &wit).map_err(failed)?;
    let name = match project.manifest.kind {
        Kind::Tool | Kind::Skill => "tool",
        Kind::Reflector => "reflector",
        Kind::Neuron => "neuron",
    };
    // Below the project, whose name is then in no message of the component.
    let source = match project.manifest.language {
        Language::Ts => bundle(project, name).await?,
        _ => format!("src/{name}.js"),
    };
    command.arg("--wit").arg(wit).args(["--world", world(project), "--js"]).arg(source);
    command.args(["--module-root", ".", "--sync", "--stub-wasi", "--output"]).arg(draft);
    run(project, "componentize-qjs", command, Stdio::null()).await?;
    let built = fs::read(draft).map_err(failed)?;
    let named = with_wasi(built).map_err(|error| {
        Refusal::new(RefusalCode::InvalidComponent, format!("the built component cannot be read: {error}"))
    })?;
    fs::write(draft, named).map_err(failed)
}

/// Strips the types, without checking them, and brings all modules into one file.
async fn bundle(project: &Project, name: &str) -> Result<String, Refusal> {
    let bundled = format!("build/{name}.js");
    let mut command = program(project, "rolldown")?;
    command.arg(format!("src/{name}.ts")).arg("--file").arg(&bundled);
    // Imports of the world are resolved afterwards, and a module that is nowhere is refused then.
    command.args(["--format", "esm", "--platform", "browser", "--no-checks.unresolvedImport"]);
    run(project, "rolldown", command, Stdio::null()).await?;
    Ok(bundled)
}

/// A program of the project's packages.
fn program(project: &Project, name: &str) -> Result<Command, Refusal> {
    let path = project.directory.join("node_modules/.bin").join(name);
    if path.exists() {
        return Ok(Command::new(path));
    }
    let install = format!("`npm install` in `{}`", project.directory.display());
    if !runs(Path::new("node")) {
        return Err(missing(
            "Node.js",
            &format!("install Node 20.19 or later from your system's packages, then {install}"),
        ));
    }
    Err(missing(name, &install))
}

/// Copies the WIT with [`OWN`] in place of [`WASI`].
fn copy_wit(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let path = entry?.path();
        let to = to.join(path.file_name().unwrap_or_default());
        if path.is_dir() {
            copy_wit(&path, &to)?;
        } else if path.extension().is_some_and(|extension| extension == "wit") {
            fs::write(to, fs::read_to_string(path)?.replace(WASI, OWN))?;
        }
    }
    Ok(())
}

/// The component with [`WASI`] in place of [`OWN`] in the names of its imports.
fn with_wasi(mut component: Vec<u8>) -> wasmparser::Result<Vec<u8>> {
    let (start, mut depth, mut places) = (component.as_ptr().addr(), 0_u32, Vec::new());
    for payload in Parser::new(0).parse_all(&component) {
        match payload? {
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
            Payload::End(_) => depth = depth.saturating_sub(1),
            Payload::ComponentImportSection(section) if depth == 0 => {
                for import in section {
                    let name = import?.name.name;
                    if name.starts_with(OWN) {
                        places.push(name.as_ptr().addr().saturating_sub(start));
                    }
                }
            }
            _ => {}
        }
    }
    for place in places {
        if let Some(name) = component.get_mut(place..place.saturating_add(OWN.len())) {
            name.copy_from_slice(WASI.as_bytes());
        }
    }
    Ok(component)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_components_own_imports_get_the_name_of_wasi() {
        let text = |own: &str| {
            format!(
                r#"(component
                    (import "{own}io/poll@0.2.12" (instance $poll))
                    (import "motor:host/log@0.1.2" (instance))
                    (component $inner (import "host:io/poll@0.2.12" (instance)))
                    (instance (instantiate $inner (with "host:io/poll@0.2.12" (instance $poll)))))"#
            )
        };
        let component = |own: &str| wat::parse_str(text(own)).unwrap();
        assert_eq!(with_wasi(component("host:")).unwrap(), component("wasi:"));
        assert_eq!(with_wasi(component("wasi:")).unwrap(), component("wasi:"));
        assert!(with_wasi(b"no component".to_vec()).is_err());
    }

    #[test]
    fn the_wit_is_copied_with_its_packages_under_the_other_name() {
        let root = tempfile::tempdir().unwrap();
        let (from, to) = (root.path().join("wit"), root.path().join("build/wit"));
        fs::create_dir_all(from.join("deps/io")).unwrap();
        fs::write(from.join("project.wit"), "world project { import wasi:io/poll@0.2.12; import log; }").unwrap();
        fs::write(from.join("deps/io/poll.wit"), "package wasi:io@0.2.12;").unwrap();
        fs::write(from.join("notes.txt"), "wasi:").unwrap();
        copy_wit(&from, &to).unwrap();
        let read = |path: &str| fs::read_to_string(to.join(path)).unwrap();
        assert_eq!(read("project.wit"), "world project { import host:io/poll@0.2.12; import log; }");
        assert_eq!(read("deps/io/poll.wit"), "package host:io@0.2.12;");
        assert!(!to.join("notes.txt").exists());
    }
}
