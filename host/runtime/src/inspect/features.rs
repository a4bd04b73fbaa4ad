//! Validation, and the reason when it fails: a corrupt file, a proposal that is off, or another generation of WASI are
//! three different things to do for an author.

use wasmparser::types::Types;
use wasmparser::{Parser, Payload, Validator, WasmFeatures};

use super::imports;
use crate::load_error::{LoadError, told};

/// The proposals that a component may use: those that the Component Model's own toolchains emit. The engine is configured
/// to the same.
fn allowed() -> WasmFeatures {
    WasmFeatures::WASM2 | WasmFeatures::COMPONENT_MODEL | WasmFeatures::EXTENDED_CONST | WasmFeatures::MULTI_MEMORY
}

/// Validates a component.
///
/// # Errors
/// A [`LoadError`] that names what is wrong with it.
pub(super) fn validate(bytes: &[u8]) -> Result<Types, LoadError> {
    let with = |features| Validator::new_with_features(features).validate_all(bytes);
    let error = match with(allowed()) {
        Ok(types) => return Ok(types),
        Err(error) => error,
    };
    if let Some(refused) = other_wasi(bytes) {
        return Err(refused);
    }
    let (offset, message) = (error.offset(), told(error.message()));
    // The words of the validator for its own limits, which are wider than those of a sandbox.
    if message.contains("exceeds limit") {
        return Err(LoadError::TooLargeForSandbox { message, remedy: "build it of fewer parts".into() });
    }
    let proposal = with(WasmFeatures::all()).is_ok().then(|| {
        let off = WasmFeatures::all() - allowed();
        // Those without which it does not validate. Two that could stand in for each other are both left out.
        let needed = off.iter_names().filter(|(_, feature)| with(WasmFeatures::all() - *feature).is_err());
        let needed: Vec<_> = needed.map(|(name, _)| format!("`{}`", name.to_lowercase().replace('_', "-"))).collect();
        if needed.is_empty() { "named in this message".to_owned() } else { needed.join(", ") }
    });
    Err(match proposal {
        Some(proposal) => {
            let remedy = if proposal.contains("cm-async") {
                "make its functions synchronous: `async` comes with WASI 0.3, and this host runs WASI 0.2"
            } else {
                "build it without: `wasm32-wasip2` needs none of them"
            };
            LoadError::Proposal { proposal, offset, message, remedy: remedy.into() }
        }
        None => LoadError::Corrupt { offset, message },
    })
}

/// The first import or export of a WASI that is not spoken here: it also uses proposals which come with that WASI, and
/// naming those would send its author the wrong way.
fn other_wasi(bytes: &[u8]) -> Option<LoadError> {
    let mut depth = 0_u32;
    for payload in Parser::new(0).parse_all(bytes) {
        let refused = |name: &str| (depth == 0).then(|| imports::other_wasi(name)).flatten();
        match payload.ok()? {
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
            Payload::End(_) => depth = depth.saturating_sub(1),
            Payload::ComponentImportSection(section) => {
                let found = section.into_iter().filter_map(Result::ok).find_map(|import| refused(import.name.name));
                if found.is_some() {
                    return found;
                }
            }
            Payload::ComponentExportSection(section) => {
                let found = section.into_iter().filter_map(Result::ok).find_map(|export| refused(export.name.name));
                if found.is_some() {
                    return found;
                }
            }
            _ => (),
        }
    }
    None
}
