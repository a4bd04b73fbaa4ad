//! Decisions of a simulation: each part has its own stream of them, so that one more in one part moves no other.

use std::time::Duration;

use base::Random;

pub struct Chance(Random);

impl Chance {
    /// The stream of one part of the simulation of a seed.
    pub fn new(seed: u64, part: u64) -> Self {
        Self(Random::seeded(seed.wrapping_mul(1_000).wrapping_add(part)))
    }

    pub fn number(&self) -> u64 {
        self.0.next_u64()
    }

    /// From 0 to below `end`.
    pub fn below(&self, end: u64) -> u64 {
        self.number() % end
    }

    pub fn percent(&self, chance: u64) -> bool {
        self.below(100) < chance
    }

    pub fn pick<'a, T>(&self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len() as u64) as usize]
    }

    /// A span of any order of magnitude up to `most`: short ones are as likely as long ones.
    pub fn span(&self, most: Duration) -> Duration {
        let most = most.as_millis() as u64;
        let magnitude = 1_u64 << self.below(u64::from(u64::BITS - most.leading_zeros()) + 1);
        Duration::from_millis(self.below(magnitude.min(most)))
    }
}
