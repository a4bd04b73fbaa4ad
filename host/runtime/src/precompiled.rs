//! Code of bundled components that was compiled, and packed, when the program was built.
//!
//! It is part of the program, so it is as trustworthy as the program itself. Code of other bytes, of another engine, or
//! for a processor that this machine is not falls out of use: the component is compiled as if there were none.

use base::ContentHash;

use crate::compile::deserialize;
use crate::engine::Runtime;
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
            let code = zstd::decode_all(packed)
                .map_err(|error| LoadError::NotCompiled { message: format!("its code cannot be unpacked: {error}") })?;
            deserialize(runtime, &code, ComponentOrigin::Bundled)
        }
        _ => Err(LoadError::NotCompiled { message: "its code was compiled from another component".to_owned() }),
    }
}

#[cfg(test)]
mod tests {
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
        // Another component, no code at all, code of another engine, and code that was cut off.
        let mut other = code.clone();
        other[0] ^= 1;
        let metered = compiled(compiler::for_untrusted());
        for code in [&other[..], &[], &code[..HASH_BYTES], &metered, &code[..code.len() / 2]] {
            assert!(loads(code).is_err(), "{} bytes", code.len());
        }
    }
}
