//! Where things are: the repository, the directories build products go to, and whether the machine may be changed.

use std::path::PathBuf;

use anyhow::{Context as _, Result};

use crate::process::{Command, cargo};
use crate::setup::Installing;

/// The directories of this clone.
pub struct Place {
    /// The root of the repository.
    pub root: PathBuf,
    /// Cargo's target directory: `CARGO_TARGET_DIR`, or `target` in the repository.
    pub target: PathBuf,
    /// Whether missing programs may be installed.
    pub installing: Installing,
}

impl Place {
    /// Finds them from where this program was built, from any current directory.
    pub fn find(installing: Installing) -> Result<Self> {
        let manifest = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
        let root = manifest.parent().context("`xtask` is not in the repository")?.to_owned();
        let target = match std::env::var_os("CARGO_TARGET_DIR") {
            Some(directory) => std::env::current_dir()?.join(directory),
            None => root.join("target"),
        };
        Ok(Self { root, target, installing })
    }

    /// The directory of the finished components.
    pub fn guests(&self) -> PathBuf {
        self.target.join("guests")
    }

    /// Where guests are compiled. Not cargo's usual directory: their flags differ, and each would rebuild the other's.
    pub fn guest_build(&self) -> PathBuf {
        self.target.join("guest-build")
    }

    /// Cargo for the workspace of the guests.
    pub fn guest_cargo(&self) -> Command {
        let directory = self.root.join("guest-tools");
        cargo(&directory).env("CARGO_TARGET_DIR", self.guest_build()).without_env("RUSTFLAGS")
    }
}
