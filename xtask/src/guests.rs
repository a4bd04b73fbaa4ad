//! Builds the guests into `guests/` of the target directory: the bundled ones into `bundled/`, with their compiled code,
//! those of the tests into `hostile/`. The components of the shipped skills are put into `skills/` as well, where their `SKILL.md` is.
//! The program itself needs the bundled ones only.
//!
//! Skipped when the sources are those the existing components were made from. A component appears whole or not at all:
//! it is written beside its place and renamed.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use crate::place::Place;
use crate::process::{cargo, command};
use crate::stamp::{self, Inputs};

/// The directory of the guests that are embedded in the program.
const BUNDLED: &str = "bundled";

/// Builds of the JavaScript engine, by their features. Without features it imports nothing.
const ENGINES_OF_CODE: [(&str, &[&str]); 2] = [("code-js", &[]), ("code-js-connected", &["--features", "connected"])];

/// The engine is initialised when it is built, so that a call finds it ready.
const INITIALISED: &[&str] = &["--init", "init"];

/// Shipped skills with a component. Each has a crate of its name in the guest workspace.
const SKILLS: [&str; 1] = ["calendar"];

/// Bundled guests that may import nothing of WASI, which Rust's library for `wasm32-wasip2` always does.
const PURE: [&str; 1] = ["reflector"];

/// The endings of the files that are made of a bundled component and embedded: its code, and the component itself.
const MADE_OF_A_COMPONENT: [&str; 2] = ["code", "packed"];

/// Guests of the tests that are built twice: with WASI, and as `NAME-pure` without it.
const ALSO_PURE: [&str; 2] = ["neurons", "reflectors"];

/// The sources of the bundled guests.
const BUNDLED_INPUTS: [&str; 4] = ["guest-tools", "wit", "xtask/preinit", "rust-toolchain.toml"];

/// The sources of the code of the bundled guests, beside the guests: the engine, its version and its settings.
const CODE_INPUTS: [&str; 4] = ["Cargo.lock", "Cargo.toml", "host/runtime/src/compiler.rs", "xtask/preinit"];

/// The sources of the guests of the tests.
const HOSTILE_INPUTS: [&str; 6] =
    ["tests/guests", "guest-tools/sdk", "guest-tools/sdk-macros", "wit", "xtask/preinit", "rust-toolchain.toml"];

/// Guests of the tests that are written in C: the directory, which is the component's name, and its source.
const IN_C: [(&str, &str); 1] = [("c-shapes", "shapes.c")];

/// The sources of the components of shipped skills. Not all of `skills`: the components are put there.
const SKILL_INPUTS: [&str; 8] = [
    "guest-tools/Cargo.lock",
    "guest-tools/Cargo.toml",
    "guest-tools/sdk",
    "guest-tools/sdk-macros",
    "guest-tools/skills",
    "wit",
    "xtask/preinit",
    "rust-toolchain.toml",
];

/// The target of components without WASI.
const PURE_TARGET: &str = "wasm32-unknown-unknown";

/// Variables that change the built files.
const VARIABLES: [&str; 2] = ["CC_wasm32_unknown_unknown", "CFLAGS_wasm32_unknown_unknown"];

/// Builds the bundled components that are missing or stale: enough for the program.
pub fn build_bundled(place: &Place) -> Result<()> {
    build_product(place, &lock(place)?)
}

/// Builds all components that are missing or stale: also the examples, those of the tests, and those of shipped skills.
pub fn build(place: &Place) -> Result<()> {
    let guests = place.guests();
    let lock = lock(place)?;
    build_product(place, &lock)?;
    let examples = inputs(place, &BUNDLED_INPUTS)?;
    when_stale(&guests.join("examples.stamp"), &examples, || {
        let examples = packages_in(&place.root.join("guest-tools/examples"))?;
        examples.iter().map(|example| build_tool(place, example, &guests)).collect()
    })?;
    let hostile = inputs(place, &HOSTILE_INPUTS)?;
    when_stale(&guests.join("hostile/hostile.stamp"), &hostile, || build_hostile(place))?;
    let skills = skill_inputs(place)?;
    when_stale(&guests.join("skills/skills.stamp"), &skills, || build_skills(place))?;
    place_skills(place)
}

