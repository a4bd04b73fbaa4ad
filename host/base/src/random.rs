//! Randomness, injected: from the system in production, from a seed in a simulation (SPEC SIM-1).

use parking_lot::Mutex;
use rand::{Rng as _, SeedableRng as _, rngs::StdRng};

/// A source of random numbers that can be seeded.
pub struct Random(Mutex<StdRng>);

impl Random {
    /// A generator seeded by the operating system.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "the system's randomness")]
    pub fn from_system() -> Self {
        Self(Mutex::new(rand::make_rng()))
    }

    /// A generator with a fixed seed: the same seed gives the same numbers.
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        Self(Mutex::new(StdRng::seed_from_u64(seed)))
    }

    /// The next 64 random bits.
    pub fn next_u64(&self) -> u64 {
        self.0.lock().next_u64()
    }
}

impl std::fmt::Debug for Random {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Random")
    }
}
