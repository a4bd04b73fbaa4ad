//! Building a project with its language's own toolchain. A missing toolchain is named with the one command that installs
//! it; the toolchain's own messages, which name the line, go to standard error as they are.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{fs, io};

use base::{Refusal, RefusalCode};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::Child;
use wit_component::ComponentEncoder;

use crate::bindings::ProjectWorld;
use crate::describe::describe;
use crate::javascript;
use crate::project::{Kind, Language, Project};
use crate::sdk::WASI_VERSION;
use crate::unused;

/// The target of components in Rust.
const TARGET: &str = "wasm32-wasip2";
/// The target of those without WASI, which Rust's library for [`TARGET`] always imports.
const PURE_TARGET: &str = "wasm32-unknown-unknown";
/// The world of a project that has one of its own, and its place.
const OWN_WORLD: &str = "project";
const OWN_WORLD_FILE: &str = "wit/project.wit";
/// The package of clang with a C library for WASI.
const FOR_C: &str = "ziglang==0.17.1";
const COMPONENTIZE_PY: &str = "componentize-py==0.25.1";

/// Builds the component, and returns its path. For a tool its proposed policy is put beside it. If the future is dropped, the
/// toolchain ends.
///
/// # Errors
/// If the toolchain is missing (the remedy installs it) or fails.
pub async fn build(project: &Project) -> Result<PathBuf, Refusal> {
    let directory = project.build_directory();
    let failed = |error: io::Error| {
        Refusal::new(RefusalCode::StorageFailed, format!("cannot write to `{}`: {error}", directory.display()))
    };
    fs::create_dir_all(&directory).map_err(failed)?;
    let component = project.component();
    // Beside its place and then renamed: a reader sees a whole component or the earlier one.
    let draft = component.with_extension("wasm.new");
    match project.manifest.language {
        Language::Rust => rust(project, &draft).await?,
        Language::Python => python(project, &draft).await?,
        Language::Js | Language::Ts => javascript::build(project, &draft).await?,
        Language::C => c(project, &draft).await?,
    }
    let built = fs::read(&draft).map_err(failed)?;
    let described = describe(built, &project.directory.join("wit"), world(project)).map_err(|error| {
        let reason = format!("its comments cannot be added to the component: {error}");
        Refusal::new(RefusalCode::InvalidComponent, reason).with_remedy("mend the WIT, then build again")
    })?;
    let finished = give_up_unused(project, described).map_err(failed)?;
    fs::write(&draft, finished).map_err(failed)?;
    fs::rename(&draft, &component).map_err(failed)?;
    put_proposal(project).map_err(failed)?;
    Ok(component)
}

/// Gives up the capabilities that the project's world does not ask for, if its toolchain imports them all the same.
fn give_up_unused(project: &Project, component: Vec<u8>) -> io::Result<Vec<u8>> {
    let imports_unasked = matches!(project.manifest.language, Language::Python | Language::Js | Language::Ts);
    if !imports_unasked || world(project) != OWN_WORLD {
        return Ok(component);
    }
    Ok(unused::give_up(component, &fs::read_to_string(project.directory.join(OWN_WORLD_FILE))?))
}

/// Puts the proposed policy of a tool beside its component.
fn put_proposal(project: &Project) -> io::Result<()> {
    let beside = project.component().with_extension("json");
    match project.manifest.kind {
        Kind::Tool if project.proposal().is_file() => fs::copy(project.proposal(), beside).map(drop),
        // That of an earlier build would still be proposed.
        Kind::Tool => match fs::remove_file(beside) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        },
        Kind::Skill | Kind::Reflector | Kind::Neuron => Ok(()),
    }
}

async fn rust(project: &Project, draft: &Path) -> Result<(), Refusal> {
    let triple = if project.manifest.kind.is_pure() { PURE_TARGET } else { TARGET };
    let libraries = Command::new("rustc").args(["--print", "target-libdir", "--target", triple]).output();
    let libraries = libraries.map_err(|_| {
        missing("the Rust compiler", "install `rustup` from your system's packages, then `rustup default stable`")
    })?;
    let path = String::from_utf8_lossy(&libraries.stdout).trim().to_owned();
    if !libraries.status.success() || !Path::new(&path).is_dir() {
        return Err(missing(&format!("the target `{triple}` of Rust"), &format!("`rustup target add {triple}`")));
    }
    let target = project.build_directory().join("target");
    let mut cargo = Command::new("cargo");
    // Flags for this machine's own programs would break a component.
    cargo.env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS");
    cargo.args(["build", "--quiet", "--release", "--target", triple, "--target-dir"]).arg(&target);
    let built = target.join(triple).join("release").join(format!("{}.wasm", project.name().replace('-', "_")));
    // The component of an earlier build must not be taken for one that this build does not leave. Cargo puts it back if it is
    // up to date.
    fs::remove_file(&built).ok();
    run(project, "cargo build", cargo, io::stderr().into()).await?;
    fs::copy(&built, draft).map_err(|error| {
        let reason = format!("the build left no `{}`: {error}", built.display());
        Refusal::new(RefusalCode::Failed, reason)
            .with_remedy("the package in `Cargo.toml` has the project's name, and `crate-type = [\"cdylib\"]`")
    })?;
    if project.manifest.kind.is_pure() { encode(draft) } else { Ok(()) }
}

