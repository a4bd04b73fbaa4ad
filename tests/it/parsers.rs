//! Parsers of bytes from outside read any bytes: mutations of real ones get an answer, never a panic.

use proptest::prelude::*;
use runtime::inspect;

const MAX_BYTES: u64 = 1 << 20;

/// One change to some bytes.
#[derive(Debug, Clone)]
pub(super) enum Mutation {
    Flip { at: prop::sample::Index, mask: u8 },
    Cut { at: prop::sample::Index },
    Repeat { from: prop::sample::Index, length: usize },
    Remove { from: prop::sample::Index, length: usize },
    Insert { at: prop::sample::Index, bytes: Vec<u8> },
}

pub(super) fn mutation() -> impl Strategy<Value = Mutation> {
    let index = any::<prop::sample::Index>;
    prop_oneof![
        4 => (index(), 1..=u8::MAX).prop_map(|(at, mask)| Mutation::Flip { at, mask }),
        1 => index().prop_map(|at| Mutation::Cut { at }),
        1 => (index(), 1..200_usize).prop_map(|(from, length)| Mutation::Repeat { from, length }),
        1 => (index(), 1..200_usize).prop_map(|(from, length)| Mutation::Remove { from, length }),
        1 => (index(), prop::collection::vec(any::<u8>(), 1..40)).prop_map(|(at, bytes)| Mutation::Insert { at, bytes }),
    ]
}

pub(super) fn apply(bytes: &mut Vec<u8>, mutation: Mutation) {
    let length = bytes.len();
    if length == 0 {
        return;
    }
    match mutation {
        Mutation::Flip { at, mask } => bytes[at.index(length)] ^= mask,
        Mutation::Cut { at } => bytes.truncate(at.index(length)),
        Mutation::Repeat { from, length: run } => {
            let from = from.index(length);
            let piece = bytes[from..(from + run).min(length)].to_vec();
            bytes.splice(from..from, piece);
        }
        Mutation::Remove { from, length: run } => {
            let from = from.index(length);
            bytes.drain(from..(from + run).min(length));
        }
        Mutation::Insert { at, bytes: new } => {
            let at = at.index(length);
            bytes.splice(at..at, new);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn a_mutated_component_gets_an_answer(mutations in prop::collection::vec(mutation(), 1..6)) {
        let mut bytes = tests::hostile_guest("bad-descriptions");
        for mutation in mutations {
            apply(&mut bytes, mutation);
        }
        // An accepted component is bound to exactly these bytes.
        if let Ok(inspection) = inspect(&bytes, MAX_BYTES) {
            prop_assert_eq!(inspection.hash, base::ContentHash::of(&bytes));
        }
    }

    #[test]
    fn any_bytes_get_an_answer(bytes in prop::collection::vec(any::<u8>(), 0..400), kind in 0..3_u8) {
        let header: &[u8] = match kind {
            0 => b"",
            1 => b"\0asm\x0d\0\x01\0",
            _ => b"\0asm\x01\0\0\0",
        };
        let bytes = [header, &bytes].concat();
        prop_assert!(inspect(&bytes, MAX_BYTES).map_or_else(|error| !error.to_string().is_empty(), |_| kind == 1));
    }
}