/// Two builds at once would take each other's files away.
fn lock(place: &Place) -> Result<File> {
    let guests = place.guests();
    fs::create_dir_all(guests.join("hostile")).with_context(|| format!("cannot create `{}`", guests.display()))?;
    let lock = File::create(guests.join(".lock"))?;
    lock.lock().context("cannot lock the directory of the guests")?;
    Ok(lock)
}

/// The components in the program, and their code, while the lock is held.
fn build_product(place: &Place, _lock: &File) -> Result<()> {
    let guests = place.guests();
    let bundled = inputs(place, &BUNDLED_INPUTS)?;
    when_stale(&guests.join("bundled.stamp"), &bundled, || build_tools(place))?;
    let code = code_inputs(place, BUNDLED)?;
    when_stale(&guests.join("code.stamp"), &code, || compile_bundled(place))
}

/// The guests, the engine that compiles them, and the processor that they are compiled for.
fn code_inputs(place: &Place, directory: &str) -> Result<String> {
    let mut inputs = Inputs::default();
    for component in components_in(&place.guests().join(directory))? {
        inputs.path(&place.guests(), &format!("{directory}/{}", file_name(&component)))?;
    }
    for path in CODE_INPUTS {
        inputs.path(&place.root, path)?;
    }
    let processor = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let features = processor.lines().find(|line| line.starts_with("flags") || line.starts_with("Features"));
    inputs.setting("processor", features.unwrap_or_default());
    Ok(inputs.finish())
}

fn skill_inputs(place: &Place) -> Result<String> {
    let manifests = SKILLS.map(|name| format!("skills/{name}/SKILL.md"));
    let paths: Vec<&str> = SKILL_INPUTS.into_iter().chain(manifests.iter().map(String::as_str)).collect();
    inputs(place, &paths)
}

fn inputs(place: &Place, paths: &[&str]) -> Result<String> {
    let mut inputs = Inputs::default();
    for path in paths {
        inputs.path(&place.root, path)?;
    }
    for variable in VARIABLES {
        inputs.setting(variable, &std::env::var(variable).unwrap_or_default());
    }
    Ok(inputs.finish())
}

fn when_stale(stamp: &Path, inputs: &str, build: impl FnOnce() -> Result<Vec<String>>) -> Result<()> {
    if stamp::is_fresh(stamp, inputs) {
        return Ok(());
    }
    let outputs = build()?;
    for output in &outputs {
        println!("built {output}");
    }
    stamp::write(stamp, inputs, &outputs)
}

/// Builds the engine and the tools in `guest-tools/bundled`, which the program embeds.
fn build_tools(place: &Place) -> Result<Vec<String>> {
    let (sources, bundled) = (place.root.join("guest-tools"), place.guests().join(BUNDLED));
    fs::create_dir_all(&bundled)?;
    let mut cores = Vec::new();
    let mut embedded = Vec::new();
    std::thread::scope(|scope| {
        // Linking a guest keeps one processor busy, and the engine that finishes them takes minutes to build.
        let helpers = scope.spawn(|| build_helpers(place));
        for (name, features) in ENGINES_OF_CODE {
            let core = build_core(place, name, "code-js", features)?;
            cores.push((name.to_owned(), core, INITIALISED));
        }
        for tool in packages_in(&sources.join(BUNDLED))? {
            match PURE.contains(&tool.as_str()) {
                true => cores.push((tool.clone(), build_core(place, &tool, &tool, &[])?, &[])),
                false => embedded.push(build_tool(place, &tool, &bundled)?),
            }
        }
        helpers.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })?;
    for (name, core, options) in cores {
        let component = componentise(place, &core, &name, options)?;
        embedded.push(install(&component, &bundled, &name)?);
    }
    // A tool that is no longer there must not be embedded.
    for old in components_in(&bundled)?.iter().filter(|path| !embedded.iter().any(|name| path.ends_with(name))) {
        // Before the component: a build that is interrupted here finds it again.
        for extension in MADE_OF_A_COMPONENT {
            let made = old.with_extension(extension);
            if made.exists() {
                fs::remove_file(made)?;
            }
        }
        fs::remove_file(old)?;
    }
    Ok(embedded.into_iter().map(|name| format!("{BUNDLED}/{name}")).collect())
}

