//! Validation, and the reason if it fails: a corrupt file, a proposal that is off and another generation of WASI each
//! need a different fix by the author.

use wasmparser::types::Types;
use wasmparser::{Parser, Payload, ValidPayload, Validator, WasmFeatures};

use super::{corrupt, imports};
use crate::load_error::{LoadError, told};

/// The proposals that a component may use: those that the Component Model's own toolchains emit. The engine is
/// configured to the same.
fn allowed() -> WasmFeatures {
    WasmFeatures::WASM2 | WasmFeatures::COMPONENT_MODEL | WasmFeatures::EXTENDED_CONST | WasmFeatures::MULTI_MEMORY
}

/// Validates a component.
///
/// # Errors
/// A [`LoadError`] that names the problem.
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
    // The validator's message for its own limits, which are wider than those of a sandbox.
    if message.contains("exceeds limit") {
        return Err(LoadError::TooLargeForSandbox {
            message,
            remedy: "make the component smaller: the message names the limit that it exceeds".into(),
        });
    }
    let proposal = with(WasmFeatures::all()).is_ok().then(|| {
        let off = WasmFeatures::all() - allowed();
        // The proposals whose absence alone makes validation fail. Where either of two suffices, neither is listed.
        let needed = off.iter_names().filter(|(_, feature)| with(WasmFeatures::all() - *feature).is_err());
        let needed: Vec<_> = needed.map(|(name, _)| format!("`{}`", name.to_lowercase().replace('_', "-"))).collect();
        if needed.is_empty() { "unknown (see the message of the validator)".to_owned() } else { needed.join(", ") }
    });
    Err(match proposal {
        Some(proposal) => {
            let remedy = if proposal.contains("cm-async") {
                "make its functions synchronous: `async` comes with WASI 0.3, and this host runs WASI 0.2"
            } else {
                "build it with these features disabled: the target `wasm32-wasip2` does not need them"
            };
            LoadError::Proposal { proposal, offset, message, remedy: remedy.into() }
        }
        None => LoadError::Corrupt { offset, message },
    })
}

/// The types of a component, without validating the bodies of its functions.
///
/// # Errors
/// If it is not a valid component apart from the bodies of its functions.
pub(super) fn types(bytes: &[u8]) -> Result<Types, LoadError> {
    let mut validator = Validator::new_with_features(allowed());
    let mut types = None;
    for payload in Parser::new(0).parse_all(bytes) {
        let valid = payload.and_then(|payload| validator.payload(&payload)).map_err(|error| corrupt(&error))?;
        if let ValidPayload::End(found) = valid {
            types = Some(found);
        }
    }
    types.ok_or(LoadError::Empty)
}

/// The first import or export of an unsupported WASI: such a component also uses proposals that come with that WASI,
/// and naming those would mislead its author.
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