/// Makes a component of the module in a file: for [`PURE_TARGET`] and C the compiler does not.
fn encode(path: &Path) -> Result<(), Refusal> {
    let failed = |error: io::Error| {
        Refusal::new(RefusalCode::StorageFailed, format!("cannot make a component of `{}`: {error}", path.display()))
    };
    let module = fs::read(path).map_err(failed)?;
    let encoder = ComponentEncoder::default().validate(true).module(&module);
    let component = encoder.and_then(|mut encoder| encoder.encode()).map_err(|error| {
        Refusal::new(RefusalCode::InvalidComponent, format!("the built module is no component: {error:#}")).with_remedy(
            "export every function of the world; `stdio` in C, and WASI in a reflector or neuron, are not there",
        )
    })?;
    fs::write(path, component).map_err(failed)
}

async fn python(project: &Project, draft: &Path) -> Result<(), Refusal> {
    let own = project.directory.join(".toolchain/bin/componentize-py");
    let program = if own.is_file() { own } else { PathBuf::from("componentize-py") };
    if !runs(&program) {
        let install = format!(
            "`python3 -m venv .toolchain && .toolchain/bin/pip install {COMPONENTIZE_PY}` in `{}`",
            project.directory.display()
        );
        return Err(missing("componentize-py", &install));
    }
    let mut command = Command::new(program);
    command.args(["-q", "-d", "wit", "-w", world(project)]);
    // Three interfaces are called `types`; a world without requests and files has only one of them.
    command.arg("--import-interface-name").arg(format!("wasi:http/types@{WASI_VERSION}=wasi_http_types"));
    command.arg("--import-interface-name").arg(format!("wasi:filesystem/types@{WASI_VERSION}=wasi_filesystem_types"));
    command.arg("--import-interface-name").arg(format!("motor:host/types@{}=types", host_version(project)));
    command.arg("componentize");
    if project.manifest.kind.is_pure() {
        command.arg("--stub-wasi");
    }
    command.args(["app", "-p", "src", "-o"]).arg(draft);
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    run(project, "componentize-py", command, io::stderr().into()).await
}

async fn c(project: &Project, draft: &Path) -> Result<(), Refusal> {
    let python = project.directory.join(".toolchain/bin/python");
    if !python.is_file() {
        let place = project.directory.display();
        let install = format!("`python3 -m venv .toolchain && .toolchain/bin/pip install {FOR_C}` in `{place}`");
        return Err(missing("zig", &install));
    }
    let build = project.build_directory();
    let bindings = build.join("bindings");
    let world = ProjectWorld::read(&project.directory.join("wit"), world(project))?;
    let bound = world.write_c(&bindings)?;
    let core = build.join("core.wasm");
    let mut clang = Command::new(python);
    // Each project has its own C library, so that nothing outside of `build` is written. It is compiled once.
    clang.env("ZIG_LOCAL_CACHE_DIR", build.join("zig"));
    if !is_set("ZIG_GLOBAL_CACHE_DIR") {
        clang.env("ZIG_GLOBAL_CACHE_DIR", build.join("zig"));
    }
    clang.args(["-m", "ziglang", "cc", "-target", "wasm32-wasi", "-mexec-model=reactor", "-std=c11", "-Os", "-s"]);
    clang.args(["-Wall", "-Wextra", "-Wno-missing-field-initializers"]);
    // 1 MiB of stack, as in Rust: zig's own 16 MiB are all the memory that a neuron has.
    clang.args(["-ffunction-sections", "-Wl,--gc-sections", "-Wl,-z,stack-size=1048576", "-isystem"]);
    clang.arg(bindings).arg("-o").arg(&core).args(c_sources(project)?).arg(bound);
    run(project, "zig cc", clang, io::stderr().into()).await?;
    let failed = |error: io::Error| {
        Refusal::new(RefusalCode::StorageFailed, format!("cannot make a component of `{}`: {error}", core.display()))
    };
    let mut module = fs::read(&core).map_err(failed)?;
    world.embed(&mut module)?;
    fs::write(draft, module).map_err(failed)?;
    encode(draft)
}

/// The world of a project. Those in Rust and of earlier versions have none of their own.
pub(crate) fn world(project: &Project) -> &'static str {
    match project.manifest.kind {
        _ if project.directory.join(OWN_WORLD_FILE).is_file() => OWN_WORLD,
        Kind::Reflector => "reflector",
        Kind::Neuron => "neuron",
        Kind::Tool | Kind::Skill => "tool",
    }
}