/// Compiles and packs the bundled guests for this machine, so that no first use of the program has to compile.
fn compile_bundled(place: &Place) -> Result<Vec<String>> {
    let bundled = place.guests().join(BUNDLED);
    command(build_helper(place, "precompile")?).args([&bundled]).run()?;
    let made_of = |component: PathBuf| MADE_OF_A_COMPONENT.map(|extension| component.with_extension(extension));
    let made = components_in(&bundled)?.into_iter().flat_map(made_of);
    Ok(made.map(|file| format!("{BUNDLED}/{}", file_name(&file))).collect())
}

/// The directory of the engines that stay files beside the program.
const ENGINES: &str = "engines";

/// Puts these engines of a toolchain into their place, with the modules that they were linked of fused into one, which a fresh instance
/// does not link again.
///
/// # Errors
/// If the program that fuses them cannot be built, or fails.
pub fn fuse_engines(place: &Place, built: &Path, names: &[&str]) -> Result<()> {
    let engines = place.guests().join(ENGINES);
    fs::create_dir_all(&engines).with_context(|| format!("cannot create `{}`", engines.display()))?;
    let mut inputs = Inputs::default();
    inputs.path(&place.root, "xtask/preinit/src/bin/fuse")?;
    for name in names {
        inputs.path(built, name)?;
    }
    when_stale(&engines.join("fused.stamp"), &inputs.finish(), || {
        let fuse = build_helper(place, "fuse")?;
        for name in names {
            command(&fuse).args([built.join(name), engines.join(name)]).run()?;
        }
        Ok(names.iter().map(|name| (*name).to_owned()).collect())
    })
}

/// Compiles the engines beside the program, and leaves their hashes for its next build.
///
/// # Errors
/// If the compiler cannot be built, or fails.
pub fn compile_engines(place: &Place) -> Result<()> {
    let engines = place.guests().join(ENGINES);
    let inputs = code_inputs(place, ENGINES)?;
    when_stale(&engines.join("code.stamp"), &inputs, || {
        command(build_helper(place, "precompile")?).args([engines.as_os_str(), "--pin".as_ref()]).run()?;
        let names = components_in(&engines)?.into_iter().map(|component| file_name(&component.with_extension("code")));
        Ok(names.collect())
    })
}

/// Writes the reference of the WIT into its page.
pub fn write_reference(place: &Place) -> Result<()> {
    let (wit, page) = (place.root.join("wit"), place.root.join("docs/wit.md"));
    command(build_helper(place, "reference")?).args([wit, page]).run()
}

/// The directories in here that are crates, sorted. Each has the name of its crate.
fn packages_in(directory: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.path().join("Cargo.toml").is_file() {
            names.push(file_name(&entry.path()));
        }
    }
    names.sort();
    Ok(names)
}

fn build_tool(place: &Place, package: &str, directory: &Path) -> Result<String> {
    place.guest_cargo().args(["build", "--release", "--target", "wasm32-wasip2", "--package", package]).run()?;
    let built = place.guest_build().join("wasm32-wasip2/release").join(file_stem(package)).with_extension("wasm");
    install(&built, directory, package)
}

