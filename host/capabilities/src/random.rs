//! `wasi:random` with a byte limit, so that a guest cannot keep the host generating random bytes.

use base::Random;
use wasmtime::component::HasData;
use wasmtime_wasi::p2::bindings::random::{insecure, insecure_seed, random};
use wasmtime_wasi::random::WasiRandomCtx;

use crate::Limit;
use crate::limit::CallCounter;

/// The source of random bytes of one tool call, with the rest of its allowance.
pub struct RandomCtx {
    inner: WasiRandomCtx,
    seeded: Option<Random>,
    bytes: CallCounter,
}

impl RandomCtx {
    /// A source that returns at most `bytes` bytes, from the system's generator.
    #[must_use]
    pub fn new(bytes: u64) -> Self {
        Self { inner: WasiRandomCtx::default(), seeded: None, bytes: CallCounter::new(Limit::RandomBytes, bytes) }
    }

    /// The same, from a generator that gives the same bytes for the same seed. Guests that make secrets of them make none.
    #[must_use]
    pub fn seeded(bytes: u64, seed: u64) -> Self {
        Self { seeded: Some(Random::seeded(seed)), ..Self::new(bytes) }
    }

    /// The next bytes of a seeded source. The count is within the limit already.
    fn drawn(&self, len: u64) -> Option<Vec<u8>> {
        let random = self.seeded.as_ref()?;
        let len = usize::try_from(len).ok()?;
        let mut bytes: Vec<u8> = (0..len.div_ceil(8)).flat_map(|_| random.next_u64().to_le_bytes()).collect();
        bytes.truncate(len);
        Some(bytes)
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
        match self.0.drawn(len) {
            Some(bytes) => Ok(bytes),
            None => random::Host::get_random_bytes(&mut self.0.inner, len),
        }
    }

    fn get_random_u64(&mut self) -> wasmtime::Result<u64> {
        self.0.bytes.spend(8)?;
        match &self.0.seeded {
            Some(random) => Ok(random.next_u64()),
            None => random::Host::get_random_u64(&mut self.0.inner),
        }
    }
}

impl insecure::Host for RandomView<'_> {
    fn get_insecure_random_bytes(&mut self, len: u64) -> wasmtime::Result<Vec<u8>> {
        self.0.bytes.spend(len)?;
        match self.0.drawn(len) {
            Some(bytes) => Ok(bytes),
            None => insecure::Host::get_insecure_random_bytes(&mut self.0.inner, len),
        }
    }

    fn get_insecure_random_u64(&mut self) -> wasmtime::Result<u64> {
        self.0.bytes.spend(8)?;
        match &self.0.seeded {
            Some(random) => Ok(random.next_u64()),
            None => insecure::Host::get_insecure_random_u64(&mut self.0.inner),
        }
    }
}

impl insecure_seed::Host for RandomView<'_> {
    // Not counted: it is one value, made before the call.
    fn insecure_seed(&mut self) -> wasmtime::Result<(u64, u64)> {
        match &self.0.seeded {
            Some(random) => Ok((random.next_u64(), random.next_u64())),
            None => insecure_seed::Host::insecure_seed(&mut self.0.inner),
        }
    }
}

#[cfg(test)]
mod tests {
    use wasmtime_wasi::p2::bindings::random::random::Host as _;

    use super::*;
    use crate::LimitExceeded;

    #[test]
    fn the_same_seed_gives_the_same_bytes_within_the_same_limit() {
        let drawn = |mut ctx: RandomCtx| {
            let mut view = RandomView(&mut ctx);
            let bytes = view.get_random_bytes(13).unwrap();
            let more = insecure::Host::get_insecure_random_bytes(&mut view, 8).unwrap();
            let seed = insecure_seed::Host::insecure_seed(&mut view).unwrap();
            (bytes, more, view.get_random_u64().unwrap(), seed)
        };
        let of_seven = drawn(RandomCtx::seeded(40, 7));
        assert_eq!(of_seven.0.len(), 13);
        assert_eq!(of_seven, drawn(RandomCtx::seeded(40, 7)));
        assert_ne!(of_seven, drawn(RandomCtx::seeded(40, 8)));
        assert_ne!(drawn(RandomCtx::new(40)), drawn(RandomCtx::new(40)));
        assert!(RandomView(&mut RandomCtx::seeded(40, 7)).get_random_bytes(41).is_err());
    }

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
