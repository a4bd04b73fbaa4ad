//! Stamps: the inputs of a set of built files, so that nothing is built twice and nothing stale is used.
//!
//! A stamp holds the hash of the inputs and of each output. A build that was interrupted, or an output that was
//! replaced, does not match its stamp and is built again.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use sha2::{Digest as _, Sha256};

/// Hashes the inputs of a build.
#[derive(Default)]
pub struct Inputs(Sha256);

impl Inputs {
    /// Adds a setting by name.
    pub fn setting(&mut self, name: &str, value: &str) {
        self.field(name.as_bytes());
        self.field(value.as_bytes());
    }

    /// Adds a file, or all files below a directory but build products, by their paths relative to `root`.
    pub fn path(&mut self, root: &Path, path: &str) -> Result<()> {
        let mut files = Vec::new();
        collect(&root.join(path), &mut files)?;
        files.sort();
        for file in files {
            let name = file.strip_prefix(root).unwrap_or(&file).to_string_lossy().into_owned();
            let content = fs::read(&file).with_context(|| format!("cannot read `{name}`"))?;
            self.field(name.as_bytes());
            self.field(&content);
        }
        Ok(())
    }

    /// The hash of all of it.
    pub fn finish(self) -> String {
        hex(self.0)
    }

    // Each field with its length, so that no two lists of fields run together to the same bytes.
    fn field(&mut self, bytes: &[u8]) {
        self.0.update((bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
    }
}

fn collect(path: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    if path.is_file() {
        files.push(path.to_owned());
    } else if path.is_dir() && !path.ends_with("target") && !path.ends_with("__pycache__") {
        for entry in fs::read_dir(path)? {
            collect(&entry?.path(), files)?;
        }
    }
    Ok(())
}

/// Whether the stamp at `stamp` says that its outputs were made from `inputs`, and they are still those.
pub fn is_fresh(stamp: &Path, inputs: &str) -> bool {
    let Ok(text) = fs::read_to_string(stamp) else { return false };
    let mut lines = text.lines();
    let directory = stamp.parent().unwrap_or(Path::new("."));
    lines.next() == Some(inputs)
        && lines.all(|line| {
            line.split_once(' ').is_some_and(|(hash, name)| hash_of(&directory.join(name)).is_ok_and(|now| now == hash))
        })
}

/// Writes a stamp for `outputs`, which are named relative to its directory.
pub fn write(stamp: &Path, inputs: &str, outputs: &[String]) -> Result<()> {
    let directory = stamp.parent().unwrap_or(Path::new("."));
    let mut text = format!("{inputs}\n");
    for output in outputs {
        writeln!(text, "{} {output}", hash_of(&directory.join(output))?)?;
    }
    fs::write(stamp, text).context("cannot write the stamp of the guests")
}

fn hash_of(file: &Path) -> Result<String> {
    let mut hash = Sha256::new();
    hash.update(fs::read(file)?);
    Ok(hex(hash))
}

fn hex(hash: Sha256) -> String {
    hash.finalize().iter().fold(String::with_capacity(64), |mut text, byte| {
        // Writing to a string cannot fail.
        write!(text, "{byte:02x}").ok();
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_holds_until_input_or_output_changes() {
        let directory = std::env::temp_dir().join(format!("xtask-stamp-{}", std::process::id()));
        for product in ["target", "__pycache__"] {
            fs::create_dir_all(directory.join("source").join(product)).unwrap();
        }
        let inputs = |content: &str| {
            fs::write(directory.join("source/a.rs"), content).unwrap();
            let mut inputs = Inputs::default();
            inputs.path(&directory, "source").unwrap();
            inputs.finish()
        };
        let (stamp, first) = (directory.join("stamp"), inputs("one"));
        assert!(!is_fresh(&stamp, &first));
        fs::write(directory.join("out.wasm"), "built").unwrap();
        write(&stamp, &first, &["out.wasm".to_owned()]).unwrap();
        assert!(is_fresh(&stamp, &first));
        fs::write(directory.join("source/target/product"), "ignored").unwrap();
        fs::write(directory.join("source/__pycache__/engine.pyc"), "ignored").unwrap();
        assert!(is_fresh(&stamp, &inputs("one")));
        assert!(!is_fresh(&stamp, &inputs("two")));
        fs::write(directory.join("out.wasm"), "replaced").unwrap();
        assert!(!is_fresh(&stamp, &first));
        fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn fields_do_not_run_together() {
        let hash = |name, value| {
            let mut inputs = Inputs::default();
            inputs.setting(name, value);
            inputs.finish()
        };
        assert_ne!(hash("ab", "c"), hash("a", "bc"));
    }
}