/// Builds the core module `NAME` of a package without WASI: its component imports only interfaces of the host that it calls.
/// Builds of one package with other features leave it at the same place, so it is taken from there.
fn build_core(place: &Place, name: &str, package: &str, features: &[&str]) -> Result<PathBuf> {
    place
        .guest_cargo()
        .args(["build", "--release", "--target", PURE_TARGET, "--package", package])
        .args(features)
        .run()?;
    let built = place.guest_build().join(PURE_TARGET).join("release").join(file_stem(package)).with_extension("wasm");
    let core = place.guest_build().join(name).with_extension("core.wasm");
    fs::copy(&built, &core).with_context(|| format!("the build left no `{}`", built.display()))?;
    Ok(core)
}

/// Makes a component of a core module. Returns where it is.
fn componentise(place: &Place, core: &Path, name: &str, options: &[&str]) -> Result<PathBuf> {
    let component = place.guest_build().join(name).with_extension("component.wasm");
    command(build_helper(place, "preinit")?).args([core.as_os_str(), component.as_os_str()]).args(options).run()?;
    Ok(component)
}

/// The components of shipped skills. They are made without WASI, so that one that uses nothing of the host imports
/// nothing, and without the paths of this machine, so that all machines build the same bytes.
fn build_skills(place: &Place) -> Result<Vec<String>> {
    // Their flags are theirs alone: in one directory with the others each would rebuild the shared crates.
    let directory = place.guest_build().join("skills");
    let installed = place.guests().join("skills");
    fs::create_dir_all(&installed)?;
    SKILLS
        .iter()
        .map(|name| {
            place
                .guest_cargo()
                .env("CARGO_TARGET_DIR", &directory)
                .env("CARGO_ENCODED_RUSTFLAGS", without_paths(place).join("\u{1f}"))
                .args(["build", "--release", "--target", PURE_TARGET, "--package", name])
                .run()?;
            let core = directory.join(PURE_TARGET).join("release").join(file_stem(name)).with_extension("wasm");
            let component = componentise(place, &core, name, &[])?;
            install(&component, &installed, name)
        })
        .collect()
}

/// Flags that write the directories of this machine as names.
fn without_paths(place: &Place) -> Vec<String> {
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let cargo = std::env::var_os("CARGO_HOME").map_or_else(|| home.join(".cargo"), PathBuf::from);
    let flag = |path: &Path, name: &str| format!("--remap-path-prefix={}={name}", path.display());
    vec![flag(&cargo, "cargo"), flag(&place.root, "motor-cortex")]
}

/// Puts the components of shipped skills beside their `SKILL.md`, where they are missing or from another build.
fn place_skills(place: &Place) -> Result<()> {
    for name in SKILLS {
        let built = place.guests().join("skills").join(name).with_extension("wasm");
        let directory = place.root.join("skills").join(name);
        let there = fs::read(directory.join(name).with_extension("wasm")).ok();
        if there.as_deref() != Some(fs::read(&built)?.as_slice()) {
            install(&built, &directory, name)?;
        }
    }
    Ok(())
}

/// Builds the programs that finish guests, beside another build: without a progress bar.
fn build_helpers(place: &Place) -> Result<()> {
    cargo(&place.root)
        .env("CARGO_TERM_PROGRESS_WHEN", "never")
        .args(["build", "--workspace", "--bin", "preinit", "--bin", "precompile", "--bin", "componentize"])
        .run()
}

/// Builds a program that makes components. With the features of the whole workspace: else the engine in it would be
/// built again for the host.
fn build_helper(place: &Place, name: &str) -> Result<PathBuf> {
    cargo(&place.root).args(["build", "--workspace", "--bin", name]).run()?;
    Ok(place.target.join("debug").join(name))
}

