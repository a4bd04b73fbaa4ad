//! `Math.random` from the call's seed: SplitMix64, so that every seed, zero too, gives a good stream at once.

use std::cell::Cell;

thread_local! {
    static STATE: Cell<u64> = const { Cell::new(0) };
}

/// Sets the seed of the call.
pub fn seed(seed: u64) {
    STATE.set(seed);
}

/// The next number in [0, 1), with 53 random bits.
pub fn next() -> f64 {
    let state = STATE.get().wrapping_add(0x9E37_79B9_7F4A_7C15);
    STATE.set(state);
    let mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
    let fraction = ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1_u64 << 53) as f64;
    fraction
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_seed_same_stream() {
        let stream = |value| {
            seed(value);
            [next(), next(), next()]
        };
        assert_eq!(stream(7), stream(7));
        assert_ne!(stream(7), stream(8));
        assert!(stream(0).iter().all(|number| (0.0..1.0).contains(number)));
    }
}