/// The version of `motor:host` in the project's own copy of the WIT, which may be older than this program's.
fn host_version(project: &Project) -> String {
    let types = fs::read_to_string(project.directory.join("wit/types.wit")).unwrap_or_default();
    let package = types.lines().next().unwrap_or_default();
    package.rsplit_once('@').map_or("", |(_, version)| version.trim_end_matches(';')).to_owned()
}

/// The files `src/*.c`, sorted: the same sources give the same component.
fn c_sources(project: &Project) -> Result<Vec<PathBuf>, Refusal> {
    let source = project.directory.join("src");
    let entries = fs::read_dir(&source).map_err(|error| {
        Refusal::new(RefusalCode::NotFound, format!("cannot read `{}`: {error}", source.display()))
            .with_remedy("put the sources into `src`")
    })?;
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "c"));
    files.sort();
    Ok(files)
}

/// Whether a program starts at all.
pub(crate) fn runs(program: &Path) -> bool {
    let mut command = Command::new(program);
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok()
}

/// Runs a program of a toolchain in the project. Its standard output never is that of `motor`.
pub(crate) async fn run(project: &Project, name: &str, mut command: Command, stdout: Stdio) -> Result<(), Refusal> {
    command.current_dir(&project.directory).stdin(Stdio::null()).stdout(stdout).stderr(Stdio::inherit());
    let mut command = tokio::process::Command::from(command);
    command.process_group(0).kill_on_drop(true);
    let ended = async {
        let mut group = Group(command.spawn()?);
        group.0.wait().await
    };
    match ended.await {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Refusal::new(RefusalCode::Failed, format!("`{name}` failed ({status})"))
            .with_remedy("mend the errors above, then build again")),
        Err(error) => Err(missing(name, &format!("check that it can be started: {error}"))),
    }
}

/// A program and everything that it started: a compiler outlives the `cargo` that is killed alone. If dropped before its end, the
/// whole group is killed.
struct Group(Child);

impl Drop for Group {
    fn drop(&mut self) {
        // Without an id the process was reaped, and its number may already belong to another.
        let id = self.0.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        if let Some(id) = id {
            // It may have ended by itself meanwhile.
            kill_process_group(id, Signal::KILL).ok();
        }
    }
}

pub(crate) fn missing(tool: &str, install: &str) -> Refusal {
    Refusal::new(RefusalCode::NotFound, format!("{tool} is not installed")).with_remedy(install)
}

#[expect(clippy::disallowed_methods, reason = "a setting of the author's own toolchain")]
fn is_set(variable: &str) -> bool {
    std::env::var_os(variable).is_some()
}

#[cfg(test)]
mod tests {
    use skills::SkillName;

    use super::*;

    #[tokio::test]
    async fn a_missing_toolchain_is_named_with_the_command_that_installs_it() {
        let root = tempfile::tempdir().unwrap();
        let name = SkillName::parse("greeter").unwrap();
        let project = crate::create(&root.path().join("c"), Kind::Tool, Language::C, &name).unwrap();
        let refused = build(&project).await.unwrap_err();
        assert_eq!((refused.code, refused.reason.as_str()), (RefusalCode::NotFound, "zig is not installed"));
        assert!(refused.remedy.unwrap().contains("pip install ziglang=="));
        assert!(!project.component().exists());
    }

    #[test]
    fn the_policy_beside_a_component_is_that_of_its_project() {
        let root = tempfile::tempdir().unwrap();
        let name = SkillName::parse("greeter").unwrap();
        let project = crate::create(&root.path().join("tool"), Kind::Tool, Language::Rust, &name).unwrap();
        let beside = project.component().with_extension("json");
        fs::create_dir(project.build_directory()).unwrap();
        put_proposal(&project).unwrap();
        assert_eq!(fs::read(&beside).unwrap(), fs::read(project.proposal()).unwrap());
        fs::remove_file(project.proposal()).unwrap();
        for _ in 0..2 {
            put_proposal(&project).unwrap();
            assert!(!beside.exists(), "a policy that its author took away is proposed");
        }
        // A skill has its policy in `skill/`, and no file of this name is its build's.
        let project = crate::create(&root.path().join("skill"), Kind::Skill, Language::Rust, &name).unwrap();
        fs::create_dir(project.build_directory()).unwrap();
        put_proposal(&project).unwrap();
        assert!(!project.component().with_extension("json").exists());
    }

    #[test]
    fn a_project_keeps_the_version_of_the_wit_that_it_was_made_with() {
        let root = tempfile::tempdir().unwrap();
        let name = SkillName::parse("greeter").unwrap();
        let project = crate::create(&root.path().join("py"), Kind::Tool, Language::Python, &name).unwrap();
        assert!(crate::interfaces().starts_with(&format!("package motor:host@{};\n", host_version(&project))));
        fs::write(project.directory.join("wit/types.wit"), "package motor:host@0.1.1;\n").unwrap();
        assert_eq!(host_version(&project), "0.1.1");
    }
}