fn build_hostile(place: &Place) -> Result<Vec<String>> {
    let workspace = place.root.join("tests/guests");
    if !workspace.join("Cargo.toml").exists() {
        return Ok(Vec::new());
    }
    let target = place.guest_build().join("hostile");
    let release = target.join("wasm32-wasip2/release");
    // Components of crates that are gone would be taken for built.
    for stale in components_in(&release)? {
        fs::remove_file(stale)?;
    }
    cargo(&workspace)
        .env("CARGO_TARGET_DIR", &target)
        .without_env("RUSTFLAGS")
        .args(["build", "--release", "--workspace", "--target", "wasm32-wasip2"])
        .run()?;
    let built = components_in(&release)?;
    if built.is_empty() {
        bail!("`tests/guests` built no component: its crates need `crate-type = [\"cdylib\"]`");
    }
    let hostile = place.guests().join("hostile");
    for stale in components_in(&hostile)? {
        fs::remove_file(stale)?;
    }
    let componentize = build_helper(place, "componentize")?;
    // A guest of a WIT of its own keeps its documentation.
    let documented = |file: &Path, name: &str| -> Result<String> {
        let wit = workspace.join(name).join("wit");
        if !wit.is_dir() {
            return install(file, &hostile, name);
        }
        let component = target.join(name).with_extension("component.wasm");
        command(&componentize).args([file, &wit, &component]).run()?;
        install(&component, &hostile, name)
    };
    let mut outputs = Vec::new();
    for file in &built {
        let stem = file.file_stem().unwrap_or_default().to_string_lossy();
        outputs.push(documented(file, &stem.replace('_', "-"))?);
    }
    for name in ALSO_PURE {
        cargo(&workspace)
            .env("CARGO_TARGET_DIR", &target)
            .without_env("RUSTFLAGS")
            .args(["build", "--release", "--package", name, "--target", PURE_TARGET])
            .run()?;
        let core = target.join(PURE_TARGET).join("release").join(file_stem(name)).with_extension("wasm");
        let name = format!("{name}-pure");
        let component = componentise(place, &core, &name, &[])?;
        outputs.push(install(&component, &hostile, &name)?);
    }
    for (name, source) in IN_C {
        let core = target.join(name).with_extension("core.wasm");
        compile_c(&workspace.join(name).join(source), &core)?;
        outputs.push(documented(&core, name)?);
    }
    Ok(outputs)
}

/// A core module of C without a library. Clang compiles; the linker is the one that comes with Rust, because clang's own
/// is a package of its own in places.
fn compile_c(source: &Path, core: &Path) -> Result<()> {
    let object = core.with_extension("o");
    command("clang")
        .args(["--target=wasm32-unknown-unknown", "-ffreestanding", "-O2", "-Wall", "-Werror", "-c", "-o"])
        .args([&object, source])
        .run()?;
    let libraries = command("rustc").args(["--print", "target-libdir"]).output().context("`rustc` does not run")?;
    let linker = Path::new(&libraries).with_file_name("bin").join("rust-lld");
    command(linker).args(["-flavor", "wasm", "--no-entry", "-o"]).args([core, &object]).run()
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Cargo names the file of a crate with underscores.
fn file_stem(package: &str) -> String {
    package.replace('-', "_")
}

/// Puts a component in its place. Returns its file name.
fn install(built: &Path, directory: &Path, name: &str) -> Result<String> {
    let file_name = format!("{name}.wasm");
    let beside = directory.join(format!(".{file_name}.new"));
    // Not a copy with the permissions of the original: cargo marks modules as programs, which a skill must not be.
    let component = fs::read(built).with_context(|| format!("the build left no `{}`", built.display()))?;
    fs::write(&beside, component)?;
    fs::rename(&beside, directory.join(&file_name))?;
    Ok(file_name)
}

/// The components in a directory, sorted; empty if there is no such directory.
fn components_in(directory: &Path) -> Result<Vec<PathBuf>> {
    let Ok(entries) = fs::read_dir(directory) else { return Ok(Vec::new()) };
    let mut files = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "wasm") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}
