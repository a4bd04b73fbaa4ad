//! Code of bundled components that was compiled, and packed, when the program was built.
//!
//! It is part of the program, so it is as trustworthy as the program itself. Code of other bytes, of another engine, or
//! for a processor that this machine is not falls out of use: the component is compiled as if there were none. The first use
//! unpacks it into the cache, from which each start maps it: most of its pages are never touched.

use base::ContentHash;

use crate::compile::{deserialize, engine, load_kept};
use crate::engine::Runtime;
use crate::kept_code::KeptCode;
use crate::load_error::{ComponentOrigin, LoadError};

/// Bytes in front of the code: the SHA-256 of the component that it was compiled from. Written by `xtask/preinit`'s
/// program `precompile`.
const HASH_BYTES: usize = 32;

/// Loads the code of the bundled component with this hash. The engine compares its version, its settings and the
/// features of the processor with those that the code was compiled for.
///
/// # Errors
/// If the code is of another component, or the engine refuses it.
pub(crate) fn load(
    runtime: &Runtime,
    code: &[u8],
    component: ContentHash,
) -> Result<wasmtime::component::Component, LoadError> {
    match code.split_at_checked(HASH_BYTES) {
        Some((hash, packed)) if hash == component.as_bytes() => {
            let engine = engine(runtime, ComponentOrigin::Bundled)?;
            let kept = runtime.config().cache.as_ref().map(|cache| KeptCode::of(cache, engine, component));
            let mapped = kept.as_ref().and_then(|kept| load_kept(runtime, &kept.file()?, ComponentOrigin::Bundled));
            if let Some(mapped) = mapped {
                return Ok(mapped);
            }
            let code = zstd::decode_all(packed)
                .map_err(|error| LoadError::NotCompiled { message: format!("its code cannot be unpacked: {error}") })?;
            let compiled = deserialize(runtime, &code, ComponentOrigin::Bundled)?;
            if let Some(kept) = kept {
                // Where it cannot be kept, the next start unpacks again.
                kept.keep(&code).ok();
            }
            Ok(compiled)
        }
        _ => Err(LoadError::NotCompiled { message: "its code was compiled from another component".to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use wasmtime::{Config, Engine};

    use super::*;
    use crate::{Component, EngineConfig, compiler};

    const EMPTY: &[u8] = b"\0asm\x0d\0\x01\0";

    #[test]
    fn code_is_used_for_its_own_component_and_engine_only() {
        let runtime = Runtime::new(EngineConfig::default()).unwrap();
        let compiled = |config: Config| {
            let code = Engine::new(&config).unwrap().precompile_component(EMPTY).unwrap();
            [ContentHash::of(EMPTY).as_bytes().as_slice(), &zstd::encode_all(code.as_slice(), 1).unwrap()].concat()
        };
        let code = compiled(compiler::for_bundled());
        let loads = |code: &[u8]| Component::load_precompiled(&runtime, EMPTY, code).map(drop);
        loads(&code).unwrap();
        let cache = tempfile::tempdir().unwrap();
        let config = || EngineConfig { cache: Some(cache.path().into()), ..EngineConfig::default() };
        let load = || Component::load_precompiled(&Runtime::new(config()).unwrap(), EMPTY, &code).map(drop).unwrap();
        load();
        let files = || fs::read_dir(cache.path().join("compiled")).unwrap().map(|file| file.unwrap().path());
        let kept = files().next().unwrap();
        for damaged in [None, Some(""), Some("damaged")] {
            if let Some(damaged) = damaged {
                fs::write(&kept, damaged).unwrap();
            }
            load();
            assert_eq!(fs::read(&kept).unwrap(), zstd::decode_all(&code[HASH_BYTES..]).unwrap(), "{damaged:?}");
            assert_eq!(files().count(), 1);
        }
        // Another component, no code at all, code of another engine, and code that was cut off.
        let mut other = code.clone();
        other[0] ^= 1;
        let metered = compiled(compiler::for_untrusted());
        for code in [&other[..], &[], &code[..HASH_BYTES], &metered, &code[..code.len() / 2]] {
            assert!(loads(code).is_err(), "{} bytes", code.len());
        }
    }
}
