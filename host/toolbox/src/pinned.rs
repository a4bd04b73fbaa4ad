//! Engines that are files beside the program: taken from anywhere, as they have the hashes that the program was built with.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use base::{ContentHash, Refusal, RefusalCode};
use bundled::PinnedEngine;

use crate::BundledComponent;

/// An engine whose file is there. It is not known to be the right one before it is read.
pub(crate) struct FoundEngine {
    pinned: &'static PinnedEngine,
    directory: PathBuf,
    pub(crate) component: ContentHash,
}

/// The engine with this name, in the first of these directories that has its file.
pub(crate) fn find(name: &str, directories: &[PathBuf]) -> Option<FoundEngine> {
    let pinned = bundled::engine(name)?;
    let built_in = PathBuf::from(pinned.built_in);
    let mut places = directories.iter().chain([&built_in]);
    let directory = places.find(|directory| file(directory, pinned, "wasm").is_file())?.clone();
    Some(FoundEngine {
        pinned,
        directory,
        component: serde_json::from_value(format!("sha256:{}", pinned.component).into()).ok()?,
    })
}

fn file(directory: &Path, pinned: &PinnedEngine, extension: &str) -> PathBuf {
    directory.join(pinned.name).with_extension(extension)
}

impl FoundEngine {
    /// Reads the component, and its code if that is there. Both have the hashes that the program knows.
    pub(crate) async fn read(self) -> Result<BundledComponent, Refusal> {
        let Self { pinned, directory, component } = self;
        let work = move || {
            let bytes = checked(&file(&directory, pinned, "wasm"), &component.hex())?;
            // Without it the component is compiled, once.
            let code = checked(&file(&directory, pinned, "code"), pinned.code).ok();
            Ok(BundledComponent { bytes, code: code.map(Cow::Owned) })
        };
        let failed = |error: tokio::task::JoinError| Err(store::broke_off(&error));
        tokio::task::spawn_blocking(work).await.unwrap_or_else(failed)
    }
}

fn checked(path: &Path, hash: &str) -> Result<Vec<u8>, Refusal> {
    let refused = |why: String| {
        let reason = format!("the engine `{}` cannot be used: {why}", path.display());
        let remedy = "build it and the program together: `cargo xtask python`, then the program";
        Refusal::new(RefusalCode::InvalidComponent, reason).with_remedy(remedy)
    };
    let bytes = std::fs::read(path).map_err(|error| refused(error.to_string()))?;
    match ContentHash::of(&bytes).hex() == hash {
        true => Ok(bytes),
        false => Err(refused("it is not the one that the program was built with".to_owned())),
    }
}
