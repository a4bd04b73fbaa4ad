//! The bits of the filters: the bits of a key, setting and testing them.

/// The index of a key's bit.
pub(super) fn slot(key: u64, shift: u32) -> usize {
    // The multiplier of Fibonacci hashing spreads neighbours; the topmost bits are the good ones.
    usize::try_from(key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> shift).unwrap_or_default()
}

/// The index of a key's second bit.
pub(super) fn second_slot(key: u64, shift: u32) -> usize {
    slot(key.rotate_left(32) ^ 0x5bd1_e995, shift)
}

/// Sets one bit of a filter.
pub(super) fn set(filter: &mut [u64], bit: usize) {
    if let Some(word) = filter.get_mut(bit / 64) {
        *word |= 1 << (bit % 64);
    }
}

/// Whether a bit is set.
pub(super) fn is_set(filter: &[u64], bit: usize) -> bool {
    filter.get(bit / 64).is_some_and(|word| word >> (bit % 64) & 1 == 1)
}
