//! `wasi:random` with a byte limit, so that a guest cannot keep the host generating random bytes.

use wasmtime::component::HasData;
use wasmtime_wasi::p2::bindings::random::{insecure, insecure_seed, random};
use wasmtime_wasi::random::WasiRandomCtx;

use crate::Limit;
use crate::limit::CallCounter;

/// The source of random bytes of one tool call, with the rest of its allowance.
pub struct RandomCtx {
    inner: WasiRandomCtx,
    bytes: CallCounter,
}

impl RandomCtx {
    /// A source that returns at most `bytes` bytes, from the system's generator.
    #[must_use]
    pub fn new(bytes: u64) -> Self {
        Self { inner: WasiRandomCtx::default(), bytes: CallCounter::new(Limit::RandomBytes, bytes) }
    }
}

/// The view that implements the host traits.
pub struct RandomView<'a>(pub &'a mut RandomCtx);

/// Marks stores that have a [`RandomCtx`].
pub struct HasRandom;

impl HasData for HasRandom {
    type Data<'a> = RandomView<'a>;
}

impl random::Host for RandomView<'_> {
    fn get_random_bytes(&mut self, len: u64) -> wasmtime::Result<Vec<u8>> {
        self.0.bytes.spend(len)?;
        random::Host::get_random_bytes(&mut self.0.inner, len)
    }

    fn get_random_u64(&mut self) -> wasmtime::Result<u64> {
        self.0.bytes.spend(8)?;
        random::Host::get_random_u64(&mut self.0.inner)
    }
}

impl insecure::Host for RandomView<'_> {
    fn get_insecure_random_bytes(&mut self, len: u64) -> wasmtime::Result<Vec<u8>> {
        self.0.bytes.spend(len)?;
        insecure::Host::get_insecure_random_bytes(&mut self.0.inner, len)
    }

    fn get_insecure_random_u64(&mut self) -> wasmtime::Result<u64> {
        self.0.bytes.spend(8)?;
        insecure::Host::get_insecure_random_u64(&mut self.0.inner)
    }
}

impl insecure_seed::Host for RandomView<'_> {
    // Not counted: it is one value, made before the call.
    fn insecure_seed(&mut self) -> wasmtime::Result<(u64, u64)> {
        insecure_seed::Host::insecure_seed(&mut self.0.inner)
    }
}

#[cfg(test)]
mod tests {
    use wasmtime_wasi::p2::bindings::random::random::Host as _;

    use super::*;
    use crate::LimitExceeded;

    #[test]
    fn bytes_flow_until_the_limit() {
        let mut ctx = RandomCtx::new(40);
        let mut view = RandomView(&mut ctx);
        assert_eq!(view.get_random_bytes(32).unwrap().len(), 32);
        view.get_random_u64().unwrap();
        let error = view.get_random_bytes(1).unwrap_err();
        assert_eq!(error.downcast_ref::<LimitExceeded>().unwrap().limit, Limit::RandomBytes);
        assert!(RandomView(&mut RandomCtx::new(40)).get_random_bytes(u64::MAX).is_err());
    }
}
